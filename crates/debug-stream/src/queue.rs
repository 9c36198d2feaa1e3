//! The queue below a stream: many producers, one consumer, events of any size.
//!
//! A producer reserves its place inside a short lock, copies its bytes outside it, and commits. So
//! it waits for other producers for the nanoseconds of a reservation only, and for the consumer
//! never: what does not fit is lost and counted. The consumer takes no lock while it follows
//! committed events. This module and those below it have the crate's only unsafe code.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use self::lock::Locked;
use self::pool::Pool;
use self::record::{HEADER_BYTES, HeaderPosition, Size, coarse_time_ns};
use self::segment::{SEGMENT_BYTES, Segment, class_of};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use crate::wake_up::{ConsumerProgress, Descriptor, WakeUp};

mod lock;
mod pool;
mod process;
mod reader;
mod record;
#[cfg(feature = "tokio")]
mod registration;
mod segment;

pub(crate) use self::reader::{NextRecord, QueuedEvent, Reader};
#[cfg(test)]
pub(crate) use self::record::Body;
pub(crate) use self::record::{Draft, Facts};
#[cfg(feature = "tokio")]
pub(crate) use self::registration::register;

/// The queue of one stream, for as long as the stream lives.
pub(crate) struct Queue {
    connected: AtomicBool,
    /// The process that connected, as [`process::generation`] numbers it.
    generation: AtomicU32,
    bounds: Bounds,
    tail: Locked<Tail>,
    wake_up_fd: WakeUp,
    progress: ConsumerProgress,
    /// The sum of the losses; for looks outside of the lock.
    lost: AtomicU64,
    pool: Pool,
    /// Whether there is or was a reader that has not finished yet.
    occupied: AtomicBool,
    descriptor: Locked<Option<Arc<OwnedFd>>>,
    /// Whether the descriptor is for its owner to make unreadable, who has it for several queues.
    is_shared: AtomicBool,
    descriptor_writes: AtomicU64,
}

/// What may wait in a queue at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

/// Why an event was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// As many events were waiting as the stream may hold.
    Events,
    /// Its bytes would have exceeded the stream's budget.
    Bytes,
    /// The system gave no memory.
    Memory,
}

/// Lost events by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// Lost because as many events were waiting as the stream may hold.
    pub events: u64,
    /// Lost because their bytes would have exceeded the stream's budget.
    pub bytes: u64,
    /// Lost because the system gave no memory.
    pub memory: u64,
}

/// Why an event is not in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueRefusal {
    Lost(LossCause),
    Disconnected,
}

/// Where producers are. Positions and sums go on from one connection to the next. What every event
/// needs comes first, in the cache line of the lock.
#[repr(C)]
struct Tail {
    /// The segment that is being filled; the consumer's, or what it will get to.
    base: Option<NonNull<u8>>,
    offset: usize,
    reserved: u64,
    reserved_bytes: u64,
    /// What `reserved` and `reserved_bytes` may become before the consumer's progress has to be
    /// checked again: each poll fetches a line of its cache.
    room_until: u64,
    room_until_bytes: u64,
    open: bool,
    lost: Losses,
    /// What the newest event in the chain, or the consumer's connection, reports about these.
    reported: Losses,
    high_water: u64,
    unread: u64,
}

// SAFETY: the address in it stands for a segment of the chain, which belongs to no thread.
unsafe impl Send for Tail {}

/// Sums of a queue's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) reserved: u64,
    pub(crate) delivered: u64,
    pub(crate) waiting: u64,
    pub(crate) lost: Losses,
    pub(crate) unread: u64,
    pub(crate) waiting_bytes: u64,
    pub(crate) high_water: u64,
    pub(crate) idle_bytes: usize,
    pub(crate) descriptor_writes: u64,
}

/// What is reserved for one event.
struct Reserved {
    place: HeaderPosition,
    position: u64,
}

/// Why a connection was refused.
#[derive(Debug)]
pub(crate) enum Unconnected {
    Occupied,
    NoDescriptor(rustix::io::Errno),
    NoMemory,
}

// === impl Queue ===

