//! The Python that tests use.

use std::process::Command;

use crate::skip;

/// Python: the one that `TELLTALE_PYTHON` names, for users with packages elsewhere, else `python3`.
pub fn python() -> Command {
    Command::new(std::env::var_os("TELLTALE_PYTHON").unwrap_or_else(|| "python3".into()))
}

/// The same if it can import `modules`, one or several with commas between; else none, and `test` is recorded as
/// skipped.
pub fn python_with(test: &str, modules: &str) -> Option<Command> {
    let trial = python().args(["-c", &format!("import {modules}")]).output();
    if trial.is_ok_and(|output| output.status.success()) {
        return Some(python());
    }
    skip(test, &format!("needs Python with {modules}; TELLTALE_PYTHON names one"));
    None
}
