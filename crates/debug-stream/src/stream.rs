//! One logical core's stream: its publishers, its one consumer, its counters.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::consumer::{Consumer, EventReader};
use crate::event::Fields;
use crate::filter::Filter;
use crate::options::StreamOptions;
use crate::publisher::Publisher;
use crate::queue::{Bounds, Losses, Queue, Reader, Unconnected};

/// The events of one logical core. Clones are the same stream.
#[derive(Clone)]
pub struct Stream {
    queue: Arc<Queue>,
    shared: Arc<Shared>,
}

/// What publishers look at besides the queue.
pub(crate) struct Shared {
    pub(crate) core: u32,
    filters: AtomicBool,
    filter: RwLock<Option<Filter>>,
    filtered: AtomicU64,
}

/// What a stream did so far. `produced` is the sum of delivered, unread, waiting and lost events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamCounters {
    /// Events that passed the filter while somebody was connected.
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
        let shared = Shared {
            core,
            filters: AtomicBool::new(options.filter.is_some()),
            filter: RwLock::new(options.filter),
            filtered: AtomicU64::new(0),
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

    /// Connects the consumer, which is told of losses too.
    ///
    /// # Errors
    /// When there is one already, or the system is short of descriptors or memory.
    pub fn connect(&self) -> Result<Consumer, ConnectError> {
        Ok(Consumer::new(self.connect_to_queue(true)?))
    }

    /// Connects a consumer of events only: losses are counted, but do not make it readable.
    ///
    /// # Errors
    /// As for [`Stream::connect`].
    pub fn connect_for_events(&self) -> Result<EventReader, ConnectError> {
        Ok(EventReader::new(self.connect_to_queue(false)?))
    }

    fn connect_to_queue(&self, wants_losses: bool) -> Result<Reader, ConnectError> {
        self.queue.connect(wants_losses).map_err(|refused| match refused {
            Unconnected::Occupied => ConnectError::Occupied,
            Unconnected::NoDescriptor(error) => ConnectError::Descriptor(error.into()),
            Unconnected::NoMemory => ConnectError::Memory,
        })
    }

    /// Sets which events are wanted from now on; all, if there is no filter.
    pub fn set_filter(&self, filter: Option<Filter>) {
        let mut current = self.shared.filter.write().unwrap_or_else(PoisonError::into_inner);
        self.shared.filters.store(filter.is_some(), Ordering::Relaxed);
        *current = filter;
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> StreamCounters {
        let totals = self.queue.totals();
        StreamCounters {
            produced: totals.reserved + totals.lost.sum(),
            delivered: totals.delivered,
            unread: totals.unread,
            waiting: totals.waiting,
            waiting_bytes: totals.waiting_bytes,
            high_water: totals.high_water,
            lost: totals.lost,
            filtered: self.shared.filtered.load(Ordering::Relaxed),
            idle_bytes: u64::try_from(totals.idle_bytes).unwrap_or(u64::MAX),
            descriptor_writes: totals.descriptor_writes,
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Whether there is a filter at all, which spares publishers the lock.
    #[inline(always)]
    pub(crate) fn filters(&self) -> bool {
        self.filters.load(Ordering::Relaxed)
    }

    /// Whether an event is wanted; counts it if not.
    pub(crate) fn wants(&self, event: &Fields<'_>) -> bool {
        // The lock is held for writing only while a filter is exchanged.
        let filter = self.filter.read().unwrap_or_else(PoisonError::into_inner);
        let wanted = filter.as_ref().is_none_or(|filter| filter.wants(event));
        if !wanted {
            self.filtered.fetch_add(1, Ordering::Relaxed);
        }
        wanted
    }
}
