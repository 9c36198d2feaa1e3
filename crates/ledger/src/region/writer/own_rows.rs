//! Which process rows this very process holds now.
//!
//! A row with our own pid that is not in here was left by a dead process whose number we got: in a
//! restarted container that number is always 1. No file is touched here.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::time::Instant;

use super::super::read::FileIdentity;
use crate::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A row: file, place in its table, and the pid, so that a forked child's copy of its parent's
/// rows means nothing to it.
pub(super) type OwnRow = (FileIdentity, usize, u32);

static OWN_ROWS: Mutex<BTreeSet<OwnRow>> = Mutex::new(BTreeSet::new());

/// The rows; absent if they stay locked until `deadline`, as in a child forked while another thread had the lock.
pub(super) fn own_rows(deadline: Instant) -> Option<MutexGuard<'static, BTreeSet<OwnRow>>> {
    loop {
        match OWN_ROWS.try_lock() {
            Ok(rows) => return Some(rows),
            // A set is whole after a panic elsewhere: each change is one call.
            Err(TryLockError::Poisoned(poisoned)) => {
                return Some(PoisonError::into_inner(poisoned));
            }
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}