impl Queue {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            connected: AtomicBool::new(false),
            generation: AtomicU32::new(0),
            bounds,
            tail: Locked::new(Tail::new()),
            wake_up_fd: WakeUp::new(),
            progress: ConsumerProgress::new(),
            lost: AtomicU64::new(0),
            pool: Pool::new(),
            occupied: AtomicBool::new(false),
            descriptor: Locked::new(None),
            is_shared: AtomicBool::new(false),
            descriptor_writes: AtomicU64::new(0),
        })
    }

    /// Whether there is a reader: all that publishing costs without one.
    #[inline(always)]
    pub(crate) fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// Where [`Queue::is_connected`] looks.
    pub(crate) fn connected_at(&self) -> *const bool {
        self.connected.as_ptr()
    }

    /// Makes the one reader; events are accepted from here on. With a descriptor that is `shared`,
    /// an eventfd is written to and never read.
    pub(crate) fn connect(
        self: &Arc<Self>,
        wants_losses: bool,
        shared: Option<&Arc<OwnedFd>>,
    ) -> Result<Reader, Unconnected> {
        // SYNC: occupied
        if self.occupied.swap(true, Ordering::Acquire) {
            return Err(Unconnected::Occupied);
        }
        self.open(wants_losses, shared)
            .inspect_err(|_| self.occupied.store(false, Ordering::Release))
    }

    fn open(
        self: &Arc<Self>,
        wants_losses: bool,
        shared: Option<&Arc<OwnedFd>>,
    ) -> Result<Reader, Unconnected> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let descriptor = match shared {
            Some(descriptor) => Arc::clone(descriptor),
            None => Arc::new(eventfd(0, flags).map_err(Unconnected::NoDescriptor)?),
        };
        self.is_shared.store(shared.is_some(), Ordering::Relaxed);
        let segment = Segment::map(0).ok_or(Unconnected::NoMemory)?;
        // SAFETY: the start of a new segment, which nobody else knows yet.
        unsafe { HeaderPosition::at(segment.base(), 0).empty() };
        self.generation.store(process::generation_now(), Ordering::Relaxed);
        *self.descriptor.lock() = Some(Arc::clone(&descriptor));
        let mut tail = self.tail.lock();
        let reported = tail.lost;
        let reported_lost = if wants_losses { reported.sum() } else { u64::MAX };
        self.progress.reported_lost.store(reported_lost, Ordering::Relaxed);
        (tail.base, tail.offset, tail.open) = (Some(segment.base()), 0, true);
        tail.reported = reported;
        drop(tail);
        self.connected.store(true, Ordering::Relaxed);
        Ok(Reader::new(Arc::clone(self), descriptor, segment, reported, wants_losses))
    }

    /// Whether this is not the process that connected: the locks and the descriptor of a parent are nothing for
    /// its child to touch.
    #[inline(always)]
    pub(crate) fn is_foreign(&self) -> bool {
        process::generation() != self.generation.load(Ordering::Relaxed)
    }

    /// Puts an event at the end. It is copied once.
    #[inline(always)]
    pub(crate) fn push(&self, draft: &Draft<'_>) -> Result<(), QueueRefusal> {
        if self.is_foreign() {
            return Err(QueueRefusal::Disconnected);
        }
        let size = Size::of(draft).ok_or(QueueRefusal::Lost(LossCause::Bytes))?;
        let (reserved, outside) = if size.is_outside() {
            let (reserved, segment) = self.reserve_outside(size)?;
            (reserved, Some(segment.into_base()))
        } else {
            (self.reserve(size)?, None)
        };
        // SAFETY: the place was reserved just now for this many bytes, and a segment is of the
        // class that holds the data.
        unsafe { reserved.place.write(draft, size, outside) };
        self.wake_up_fd.event(reserved.position, &self.progress, self);
        Ok(())
    }

    /// A place for an event whose data has a segment of its own, and that segment.
    #[cold]
    fn reserve_outside(&self, size: Size) -> Result<(Reserved, Segment), QueueRefusal> {
        let segment = self.segment_for(size).ok_or_else(|| self.lose_for_want_of_memory())?;
        match self.reserve(size) {
            Ok(reserved) => Ok((reserved, segment)),
            Err(refused) => {
                self.pool.put(segment);
                Err(refused)
            }
        }
    }

    /// Memory for data of its own, outside of the producers' lock.
    fn segment_for(&self, size: Size) -> Option<Segment> {
        if size.charged() > self.bounds.bytes {
            // It will be refused; nothing needs to be mapped for that.
            return self.segment(0);
        }
        let class = class_of(size.data_bytes())?;
        self.segment(class)
    }

    fn segment(&self, class: usize) -> Option<Segment> {
        let idle = self.pool.take(class, coarse_time_ns());
        idle.or_else(|| Segment::map(class)).or_else(|| self.pool.take_any(class))
    }

    #[inline(always)]
    fn reserve(&self, size: Size) -> Result<Reserved, QueueRefusal> {
        let (distance, bytes) = (size.distance(), size.charged());
        let mut tail = self.tail.lock();
        if tail.is_known_to_have_room(bytes) && tail.fits(distance) {
            return Ok(tail.reserve(distance, bytes));
        }
        drop(tail);
        self.reserve_with_care(distance, bytes)
    }

    /// What is behind the glance of [`Self::reserve`]: looks how far the consumer is, goes on in
    /// another segment, reports what was lost.
    #[cold]
    fn reserve_with_care(&self, distance: usize, bytes: u64) -> Result<Reserved, QueueRefusal> {
        let mut spare = None;
        loop {
            let mut tail = self.tail.lock();
            if !tail.open {
                return Err(QueueRefusal::Disconnected);
            }
            let taken = self.progress.taken.load(Ordering::Acquire);
            let taken_bytes = self.progress.taken_bytes.load(Ordering::Relaxed);
            if let Some(cause) = tail.no_room(bytes, self.bounds, taken, taken_bytes) {
                return Err(self.lose(tail, cause));
            }
            if !tail.fits(distance + HEADER_BYTES) {
                let Some(segment) = spare.take().or_else(|| self.pool.take(0, coarse_time_ns()))
                else {
                    drop(tail);
                    // Taking memory from the kernel takes microseconds: other producers go ahead.
                    spare = Segment::map(0).or_else(|| self.pool.take_any(0));
                    if spare.is_none() {
                        return Err(self.lose_for_want_of_memory());
                    }
                    continue;
                };
                tail.go_on_in(segment);
            }
            tail.report_losses();
            // Until then, there cannot be more waiting than there ever were.
            tail.room_until = taken.saturating_add(tail.high_water);
            tail.room_until_bytes = taken_bytes.wrapping_add(self.bounds.bytes);
            return Ok(tail.reserve(distance, bytes));
        }
    }

    #[cold]
    fn lose_for_want_of_memory(&self) -> QueueRefusal {
        let tail = self.tail.lock();
        if tail.open { self.lose(tail, LossCause::Memory) } else { QueueRefusal::Disconnected }
    }

    #[cold]
    fn lose(&self, mut tail: lock::Inside<'_, Tail>, cause: LossCause) -> QueueRefusal {
        tail.lost.add(cause);
        // The next event that is accepted has to report it.
        tail.end_room();
        let lost = tail.lost.sum();
        self.lost.store(lost, Ordering::Relaxed);
        // SYNC: last loss. Either this sees that the consumer has taken all, or the consumer, when
        // it has, sees the loss.
        fence(Ordering::SeqCst);
        let nothing_waits = tail.reserved == self.progress.taken.load(Ordering::Relaxed);
        drop(tail);
        if nothing_waits {
            self.wake_up_fd.loss(lost, &self.progress, self);
        }
        QueueRefusal::Lost(cause)
    }

    /// Whether there are losses that a reader who wants to know of them does not know of.
    fn has_unreported_losses(&self) -> bool {
        self.lost.load(Ordering::Relaxed) > self.progress.reported_lost.load(Ordering::Relaxed)
    }

    /// Accepts nothing more; returns how many events were reserved in all.
    fn close(&self) -> u64 {
        self.connected.store(false, Ordering::Relaxed);
        let mut tail = self.tail.lock();
        tail.open = false;
        tail.end_room();
        tail.unread += tail.reserved - self.progress.taken.load(Ordering::Relaxed);
        tail.reserved
    }

    /// Makes room for the next reader. The caller has taken all events.
    fn disconnect(&self) {
        *self.descriptor.lock() = None;
        self.tail.lock().base = None;
        self.pool.clear();
        // SYNC: occupied
        self.occupied.store(false, Ordering::Release);
    }

    /// What happened so far.
    pub(crate) fn totals(&self) -> Totals {
        let tail = self.tail.lock();
        let taken = self.progress.taken.load(Ordering::Relaxed);
        let taken_bytes = self.progress.taken_bytes.load(Ordering::Relaxed);
        Totals {
            reserved: tail.reserved,
            delivered: taken.saturating_sub(tail.unread),
            // What an ending connection leaves is unread, though it may not be passed over yet.
            waiting: if tail.open { tail.reserved - taken } else { 0 },
            lost: tail.lost,
            unread: tail.unread,
            waiting_bytes: tail.reserved_bytes.saturating_sub(taken_bytes),
            high_water: tail.high_water,
            idle_bytes: self.pool.idle_bytes(),
            descriptor_writes: self.descriptor_writes.load(Ordering::Relaxed),
        }
    }
}

