//! The consumer's end of the queue: takes what is committed, in order, and gives segments back.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use super::record::{Body, HEADER_BYTES, HeaderPosition, RecordState, Size, coarse_time_ns};
use super::segment::{Segment, class_of};
use super::{Losses, Queue, process};
use crate::sync::{Ordering, wait_a_little};

/// How often the reader searches for another event before it silences the descriptor, if events have
/// come in quick succession: about a microsecond. To silence it and to ring it again are a system
/// call each, and a reader that sleeps costs its producer several microseconds to wake.
const MAX_POLLS: u32 = 64;
/// How often it looks if they have not.
const MIN_POLLS: u32 = 8;

/// The one consumer. Dropping it ends the connection; what was not read is counted as unread.
pub(crate) struct Reader {
    queue: Arc<Queue>,
    descriptor: Arc<OwnedFd>,
    cursor: Cursor,
    /// The losses that were taken, or passed over by a reader that does not want them.
    reported: Losses,
    wants_losses: bool,
    /// The time of the newest event so far.
    time_ns: u64,
    /// How often to search for another event before the descriptor is silenced.
    polls: u32,
    generation: u32,
}

/// Where the consumer is.
struct Cursor {
    /// The segment it is in. What lies before `offset` is no longer in use.
    segment: Segment,
    offset: usize,
    /// What had been lost before the event here.
    lost: Losses,
}

/// An event as it lies in the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueuedEvent<'queue> {
    pub(crate) sequence: u64,
    pub(crate) time_ns: u64,
    pub(crate) body: Body<'queue>,
}

