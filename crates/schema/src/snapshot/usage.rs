//! What a process and all of its machine take of the host: processors, memory, storage.
//!
//! It is read while a view shows it, and not otherwise: a snapshot without it is complete.

use serde::{Deserialize, Serialize};

use crate::reading::{Absence, Reading};

/// What one process takes of its host, as the kernel counts it (proc_pid_stat(5), proc_pid_io(5)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ProcessUsage {
    /// Processor time of all its threads per time that passed: 1 is one processor, busy all the time.
    pub cpu_ratio: Reading<f64>,
    /// Bytes of its memory that are in RAM, shared pages included.
    pub resident_bytes: Reading<u64>,
    /// Its threads.
    pub threads: Reading<u64>,
    /// Bytes a second that it made storage read; what the page cache had is not in it.
    pub read_bytes_per_second: Reading<u64>,
    /// Bytes a second that it made storage write.
    pub written_bytes_per_second: Reading<u64>,
}

/// What all processes together take of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct HostUsage {
    /// The share of all processors' time that was not idle, from 0 to 1.
    pub cpu_ratio: Reading<f64>,
    /// Processors that are online.
    pub processors: Reading<u64>,
    /// Bytes of RAM that a new process could not have.
    pub used_bytes: Reading<u64>,
    /// Bytes of RAM.
    pub memory_bytes: Reading<u64>,
    /// Tasks that ran or waited for a processor or storage, on average over one minute.
    pub load_1: Reading<f64>,
    /// The same over five minutes.
    pub load_5: Reading<f64>,
    /// The same over fifteen minutes.
    pub load_15: Reading<f64>,
}

impl ProcessUsage {
    /// Of a process of which nothing could be read, for this reason.
    pub fn absent(reason: Absence, detail: &str) -> Self {
        Self {
            cpu_ratio: Reading::absent(reason, detail),
            resident_bytes: Reading::absent(reason, detail),
            threads: Reading::absent(reason, detail),
            read_bytes_per_second: Reading::absent(reason, detail),
            written_bytes_per_second: Reading::absent(reason, detail),
        }
    }
}