impl Descriptor for Queue {
    fn set(&self) {
        if let Some(descriptor) = &*self.descriptor.lock() {
            self.descriptor_writes.fetch_add(1, Ordering::Relaxed);
            // It cannot be full: it is written to only while it is empty.
            let _ = rustix::io::write(descriptor, &1_u64.to_ne_bytes());
        }
    }

    fn clear(&self) {
        if self.is_shared.load(Ordering::Relaxed) {
            return;
        }
        if let Some(descriptor) = &*self.descriptor.lock() {
            // It was readable; if another thread read it, there is nothing to clear.
            let _ = rustix::io::read(descriptor, &mut [0; 8]);
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // A reader holds the queue and empties it, so nothing is left in the chain. In a child of
        // `fork` the chain is left to the end of the process.
        debug_assert!(self.is_foreign() || self.tail.lock().base.is_none());
    }
}

// === impl Tail ===

impl Tail {
    fn new() -> Self {
        Self {
            base: None,
            offset: 0,
            reserved: 0,
            reserved_bytes: 0,
            room_until: 0,
            room_until_bytes: 0,
            open: false,
            lost: Losses::default(),
            reported: Losses::default(),
            high_water: 0,
            unread: 0,
        }
    }

    /// Whether an event of this size can be accepted without a check of the consumer. Never while
    /// the queue is closed, and never after a loss that no event in the chain reports.
    #[inline(always)]
    fn is_known_to_have_room(&self, bytes: u64) -> bool {
        self.reserved < self.room_until
            && bytes <= self.room_until_bytes.wrapping_sub(self.reserved_bytes)
    }

