//! What is taken of one process: samples of its threads, and what could not be taken.
//!
//! All of it comes from a process that may forge any of it, so every list is bounded where it is
//! taken, and no text of it is ever run, opened or parsed as anything else.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::context::{Context, TcpConnection};

/// One process, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ProcessEvidence {
    /// Its process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot: with the process id, which process it is.
    pub start_ticks: u64,
    /// Its rank in the job, by its supervisor or its environment (`RANK`, `SLURM_PROCID` and the like).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The program's name, as the kernel has it.
    pub name: String,
    /// The version of its CPython, such as `3.11.2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// What surrounds it.
    #[serde(default)]
    pub context: Context,
    /// Its threads, twice unless it ended in between.
    pub samples: Vec<Sample>,
    /// What could not be taken, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// Processes that it started, such as those that load data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Self>,
}

/// All threads at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The longest time that one thread was stopped, in microseconds.
    pub stopped_us: u64,
    /// How many different stacks the main thread's Python had within the tenth of a second after it was taken,
    /// and how many of them differ by more than lines; 0 without Python.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub python_stacks: u64,
    /// See above.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub python_call_chains: u64,
    /// TCP connections that hold bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<TcpConnection>,
    /// The threads, the main one first.
    pub threads: Vec<ThreadEvidence>,
    /// Threads beyond the 256 that a sample holds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads_left_out: u64,
}

/// One thread at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ThreadEvidence {
    /// Its thread id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// The state's letter in proc(5): R, S, D, T, t, Z and others.
    pub state: char,
    /// The kernel function that it waits in, where the kernel names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_channel: Option<String>,
    /// The system call that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_call: Option<SystemCall>,
    /// Processor time since it started, in milliseconds.
    pub cpu_ms: u64,
    /// Its Python stack, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<PythonStack>,
    /// Its native stack, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub native: Vec<NativeFrame>,
}

/// A system call that has not returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct SystemCall {
    /// Its name, or `call 123`.
    pub name: String,
    /// The file that its descriptor is open on, where its first argument is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The Python stack of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct PythonStack {
    /// Whether the thread held the global interpreter lock.
    pub has_gil: bool,
    /// Its frames, innermost first.
    pub frames: Vec<PythonFrame>,
}

/// One Python function that has been called and has not returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct PythonFrame {
    /// The function: its qualified name since CPython 3.11.
    pub function: String,
    /// The file, as Python has it.
    pub file: String,
    /// The line; 0 where it could not be read.
    pub line: u32,
}

/// One native function that has been called and has not returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct NativeFrame {
    /// The function, demangled, or none where no symbol covers the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The file name of the library or program.
    pub module: String,
    /// The address within it.
    pub offset: u64,
}

/// Something that could not be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// What: `Python stacks`, `native stacks`, `thread 123`.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to do, where something can be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl ProcessEvidence {
    /// The same with the samples that were taken of it earlier, where it is among those.
    #[must_use]
    pub fn after(mut self, earlier: &[Self]) -> Self {
        let is_same = |one: &&Self| (one.pid, one.start_ticks) == (self.pid, self.start_ticks);
        if let Some(before) = earlier.iter().find(is_same) {
            self.samples = before.samples.iter().chain(&self.samples).cloned().collect();
        }
        self
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.what, self.why)?;
        match &self.remedy {
            Some(remedy) => write!(formatter, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl Sample {
    /// The thread that the program began in.
    #[must_use]
    pub fn main(&self) -> Option<&ThreadEvidence> {
        self.threads.first()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
