//! Keeps the calling thread on one processor during a measurement.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The calling thread runs on one processor until this is dropped.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// Pins the calling thread to the `index`-th processor that it may use, counting round when
    /// there are fewer.
    ///
    /// # Errors
    /// What the kernel answers to reading or setting the thread's processors.
    pub fn to(index: usize) -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        let allowed = allowed(&before);
        let mut only = CpuSet::new();
        only.set(allowed[index % allowed.len()]);
        sched_setaffinity(None, &only)?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The set was the thread's own a moment ago; if it no longer is, staying pinned is harmless.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// How many processors the calling thread may use.
///
/// # Errors
/// What the kernel answers to reading them.
pub fn processors() -> io::Result<usize> {
    Ok(allowed(&sched_getaffinity(None)?).len())
}

fn allowed(set: &CpuSet) -> Vec<usize> {
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect();
    assert!(!allowed.is_empty(), "a running thread may use at least one processor");
    allowed
}
