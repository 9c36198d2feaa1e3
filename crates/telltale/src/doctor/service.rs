//! The service of this machine: whether it answers, its history, and its configuration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use telltale_node::configuration::Layers;
use telltale_node::grpc::{Health, HealthEndpoint, HealthError, ReachError, ask_health};
use telltale_node::history::{DatabaseError, Reader};
use telltale_schema::text::with_causes;

use super::finding::{Finding, Verdict};
use crate::arguments::{HistoryPlace, Place};
use crate::past::candidates;
use crate::sockets::sockets;

/// How long the service may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks at the service.
pub(super) fn look(place: &Place, history: &HistoryPlace, findings: &mut Vec<Finding>) {
    findings.push(answering(place));
    findings.push(past(&candidates(history, place)));
    if place.root.as_deref().is_none_or(|root| root == Path::new("/")) {
        findings.push(configuration());
    }
}

fn answering(place: &Place) -> Finding {
    let start = "telltale serve";
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Finding::new("service", Verdict::Broken, "no event loop can be made");
    };
    let mut worst = None;
    for socket in sockets(place) {
        let shown = socket.display().to_string();
        match runtime.block_on(ask_health(&HealthEndpoint::Unix(socket), None, PATIENCE)) {
            Ok(Health::Serving) => {
                return Finding::new("service", Verdict::Works, format!("answers on {shown}"));
            }
            Ok(Health::NotServing) => {
                let what = format!("answers on {shown} and has no recent snapshot");
                worst = Some(Finding::new("service", Verdict::Broken, what));
            }
            Err(HealthError::Reach(ReachError::Socket(error))) if error.is_missing() => {}
            Err(error) => {
                let what = format!("{shown}: {}", with_causes(&error));
                worst.get_or_insert(Finding::new("service", Verdict::Broken, what));
            }
        }
    }
    worst.map(|finding| finding.mended_by("systemctl status telltale")).unwrap_or_else(|| {
        let what = "none runs: no history, no metrics endpoint, no page; the tables work without";
        Finding::new("service", Verdict::NotHere, what).mended_by(start)
    })
}

fn past(candidates: &[PathBuf]) -> Finding {
    let mut closed = None;
    for path in candidates {
        match Reader::open(path) {
            Ok(_) => {
                let what = format!("{} can be read", path.display());
                return Finding::new("history", Verdict::Works, what);
            }
            Err(DatabaseError::Missing { .. }) => {}
            Err(error @ DatabaseError::Closed { .. }) => {
                let what =
                    format!("{}; the service shows each user their own", with_causes(&error));
                closed.get_or_insert(Finding::new("history", Verdict::NotHere, what));
            }
            Err(error) => return Finding::new("history", Verdict::Broken, with_causes(&error)),
        }
    }
    closed.unwrap_or_else(|| {
        Finding::new("history", Verdict::NotHere, "there is none; a service keeps one")
    })
}

fn configuration() -> Finding {
    let layers = Layers::of_this_process(None, Vec::new());
    let files: Vec<String> = layers.files().iter().map(|path| path.display().to_string()).collect();
    let read = if files.is_empty() { String::from("no file") } else { files.join(", ") };
    match layers.load() {
        Ok(_) => Finding::new("settings", Verdict::Works, format!("read from {read}")),
        Err(error) => Finding::new("settings", Verdict::Broken, with_causes(&error))
            .mended_by("telltale config check"),
    }
}
