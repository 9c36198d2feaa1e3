//! A compilation under way, and those who wait for it.
//!
//! Threads that miss the same key while one compiles it wait for that one's result, be it a
//! program or an error. An error reaches those who waited and is then forgotten.

use std::sync::Arc;

use super::counters::ThreadNumber;
use super::entry::StoredKey;
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use crate::waiting::{CHECK_PERIOD, CannotWait, InterruptCheck};

/// What became of a compilation: its result, or nothing if its thread panicked.
type Landed<T, F> = Option<Result<T, F>>;

/// One compilation: `T` is what it gives, `F` why it failed.
pub(crate) struct Flight<T, F> {
    key: StoredKey,
    leader: ThreadNumber,
    /// Clears of the cache before it began.
    pub(crate) generation: u64,
    landing: Mutex<Landing<T, F>>,
    landed: Condvar,
}

/// How far a compilation is.
enum Landing<T, F> {
    InTheAir,
    Here(Result<T, F>),
    /// The compiling thread panicked; those who wait try themselves.
    Lost,
}

/// The flight of the thread that compiles. Dropped without a result it is lost.
pub(crate) struct Leading<T: Clone, F: Clone> {
    pub(crate) flight: Arc<Flight<T, F>>,
}

impl<T: Clone, F: Clone> Flight<T, F> {
    pub(crate) fn new(key: StoredKey, leader: ThreadNumber, generation: u64) -> Self {
        let landing = Mutex::new(Landing::InTheAir);
        Self { key, leader, generation, landing, landed: Condvar::new() }
    }

    pub(crate) fn key(&self) -> &StoredKey {
        &self.key
    }

    pub(crate) fn leader(&self) -> ThreadNumber {
        self.leader
    }

    /// What the compilation gave.
    ///
    /// # Errors
    /// When the check ends the waiting. The compilation goes on.
    pub(crate) fn wait(&self, check: Option<InterruptCheck>) -> Result<Landed<T, F>, CannotWait> {
        let mut landing = self.landing();
        loop {
            match &*landing {
                Landing::InTheAir => {}
                Landing::Here(result) => return Ok(Some(result.clone())),
                Landing::Lost => return Ok(None),
            }
            landing = match check {
                None => self.landed.wait(landing).unwrap_or_else(PoisonError::into_inner),
                Some(check) => self.wait_a_period(landing, check)?,
            };
        }
    }

    /// Waits for a change, but not for longer than until the check is due.
    fn wait_a_period<'a>(
        &'a self,
        landing: MutexGuard<'a, Landing<T, F>>,
        check: InterruptCheck,
    ) -> Result<MutexGuard<'a, Landing<T, F>>, CannotWait> {
        let waited = self.landed.wait_timeout(landing, CHECK_PERIOD);
        let (landing, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if !matches!(*landing, Landing::InTheAir) {
            return Ok(landing);
        }
        // The check may wait for the thread that compiles, which needs the lock to land.
        drop(landing);
        if check() { Err(CannotWait::Interrupted) } else { Ok(self.landing()) }
    }

    pub(crate) fn is_lost(&self) -> bool {
        matches!(*self.landing(), Landing::Lost)
    }

    fn land(&self, result: Landing<T, F>) {
        *self.landing() = result;
        self.landed.notify_all();
    }

    /// The state, which is replaced as a whole: a panic elsewhere leaves it whole.
    fn landing(&self) -> MutexGuard<'_, Landing<T, F>> {
        self.landing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone, F: Clone> Leading<T, F> {
    /// Hands the result to those who wait.
    pub(crate) fn land(self, result: Result<T, F>) {
        self.flight.land(Landing::Here(result));
    }
}

impl<T: Clone, F: Clone> Drop for Leading<T, F> {
    fn drop(&mut self) {
        let mut landing = self.flight.landing();
        if matches!(*landing, Landing::InTheAir) {
            *landing = Landing::Lost;
            drop(landing);
            self.flight.landed.notify_all();
        }
    }
}
