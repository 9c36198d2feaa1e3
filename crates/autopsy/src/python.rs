//! Python stacks, read from the process's memory while it goes on.
//!
//! A process that changes its stacks while they are read gives a torn one, so a failed reading is repeated.

mod layout;
mod lines;
mod runtime;
mod stack;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use procfs::process::Process;

use crate::evidence::PythonStack;
use crate::memory;
use runtime::FoundRuntime;
use stack::{Reader, ThreadState};

/// How often stacks that cannot be read are tried, and how long that may take in all.
const READINGS: usize = 3;
const TIMEOUT: Duration = Duration::from_millis(500);
/// The minor versions that the tests read stacks of.
const TESTED: std::ops::RangeInclusive<u32> = 8..=13;
/// Bytes at the start of a thread's descriptor among which its thread id is looked for: glibc has it at 720
/// (x86-64) and 208 (AArch64).
const DESCRIPTOR_BYTES: usize = 1024;

/// The interpreter of a process, found once and read at each sample.
pub(crate) struct Interpreter {
    runtime: FoundRuntime,
    pid: u32,
}

impl Interpreter {
    /// Finds the interpreter; none where the process has none, and else an error that says why its stacks
    /// cannot be read.
    pub(crate) fn find(process: &Process) -> Option<Result<Self, String>> {
        let pid = process.pid().unsigned_abs();
        Some(runtime::find(process)?.map(|runtime| Self { runtime, pid }))
    }

    /// Its version, and whether the tests read stacks of it.
    pub(crate) fn version(&self) -> (String, bool) {
        let version = self.runtime.version;
        let (major, minor, patch) = (version >> 24, version >> 16 & 0xff, version >> 8 & 0xff);
        // Only the file's name is known of versions before 3.11.
        let text = match version & 0xffff {
            0 => format!("{major}.{minor}"),
            _ => format!("{major}.{minor}.{patch}"),
        };
        (text, TESTED.contains(&minor))
    }

    /// The stacks by thread id; `threads` are the process's.
    pub(crate) fn stacks(&self, threads: &[u32]) -> Result<BTreeMap<u32, PythonStack>, String> {
        let deadline = Instant::now() + TIMEOUT;
        let reader = Reader { pid: self.pid, runtime: &self.runtime, deadline };
        let mut failed = String::new();
        for _ in 0..READINGS {
            match reader.threads() {
                Ok(states) => return Ok(self.by_thread(states, threads)),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn by_thread(&self, states: Vec<ThreadState>, threads: &[u32]) -> BTreeMap<u32, PythonStack> {
        let of_thread = |state: &ThreadState| match state.native_id {
            // What belongs to a thread that has not begun.
            Some(0) => None,
            Some(tid) => Some(tid),
            None => self.thread_of(state.pthread, threads),
        };
        let stacks = states.into_iter().filter_map(|state| Some((of_thread(&state)?, state.stack)));
        stacks.collect()
    }

    /// The thread id of a `pthread_t`, which CPython before 3.11 has alone: the C library keeps it within
    /// the structure that the `pthread_t` points at.
    fn thread_of(&self, pthread: u64, threads: &[u32]) -> Option<u32> {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        let read = memory::read(self.pid, pthread, &mut bytes);
        let words = bytes[..read].as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word));
        words.into_iter().find(|word| threads.contains(word))
    }
}