    /// Makes the next producer look with care.
    fn end_room(&mut self) {
        self.room_until = self.reserved;
    }

    /// Why an event of this size cannot be accepted now.
    fn no_room(
        &mut self,
        bytes: u64,
        bounds: Bounds,
        taken: u64,
        taken_bytes: u64,
    ) -> Option<LossCause> {
        let waiting = self.reserved - taken;
        let waiting_bytes = self.reserved_bytes.wrapping_sub(taken_bytes);
        if waiting >= bounds.events {
            return Some(LossCause::Events);
        }
        if waiting_bytes.saturating_add(bytes) > bounds.bytes {
            return Some(LossCause::Bytes);
        }
        self.high_water = self.high_water.max(waiting + 1);
        None
    }

    /// Whether an event and the header behind it fit into the segment.
    #[inline(always)]
    fn fits(&self, distance: usize) -> bool {
        self.base.is_some() && self.offset + distance + HEADER_BYTES <= SEGMENT_BYTES
    }

    fn place(&self) -> HeaderPosition {
        let base = self.base.expect("an open queue has a segment");
        // SAFETY: `fits` left room for one more header behind everything reserved.
        unsafe { HeaderPosition::at(base, self.offset) }
    }

    /// Puts what no event reports about before the next one. There is room for a header.
    fn report_losses(&mut self) {
        if self.reported == self.lost {
            return;
        }
        self.reported = self.lost;
        let place = self.place();
        self.offset += HEADER_BYTES;
        // SAFETY: the segment is mapped; the place is the next one, and what is behind it is unused
        // yet, inside the lock.
        unsafe {
            self.place().empty();
            place.tell(self.reported);
        }
    }

    /// Continues the chain in a new segment.
    #[cold]
    fn go_on_in(&mut self, segment: Segment) {
        let from = self.place();
        let base = segment.into_base();
        (self.base, self.offset) = (Some(base), 0);
        // SAFETY: the segment is mapped and new to the chain; `from` is the next place, and this
        // thread's alone inside the lock.
        unsafe {
            self.place().empty();
            from.jump(base);
        }
    }

    #[inline(always)]
    fn reserve(&mut self, distance: usize, bytes: u64) -> Reserved {
        let place = self.place();
        let position = self.reserved;
        self.offset += distance;
        self.reserved += 1;
        self.reserved_bytes = self.reserved_bytes.wrapping_add(bytes);
        // SAFETY: the segment is mapped; what is behind the place that was just reserved here, inside
        // the lock, is unused yet.
        unsafe { self.place().empty() };
        Reserved { place, position }
    }
}

// === impl Losses ===

impl Losses {
    /// All of them.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.events.saturating_add(self.bytes).saturating_add(self.memory)
    }

    fn add(&mut self, cause: LossCause) {
        match cause {
            LossCause::Events => self.events += 1,
            LossCause::Bytes => self.bytes += 1,
            LossCause::Memory => self.memory += 1,
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            events: self.events - earlier.events,
            bytes: self.bytes - earlier.bytes,
            memory: self.memory - earlier.memory,
        }
    }
}

#[cfg(test)]
mod tests;
