//! How workers are run, as the one who starts an agent wants it.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{Echo, Incarnation, NodeName};
#[cfg(doc)]
use super::{GUARD, HOLD, MIN_OUTPUT_BYTES};

/// How workers are run.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// The node, and which life of its agent this is.
    pub node: NodeName,
    /// As [`NodeName`], for this life.
    pub incarnation: Incarnation,
    /// This program, which has the subcommands [`HOLD`] and [`GUARD`].
    pub program: PathBuf,
    /// The directory with the record of workers, the files of their output, and the gate. One agent
    /// uses it at a time.
    pub state: PathBuf,
    /// The command that each worker runs.
    pub command: Vec<OsString>,
    /// Variables for every worker beside those that the machine gives, or in their place.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory with the files of their output; without one, no output is kept.
    pub logs: Option<PathBuf>,
    /// Bytes of one worker's output that are kept for one epoch, [`MIN_OUTPUT_BYTES`] or more.
    pub output_bytes: u64,
    /// How their output appears on this process's own.
    pub echo: Echo,
    /// A directory that the guard removes if this process is killed.
    pub remove_if_killed: Option<PathBuf>,
    /// How many workers are kept started ahead.
    pub warm: u32,
    /// Whether Python workers are given the module that reports PyTorch's collectives.
    pub shim: bool,
}
