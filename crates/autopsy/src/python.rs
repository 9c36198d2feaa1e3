//! Python stacks, read from the process's memory while it goes on.
//!
//! py-spy knows where each CPython keeps what. A process that changes its stacks while they are read gives
//! a torn one, so a failed reading is repeated.

use std::collections::BTreeMap;

use py_spy::config::LockingStrategy;
use py_spy::{Config, PythonSpy, StackTrace};

use crate::bounds::{MAX_FRAMES, bounded};
use crate::evidence::{PythonFrame, PythonStack};
use crate::native::memory;

/// How often stacks that cannot be read are tried.
const READINGS: usize = 3;
/// The newest CPython that the tests read stacks of; the oldest is 3.8.
const NEWEST_TESTED: (u64, u64) = (3, 13);
const OLDEST_TESTED: (u64, u64) = (3, 8);
/// Bytes at the start of a thread's descriptor among which its thread id is looked for: glibc has it at 720
/// (x86-64) and 208 (AArch64).
const DESCRIPTOR_BYTES: usize = 1024;

/// The interpreter of a process, found once and read at each sample.
pub(crate) struct Interpreter {
    spy: PythonSpy,
    pid: u32,
}

impl Interpreter {
    /// Finds the interpreter; the error says why there is none.
    pub(crate) fn find(pid: u32) -> Result<Self, String> {
        let config = Config { blocking: LockingStrategy::NonBlocking, ..Config::default() };
        let spy_pid = py_spy::Pid::try_from(pid).map_err(|error| error.to_string())?;
        let spy = PythonSpy::new(spy_pid, &config).map_err(|error| format!("{error:#}"))?;
        Ok(Self { spy, pid })
    }

    /// Its version, and whether the tests read stacks of it.
    pub(crate) fn version(&self) -> (String, bool) {
        let version = &self.spy.version;
        let short = (version.major, version.minor);
        let is_tested = (OLDEST_TESTED..=NEWEST_TESTED).contains(&short);
        (format!("{}.{}.{}", version.major, version.minor, version.patch), is_tested)
    }

    /// The stacks by thread id; `threads` are the process's.
    pub(crate) fn stacks(&mut self, threads: &[u32]) -> Result<BTreeMap<u32, PythonStack>, String> {
        let mut failed = String::new();
        for _ in 0..READINGS {
            match self.spy.get_stack_traces() {
                Ok(traces) => return Ok(self.by_thread(traces, threads)),
                Err(error) => failed = format!("{error:#}"),
            }
        }
        Err(failed)
    }

    fn by_thread(&self, traces: Vec<StackTrace>, threads: &[u32]) -> BTreeMap<u32, PythonStack> {
        let of_thread = |trace: &StackTrace| match trace.os_thread_id {
            Some(tid) => u32::try_from(tid).ok(),
            None => self.thread_of(trace.thread_id, threads),
        };
        let stacks = traces.iter().filter_map(|trace| Some((of_thread(trace)?, stack(trace))));
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

fn stack(trace: &StackTrace) -> PythonStack {
    let frames = trace.frames.iter().take(MAX_FRAMES).map(|frame| PythonFrame {
        function: bounded(&frame.name),
        file: bounded(&frame.filename),
        line: u32::try_from(frame.line).unwrap_or(0),
    });
    PythonStack { has_gil: trace.owns_gil, frames: frames.collect() }
}
