//! Loom's stand-ins for what the cache's own `sync` names.
//!
//! A panic cannot be unwound through loom, and loom's locks are never poisoned. Here a thread that
//! drops a guard while it pretends to panic poisons the lock, as the standard library does.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, TryLockResult};
use std::time::Duration;

pub(crate) use std::sync::{PoisonError, TryLockError};

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

loom::thread_local! {
    /// Set while a thread pretends to panic.
    static PANICS: Cell<bool> = Cell::new(false);
}

thread_local! {
    /// Set by a model that is to show what poisoning is for. Loom runs all threads of a model on
    /// one of the system's.
    pub(crate) static WITHOUT_POISON: Cell<bool> = const { Cell::new(false) };
}

/// Drops what a thread that panics would drop.
pub(crate) fn panic_with<T>(held: T) {
    PANICS.with(|panics| panics.set(true));
    drop(held);
    PANICS.with(|panics| panics.set(false));
}

/// A lock that can be poisoned.
pub(crate) struct Mutex<T> {
    lock: loom::sync::Mutex<T>,
    poisoned: AtomicBool,
}

/// Its guard.
pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// There until the guard is dropped or waits.
    guard: Option<loom::sync::MutexGuard<'a, T>>,
}

/// A condition variable for these locks.
pub(crate) struct Condvar(loom::sync::Condvar);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { lock: loom::sync::Mutex::new(value), poisoned: AtomicBool::new(false) }
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let guard = self.lock.lock().unwrap();
        self.guarded(guard)
    }

    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self.lock.try_lock() {
            Ok(guard) => self.guarded(guard).map_err(TryLockError::Poisoned),
            Err(_) => Err(TryLockError::WouldBlock),
        }
    }

    pub(crate) fn clear_poison(&self) {
        self.poisoned.store(false, Ordering::Relaxed);
    }

    fn guarded<'a>(
        &'a self,
        guard: loom::sync::MutexGuard<'a, T>,
    ) -> LockResult<MutexGuard<'a, T>> {
        let guard = MutexGuard { mutex: self, guard: Some(guard) };
        if self.poisoned.load(Ordering::Relaxed) { Err(PoisonError::new(guard)) } else { Ok(guard) }
    }
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(
        &self,
        mut waiting: MutexGuard<'a, T>,
    ) -> LockResult<MutexGuard<'a, T>> {
        let mutex = waiting.mutex;
        let guard = waiting.guard.take().unwrap();
        mutex.guarded(self.0.wait(guard).unwrap())
    }

    /// Loom knows no time: no model has a check, so none waits here.
    pub(crate) fn wait_timeout<'a, T>(
        &self,
        waiting: MutexGuard<'a, T>,
        _: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        match self.wait(waiting) {
            Ok(guard) => Ok((guard, ())),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), ()))),
        }
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().unwrap()
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().unwrap()
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        let panics = self.guard.is_some() && PANICS.with(Cell::get);
        if panics && !WITHOUT_POISON.get() {
            self.mutex.poisoned.store(true, Ordering::Relaxed);
        }
    }
}
