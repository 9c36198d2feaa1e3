//! What other tools write about collectives, and how much of it was read.

use std::ffi::OsString;
use std::path::Path;

/// How the names of the Flight Recorder's dumps begin, in the directory that they go to. The
/// rank stands behind it.
const DUMP_PREFIX: &str = "nccl_trace_rank_";
/// Pipes by which dumps are asked for; a rank's number and `.pipe` follow.
pub const TRIGGER_PREFIX: &str = "dump_trigger_rank_";

/// What a reader understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Lines of the NCCL Inspector (`NCCL_INSPECTOR_DUMP_DIR`), each of a collective that has ended.
    Inspector,
    /// Dumps of the Flight Recorder, each a JSON object of the latest operations of one rank, whose
    /// number is the last one in the file's name.
    FlightRecorder,
}

/// What a reader has seen since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReaderCounts {
    /// Records that were given to the intake.
    pub read: u64,
    /// Lines, dumps or entries that make no sense.
    pub malformed: u64,
    /// Bytes that were passed over: lines or files that are too long, or written faster than read.
    pub skipped_bytes: u64,
    /// Files that were not checked since there are too many.
    pub files_left_out: u64,
    /// Records that found no place in the intake's queue.
    pub dropped: u64,
}

impl Format {
    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inspector => "inspector",
            Self::FlightRecorder => "flight_recorder",
        }
    }

    /// The variables by which a worker's own tool writes into the directory `path`, as the tool's
    /// documentation has them. What its user has set already counts before these.
    #[must_use]
    pub fn variables(self, path: &Path) -> Vec<(&'static str, OsString)> {
        match self {
            // `ext-profiler/inspector/README.md` in NVIDIA/nccl. Without the interval nothing is written
            // before the end; a second is how often it is checked.
            Self::Inspector => vec![
                ("NCCL_INSPECTOR_ENABLE", "1".into()),
                ("NCCL_INSPECTOR_DUMP_DIR", path.into()),
                ("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "1000000".into()),
            ],
            // PyTorch's page "ProcessGroupNCCL Environment Variables". The rank follows
            // the name. Each has a name of now and one of before; without entries nothing is recorded.
            Self::FlightRecorder => {
                let prefix = path.join(DUMP_PREFIX);
                vec![
                    ("TORCH_FR_DUMP_TEMP_FILE", prefix.clone().into()),
                    ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", prefix.into()),
                    ("TORCH_FR_BUFFER_SIZE", "2000".into()),
                    ("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000".into()),
                    ("TORCH_NCCL_DUMP_ON_TIMEOUT", "1".into()),
                    ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", path.join(TRIGGER_PREFIX).into()),
                ]
            }
        }
    }
}
