//! A process's environment, for who may read it: it holds tokens and passwords.
//!
//! It is read with the rights of who asks, by the kernel's rule (ptrace(2), `PTRACE_MODE_READ`): the
//! process's owner and root. It is in no snapshot, and no service passes it on.

use std::path::Path;
use std::sync::Arc;

use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::process::ProcessStat;

use super::booted::{Booted, SLEWED_NS};
use super::command::printable;
use super::status::Procfs;
use crate::clock::SystemClock;
use crate::tree::{OpenTreeError, Tree, Unreadable};

/// The most that is read; the kernel allows a few times as much.
const MAX_BYTES: usize = 512 * 1024;

/// Why an environment cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The root cannot be opened.
    #[error(transparent)]
    Tree(#[from] OpenTreeError),
    /// The process has ended, though another may have its pid.
    #[error("process {0} has ended")]
    Ended(u32),
    /// The caller may not read it, or it cannot be read.
    #[error("the environment of process {pid} cannot be read: {detail}; its owner and root can")]
    Unreadable {
        /// Its pid.
        pid: u32,
        /// What the kernel said.
        detail: String,
    },
}

/// The variables of the process that has `pid` and was started then, as
/// [`telltale_schema::snapshot::Process::started_at`] has it: `NAME=value` that a terminal can show, in
/// their order. May hang where the process holds its memory locked.
///
/// # Errors
/// When it has ended, or may not be read.
pub fn environment(
    root: &Path,
    pid: u32,
    started_at: Timestamp,
) -> Result<Vec<String>, EnvironmentError> {
    let procfs = Procfs::new(Arc::new(Tree::open(root)?));
    let failed = |error: Unreadable| match error.is_missing() {
        true => EnvironmentError::Ended(pid),
        false => EnvironmentError::Unreadable { pid, detail: error.to_string() },
    };
    // It stays the directory of this process, though another gets the pid.
    let directory = procfs.directory(pid).map_err(failed)?;
    let stat = directory.attribute("stat").map_err(failed)?;
    let booted = Booted::default().at(SystemClock.now());
    let is_it = ProcessStat::parse(&stat).is_some_and(|stat| {
        booted.start(stat.start_time_ticks).0.abs_diff(started_at.0) < SLEWED_NS
    });
    if !is_it {
        return Err(EnvironmentError::Ended(pid));
    }
    let bytes = directory.beginning("environ", MAX_BYTES).map_err(failed)?;
    let variables = bytes.split(|byte| *byte == 0).filter(|variable| !variable.is_empty());
    Ok(variables.map(printable).collect())
}
