//! How a thread waits for a lock that never parks one: it spins, then gives the processor to others,
//! then sleeps.
//!
//! The sleep is for a holder of lower real-time priority, which would never run while a thread of
//! higher priority only yields.

use std::time::Duration;

use spin::mutex::{SpinMutex, SpinMutexGuard};

/// Attempts before the processor is given to other threads.
const SPINS: u32 = 64;
/// Yields before the thread sleeps.
const YIELDS: u32 = 64;
/// How long it then sleeps at a time.
const SLEEP: Duration = Duration::from_micros(50);

/// Takes the lock, however long that takes.
pub(crate) fn lock<T>(mutex: &SpinMutex<T>) -> SpinMutexGuard<'_, T> {
    let mut attempt = 0;
    loop {
        if let Some(guard) = attempt_on(mutex, attempt) {
            return guard;
        }
        attempt = attempt.saturating_add(1);
    }
}

/// Takes the lock unless that takes more than `attempts`.
pub(crate) fn lock_within<T>(mutex: &SpinMutex<T>, attempts: u32) -> Option<SpinMutexGuard<'_, T>> {
    (0..attempts).find_map(|attempt| attempt_on(mutex, attempt))
}

/// Makes one attempt and, if it fails, waits as long as befits its number.
fn attempt_on<T>(mutex: &SpinMutex<T>, attempt: u32) -> Option<SpinMutexGuard<'_, T>> {
    // Looking first keeps the line shared while another thread holds the lock.
    if !mutex.is_locked()
        && let Some(guard) = mutex.try_lock()
    {
        return Some(guard);
    }
    if attempt < SPINS {
        std::hint::spin_loop();
    } else if attempt < SPINS + YIELDS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(SLEEP);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{lock, lock_within};
    use spin::mutex::SpinMutex;

    #[test]
    fn a_lock_is_waited_for_and_given_up_in_time() {
        let mutex = SpinMutex::new(0);
        let held = lock(&mutex);
        assert!(lock_within(&mutex, 200).is_none());
        drop(held);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| *lock(&mutex) += 1));
            }
        });
        assert_eq!(*lock_within(&mutex, 1).unwrap(), 4_000);
    }
}
