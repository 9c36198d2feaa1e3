//! A machine that is asked through `ssh`, which must not ask back: keys and known hosts are set up
//! beforehand, as for any script.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use telltale_schema::text::printable;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, ChildStdout, Command};

use super::inquiry::{BoardSlot, Terms, late};
use crate::addresses::Destination;
use crate::received::{MAX_SNAPSHOT_BYTES, ReceivedError, snapshot_in};

/// Bytes that are kept of what ssh and the machine complain about.
const MAX_COMPLAINT_BYTES: usize = 4096;
/// How long the end of a session, and what it complained about, are waited for.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// Why a machine is not seen through a shell.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShellError {
    /// There is no ssh here.
    #[error("ssh cannot be started; install it, or name a service instead")]
    Start(#[source] std::io::Error),
    /// The session ended before it said anything of use.
    #[error("ssh ended: {0}")]
    Ended(String),
    /// The session broke.
    #[error("the session broke")]
    Broken(#[source] std::io::Error),
    /// It said nothing in time.
    #[error("{0}")]
    Late(String),
    /// It went on without an end of the line.
    #[error("it sent more than {MAX_SNAPSHOT_BYTES} bytes for one snapshot")]
    Long,
    /// It said something else.
    #[error("what it sent cannot be used; is its telltale of about the same version?")]
    Answer(#[source] ReceivedError),
}

/// Opens a session and passes on what it reports, to its end; comes back well when one answer was all
/// that was wanted.
pub(super) async fn follow(
    to: &Destination,
    terms: &Terms,
    seat: &BoardSlot,
) -> Result<(), ShellError> {
    let mut child = command(to, terms).spawn().map_err(ShellError::Start)?;
    let output: ChildStdout = child.stdout.take().expect("its output was asked for");
    let errors: ChildStderr = child.stderr.take().expect("its errors were asked for");
    let complaint = Arc::new(Mutex::new(Vec::new()));
    let listening = tokio::spawn(keep(errors, Arc::clone(&complaint)));
    let mut lines = BufReader::new(output);
    let timeout = terms.timeout + terms.period.unwrap_or_default();
    loop {
        let mut line = Vec::new();
        let mut bounded = (&mut lines).take(MAX_SNAPSHOT_BYTES);
        let read = bounded.read_until(b'\n', &mut line);
        match tokio::time::timeout(timeout, read).await {
            Err(_) => return Err(ShellError::Late(late(timeout))),
            Ok(Err(error)) => return Err(ShellError::Broken(error)),
            Ok(Ok(0)) => break,
            Ok(Ok(_)) if line.last() != Some(&b'\n') => {
                let full = u64::try_from(line.len()).unwrap_or(u64::MAX) >= MAX_SNAPSHOT_BYTES;
                if full {
                    return Err(ShellError::Long);
                }
                break;
            }
            Ok(Ok(_)) => {}
        }
        seat.answered(snapshot_in(&line).map_err(ShellError::Answer)?);
        if terms.period.is_none() {
            return Ok(());
        }
    }
    let status = tokio::time::timeout(END_TIMEOUT, child.wait()).await;
    // Another process may have its errors still open.
    let _ = tokio::time::timeout(END_TIMEOUT, listening).await;
    let said = complaint.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
    Err(ShellError::Ended(match (last, status) {
        (Some(line), _) => printable(line),
        (None, Ok(Ok(status))) => status.to_string(),
        (None, _) => String::from("without a word"),
    }))
}

/// What is run. The machine's own arguments are constants, so that its shell has nothing to expand.
fn command(to: &Destination, terms: &Terms) -> Command {
    let mut command = Command::new("ssh");
    let seconds = terms.timeout.as_secs().max(1);
    command.args(["-T", "-o", "BatchMode=yes", "-o", &format!("ConnectTimeout={seconds}")]);
    if let Some(port) = to.port {
        command.args(["-p", &port.to_string()]);
    }
    command.args(["--", &to.to, "telltale", "smi", "--json"]);
    if let Some(period) = terms.period {
        command.args(["--watch", &period.as_secs_f64().to_string()]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    command
}

/// Keeps the end of what is complained about, and lets go of the rest.
async fn keep(mut errors: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = errors.read(&mut piece).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&piece[..count]);
        let excess = kept.len().saturating_sub(MAX_COMPLAINT_BYTES);
        kept.drain(..excess);
    }
}
