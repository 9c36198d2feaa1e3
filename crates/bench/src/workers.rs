//! Starts the processes that a benchmark queries, and ends each by its own pid.
//!
//! A worker serves until its standard input ends. That happens however the parent goes: by dropping
//! [`WorkerProcess`], by a panic, by Ctrl-C (workers sit in process groups of their own, so the terminal's
//! signal reaches only the parent) or by SIGKILL. A worker whose parent vanished removes the run's
//! directory.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::machine::Size;

/// What a worker prints when its socket accepts connections.
pub const READY: &str = "ready";
/// What a worker is sent when it should end and leave the directory to its parent.
pub const STOP: &str = "stop";

/// What a worker serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerService {
    /// The seed's metrics server, with this value for device 0.
    Seed {
        /// DRAM bytes of device 0; device n has n more.
        base: u64,
    },
    /// A workload of ours: a ledger and an endpoint, with [`crate::seed::DEVICES`] devices.
    Ours {
        /// Live DRAM bytes on device 0; device n has n more.
        base: u64,
    },
    /// A socket that answers 16 bytes with 256 and checks nothing.
    Bare,
    /// An emulated machine, whose root is the directory.
    Machine {
        /// Which.
        size: Size,
    },
    /// A workload on that machine.
    Workload {
        /// Which machine it is.
        size: Size,
        /// Which one; it decides which chips.
        number: u64,
    },
    /// A workload that has little and holds it on one chip alone. It answers each line with the
    /// moment before it made its ledger, in nanoseconds on the monotonic clock.
    Visitor {
        /// Which one; it decides which chip.
        number: u64,
    },
    /// A workload that records so many allocations and frees each time it is sent a line, and
    /// answers with the processor time that its process took, in nanoseconds.
    Toiler {
        /// Pairs of an allocation and its free.
        pairs: u64,
    },
    /// Nothing: what a process costs that only waits.
    Idle,
}

impl WorkerService {
    /// The worker's arguments for this service.
    pub fn arguments(self) -> [String; 2] {
        match self {
            Self::Seed { base } => ["seed".to_owned(), base.to_string()],
            Self::Ours { base } => ["ours".to_owned(), base.to_string()],
            Self::Bare => ["bare".to_owned(), "0".to_owned()],
            Self::Machine { size: Size::Galaxy } => ["galaxy".to_owned(), "0".to_owned()],
            Self::Machine { size: Size::Eight } => ["eight".to_owned(), "0".to_owned()],
            Self::Workload { size: Size::Galaxy, number } => {
                ["workload-on-galaxy".to_owned(), number.to_string()]
            }
            Self::Workload { size: Size::Eight, number } => {
                ["workload-on-eight".to_owned(), number.to_string()]
            }
            Self::Visitor { number } => ["visitor".to_owned(), number.to_string()],
            Self::Toiler { pairs } => ["toiler".to_owned(), pairs.to_string()],
            Self::Idle => ["idle".to_owned(), "0".to_owned()],
        }
    }

    /// Reads [`WorkerService::arguments`] back.
    pub fn parse(name: &str, number: &str) -> Option<Self> {
        let number = number.parse().ok()?;
        match name {
            "seed" => Some(Self::Seed { base: number }),
            "ours" => Some(Self::Ours { base: number }),
            "bare" => Some(Self::Bare),
            "galaxy" => Some(Self::Machine { size: Size::Galaxy }),
            "eight" => Some(Self::Machine { size: Size::Eight }),
            "workload-on-galaxy" => Some(Self::Workload { size: Size::Galaxy, number }),
            "workload-on-eight" => Some(Self::Workload { size: Size::Eight, number }),
            "visitor" => Some(Self::Visitor { number }),
            "toiler" => Some(Self::Toiler { pairs: number }),
            "idle" => Some(Self::Idle),
            _ => None,
        }
    }
}

/// One worker process, ended and waited for when dropped.
#[derive(Debug)]
pub struct WorkerProcess {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl WorkerProcess {
    /// Starts `program` on `service` with its socket in `directory`, pinned to the given processor if
    /// any, and waits until it is ready.
    ///
    /// # Errors
    /// When the program cannot be started, or ends without being ready.
    pub fn start(
        program: &Path,
        directory: &Path,
        service: WorkerService,
        processor: Option<usize>,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg(directory).args(service.arguments());
        if let Some(index) = processor {
            command.arg(index.to_string());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        // From here on an error drops the worker, which ends the process.
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().expect("standard output was asked to be a pipe");
        let mut worker = Self { child, stdout: BufReader::with_capacity(64, stdout) };
        let mut line = String::new();
        worker.stdout.read_line(&mut line)?;
        if line.trim_end() != READY {
            let reason = format!("the worker {} ended before it was ready", program.display());
            return Err(io::Error::other(reason));
        }
        Ok(worker)
    }

    /// The worker's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line to a [`WorkerService::Visitor`] or [`WorkerService::Toiler`]; the number it answers with.
    ///
    /// # Errors
    /// When it is gone or answers something else.
    pub fn ask(&mut self) -> io::Result<f64> {
        let stdin = self.child.stdin.as_mut().expect("standard input was asked to be a pipe");
        writeln!(stdin)?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        line.trim_end().parse().map_err(io::Error::other)
    }

    /// Kills the worker, which cleans up nothing, and waits until it has ended.
    ///
    /// # Errors
    /// What killing or waiting answers.
    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Leaves the worker alone as a parent that was killed would, and waits until it ends.
    ///
    /// # Errors
    /// What waiting answers.
    pub fn abandon(mut self) -> io::Result<()> {
        drop(self.child.stdin.take());
        self.child.wait().map(drop)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            // A worker that is gone cannot and need not be notified.
            let _ = writeln!(stdin, "{STOP}");
        }
        let _ = self.child.wait();
    }
}
