//! The consumer's end of the queue: takes what is committed, in order, and gives segments back.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use super::record::{Found, Place, distance, is_outside};
use super::segment::{Segment, class_of};
use super::{Losses, Queue, process};
use crate::sync::{Ordering, wait_a_little};

/// The one consumer. Dropping it ends the connection; what was not read is counted as unread.
pub(crate) struct Reader {
    queue: Arc<Queue>,
    descriptor: Arc<OwnedFd>,
    cursor: Cursor,
    /// The losses that were taken, or passed over by a reader that does not want them.
    told: Losses,
    wants_losses: bool,
    generation: u32,
}

/// Where the consumer is.
struct Cursor {
    /// The segment it is in. What lies before `offset` nobody else uses any more.
    segment: Segment,
    offset: usize,
}

/// An event as it lies in the queue.
pub(crate) struct Record<'queue> {
    pub(crate) kind: u32,
    pub(crate) sequence: u64,
    pub(crate) time_ns: u64,
    pub(crate) body: &'queue [u8],
}

/// What a reader gets.
pub(crate) enum Taken<R> {
    Event(R),
    /// So many were lost here.
    Lost(Losses),
    Nothing,
    /// The process is a child of the one that connected.
    Foreign,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(
        queue: Arc<Queue>,
        descriptor: Arc<OwnedFd>,
        segment: Segment,
        told: Losses,
        wants_losses: bool,
    ) -> Self {
        let cursor = Cursor { segment, offset: 0 };
        let generation = process::generation();
        Self { queue, descriptor, cursor, told, wants_losses, generation }
    }

    /// Takes what is next: `read` sees an event before it is given up.
    #[inline]
    pub(crate) fn take<R>(&mut self, read: impl FnOnce(&Record<'_>) -> R) -> Taken<R> {
        if self.is_foreign() {
            return Taken::Foreign;
        }
        if !self.cursor.waits(&self.queue)
            && let Some(taken) = self.take_the_last_loss()
        {
            return taken;
        }
        // SAFETY: `waits` just found an event, and the cursor goes on only below, after `read`.
        let (kind, stamp, body) = unsafe { self.cursor.place().event() };
        if self.wants_losses && stamp.lost != self.told {
            return Taken::Lost(self.tell(stamp.lost));
        }
        let record = Record { kind, sequence: stamp.sequence, time_ns: stamp.time_ns, body };
        let result = read(&record);
        let body_bytes = body.len();
        self.go_on(body_bytes);
        self.after_taking();
        Taken::Event(result)
    }

    /// Whether this is not the process that connected.
    #[inline(always)]
    fn is_foreign(&self) -> bool {
        process::generation() != self.generation
    }

    /// A share of the descriptor.
    #[cfg(feature = "tokio")]
    pub(crate) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.descriptor)
    }

    /// How many events were published so far, also those that are still being copied.
    pub(crate) fn reserved(&self) -> u64 {
        self.queue.tail.lock().reserved
    }

    /// How many events were taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.queue.progress.taken.load(Ordering::Relaxed)
    }

    fn go_on(&mut self, body_bytes: usize) {
        let progress = &self.queue.progress;
        self.cursor.go_on(body_bytes, &self.queue);
        let bytes = u64::try_from(super::charged(body_bytes)).unwrap_or(u64::MAX);
        // Only this thread stores here. What is passed is not touched again: segments go back to
        // the producers through the pool's lock.
        let taken_bytes = progress.taken_bytes.load(Ordering::Relaxed).wrapping_add(bytes);
        progress.taken_bytes.store(taken_bytes, Ordering::Relaxed);
        let taken = progress.taken.load(Ordering::Relaxed) + 1;
        progress.taken.store(taken, Ordering::Release);
    }

    fn after_taking(&mut self) {
        let (cursor, queue, told, mut more) = (&mut self.cursor, &*self.queue, self.told, true);
        let waits = || {
            more = cursor.waits(queue);
            more || cursor.loss_before(queue, told).is_some()
        };
        queue.bell.taken(waits, queue);
        if !more {
            queue.pool.shrink(super::coarse_time_ns());
        }
    }

    /// What there is to take when no event is; none if one has come meanwhile.
    #[cold]
    fn take_the_last_loss<R>(&mut self) -> Option<Taken<R>> {
        if let Some(lost) = self.cursor.loss_before(&self.queue, self.told) {
            let lost = self.tell(lost);
            self.after_taking();
            return Some(Taken::Lost(lost));
        }
        if self.cursor.waits(&self.queue) {
            return None;
        }
        let (cursor, queue, told) = (&mut self.cursor, &*self.queue, self.told);
        let waits = || cursor.waits(queue) || cursor.loss_before(queue, told).is_some();
        queue.bell.nothing(waits, queue);
        queue.pool.shrink(super::coarse_time_ns());
        Some(Taken::Nothing)
    }

    /// Notes that the reader knows of all these losses, and returns those that are new to it.
    fn tell(&mut self, lost: Losses) -> Losses {
        let new = lost.since(&self.told);
        self.told = lost;
        self.queue.progress.told_lost.store(lost.sum(), Ordering::Relaxed);
        new
    }

    /// Takes what was reserved before the queue was closed, also what is still being copied.
    fn take_the_rest(&mut self, reserved: u64) {
        let mut attempts = 0;
        while self.queue.progress.taken.load(Ordering::Relaxed) < reserved {
            if self.cursor.waits(&self.queue) {
                // SAFETY: `waits` just found an event.
                let (_, _, body) = unsafe { self.cursor.place().event() };
                let body_bytes = body.len();
                self.go_on(body_bytes);
            } else {
                wait_a_little(&mut attempts);
            }
        }
    }
}

