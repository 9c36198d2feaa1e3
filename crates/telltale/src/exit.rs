//! Exit statuses, and how a failure is reported.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::descriptors::{self, TooFewFiles};

/// How a command ended, as its caller sees it. Usage errors exit with 64 before any command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// All went well.
    Fine,
    /// Some source failed, so that what is shown is not everything, or something dead could not
    /// be removed.
    Partial,
    /// All went well, and something is wrong with the machine.
    Firing,
    /// The service answers, and says that it does not serve.
    NotServing,
    /// The decider refused, or what was asked for is not there.
    Refused,
    /// Nothing could be read or done.
    Nothing,
    /// A job was run to its end, and this is its exit status.
    OfJob(u8),
}

impl Status {
    /// This status, or a worse one where something else went wrong beside it.
    pub(crate) fn after(self, failed: bool) -> Self {
        if failed && self == Self::Fine { Self::Partial } else { self }
    }
}

/// The status for arguments that make no sense (`EX_USAGE`).
pub(crate) const USAGE: u8 = 64;

/// A failure that ends the command: one sentence with step, cause and remedy, already complete.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The reader of our output has gone, which is no fault.
    #[error("the reader of the output has gone")]
    ReaderGone,
    /// The arguments, or a file's settings, make no sense together.
    #[error("{0}")]
    Usage(String),
    /// A command could not be run; its caller expects what shells say of that.
    #[error("{text}")]
    Command {
        /// The exit status.
        status: u8,
        /// What failed.
        text: String,
    },
    /// Anything else.
    #[error("{0}")]
    Message(String),
}

impl Failure {
    /// A failure with its causes in one line.
    pub(crate) fn because(error: &dyn std::error::Error) -> Self {
        Self::Message(telltale_schema::text::with_causes(error))
    }
}

impl From<TooFewFiles> for Failure {
    fn from(error: TooFewFiles) -> Self {
        Self::because(&error)
    }
}

impl From<io::Error> for Failure {
    /// Only writing to standard output reaches this.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::Message(format!(
                "writing to standard output failed: {error}; make room, or write somewhere else"
            )),
        }
    }
}

/// Tells a failure on standard error and gives the process's exit code.
pub(crate) fn code(outcome: Result<Status, Failure>) -> ExitCode {
    match outcome {
        Ok(Status::Fine) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Ok(Status::Partial | Status::Firing | Status::NotServing | Status::Refused) => {
            ExitCode::from(1)
        }
        Ok(Status::Nothing) => ExitCode::from(2),
        Ok(Status::OfJob(code)) => ExitCode::from(code),
        Err(Failure::Usage(text)) => {
            tell(&format!("telltale: {text}"));
            ExitCode::from(USAGE)
        }
        Err(Failure::Command { status, text }) => {
            tell(&format!("telltale: {}", descriptors::with_remedy(&text)));
            ExitCode::from(status)
        }
        Err(Failure::Message(text)) => {
            tell(&format!("telltale: {}", descriptors::with_remedy(&text)));
            ExitCode::from(2)
        }
    }
}

/// A line on standard error, where whatever is not for standard output goes, or several, as a
/// compiler's message has. No one is left to notify when that fails.
pub(crate) fn tell(text: &str) {
    let lines: Vec<_> = text.lines().map(telltale_schema::text::printable).collect();
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn a_failure_beside_the_values_is_not_lost_and_hides_nothing_worse() {
        let cases = [
            (Status::Fine, false, Status::Fine),
            (Status::Fine, true, Status::Partial),
            (Status::Partial, true, Status::Partial),
            (Status::Nothing, true, Status::Nothing),
        ];
        for (status, failed, expected) in cases {
            assert_eq!(status.after(failed), expected);
        }
    }
}
