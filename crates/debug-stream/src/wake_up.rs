//! When the descriptor is readable: if and only if something waits for the consumer.
//!
//! Producers only ever make it readable, the consumer alone makes it unreadable; each does so
//! inside a lock that no producer waits for. What a producer wants while another thread is inside,
//! that thread does before it leaves. While the descriptor is readable and more waits, neither end
//! takes the lock or makes a system call. Only `crate::sync` may be used here, because the loom
//! models compile this file too.

use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence, wait_a_little};

/// A thread is inside.
const HELD: u32 = 1;
/// The thread inside has to look once more before it leaves.
const AGAIN: u32 = 2;

/// What makes the descriptor readable and unreadable; called by one thread at a time.
pub(crate) trait Descriptor {
    /// Makes it readable, which wakes pollers.
    fn set(&self);
    /// Makes it unreadable.
    fn clear(&self);
}

/// How far the consumer is. Only the consumer stores here.
#[repr(align(64))]
pub(crate) struct ConsumerProgress {
    /// Events taken; also the position of the next one.
    pub(crate) taken: AtomicU64,
    /// Bytes of the events taken.
    pub(crate) taken_bytes: AtomicU64,
    /// Lost events that the consumer knows of; the largest number when it does not want to.
    pub(crate) reported_lost: AtomicU64,
}

/// Whether the descriptor is readable, and the right to change that.
#[repr(align(64))]
pub(crate) struct WakeUp {
    /// Whether the descriptor is readable, or is being made so.
    rung: AtomicBool,
    busy: AtomicU32,
    /// One more than the position of the newest event whose producer found it next in turn.
    announced: AtomicU64,
    /// Lost events, as of the last one that was lost while the eventfd was silent.
    announced_lost: AtomicU64,
}

// === impl ConsumerProgress ===

impl ConsumerProgress {
    pub(crate) fn new() -> Self {
        Self {
            taken: AtomicU64::new(0),
            taken_bytes: AtomicU64::new(0),
            reported_lost: AtomicU64::new(u64::MAX),
        }
    }
}

// === impl WakeUp ===

impl WakeUp {
    pub(crate) fn new() -> Self {
        Self {
            rung: AtomicBool::new(false),
            busy: AtomicU32::new(0),
            announced: AtomicU64::new(0),
            announced_lost: AtomicU64::new(0),
        }
    }

    /// A producer's step after its event at `position` was committed by
    /// [`store_and_fence`](crate::sync::store_and_fence).
    #[inline(always)]
    pub(crate) fn event(
        &self,
        position: u64,
        progress: &ConsumerProgress,
        descriptor: &impl Descriptor,
    ) {
        // SYNC: silence. Either this sees that the consumer silenced the eventfd, or the consumer
        // sees the event when it looks a last time.
        if !self.rung.load(Ordering::SeqCst) {
            self.ring_for(position, progress, descriptor);
        }
    }

    /// A producer's step after it counted a lost event, `lost` in all.
    pub(crate) fn loss(
        &self,
        lost: u64,
        progress: &ConsumerProgress,
        descriptor: &impl Descriptor,
    ) {
        // SYNC: silence
        fence(Ordering::SeqCst);
        if !self.rung.load(Ordering::Relaxed) {
            self.announced_lost.fetch_max(lost, Ordering::Relaxed);
            self.ring(progress, descriptor);
        }
    }

    #[cold]
    fn ring_for(&self, position: u64, progress: &ConsumerProgress, descriptor: &impl Descriptor) {
        // An event behind others is found by the consumer when it has taken those.
        if progress.taken.load(Ordering::Relaxed) == position {
            self.announced.fetch_max(position + 1, Ordering::Relaxed);
            self.ring(progress, descriptor);
        }
    }

    fn ring(&self, progress: &ConsumerProgress, descriptor: &impl Descriptor) {
        // SYNC: inside. A thread there sees what is announced when it checks once more.
        if self.busy.fetch_or(HELD | AGAIN, Ordering::AcqRel) & HELD != 0 {
            return;
        }
        loop {
            self.busy.fetch_and(!AGAIN, Ordering::AcqRel);
            let event =
                self.announced.load(Ordering::Relaxed) > progress.taken.load(Ordering::Relaxed);
            let loss = self.announced_lost.load(Ordering::Relaxed)
                > progress.reported_lost.load(Ordering::Relaxed);
            if (event || loss) && !self.rung.load(Ordering::Relaxed) {
                self.rung.store(true, Ordering::Relaxed);
                descriptor.set();
            }
            if self.leave() {
                return;
            }
        }
    }

    /// The consumer's step after it stored its progress, or found nothing. `waits` tells whether
    /// something can be taken now.
    #[inline(always)]
    pub(crate) fn taken(&self, mut waits: impl FnMut() -> bool, descriptor: &impl Descriptor) {
        // A signalled eventfd stays so while only producers act, so there is nothing to change.
        // A silent one, at an event that was taken early, may still have a producer on its way.
        if self.rung.load(Ordering::Relaxed) && waits() {
            return;
        }
        self.settle(waits, descriptor);
    }

    /// The consumer's step when it found nothing: cheap when the eventfd is silent.
    pub(crate) fn nothing(&self, waits: impl FnMut() -> bool, descriptor: &impl Descriptor) {
        if self.rung.load(Ordering::Relaxed) {
            self.settle(waits, descriptor);
        }
    }

    #[cold]
    fn settle(&self, mut waits: impl FnMut() -> bool, descriptor: &impl Descriptor) {
        let mut attempts = 0;
        // SYNC: inside
        while self.busy.fetch_or(HELD, Ordering::AcqRel) & HELD != 0 {
            wait_a_little(&mut attempts);
        }
        loop {
            self.busy.fetch_and(!AGAIN, Ordering::AcqRel);
            let was_rung = self.rung.load(Ordering::Relaxed);
            self.rung.store(false, Ordering::Relaxed);
            // SYNC: silence
            fence(Ordering::SeqCst);
            let waits = waits();
            self.rung.store(waits, Ordering::Relaxed);
            match (was_rung, waits) {
                (false, true) => descriptor.set(),
                (true, false) => descriptor.clear(),
                (true, true) | (false, false) => {}
            }
            if self.leave() {
                return;
            }
        }
    }

    /// Goes out, unless something was asked for meanwhile.
    fn leave(&self) -> bool {
        // SYNC: inside
        self.busy.compare_exchange(HELD, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}
