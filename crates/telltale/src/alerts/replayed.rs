//! The rules over what was recorded: when each alert would have fired, and when it would have ended.

use std::path::Path;

use serde::Serialize;
use telltale_node::alerts::{Alert, Engine, NoticeEvent, Rule, Transition};
use telltale_schema::calendar;
use telltale_schema::clock::Timestamp;
use telltale_smi::TransitionRow;
use telltale_sources::Recording;

use crate::exit::{self, Failure, Status};
use crate::output::StandardOutput;

/// One alert that fired or was resolved, as the webhook tells it.
#[derive(Debug, Serialize)]
struct ReplayedAlert {
    event: NoticeEvent,
    /// Of the snapshot in which it was found.
    at: Timestamp,
    alert: Alert,
}

/// What the rules would have said of a recording.
#[derive(Debug, Serialize)]
struct Replayed {
    /// The first snapshot and the last one.
    from: Timestamp,
    to: Timestamp,
    snapshots: usize,
    notices: Vec<ReplayedAlert>,
    /// What was pending or fired at the end.
    alerts: Vec<Alert>,
}

/// Shows what these rules find in the recording at `path`. Says whether any alert fired.
pub(super) fn show(
    path: &Path,
    rules: Vec<Rule>,
    json: bool,
    output: &StandardOutput,
) -> Result<Status, Failure> {
    let recording = Recording::open(path).map_err(|error| Failure::because(&error))?;
    let (replayed, is_whole) = replay(&recording, rules);
    output.print(&match json {
        true => serde_json::to_string(&replayed).expect("alerts are JSON") + "\n",
        false => as_table(&replayed, output),
    })?;
    let fired = replayed.notices.iter().any(|reported| reported.event == NoticeEvent::Fired);
    Ok(match (fired, is_whole) {
        (true, _) => Status::Firing,
        (false, true) => Status::Fine,
        (false, false) => Status::Partial,
    })
}

/// A snapshot that cannot be read is reported and skipped; the second value says that there was none.
fn replay(recording: &Recording, rules: Vec<Rule>) -> (Replayed, bool) {
    let mut engine = Engine::new(rules);
    let frames = recording.frames();
    let (mut notices, mut is_whole) = (Vec::new(), true);
    let mut now_ns = 0;
    for (place, frame) in frames.iter().enumerate() {
        match recording.snapshot(place) {
            Err(error) => {
                is_whole = false;
                exit::tell(&format!("telltale: {}", telltale_schema::text::with_causes(&error)));
            }
            Ok(snapshot) => {
                // The clock of the recorder may have been set back; time goes on all the same.
                now_ns = now_ns.max(frame.at.0);
                let reported = engine.step(now_ns, &snapshot).into_iter().map(|one| match one {
                    Transition::Fired(alert) => {
                        ReplayedAlert { event: NoticeEvent::Fired, at: frame.at, alert }
                    }
                    Transition::Resolved(alert) => {
                        ReplayedAlert { event: NoticeEvent::Resolved, at: frame.at, alert }
                    }
                });
                notices.extend(reported);
            }
        }
    }
    let (first, last) = (frames[0], frames[frames.len() - 1]);
    let alerts = engine.alerts().cloned().collect();
    let (from, to, snapshots) = (first.at, last.at, frames.len());
    (Replayed { from, to, snapshots, notices, alerts }, is_whole)
}

fn as_table(replayed: &Replayed, output: &StandardOutput) -> String {
    let rows = replayed.notices.iter().map(|reported| TransitionRow {
        at: calendar::format(reported.at),
        fired: reported.event == NoticeEvent::Fired,
        severity: reported.alert.severity.name(),
        rule: &reported.alert.rule,
        text: &reported.alert.text,
    });
    let rows: Vec<TransitionRow<'_>> = rows.collect();
    let mut text = telltale_smi::transitions(&rows, &output.style());
    let [from, to] = [replayed.from, replayed.to].map(calendar::format);
    text.push_str(&format!("\n{} snapshots, from {from} to {to}.", replayed.snapshots));
    let still = replayed.alerts.len();
    if still > 0 {
        text.push_str(&format!(" At the end {still} alerts were pending or fired."));
    }
    text.push('\n');
    text
}