/// What a reader gets.
pub(crate) enum NextRecord<R> {
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
        reported: Losses,
        wants_losses: bool,
    ) -> Self {
        let cursor = Cursor { segment, offset: 0, lost: reported };
        let generation = process::generation();
        Self {
            queue,
            descriptor,
            cursor,
            reported,
            wants_losses,
            time_ns: 0,
            polls: MIN_POLLS,
            generation,
        }
    }

    /// Takes what is next: `read` sees an event before it is given up.
    #[inline]
    pub(crate) fn take<R>(&mut self, read: impl FnOnce(&QueuedEvent<'_>) -> R) -> NextRecord<R> {
        if self.is_foreign() {
            return NextRecord::Foreign;
        }
        if !self.cursor.waits(&self.queue)
            && let Some(taken) = self.take_the_last_loss()
        {
            return taken;
        }
        // SAFETY: `waits` just found an event, and the cursor goes on only below, after `read`.
        let body = unsafe { self.cursor.place().event() };
        let lost = self.cursor.lost;
        if self.wants_losses && lost != self.reported {
            return NextRecord::Lost(self.tell(lost));
        }
        // Two producers may have checked the clock in another order than they took their turns.
        self.time_ns = self.time_ns.max(body.time_ns);
        let sequence = self.taken() + lost.sum();
        self.cursor.fetch_next();
        let result = read(&QueuedEvent { sequence, time_ns: self.time_ns, body });
        self.go_on();
        self.after_taking();
        NextRecord::Event(result)
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

    /// What there would be to take when no event is, as seen without another look at the chain.
    #[cfg(test)]
    pub(super) fn last_loss(&self) -> Option<Losses> {
        self.cursor.last_loss(&self.queue, self.reported)
    }

    /// How many events were taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.queue.progress.taken.load(Ordering::Relaxed)
    }

    /// Leaves the event behind that was found.
    fn go_on(&mut self) {
        let progress = &self.queue.progress;
        let bytes = self.cursor.go_on(&self.queue);
        // Only this thread stores here. What is passed is not touched again: segments go back to
        // the producers through the pool's lock.
        let taken_bytes = progress.taken_bytes.load(Ordering::Relaxed).wrapping_add(bytes);
        progress.taken_bytes.store(taken_bytes, Ordering::Relaxed);
        let taken = progress.taken.load(Ordering::Relaxed) + 1;
        progress.taken.store(taken, Ordering::Release);
    }

    fn after_taking(&mut self) {
        if !self.cursor.waits(&self.queue) {
            self.look_again();
        }
        let (cursor, queue, reported, mut more) =
            (&mut self.cursor, &*self.queue, self.reported, true);
        let waits = || {
            more = cursor.waits(queue);
            more || cursor.last_loss(queue, reported).is_some()
        };
        queue.wake_up_fd.taken(waits, queue);
        if !more {
            queue.pool.shrink(coarse_time_ns());
        }
    }

    /// Searches for an event that comes in a moment. Polls are far between, because each takes the
    /// event's first cache line away from its producer.
    #[cold]
    fn look_again(&mut self) {
        for _ in 0..self.polls {
            std::hint::spin_loop();
            if self.cursor.waits(&self.queue) {
                self.polls = MAX_POLLS;
                return;
            }
        }
        self.polls = (self.polls / 2).max(MIN_POLLS);
    }

    /// What there is to take when no event is; none if one has come meanwhile.
    #[cold]
    fn take_the_last_loss<R>(&mut self) -> Option<NextRecord<R>> {
        let mut lost = self.cursor.last_loss(&self.queue, self.reported);
        if lost.is_none() {
            if self.cursor.waits(&self.queue) {
                return None;
            }
            // A producer may have announced it meanwhile, ahead of an event that it still copies.
            lost = self.cursor.last_loss(&self.queue, self.reported);
        }
        if let Some(lost) = lost {
            let lost = self.tell(lost);
            self.after_taking();
            return Some(NextRecord::Lost(lost));
        }
        let (cursor, queue, reported) = (&mut self.cursor, &*self.queue, self.reported);
        let waits = || cursor.waits(queue) || cursor.last_loss(queue, reported).is_some();
        queue.wake_up_fd.nothing(waits, queue);
        queue.pool.shrink(coarse_time_ns());
        Some(NextRecord::Nothing)
    }

    /// Notes that the reader knows of all these losses, and returns those that are new to it.
    fn tell(&mut self, lost: Losses) -> Losses {
        let new = lost.since(&self.reported);
        self.reported = lost;
        self.queue.progress.reported_lost.store(lost.sum(), Ordering::Relaxed);
        new
    }

    /// Takes what was reserved before the queue was closed, also what is still being copied.
    fn take_the_rest(&mut self, reserved: u64) {
        let mut attempts = 0;
        while self.queue.progress.taken.load(Ordering::Relaxed) < reserved {
            if self.cursor.waits(&self.queue) {
                self.go_on();
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
        self.queue.progress.reported_lost.store(u64::MAX, Ordering::Relaxed);
        self.take_the_rest(reserved);
        let queue = &*self.queue;
        queue.wake_up_fd.nothing(|| false, queue);
        queue.disconnect();
    }
}

// === impl Cursor ===

impl Cursor {
    fn place(&self) -> HeaderPosition {
        // SAFETY: the offset is a sum of distances, and a producer leaves room for one more header
        // behind each event.
        unsafe { HeaderPosition::at(self.segment.base(), self.offset) }
    }

    /// Has the event behind this one fetched into the cache while this one is read, so that a reader
    /// that fell behind its producer catches up.
    #[inline(always)]
    fn fetch_next(&self) {
        // SAFETY: the caller stands at an event that it found. Its committer made the place
        // behind it ready before, and left room for it.
        unsafe {
            let (size, _) = self.place().size();
            let next = HeaderPosition::at(self.segment.base(), self.offset + size.distance());
            if let RecordState::Event = next.state() {
                next.fetch();
            }
        }
    }

    /// Whether a whole event is next. Follows the chain into its next segment.
    #[inline(always)]
    fn waits(&mut self, queue: &Queue) -> bool {
        loop {
            // SAFETY: this is the consumer's next place and the segment is its own.
            match unsafe { self.place().state() } {
                RecordState::Event => return true,
                RecordState::Nothing => return false,
                RecordState::Jump(base) => self.jump(base, queue),
                RecordState::Lost(lost) => self.pass(lost),
            }
        }
    }

    /// What was lost before the place here, or after the last event if all have been taken; none if the
    /// reader knows, or does not want to. Every other event tells by itself what was lost before it.
    fn last_loss(&self, queue: &Queue, reported: Losses) -> Option<Losses> {
        // SYNC: last loss
        if !queue.has_unreported_losses() {
            return None;
        }
        // Passed already, while the event behind it is still being copied: the descriptor was made
        // readable for the loss and stays so. The reader knows more than what was passed where it was given
        // the losses after the last event, and the chain's own record of those has not been met yet.
        if self.lost.sum() > reported.sum() {
            return Some(self.lost);
        }
        let tail = queue.tail.lock();
        let all_taken = tail.reserved == queue.progress.taken.load(Ordering::Relaxed);
        (all_taken && tail.lost != reported).then_some(tail.lost)
    }

    /// Goes on behind what was lost.
    #[cold]
    fn pass(&mut self, lost: Losses) {
        self.lost = lost;
        self.offset += HEADER_BYTES;
    }

    #[cold]
    fn jump(&mut self, base: NonNull<u8>, queue: &Queue) {
        // SAFETY: the producer gave up a segment of the smallest class for the jump, which is met
        // once, because the cursor leaves it here.
        let next = unsafe { Segment::from_base(base, 0) };
        queue.pool.put(std::mem::replace(&mut self.segment, next));
        self.offset = 0;
    }

    /// Leaves the event here behind; returns the bytes that it was charged with.
    #[inline(always)]
    fn go_on(&mut self, queue: &Queue) -> u64 {
        // SAFETY: the caller stands at an event that it found.
        let (size, outside) = unsafe { self.place().size() };
        if let Some(base) = outside {
            // SAFETY: the producer gave up a segment of the class of this data, and each event is
            // left behind once.
            unsafe { give_up(base, size, queue) };
        }
        self.offset += size.distance();
        size.charged()
    }
}

/// Takes back the segment of an event's data.
///
/// # Safety
/// The segment is of the class of this size, and nobody else does this or uses it.
#[cold]
unsafe fn give_up(base: NonNull<u8>, size: Size, queue: &Queue) {
    let class = class_of(size.data_bytes()).expect("a segment of this class was made");
    // SAFETY: as the caller promises.
    queue.pool.put(unsafe { Segment::from_base(base, class) });
}
