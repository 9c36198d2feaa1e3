//! The service of this machine: whether it answers, its history, and its configuration.

use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use telltale_client::{ConnectError, Connector, Health, HealthError, ServiceAddress};
use telltale_node::configuration::{ConfigurationRefusal, Layers};
use telltale_node::history::{DatabaseError, HistoryReader};
use telltale_schema::quantity::bytes;
use telltale_schema::text::with_causes;
use telltale_sources::candidates;

use super::finding::Finding;
use crate::arguments::{HistoryPlace, LocationArguments};
use crate::service_timeout::TIMEOUT;

/// Free bytes of a file system below which a history may not go on.
const LITTLE_BYTES: u64 = 64 << 20;

/// Where packages and people put the service's unit.
const UNITS: [&str; 3] = [
    "/etc/systemd/system/telltale.service",
    "/usr/lib/systemd/system/telltale.service",
    "/lib/systemd/system/telltale.service",
];

/// Checks the service.
pub(super) fn check(
    place: &LocationArguments,
    history: &HistoryPlace,
    findings: &mut Vec<Finding>,
) {
    let serves = answering(place, findings);
    findings.push(past(&candidates(&history.of(place)), serves));
    if place.root.as_deref().is_none_or(|root| root == Path::new("/")) {
        findings.push(configuration());
    }
}

/// Asks the services; gives whether one serves.
fn answering(place: &LocationArguments, findings: &mut Vec<Finding>) -> bool {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        let what = "no event loop can be made; too many files may be open";
        findings.push(Finding::broken("service", what, "ulimit -n"));
        return false;
    };
    let mut worst = None;
    for socket in place.sockets() {
        let address = ServiceAddress::Unix(socket.clone());
        let connector = Connector::new(address).with_timeout(TIMEOUT);
        match runtime.block_on(connector.health()) {
            Ok(Health::Serving) => {
                let what = format!("answers on {}", socket.display());
                findings.push(Finding::works("service", what));
                return true;
            }
            Err(HealthError::Connect(error)) if error.is_missing() => {}
            other => {
                worst.get_or_insert(unwell(&socket, other));
            }
        }
    }
    findings.push(worst.unwrap_or_else(|| none_runs(place)));
    false
}

/// A socket at which no service serves.
fn unwell(socket: &Path, said: Result<Health, HealthError>) -> Finding {
    let shown = socket.display();
    let status = "systemctl status telltale";
    let error = match said {
        Ok(_) => {
            let what = format!("answers on {shown} and has no recent snapshot");
            let log = "journalctl -u telltale -n 50";
            return Finding::broken("service", what, status).mended_by(log);
        }
        Err(error) => error,
    };
    match &error {
        HealthError::Connect(ConnectError::Silent { .. }) => {
            let what = format!("no service answers at {shown}; a killed service leaves it");
            Finding::broken("service", what, status).mended_by("telltale serve")
        }
        HealthError::Connect(ConnectError::Stranger { .. }) => {
            let remove = format!("sudo rm {shown}");
            Finding::broken("service", with_causes(&error), format!("ls -l {shown}"))
                .mended_by(remove)
        }
        HealthError::Connect(ConnectError::Missing { .. }) => {
            let what = with_causes(&error);
            Finding::broken("service", what, format!("ls -ld {shown}"))
        }
        _ => Finding::broken("service", with_causes(&error), status),
    }
}

/// What it means that there is no socket: a service that is installed should run.
fn none_runs(place: &LocationArguments) -> Finding {
    let is_this_machine = place.root.as_deref().is_none_or(|root| root == Path::new("/"));
    let is_installed = UNITS.iter().any(|path| Path::new(path).exists());
    if is_this_machine && place.runtime_dir.is_none() && is_installed {
        let what = "it is installed and has no socket: it does not run, or has another directory";
        return Finding::broken("service", what, "sudo systemctl start telltale")
            .mended_by("journalctl -u telltale -n 50");
    }
    let what = "none runs: no history, no metrics endpoint, no page; the tables work without";
    Finding::not_here("service", what).mended_by("telltale serve")
}

fn past(candidates: &[PathBuf], serves: bool) -> Finding {
    let mut closed = None;
    for path in candidates {
        let shown = path.display();
        match HistoryReader::open(path) {
            Ok(_) => {
                let free = path.parent().and_then(|directory| rustix::fs::statvfs(directory).ok());
                let free = free.map(|status| status.f_bavail.saturating_mul(status.f_frsize));
                return match free {
                    Some(free) if free < LITTLE_BYTES => Finding::partly(
                        "history",
                        format!("{shown}: {} are free, so that it may not go on", bytes(free)),
                        format!("df -h {shown}"),
                    ),
                    _ => Finding::works("history", format!("{shown} can be read")),
                };
            }
            Err(DatabaseError::Missing { .. }) => {}
            Err(error @ DatabaseError::Closed { .. }) => {
                let what =
                    format!("{}; the service shows each user their own", with_causes(&error));
                closed.get_or_insert(Finding::not_here("history", what));
            }
            Err(error @ DatabaseError::Broken { .. }) => {
                let what = format!("{}; a service that starts moves it aside", with_causes(&error));
                return Finding::broken("history", what, "sudo systemctl restart telltale");
            }
            Err(error @ DatabaseError::Newer { .. }) => {
                let what = with_causes(&error);
                return Finding::broken("history", what, "telltale --version");
            }
            Err(error) => {
                let remedy = format!("df -h {shown}");
                return Finding::broken("history", with_causes(&error), remedy);
            }
        }
    }
    let what = match serves {
        true => {
            "there is none in the usual places; `telltale history` asks the service, which may keep one elsewhere"
        }
        false => "there is none; a service keeps one",
    };
    closed.unwrap_or_else(|| Finding::not_here("history", what))
}

/// The configuration of a service that would begin now. What it names is checked by root alone:
/// the service's user may read what others may not.
fn configuration() -> Finding {
    let check = "telltale config check";
    let layers = Layers::of_this_process(None, Vec::new());
    let files: Vec<String> = layers.files().iter().map(|path| path.display().to_string()).collect();
    let read = if files.is_empty() { String::from("no file") } else { files.join(", ") };
    let effective = match layers.load() {
        Ok(effective) => effective,
        Err(error) => return Finding::broken("settings", with_causes(&error), check),
    };
    let mut refusals = effective.configuration.contradictions();
    if geteuid().is_root() {
        refusals.extend(effective.configuration.unusable());
    }
    if refusals.is_empty() {
        return Finding::works("settings", format!("read from {read}"));
    }
    let tell =
        |one: &ConfigurationRefusal| format!("{}: {}", one.keys.first().unwrap_or(&"?"), one.why);
    let what: Vec<String> = refusals.iter().map(tell).collect();
    Finding::broken("settings", format!("read from {read}: {}", what.join("; ")), check)
}
