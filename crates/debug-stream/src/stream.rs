//! One logical core's stream: its publishers, its one consumer, its counters.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::consumer::{Consumer, EventReader};
use crate::filter::Filter;
use crate::options::StreamOptions;
use crate::publisher::Publisher;
use crate::queue::{Bounds, Losses, Queue, Reader, Unconnected};
use crate::shared::{ConnectionEnd, StreamShared};
use crate::standby::{Occupancy, Standby};
use crate::sync::wait_a_little;

/// The events of one logical core. Clones are the same stream.
#[derive(Clone)]
pub struct Stream {
    queue: Arc<Queue>,
    shared: Arc<StreamShared>,
}

/// What a stream did so far. `produced` is the sum of delivered, unread, waiting and lost events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounters {
    /// Whether a consumer is connected.
    pub connected: bool,
    /// Events that passed the filter while a consumer was connected.
    pub produced: u64,
    /// Events that a consumer took.
    pub delivered: u64,
    /// Events that were waiting when a connection ended.
    pub unread: u64,
    /// Events that wait now, also those that are still being copied.
    pub waiting: u64,
    /// The bytes of those, headers included.
    pub waiting_bytes: u64,
    /// The most events that ever waited at once.
    pub high_water: u64,
    /// Events that were lost.
    pub lost: Losses,
    /// Events that the filter did not want.
    pub filtered: u64,
    /// Delivered events that their consumer could not keep: [`Stream::count_unsaved`].
    pub unsaved: u64,
    /// Memory that is kept for events to come, in bytes.
    pub idle_bytes: u64,
    /// How often the descriptor was made readable.
    pub descriptor_writes: u64,
}

/// Why a consumer cannot connect.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is one already.
    #[error("the debug stream of this core has a consumer already; only one may be connected")]
    Occupied,
    /// No descriptor could be made.
    #[error("cannot make a descriptor for the debug stream; close files or raise the limit")]
    Descriptor(#[source] io::Error),
    /// There is no memory for the first events.
    #[error("the system gives no memory for the debug stream")]
    Memory,
}

// === impl Stream ===

impl Stream {
    /// A stream without a consumer. Takes no memory for events yet.
    #[must_use]
    pub fn new(core: u32, options: StreamOptions) -> Self {
        let bounds = Bounds { events: options.max_events, bytes: options.max_bytes };
        let shared = StreamShared {
            core,
            filters: AtomicBool::new(options.filter.is_some()),
            filter: RwLock::new(options.filter),
            filtered: AtomicU64::new(0),
            unsaved: AtomicU64::new(0),
            standby: Standby::new(),
        };
        Self { queue: Queue::new(bounds), shared: Arc::new(shared) }
    }

    /// The logical core.
    #[must_use]
    pub fn core(&self) -> u32 {
        self.shared.core
    }

