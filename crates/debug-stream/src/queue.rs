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
use rustix::time::{ClockId, clock_gettime};

use self::lock::Locked;
use self::pool::Pool;
use self::record::{HEADER_BYTES, Place, Stamp};
use self::segment::{SEGMENT_BYTES, Segment, class_of};
use crate::doorbell::{Descriptor, Doorbell, Progress};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

mod lock;
mod pool;
mod process;
mod reader;
mod record;
#[cfg(feature = "tokio")]
mod registration;
mod segment;

pub(crate) use self::reader::{Reader, Taken};
pub(crate) use self::record::{Body, DATA_ALIGNMENT, FIXED_BYTES};
#[cfg(feature = "tokio")]
pub(crate) use self::registration::register;

/// The queue of one stream, for as long as the stream lives.
pub(crate) struct Queue {
    connected: AtomicBool,
    /// The process that connected, as [`process::generation`] numbers it.
    generation: AtomicU32,
    bounds: Bounds,
    tail: Locked<Tail>,
    bell: Doorbell,
    progress: Progress,
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
pub enum Cause {
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
pub(crate) enum Refused {
    Lost(Cause),
    Disconnected,
}

/// Where producers are. Positions and sums go on from one connection to the next.
struct Tail {
    open: bool,
    /// The segment that is being filled; the consumer's, or what it will get to.
    base: Option<NonNull<u8>>,
    offset: usize,
    reserved: u64,
    reserved_bytes: u64,
    /// The consumer's progress when it was last looked at: each look fetches a line of its cache.
    seen_taken: u64,
    seen_taken_bytes: u64,
    lost: Losses,
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
    place: Place,
    position: u64,
}

/// Why a connection was refused.
#[derive(Debug)]
pub(crate) enum Unconnected {
    Occupied,
    NoDescriptor(rustix::io::Errno),
    NoMemory,
}

/// The bytes that an event is charged with.
fn charged(body_bytes: usize) -> usize {
    HEADER_BYTES.saturating_add(body_bytes.next_multiple_of(HEADER_BYTES))
}

/// Monotonic time as of the last tick of the kernel, which costs a few nanoseconds to know.
fn coarse_time_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let [seconds, nanoseconds] =
        [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + nanoseconds
}

// === impl Queue ===

impl Queue {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            connected: AtomicBool::new(false),
            generation: AtomicU32::new(0),
            bounds,
            tail: Locked::new(Tail::new()),
            bell: Doorbell::new(),
            progress: Progress::new(),
            lost: AtomicU64::new(0),
            pool: Pool::new(),
            occupied: AtomicBool::new(false),
            descriptor: Locked::new(None),
            is_shared: AtomicBool::new(false),
            descriptor_writes: AtomicU64::new(0),
        })
    }

    /// Whether somebody reads: all that publishing costs while nobody does.
    #[inline(always)]
    pub(crate) fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
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
        unsafe { Place::at(segment.base(), 0).empty() };
        self.generation.store(process::generation_now(), Ordering::Relaxed);
        *self.descriptor.lock() = Some(Arc::clone(&descriptor));
        let mut tail = self.tail.lock();
        let told = tail.lost;
        let told_lost = if wants_losses { told.sum() } else { u64::MAX };
        self.progress.told_lost.store(told_lost, Ordering::Relaxed);
        (tail.base, tail.offset, tail.open) = (Some(segment.base()), 0, true);
        drop(tail);
        self.connected.store(true, Ordering::Relaxed);
        Ok(Reader::new(Arc::clone(self), descriptor, segment, told, wants_losses))
    }

    /// Puts an event at the end. It is copied once.
    #[inline]
    pub(crate) fn push(&self, kind: u32, body: &Body<'_>) -> Result<(), Refused> {
        // The locks and the descriptor of a parent are nothing for its child to touch.
        if process::generation() != self.generation.load(Ordering::Relaxed) {
            return Err(Refused::Disconnected);
        }
        let body_bytes = body.bytes();
        let outside = if record::is_outside(body_bytes) {
            let Some(segment) = self.segment_for(body_bytes) else {
                return Err(self.lose_for_want_of_memory());
            };
            Some(segment)
        } else {
            None
        };
        let reserved = match self.reserve(body_bytes) {
            Ok(reserved) => reserved,
            Err(refused) => {
                if let Some(segment) = outside {
                    self.pool.put(segment);
                }
                return Err(refused);
            }
        };
        let outside = outside.map(Segment::into_base);
        // SAFETY: the place was reserved just now for this many bytes, and the segment is of the
        // class that holds them.
        unsafe { reserved.place.write(kind, body, outside) };
        self.bell.event(reserved.position, &self.progress, self);
        Ok(())
    }

    /// Memory for a body of its own, outside of the producers' lock.
    #[cold]
    fn segment_for(&self, body_bytes: usize) -> Option<Segment> {
        if u64::try_from(body_bytes).unwrap_or(u64::MAX) > self.bounds.bytes {
            // It will be refused; nothing needs to be mapped for that.
            return self.pool.take(0).or_else(|| Segment::map(0));
        }
        let class = class_of(body_bytes)?;
        self.pool.take(class).or_else(|| Segment::map(class))
    }

    #[inline(always)]
    fn reserve(&self, body_bytes: usize) -> Result<Reserved, Refused> {
        let distance = record::distance(body_bytes);
        let bytes = u64::try_from(charged(body_bytes)).unwrap_or(u64::MAX);
        let mut spare = None;
        loop {
            let mut tail = self.tail.lock();
            if !tail.open {
                return Err(Refused::Disconnected);
            }
            if let Some(cause) = tail.no_room(bytes, self.bounds, &self.progress) {
                return Err(self.lose(tail, cause));
            }
            if tail.fits(distance) {
                return Ok(tail.reserve(distance, bytes));
            }
            if let Some(segment) = spare.take().or_else(|| self.pool.take(0)) {
                tail.go_on_in(segment);
                return Ok(tail.reserve(distance, bytes));
            }
            drop(tail);
            // Taking memory from the kernel takes microseconds: other producers go ahead.
            spare = Segment::map(0);
            if spare.is_none() {
                return Err(self.lose_for_want_of_memory());
            }
        }
    }

    #[cold]
    fn lose_for_want_of_memory(&self) -> Refused {
        let tail = self.tail.lock();
        if tail.open { self.lose(tail, Cause::Memory) } else { Refused::Disconnected }
    }

    #[cold]
    fn lose(&self, mut tail: lock::Inside<'_, Tail>, cause: Cause) -> Refused {
        tail.lost.add(cause);
        let lost = tail.lost.sum();
        self.lost.store(lost, Ordering::Relaxed);
        // SYNC: last loss. Either this sees that the consumer has taken all, or the consumer, when
        // it has, sees the loss.
        fence(Ordering::SeqCst);
        let nothing_waits = tail.reserved == self.progress.taken.load(Ordering::Relaxed);
        drop(tail);
        if nothing_waits {
            self.bell.loss(lost, &self.progress, self);
        }
        Refused::Lost(cause)
    }

    /// Whether there are losses that a reader who wants to know of them does not know of.
    fn has_untold_losses(&self) -> bool {
        self.lost.load(Ordering::Relaxed) > self.progress.told_lost.load(Ordering::Relaxed)
    }

    /// Accepts nothing more; returns how many events were reserved in all.
    fn close(&self) -> u64 {
        self.connected.store(false, Ordering::Relaxed);
        let mut tail = self.tail.lock();
        tail.open = false;
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
            // It was readable; if somebody else read it, there is nothing to clear.
            let _ = rustix::io::read(descriptor, &mut [0; 8]);
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // A reader holds the queue and empties it, so nothing is left in the chain. In a child of
        // `fork` the chain is left to the end of the process.
        debug_assert!(
            self.tail.lock().base.is_none()
                || process::generation() != self.generation.load(Ordering::Relaxed)
        );
    }
}

