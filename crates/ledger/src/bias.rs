//! Who may touch what a process's threads share: while one thread has ever asked, that thread
//! alone and without a locked instruction; from the second thread on, the lock's holder.
//!
//! A locked instruction waits until every earlier store has left the processor, also those that
//! miss its caches. The first thread, the owner, therefore only stores that it is inside, and
//! then looks whether the bias still holds. The thread that ends it stores that first, makes every
//! running thread pass a barrier, and then waits for the owner to be outside. Only `crate::sync`
//! may be used here, because the loom models compile this file too; what is guarded is in
//! `biased`.

use crate::sync::{AtomicU32, Ordering, heavy_barrier, light_barrier, wait_a_little};

/// No thread has access; the next one to ask becomes the owner.
const FREE: u32 = 0;
/// The owner goes in without a lock.
const OWNED: u32 = 1;
/// The owner has to use locks now, and may still be inside without one.
const ENDING: u32 = 2;
/// Everybody uses locks, for ever.
const SEVERAL: u32 = 3;

const OUTSIDE: u32 = 0;
const INSIDE: u32 = 1;

/// Whether one thread goes in without locks. A cache line of its own: the owner stores here.
#[repr(align(64))]
pub(crate) struct Bias {
    mode: AtomicU32,
    /// Whether the owner is inside without a lock. Only the owner stores here.
    owner_is: AtomicU32,
}

/// A lock that is held for so short a time that no thread is parked for it. Releasing it is a plain
/// store.
pub(crate) struct SpinLock(AtomicU32);

/// What a thread got when it asked for access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The one thread that needs no lock while the bias holds.
    Owner,
    /// A thread that uses locks.
    Other,
}

/// Being inside; ends when dropped.
pub(crate) struct Inside<'bias>(&'bias AtomicU32);

// === impl Bias ===

impl Bias {
    /// A bias that can be ended only where the kernel grants the barrier: without it, all use
    /// locks from the start.
    pub(crate) fn new() -> Self {
        let mode = if heavy_barrier() { FREE } else { SEVERAL };
        Self { mode: AtomicU32::new(mode), owner_is: AtomicU32::new(OUTSIDE) }
    }

    /// Gives a thread access; one thread at a time may ask. From the second one on, waits until
    /// the owner is outside, so the owner itself must not ask while it is inside. None if the
    /// kernel has come to refuse the barrier; then the owner stays the only one.
    pub(crate) fn ask(&self) -> Option<Role> {
        let free = self.mode.compare_exchange(FREE, OWNED, Ordering::Acquire, Ordering::Relaxed);
        // SYNC: bias given up
        if free.is_ok() { Some(Role::Owner) } else { self.end().then_some(Role::Other) }
    }

    /// Ends the bias; one thread at a time may. Returns whether all use locks now.
    pub(crate) fn end(&self) -> bool {
        // SYNC: bias given up
        let before = self.mode.swap(ENDING, Ordering::Acquire);
        if before == OWNED {
            // From here on, the owner is seen to be inside, or will see that it needs a lock.
            if !heavy_barrier() {
                self.mode.store(OWNED, Ordering::Relaxed);
                return false;
            }
            let mut attempts = 0;
            // SYNC: owner outside
            while self.owner_is.load(Ordering::Acquire) == INSIDE {
                wait_a_little(&mut attempts);
            }
        }
        self.mode.store(SEVERAL, Ordering::Relaxed);
        true
    }

    /// The owner's end: the next thread to ask may be the owner.
    pub(crate) fn give_up(&self) {
        // SYNC: bias given up
        let _ = self.mode.compare_exchange(OWNED, FREE, Ordering::Release, Ordering::Relaxed);
    }

    /// Goes in where `lock` guards. None if this thread is the owner and inside already.
    #[inline(always)]
    pub(crate) fn go_in<'bias>(
        &'bias self,
        role: Role,
        lock: &'bias SpinLock,
    ) -> Option<Inside<'bias>> {
        // The first read spares the stores once there are several threads.
        if role == Role::Owner && self.mode.load(Ordering::Relaxed) == OWNED {
            if self.owner_is.load(Ordering::Relaxed) == INSIDE {
                return None;
            }
            self.owner_is.store(INSIDE, Ordering::Relaxed);
            light_barrier();
            if self.mode.load(Ordering::Acquire) == OWNED {
                return Some(Inside(&self.owner_is));
            }
            drop(Inside(&self.owner_is));
        }
        Some(lock.lock())
    }
}

// === impl SpinLock ===

impl SpinLock {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(OUTSIDE))
    }

    #[inline(always)]
    fn lock(&self) -> Inside<'_> {
        if !self.try_lock() {
            self.lock_contended();
        }
        Inside(&self.0)
    }

    #[inline(always)]
    fn try_lock(&self) -> bool {
        // SYNC: spin lock
        self.0.compare_exchange(OUTSIDE, INSIDE, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_contended(&self) {
        let mut attempts = 0;
        // Looking first keeps the line shared while another thread holds the lock.
        while self.0.load(Ordering::Relaxed) == INSIDE || !self.try_lock() {
            wait_a_little(&mut attempts);
        }
    }
}

impl Drop for Inside<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SYNC: owner outside, spin lock
        self.0.store(OUTSIDE, Ordering::Release);
    }
}
