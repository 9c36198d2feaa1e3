//! A lock for what takes nanoseconds: waiting threads are not parked, because waking it would cost
//! the holder microseconds. Nothing that may block or call out is done inside, save where the
//! caller says so.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicBool, Ordering, wait_a_little};

/// A value that one thread at a time may touch. It begins in the cache line of the lock.
#[repr(C, align(64))]
pub(super) struct Locked<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

/// Being inside; ends when dropped.
pub(super) struct Inside<'lock, T>(&'lock Locked<T>);

// SAFETY: `held` lets one thread at a time reach the value, so sharing the lock between threads is
// no more than sending the value from one to the next, which `T: Send` allows.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub(super) fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[inline(always)]
    pub(super) fn lock(&self) -> Inside<'_, T> {
        if !self.try_hold() {
            self.wait_and_hold();
        }
        Inside(self)
    }

    #[inline(always)]
    fn try_hold(&self) -> bool {
        // SYNC: short lock
        self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait_and_hold(&self) {
        let mut attempts = 0;
        // Looking first keeps the line shared while another thread holds the lock.
        while self.held.load(Ordering::Relaxed) || !self.try_hold() {
            wait_a_little(&mut attempts);
        }
    }
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: an `Inside` exists only between taking and releasing `held`, so no other thread
        // has a reference to the value. Safe locks of std park threads.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Inside<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`; `&mut self` rules out a second reference through this guard.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Inside<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SYNC: short lock
        self.0.held.store(false, Ordering::Release);
    }
}
