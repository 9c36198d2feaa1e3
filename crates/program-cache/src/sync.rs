//! The locks and atomics of the cache's own algorithms, named in one place so that
//! `program-cache-models` can compile those files with loom's.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
