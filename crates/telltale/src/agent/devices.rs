//! How the node's accelerators are, as the node service of this machine tells it.
//!
//! It is asked from time to time on a task of its own. The agent takes what is known and never waits;
//! where no service runs, nothing is known. What is said here goes into no decision.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use tracing::debug;

use telltale_cluster::vitals::{DeviceHealth, MAX_DEVICES};
use telltale_node::grpc::connect;
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::Snapshot;
use telltale_schema::text::with_causes;
use telltale_wire::telemetry::Client;
use telltale_wire::telemetry::message::{Alert, AlertSeverity, AlertState};
use tokio::sync::watch;

/// How often the service is asked.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long it may take to answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Bytes of a device's name and of what is wrong with it, as the coordinator takes them
/// (`cluster.proto`).
const MAX_NAME_BYTES: usize = 128;
const MAX_FAULT_BYTES: usize = 512;

/// Asks whichever of `sockets` has a service, until it is no longer wanted.
pub(super) fn follow(sockets: Vec<PathBuf>) -> watch::Receiver<Vec<DeviceHealth>> {
    let (known, receiver) = watch::channel(Vec::new());
    tokio::spawn(async move {
        let mut asking = DevicePoller { sockets, client: None, listed: BTreeSet::new() };
        loop {
            let answered = tokio::time::timeout(TIMEOUT, asking.ask()).await;
            let health = answered.unwrap_or_else(|_| Err(String::from("it took too long")));
            known.send_replace(health.unwrap_or_else(|reason| {
                debug!("the node service reports no devices: {reason}");
                asking.client = None;
                Vec::new()
            }));
            tokio::select! {
                () = known.closed() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    });
    receiver
}

struct DevicePoller {
    sockets: Vec<PathBuf>,
    client: Option<Client>,
    /// Devices that were there once.
    listed: BTreeSet<String>,
}

/// What an answer has of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    device: String,
    /// Why its temperature is not known, if it is not.
    absence: Option<Absence>,
}

impl DevicePoller {
    async fn ask(&mut self) -> Result<Vec<DeviceHealth>, String> {
        if self.client.is_none() {
            self.client = Some(reach(&self.sockets).await?);
        }
        let client = self.client.as_mut().expect("it was just put in");
        let Snapshot { devices, .. } =
            client.devices().await.map_err(|error| with_causes(&error))?;
        let alerts = client.alerts().await.map_err(|error| with_causes(&error))?.alerts;
        let listed = devices.into_iter().take(MAX_DEVICES).map(|device| {
            let absence = device.telemetry.temperature_celsius.absence();
            Listed { device: device.id, absence: absence.map(|(reason, _)| reason) }
        });
        Ok(health(&listed.collect::<Vec<_>>(), &alerts, &mut self.listed))
    }
}

/// A client of the first service that answers.
async fn reach(sockets: &[PathBuf]) -> Result<Client, String> {
    let mut reason = String::from("there is no runtime directory with its socket");
    for socket in sockets {
        match connect(socket).await {
            Ok(client) => return Ok(client),
            Err(error) => reason = with_causes(&error),
        }
    }
    Err(reason)
}

/// How each device is, those included that were `known` and are listed no longer.
fn health(listed: &[Listed], alerts: &[Alert], known: &mut BTreeSet<String>) -> Vec<DeviceHealth> {
    let there: BTreeSet<&str> = listed.iter().map(|one| one.device.as_str()).collect();
    let mut health: Vec<DeviceHealth> =
        listed.iter().map(|one| reported(&one.device, fault(one, alerts))).collect();
    for device in known.iter().filter(|device| !there.contains(device.as_str())) {
        let gone = String::from("the node service lists it no longer");
        health.push(reported(device, Some(gone)));
    }
    health.truncate(MAX_DEVICES);
    let new = there.into_iter().filter(|device| !known.contains(*device)).map(str::to_owned);
    let room = MAX_DEVICES.saturating_sub(known.len());
    let new: Vec<String> = new.take(room).collect();
    known.extend(new);
    health
}

/// What is wrong with a device: that it does not answer, and the alerts that fire about the device
/// itself. Full memory and what a process does are no fault of a device, unless the user has made a
/// critical rule of it.
fn fault(listed: &Listed, alerts: &[Alert]) -> Option<String> {
    let silent = match listed.absence {
        Some(Absence::Resetting) => Some("it is between reset and re-initialisation"),
        Some(Absence::TimedOut) => Some("it did not answer in time"),
        Some(Absence::Gone) => Some("it went away while it was read"),
        _ => None,
    };
    let firing = alerts.iter().filter(|alert| {
        let is_itself = alert.space == 0 && alert.process.is_none();
        alert.device_id == listed.device
            && alert.state() == AlertState::Firing
            && match alert.severity() {
                AlertSeverity::Critical => alert.process.is_none(),
                AlertSeverity::Warning => is_itself,
                AlertSeverity::Info | AlertSeverity::Unspecified => false,
            }
    });
    let faults: Vec<&str> =
        silent.into_iter().chain(firing.map(|alert| alert.text.as_str())).collect();
    (!faults.is_empty()).then(|| faults.join("; "))
}

fn reported(device: &str, fault: Option<String>) -> DeviceHealth {
    let cut = |text: &str, most: usize| text[..text.floor_char_boundary(most)].to_owned();
    DeviceHealth {
        device: cut(device, MAX_NAME_BYTES),
        fault: fault.map(|fault| cut(&fault, MAX_FAULT_BYTES)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telltale_wire::telemetry::message::{MemorySpace, ProcessIdentity};

    fn alert(device: &str, severity: AlertSeverity, text: &str) -> Alert {
        Alert {
            device_id: device.to_owned(),
            severity: severity.into(),
            state: AlertState::Firing.into(),
            text: text.to_owned(),
            ..Alert::default()
        }
    }

    fn listed(device: &str, absence: Option<Absence>) -> Listed {
        Listed { device: device.to_owned(), absence }
    }

    fn check(listed: &[Listed], alerts: &[Alert], expected: &[(&str, Option<&str>)]) {
        let found = health(listed, alerts, &mut BTreeSet::new());
        let found: Vec<(&str, Option<&str>)> =
            found.iter().map(|one| (one.device.as_str(), one.fault.as_deref())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_device_s_fault_is_what_fires_about_the_device_itself() {
        let both = [listed("a", None), listed("b", Some(Absence::Unsupported))];
        let full = MemorySpace::Dram.into();
        let warning = AlertSeverity::Warning;
        let alerts = [
            alert("a", warning, "it is hot"),
            alert("a", AlertSeverity::Info, "nobody uses it"),
            Alert { state: AlertState::Pending.into(), ..alert("b", warning, "not yet") },
            Alert { space: full, ..alert("b", warning, "its DRAM is nearly full") },
            Alert { process: Some(ProcessIdentity::default()), ..alert("b", warning, "a leak") },
            alert("c", warning, "another's"),
        ];
        check(&both, &alerts, &[("a", Some("it is hot")), ("b", None)]);
        let critical = Alert { space: full, ..alert("b", AlertSeverity::Critical, "no L1 left") };
        check(&both, &[critical], &[("a", None), ("b", Some("no L1 left"))]);
    }

    #[test]
    fn a_device_that_does_not_answer_or_is_gone_is_reported() {
        let silent = [listed("a", Some(Absence::Resetting))];
        let hot = [alert("a", AlertSeverity::Critical, "it was hot")];
        let expected = "it is between reset and re-initialisation; it was hot";
        check(&silent, &hot, &[("a", Some(expected))]);
        let mut known = BTreeSet::new();
        health(&[listed("a", None), listed("b", None)], &[], &mut known);
        let later = health(&[listed("b", None)], &[], &mut known);
        let gone = Some(String::from("the node service lists it no longer"));
        let b = DeviceHealth { device: "b".to_owned(), fault: None };
        assert_eq!(later, [b, DeviceHealth { device: "a".to_owned(), fault: gone }]);
    }

    #[test]
    fn no_more_is_reported_than_a_coordinator_takes() {
        let many: Vec<Listed> =
            (0..MAX_DEVICES + 9).map(|number| listed(&number.to_string(), None)).collect();
        let mut known = BTreeSet::new();
        assert_eq!(health(&many, &[], &mut known).len(), MAX_DEVICES);
        assert_eq!(known.len(), MAX_DEVICES);
        let long = reported(&"\u{e9}".repeat(100), Some("\u{e9}x".repeat(300)));
        assert_eq!(long.device.len(), MAX_NAME_BYTES);
        assert!(long.fault.is_some_and(|fault| fault.len() <= MAX_FAULT_BYTES));
    }
}
