//! One program of the cache, and who may touch it.
//!
//! A program is used by one thread at a time, under its entry's lock, for writing its arguments
//! and handing it to the device belong together. The thread that drops an entry takes the program out
//! under the same lock, so no program disappears in use; a thread that then finds the entry by an
//! old reference finds it empty.

use std::any::TypeId;
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::counters::ThreadNumber;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering, TryLockError};
use crate::waiting::{CannotWait, InterruptCheck, wait_for};

/// What an entry weighs beside its program, key and plan.
const OVERHEAD_BYTES: usize = 512;

/// What stands for a program in the table. Two keys are equal when all of it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredKey {
    hash: u64,
    /// The operation's type; none for a program that is described in full.
    operation: Option<TypeId>,
    bytes: Arc<[u8]>,
}

/// A key that is searched for.
#[derive(Debug)]
pub(crate) struct WantedKey<'a> {
    /// Finds; it decides nothing.
    pub(crate) hash: u64,
    /// The operation's type; none for a program that is described in full.
    pub(crate) operation: Option<TypeId>,
    /// The canonical bytes.
    pub(crate) bytes: &'a [u8],
    /// Set when another key with the same hash was met.
    pub(crate) collided: Cell<bool>,
}

/// A program, its key and what is known of it.
pub(crate) struct Entry<P, S> {
    pub(crate) key: StoredKey,
    /// What the cache keeps beside the program: it never changes.
    pub(crate) side: S,
    /// Of the program, what is beside it, the key and the entry.
    pub(crate) weight_bytes: u64,
    /// Used since the eviction's hand last passed.
    recently_used: AtomicBool,
    /// To be dropped when unused.
    retired: AtomicBool,
    /// Number of the thread that uses the program; 0 for none.
    user: AtomicUsize,
    program: Mutex<Option<P>>,
}

/// A program that was just compiled.
pub(crate) struct Made<P, S> {
    pub(crate) program: P,
    /// What is kept beside it.
    pub(crate) side: S,
    /// What both weigh.
    pub(crate) weight_bytes: u64,
}

/// A program in the hands of one dispatch.
pub(crate) struct Using<'a, P, S> {
    pub(crate) side: &'a S,
    pub(crate) program: &'a mut P,
    /// It was compiled for this dispatch and has its words; else it has those of another.
    pub(crate) is_fresh: bool,
}

/// The program of an entry, for one thread, until it is dropped.
pub(crate) struct InUse<'a, P, S> {
    entry: &'a Entry<P, S>,
    program: MutexGuard<'a, Option<P>>,
}

// === impl StoredKey, WantedKey ===

impl WantedKey<'_> {
    /// A copy to keep.
    pub(crate) fn to_stored(&self) -> StoredKey {
        StoredKey { hash: self.hash, operation: self.operation, bytes: self.bytes.into() }
    }

    /// Whether it is the same key, bytes compared.
    #[inline]
    pub(crate) fn is(&self, stored: &StoredKey) -> bool {
        if self.hash != stored.hash {
            return false;
        }
        let same = self.operation == stored.operation && *self.bytes == *stored.bytes;
        if !same {
            self.collided.set(true);
        }
        same
    }
}

impl StoredKey {
    /// The key, to look it up.
    pub(crate) fn wanted(&self) -> WantedKey<'_> {
        let collided = Cell::new(false);
        WantedKey { hash: self.hash, operation: self.operation, bytes: &self.bytes, collided }
    }
}

impl Hash for StoredKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Hash for WantedKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

// === impl Entry ===

impl<P, S> Entry<P, S> {
    pub(crate) fn new(key: StoredKey, made: Made<P, S>) -> Self {
        let own_bytes = u64::try_from(key.bytes.len() + OVERHEAD_BYTES).unwrap_or(u64::MAX);
        Self {
            key,
            side: made.side,
            weight_bytes: made.weight_bytes.saturating_add(own_bytes),
            recently_used: AtomicBool::new(true),
            retired: AtomicBool::new(false),
            user: AtomicUsize::new(0),
            program: Mutex::new(Some(made.program)),
        }
    }

