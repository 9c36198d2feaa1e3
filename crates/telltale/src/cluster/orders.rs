//! Orders to a coordinator, and what became of them.

use std::time::{Duration, Instant};

use serde_json::json;
use telltale_control_plane::operator::OperatorError;
use telltale_control_plane::view;
use telltale_schema::text::printable;
use telltale_wire::cluster::message::{Mode, OrderResponse};
use telltale_wire::cluster::{CallError, Client};

use super::ClusterQuery;
use crate::exit::{self, Failure, Status};
use crate::interrupt::Interrupt;

/// How often it is asked whether the job runs again.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// gRPC's numbers of the refusals that are an answer: NOT_FOUND, RESOURCE_EXHAUSTED,
/// FAILED_PRECONDITION.
const REFUSALS: [i32; 3] = [5, 8, 9];

pub(super) fn restart(asking: &ClusterQuery, wait: Option<Duration>) -> Result<Status, Failure> {
    let ordered = asking.ask(async |client: &mut Client| client.restart().await);
    match (ordered, wait) {
        (Ok(answer), Some(wait)) => wait_until_it_runs(asking, answer.epoch, wait),
        (ordered, _) => {
            // Where that is not known nothing is said of it.
            let status = asking.ask(async |client: &mut Client| client.status().await);
            let none = status.is_ok_and(|status| status.active_nodes + status.standby_nodes == 0);
            let none = if none { "; no agent is heard: start one on each node" } else { "" };
            reported(asking, ordered, &format!("the job is restarted{none}"))
        }
    }
}

pub(super) fn drain(asking: &ClusterQuery, node: &str) -> Result<Status, Failure> {
    // Asked before, since the spare has a slot afterwards.
    let status = asking.ask(async |client: &mut Client| client.status().await);
    let ordered = asking.ask(async |client: &mut Client| client.drain(node).await);
    // Where that is not known nothing is said of it.
    let none = status.is_ok_and(|status| status.standby_nodes == 0);
    let none = if none { "; there is none now" } else { "" };
    let done = format!("{} leaves as soon as a spare can take its slot{none}", printable(node));
    reported(asking, ordered, &done)
}

pub(super) fn remove(asking: &ClusterQuery, node: &str) -> Result<Status, Failure> {
    let ordered = asking.ask(async |client: &mut Client| client.remove(node).await);
    reported(asking, ordered, &format!("{} leaves now", printable(node)))
}

pub(super) fn readmit(asking: &ClusterQuery, node: &str) -> Result<Status, Failure> {
    let ordered = asking.ask(async |client: &mut Client| client.readmit(node).await);
    reported(asking, ordered, &format!("{} may take slots again", printable(node)))
}

pub(super) fn set_mode(asking: &ClusterQuery, mode: Mode) -> Result<Status, Failure> {
    let ordered = asking.ask(async |client: &mut Client| client.set_mode(mode).await);
    reported(asking, ordered, &format!("the mode is {}", view::mode(mode)))
}

/// Whether the coordinator answered, and the answer is no.
pub(super) fn is_refusal(error: &CallError) -> bool {
    matches!(error, CallError::Refused(status) if REFUSALS.contains(&i32::from(status.code())))
}

/// Tells a refusal.
pub(super) fn reason(error: &CallError) -> String {
    match error {
        CallError::Refused(status) => status.message().to_owned(),
        other => telltale_schema::text::with_causes(other),
    }
}

fn reported(
    asking: &ClusterQuery,
    ordered: Result<OrderResponse, OperatorError>,
    done: &str,
) -> Result<Status, Failure> {
    match ordered {
        Ok(answer) if asking.printer.json => {
            asking.printer.output.print(&format!("{}\n", json!({ "epoch": answer.epoch })))?;
            Ok(Status::Fine)
        }
        Ok(answer) => {
            asking.printer.output.print(&format!("{done}; epoch {}\n", answer.epoch))?;
            Ok(Status::Fine)
        }
        Err(OperatorError::Call(error)) if is_refusal(&error) => {
            asking.printer.refused(&reason(&error))
        }
        Err(error) => Err(Failure::because(&error)),
    }
}

/// Asks until the job runs in this epoch or a later one. That a coordinator does not answer meanwhile
/// is reported only at the end: a leader may just be changing.
fn wait_until_it_runs(
    asking: &ClusterQuery,
    epoch: u64,
    wait: Duration,
) -> Result<Status, Failure> {
    let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    let until = Instant::now() + wait;
    loop {
        let looked = asking.ask(async |client: &mut Client| client.status().await);
        let runs = |status: &view::StatusView| status.epoch >= epoch && status.runs;
        let seen = looked.map(|answer| view::StatusView::from(&answer));
        match seen {
            Ok(status) if runs(&status) => {
                let json = json!({ "epoch": status.epoch, "runs": true });
                let text = format!("the job runs again; epoch {}", status.epoch);
                let line = if asking.printer.json { json.to_string() } else { text };
                asking.printer.output.print(&format!("{line}\n"))?;
                return Ok(Status::Fine);
            }
            Err(error) if Instant::now() >= until => return Err(Failure::because(&error)),
            Ok(status) if Instant::now() >= until => {
                let waited = wait.as_secs_f64();
                let text =
                    format!("the job is not running after {waited} s: it {}", status.sentence());
                if asking.printer.json {
                    let json = json!({ "epoch": status.epoch, "runs": false });
                    asking.printer.output.print(&format!("{json}\n"))?;
                } else {
                    exit::tell(&format!("telltale: {text}"));
                }
                return Ok(Status::Refused);
            }
            _ => {}
        }
        if interrupt.sleep(POLL_INTERVAL) {
            return Ok(Status::Refused);
        }
    }
}