impl AsFd for Reader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // In a child of `fork`, the threads that would finish their copies do not exist, and the
        // descriptor is the parent's too.
        if self.is_foreign() {
            return;
        }
        let reserved = self.queue.close();
        self.queue.progress.told_lost.store(u64::MAX, Ordering::Relaxed);
        self.take_the_rest(reserved);
        let queue = &*self.queue;
        queue.bell.nothing(|| false, queue);
        queue.disconnect();
    }
}

// === impl Cursor ===

impl Cursor {
    fn place(&self) -> Place {
        // SAFETY: the offset is a sum of distances, and a producer leaves room for one more header
        // behind each event.
        unsafe { Place::at(self.segment.base(), self.offset) }
    }

    /// Whether a whole event is next. Follows the chain into its next segment.
    #[inline(always)]
    fn waits(&mut self, queue: &Queue) -> bool {
        loop {
            // SAFETY: this is the consumer's next place and the segment is its own.
            match unsafe { self.place().look() } {
                Found::Event => return true,
                Found::Nothing => return false,
                Found::Jump(base) => self.jump(base, queue),
            }
        }
    }

    /// What was lost before the next event, or after the last one if all have been taken; none if
    /// the reader knows, or does not want to, or if a whole event has come, which tells of it.
    fn loss_before(&mut self, queue: &Queue, told: Losses) -> Option<Losses> {
        // SYNC: last loss
        if !queue.has_untold_losses() {
            return None;
        }
        let tail = queue.tail.lock();
        let lost = if tail.reserved == queue.progress.taken.load(Ordering::Relaxed) {
            tail.lost
        } else if self.waits(queue) {
            return None;
        } else {
            // SAFETY: an event is reserved and its turn has come; `waits` went to its place, inside
            // the lock.
            unsafe { self.place().lost_before() }
        };
        (lost != told).then_some(lost)
    }

    #[cold]
    fn jump(&mut self, base: NonNull<u8>, queue: &Queue) {
        // SAFETY: the producer gave up a segment of the smallest class for the jump, which is met
        // once, because the cursor leaves it here.
        let next = unsafe { Segment::from_base(base, 0) };
        queue.pool.put(std::mem::replace(&mut self.segment, next));
        self.offset = 0;
    }

    /// Leaves the event here behind.
    #[inline(always)]
    fn go_on(&mut self, body_bytes: usize, queue: &Queue) {
        if is_outside(body_bytes) {
            self.give_up_body(body_bytes, queue);
        }
        self.offset += distance(body_bytes);
    }

    #[cold]
    fn give_up_body(&self, body_bytes: usize, queue: &Queue) {
        // SAFETY: the caller stands at an event that it found.
        let base = unsafe { self.place().outside() };
        if let (Some(base), Some(class)) = (base, class_of(body_bytes)) {
            // SAFETY: the producer gave up a segment of the class of this body, and each event is
            // left behind once.
            queue.pool.put(unsafe { Segment::from_base(base, class) });
        }
    }
}