    /// The program, once unused; `None` if it has been dropped meanwhile. `check` is called if there is need to wait.
    ///
    /// # Errors
    /// When this thread uses it already, where waiting would never end, or the check ends the waiting.
    // Calls to this and to the drop of what it gives cost a hit a tenth of its time.
    #[inline(always)]
    pub(crate) fn enter(
        &self,
        thread: ThreadNumber,
        check: impl FnOnce() -> Option<InterruptCheck>,
    ) -> Result<Option<InUse<'_, P, S>>, CannotWait> {
        let program = match self.program.try_lock() {
            Ok(program) => program,
            Err(TryLockError::Poisoned(poisoned)) => {
                self.give_up(poisoned.into_inner());
                return Ok(None);
            }
            // Only this thread stores its own number, so what it reads here is up to date.
            Err(TryLockError::WouldBlock) if self.user.load(Ordering::Relaxed) == thread.get() => {
                return Err(CannotWait::Reentered);
            }
            Err(TryLockError::WouldBlock) => return self.wait(thread, check()),
        };
        // The store is left out where it would change nothing: it would take the line from others.
        if !self.recently_used.load(Ordering::Relaxed) {
            self.recently_used.store(true, Ordering::Relaxed);
        }
        Ok(self.begin(program, thread))
    }

    #[cold]
    fn wait(
        &self,
        thread: ThreadNumber,
        check: Option<InterruptCheck>,
    ) -> Result<Option<InUse<'_, P, S>>, CannotWait> {
        let locked = match check {
            None => self.program.lock(),
            Some(check) => wait_for(check, || match self.program.try_lock() {
                Ok(program) => Some(Ok(program)),
                Err(TryLockError::Poisoned(poisoned)) => Some(Err(poisoned)),
                Err(TryLockError::WouldBlock) => None,
            })?,
        };
        Ok(match locked {
            Ok(program) => self.begin(program, thread),
            Err(poisoned) => {
                self.give_up(poisoned.into_inner());
                None
            }
        })
    }

    /// Drops a program whose user panicked, for it may be half updated.
    #[cold]
    fn give_up(&self, mut program: MutexGuard<'_, Option<P>>) {
        *program = None;
        self.program.clear_poison();
    }

    #[inline]
    fn begin<'a>(
        &'a self,
        program: MutexGuard<'a, Option<P>>,
        thread: ThreadNumber,
    ) -> Option<InUse<'a, P, S>> {
        if program.is_none() || self.retired.load(Ordering::Relaxed) {
            return None;
        }
        self.user.store(thread.get(), Ordering::Relaxed);
        Some(InUse { entry: self, program })
    }

    /// Marks that no thread may start using the program any more. Its last user drops it.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// Whether it was used since this was last asked.
    pub(crate) fn was_used(&self) -> bool {
        self.recently_used.swap(false, Ordering::Relaxed)
    }

    /// Whether it is in use at this moment.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self.program.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Takes the program out.
    ///
    /// # Errors
    /// When it is in use.
    pub(crate) fn take(&self) -> Result<Option<P>, InUseElsewhere> {
        match self.program.try_lock() {
            Ok(mut program) => Ok(program.take()),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner().take()),
            Err(TryLockError::WouldBlock) => Err(InUseElsewhere),
        }
    }
}

/// The program is in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InUseElsewhere;

// === impl InUse ===

impl<P, S> InUse<'_, P, S> {
    /// Drops a program that was retired while it was in use.
    #[cold]
    fn drop_program(&mut self) {
        *self.program = None;
    }

    /// The program.
    #[inline]
    pub(crate) fn program(&mut self) -> &mut P {
        self.program.as_mut().expect("a program in use is there: `begin` looked under the lock")
    }
}

impl<P, S> Drop for InUse<'_, P, S> {
    #[inline(always)]
    fn drop(&mut self) {
        self.entry.user.store(0, Ordering::Relaxed);
        if self.entry.retired.load(Ordering::Relaxed) {
            self.drop_program();
        }
    }
}
