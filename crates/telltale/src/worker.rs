//! What `telltale agent` starts for itself: workers before they are their command, and the guard that
//! clears away what a killed agent has left.

use telltale_control_plane::supervisor::{Guarded, Hold, guard, hold};

use crate::arguments::{GuardArguments, HoldArguments};
use crate::exit::{Failure, Status};

/// Becomes the worker's command; comes back only when that failed, which the agent reports.
pub(crate) fn run_hold(arguments: HoldArguments) -> Result<Status, Failure> {
    let HoldArguments { agent, record, gate, command } = arguments;
    let error = hold(&Hold { agent, record, gate, command });
    Err(Failure::because(&error))
}

/// Waits for the agent's end, then clears away what it left.
pub(crate) fn run_guard(arguments: GuardArguments) -> Result<Status, Failure> {
    let GuardArguments { record, whose, remove_if_killed } = arguments;
    guard(&Guarded { record, whose, remove_if_killed }).map_err(|error| {
        Failure::Message(format!("clearing away what the agent left running failed: {error}"))
    })?;
    Ok(Status::Fine)
}
