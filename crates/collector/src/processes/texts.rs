//! The texts that a process was started with, as wholes: its command line, and, for who may read it, its
//! environment, which holds tokens and passwords.
//!
//! An environment is read with the rights of who asks, by the kernel's rule (ptrace(2),
//! `PTRACE_MODE_READ`): the process's owner and root. It is in no snapshot, and no service passes it on.

use std::path::Path;
use std::sync::Arc;

use telltale_schema::process::ProcessStat;
use telltale_schema::reading::Absence;

use super::command::{arguments, printable};
use super::status::Procfs;
use crate::tree::{OpenTreeError, Tree, Unreadable};

/// The most that is read of each; the kernel allows a few times as much.
const MAX_BYTES: usize = 512 * 1024;

/// What a process was started with, as a terminal can show it.
#[derive(Debug)]
pub struct ProcessTexts {
    /// Its arguments, separated by spaces; none where it has none or they cannot be read.
    pub command: Option<String>,
    /// Its variables, `NAME=value`, in their order.
    pub environment: Result<Vec<String>, ProcessTextsError>,
    /// Whether it has more variables than these: they are too long together.
    pub is_environment_cut: bool,
}

/// Why a process's texts cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ProcessTextsError {
    /// The root cannot be opened.
    #[error(transparent)]
    Tree(#[from] OpenTreeError),
    /// The process has ended, though another may have its pid.
    #[error("process {0} has ended")]
    Ended(u32),
    /// The caller may not read it.
    #[error("only the user of process {0} and root may read it")]
    Forbidden(u32),
    /// It cannot be read.
    #[error("process {pid} cannot be read")]
    Unreadable {
        /// Its pid.
        pid: u32,
        /// What the kernel said.
        #[source]
        source: Unreadable,
    },
}

/// The texts of the process that has `pid` and was started then, in clock ticks after the boot as `/proc`
/// shows it here. May hang where the process holds its memory locked.
///
/// # Errors
/// When it has ended, or nothing of it can be read.
pub fn process_texts(
    root: &Path,
    pid: u32,
    start_time_ticks: u64,
) -> Result<ProcessTexts, ProcessTextsError> {
    let procfs = Procfs::new(Arc::new(Tree::open(root)?));
    let failed = |error| ProcessTextsError::of(pid, error);
    // It stays the directory of this process, though another gets the pid.
    let directory = procfs.directory(pid).map_err(failed)?;
    let stat = directory.attribute("stat").map_err(failed)?;
    let is_it = |stat: ProcessStat<'_>| stat.start_time_ticks == start_time_ticks;
    if !ProcessStat::parse(&stat).is_some_and(is_it) {
        return Err(ProcessTextsError::Ended(pid));
    }
    let command = directory.beginning("cmdline", MAX_BYTES + 1).ok();
    let command = command.filter(|bytes| !bytes.is_empty());
    let environment = directory.beginning("environ", MAX_BYTES + 1).map_err(failed);
    Ok(ProcessTexts {
        command: command.map(|bytes| arguments(&bytes, MAX_BYTES)),
        is_environment_cut: environment.as_ref().is_ok_and(|bytes| bytes.len() > MAX_BYTES),
        environment: environment.map(|bytes| variables(&bytes, MAX_BYTES)),
    })
}

/// The variables that are whole within the first `most` bytes.
fn variables(bytes: &[u8], most: usize) -> Vec<String> {
    let whole = match bytes.get(..most).filter(|_| bytes.len() > most) {
        Some(beginning) => {
            let end = beginning.iter().rposition(|byte| *byte == 0).unwrap_or(0);
            &beginning[..end]
        }
        None => bytes,
    };
    let variables = whole.split(|byte| *byte == 0).filter(|variable| !variable.is_empty());
    variables.map(printable).collect()
}

// === impl ProcessTextsError ===

impl ProcessTextsError {
    fn of(pid: u32, error: Unreadable) -> Self {
        match error.absence() {
            Absence::Gone => Self::Ended(pid),
            _ if error.is_missing() => Self::Ended(pid),
            Absence::Permission => Self::Forbidden(pid),
            _ => Self::Unreadable { pid, source: error },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn a_variable_that_is_cut_is_left_out() {
        let cases: [(&[u8], usize, &[&str]); 6] = [
            (b"A=1\0B=22\0", 9, &["A=1", "B=22"]),
            (b"A=1\0B=22\0C", 9, &["A=1", "B=22"]),
            (b"A=1\0B=22\0", 8, &["A=1"]),
            (b"A=1\0B=22", 8, &["A=1", "B=22"]),
            (b"A=1\0", 2, &[]),
            (b"", 2, &[]),
        ];
        for (bytes, most, expected) in cases {
            assert_eq!(variables(bytes, most), expected, "{most} of {bytes:?}");
        }
    }
}