// === impl Tail ===

impl Tail {
    fn new() -> Self {
        Self {
            open: false,
            base: None,
            offset: 0,
            reserved: 0,
            reserved_bytes: 0,
            seen_taken: 0,
            seen_taken_bytes: 0,
            lost: Losses::default(),
            high_water: 0,
            unread: 0,
        }
    }

    /// Why an event of this size cannot be accepted now.
    #[inline(always)]
    fn no_room(&mut self, bytes: u64, bounds: Bounds, progress: &Progress) -> Option<Cause> {
        if self.excess(bytes, bounds).is_some()
            || self.reserved - self.seen_taken >= self.high_water
        {
            self.seen_taken = progress.taken.load(Ordering::Acquire);
            self.seen_taken_bytes = progress.taken_bytes.load(Ordering::Relaxed);
            let cause = self.excess(bytes, bounds);
            let waiting = self.reserved - self.seen_taken + u64::from(cause.is_none());
            self.high_water = self.high_water.max(waiting);
            return cause;
        }
        None
    }

    #[inline(always)]
    fn excess(&self, bytes: u64, bounds: Bounds) -> Option<Cause> {
        let waiting_bytes = self.reserved_bytes.wrapping_sub(self.seen_taken_bytes);
        if self.reserved - self.seen_taken >= bounds.events {
            Some(Cause::Events)
        } else if waiting_bytes.saturating_add(bytes) > bounds.bytes {
            Some(Cause::Bytes)
        } else {
            None
        }
    }

    /// Whether an event and the header behind it fit into the segment.
    #[inline(always)]
    fn fits(&self, distance: usize) -> bool {
        self.base.is_some() && self.offset + distance + HEADER_BYTES <= SEGMENT_BYTES
    }

    fn place(&self) -> Place {
        let base = self.base.expect("an open queue has a segment");
        // SAFETY: `fits` left room for one more header behind everything reserved.
        unsafe { Place::at(base, self.offset) }
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
        let sequence = position + self.lost.sum();
        let stamp = Stamp { sequence, time_ns: coarse_time_ns(), lost: self.lost };
        // SAFETY: the segment is mapped; the place was just reserved here, inside the lock, and what
        // is behind it is nobody's yet.
        unsafe {
            place.stamp(stamp);
            self.place().empty();
        }
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

    fn add(&mut self, cause: Cause) {
        match cause {
            Cause::Events => self.events += 1,
            Cause::Bytes => self.bytes += 1,
            Cause::Memory => self.memory += 1,
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