    /// An end for producers.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher::new(Arc::clone(&self.queue), Arc::clone(&self.shared))
    }

    /// Connects the consumer, which receives losses too. A standby makes room for it, for which
    /// this waits up to a second.
    ///
    /// # Errors
    /// When there is one already, or the system is short of descriptors or memory.
    pub fn connect(&self) -> Result<Consumer, ConnectError> {
        Ok(Consumer::new(self.connect_as_client(true)?, self.ending(false)))
    }

    /// Connects a consumer of events only: losses are counted, but do not make it readable. A
    /// standby makes room as for [`Stream::connect`].
    ///
    /// # Errors
    /// As for [`Stream::connect`].
    pub fn connect_for_events(&self) -> Result<EventReader, ConnectError> {
        Ok(EventReader::new(self.connect_as_client(false)?, self.ending(false)))
    }

    /// Connects a consumer that reads while no client does. `wake_up`, an eventfd that may serve many
    /// streams, is written to when something waits to be taken after [`Consumer::try_next`] found
    /// nothing; when a client wants the standby's place ([`Stream::is_wanted`]), upon which it must be
    /// dropped soon; and when a client has gone, upon which it may be connected again. Reading the
    /// eventfd is up to the caller, before it checks the streams.
    ///
    /// # Errors
    /// As for [`Stream::connect`]; also while a client waits to be connected.
    pub fn connect_standby(&self, wake_up: &Arc<OwnedFd>) -> Result<Consumer, ConnectError> {
        if !self.shared.standby.claim(wake_up) {
            return Err(ConnectError::Occupied);
        }
        match self.queue.connect(true, Some(wake_up)) {
            Ok(reader) => Ok(Consumer::new(reader, self.ending(true))),
            Err(refused) => {
                self.shared.standby.give_up();
                Err(refused.into())
            }
        }
    }

    /// Whether a consumer is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.queue.is_connected()
    }

    /// Whether a client waits for the standby to make room.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.shared.standby.is_wanted()
    }

    fn connect_as_client(&self, wants_losses: bool) -> Result<Reader, ConnectError> {
        match self.queue.connect(wants_losses, None) {
            Err(Unconnected::Occupied) => {}
            outcome => return outcome.map_err(ConnectError::from),
        }
        let mut waiting = self.shared.standby.wait();
        loop {
            waiting.check_holder();
            match self.queue.connect(wants_losses, None) {
                Err(Unconnected::Occupied) => match waiting.found_taken() {
                    Occupancy::ByStandby => {}
                    Occupancy::ByAnother => return Err(ConnectError::Occupied),
                },
                outcome => return outcome.map_err(ConnectError::from),
            }
        }
    }

    fn ending(&self, is_standby: bool) -> ConnectionEnd {
        ConnectionEnd::new(Arc::clone(&self.shared), is_standby)
    }

    /// Waits until all that was published before this call has been taken by the connected consumer,
    /// or the connection ended; whether that came to pass in time.
    #[must_use]
    pub fn wait_until_taken(&self, timeout: Duration) -> bool {
        let accepted = |counters: &StreamCounters| counters.produced - counters.lost.sum();
        let target = accepted(&self.counters());
        let deadline = Instant::now().checked_add(timeout);
        let mut attempts = 0;
        loop {
            let counters = self.counters();
            if counters.delivered + counters.unread >= target {
                return true;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return false;
            }
            wait_a_little(&mut attempts);
        }
    }

    /// Counts events that a consumer took and could not keep, as when their files cannot be
    /// written.
    pub fn count_unsaved(&self, events: u64) {
        self.shared.unsaved.fetch_add(events, Ordering::Relaxed);
    }

    /// Sets which events are wanted from now on; all, if there is no filter.
    pub fn set_filter(&self, filter: Option<Filter>) {
        let mut current = self.shared.filter.write().unwrap_or_else(PoisonError::into_inner);
        self.shared.filters.store(filter.is_some(), Ordering::Relaxed);
        *current = filter;
    }

    /// What happened so far. In a child of `fork` that did not connect itself: nothing.
    #[must_use]
    pub fn counters(&self) -> StreamCounters {
        if self.queue.is_foreign() {
            return StreamCounters::default();
        }
        let totals = self.queue.totals();
        StreamCounters {
            connected: self.queue.is_connected(),
            produced: totals.reserved + totals.lost.sum(),
            delivered: totals.delivered,
            unread: totals.unread,
            waiting: totals.waiting,
            waiting_bytes: totals.waiting_bytes,
            high_water: totals.high_water,
            lost: totals.lost,
            filtered: self.shared.filtered.load(Ordering::Relaxed),
            unsaved: self.shared.unsaved.load(Ordering::Relaxed),
            idle_bytes: u64::try_from(totals.idle_bytes).unwrap_or(u64::MAX),
            descriptor_writes: totals.descriptor_writes,
        }
    }
}

impl From<Unconnected> for ConnectError {
    fn from(refused: Unconnected) -> Self {
        match refused {
            Unconnected::Occupied => Self::Occupied,
            Unconnected::NoDescriptor(error) => Self::Descriptor(error.into()),
            Unconnected::NoMemory => Self::Memory,
        }
    }
}

// === impl StreamCounters ===

impl StreamCounters {
    /// Whether anybody ever connected and something came of it, or is connected now.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.connected || self.produced > 0 || self.filtered > 0
    }
}
