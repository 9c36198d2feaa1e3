//! The health of this node, as the node service of this machine reports it.
//!
//! It is asked from time to time on a task of its own. The agent takes what is known and never waits;
//! where no service runs, nothing is known. What follows from it is the coordinator's decision.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use tracing::debug;

use telltale_client::Client;
use telltale_client::connect;
use telltale_cluster::vitals::{HealthState, MAX_DEVICES, NodeHealth, PartHealth};
use telltale_schema::health::{self, Fault, FaultKind};
use telltale_schema::snapshot::{Device, Snapshot};
use telltale_schema::text::with_causes;
use telltale_wire::telemetry::message::{Alert, AlertSeverity, AlertState};
use tokio::sync::watch;
use tokio::time::Instant;

/// How often the service is asked: often enough that a fault which has passed is not reported for long.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long it may take to answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How long what it said last holds where it does not answer: a sick node is slow, and a service is restarted.
const KEPT: Duration = Duration::from_secs(30);
/// Bytes of a part's name and of what is wrong with it, as the coordinator takes them
/// (`cluster.proto`).
const MAX_NAME_BYTES: usize = 128;
const MAX_REASON_BYTES: usize = 512;

/// Asks whichever of `sockets` has a service, until it is no longer wanted.
pub(super) fn follow(sockets: Vec<PathBuf>) -> watch::Receiver<NodeHealth> {
    let (known, receiver) = watch::channel(NodeHealth::default());
    tokio::spawn(async move {
        let mut asking = HealthPoller { sockets, client: None, listed: BTreeSet::new() };
        let mut answered_at = Instant::now();
        loop {
            let answered = tokio::time::timeout(TIMEOUT, asking.ask()).await;
            match answered.unwrap_or_else(|_| Err(String::from("it took too long"))) {
                Ok(health) => {
                    known.send_replace(health);
                    answered_at = Instant::now();
                }
                Err(reason) => {
                    debug!("the node service reports no health: {reason}");
                    asking.client = None;
                    if answered_at.elapsed() >= KEPT {
                        known.send_replace(NodeHealth::default());
                    }
                }
            }
            tokio::select! {
                () = known.closed() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    });
    receiver
}

struct HealthPoller {
    sockets: Vec<PathBuf>,
    client: Option<Client>,
    /// Devices that were there once.
    listed: BTreeSet<String>,
}

impl HealthPoller {
    async fn ask(&mut self) -> Result<NodeHealth, String> {
        if self.client.is_none() {
            self.client = Some(reach(&self.sockets).await?);
        }
        let client = self.client.as_mut().expect("it was just put in");
        let snapshot = client.devices().await.map_err(|error| with_causes(&error))?;
        let alerts = client.alerts_message().await.map_err(|error| with_causes(&error))?.alerts;
        Ok(node_health(&snapshot, &alerts, &mut self.listed))
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

/// The health of the machine and of each device, those included that were `known` and are listed no longer.
fn node_health(snapshot: &Snapshot, alerts: &[Alert], known: &mut BTreeSet<String>) -> NodeHealth {
    let listed: BTreeSet<&str> = snapshot.devices.iter().map(|device| device.id.as_str()).collect();
    let mut devices: Vec<PartHealth> = snapshot
        .devices
        .iter()
        .map(|device| {
            let lasting = |fault: &Fault| lasts(fault, &device.id, alerts);
            match worst(&device.faults, lasting) {
                Some((fault, state)) => part(&device.id, state, Some(fault)),
                None => {
                    let health = part(&device.id, known_state(device.health().state), None);
                    alerted(health, &device.id, alerts)
                }
            }
        })
        .collect();
    for device in known.iter().filter(|device| !listed.contains(device.as_str())) {
        let (state, rule) = (HealthState::Failed, FaultKind::Vanished.name().to_owned());
        let reason = "the node service lists it no longer; if that is meant so, restart the agent";
        let reason = reason.to_owned();
        devices.push(PartHealth { part: cut(device, MAX_NAME_BYTES), state, rule, reason });
    }
    devices.truncate(MAX_DEVICES);
    let new = snapshot.devices.iter().filter(|device| is_answering_card(device));
    let new = new.filter(|device| !known.contains(&device.id)).map(|device| device.id.clone());
    let room = MAX_DEVICES.saturating_sub(known.len());
    let new: Vec<String> = new.take(room).collect();
    known.extend(new);
    let host = match worst(&snapshot.faults, |fault| lasts(fault, &fault.part, alerts)) {
        Some((fault, state)) => part(&fault.part, state, Some(fault)),
        None => part("", HealthState::Ok, None),
    };
    NodeHealth { devices, host: Some(host) }
}

/// Whether it is a card whose driver answers, so that it has failed once it is listed no longer. A chip of Tenstorrent
/// stays in the list with the rule `vanished`; what only a process names, a part of a card and the host may go.
fn is_answering_card(device: &Device) -> bool {
    let is_card = device.identity.other().is_some_and(|other| other.parent.is_none());
    is_card && device.identity.pci().is_some() && device.is_read()
}

/// The most severe of what is wrong, the first of several, and what its part is with it. What may pass by
/// itself and does not last yet is a warning: a link trains for seconds, and no node is drained for that.
fn worst(faults: &[Fault], lasts: impl Fn(&Fault) -> bool) -> Option<(&Fault, HealthState)> {
    let state = |fault: &Fault| match known_state(fault.kind.state()) {
        HealthState::Failed if !lasts(fault) => HealthState::Warning,
        state => state,
    };
    let wrong = faults.iter().rev().filter(|fault| fault.is_wrong());
    let states = wrong.map(|fault| (fault, state(fault)));
    states.max_by_key(|(_, state)| *state == HealthState::Failed)
}

/// Whether a fault of this device or part has lasted for as long as its alert waits. Without an alert that
/// waits it has.
fn lasts(fault: &Fault, about: &str, alerts: &[Alert]) -> bool {
    let mut own = alerts.iter().filter(|alert| {
        alert.rule == fault.kind.rule().alert
            && [&alert.device_id, &alert.part, &alert.source].into_iter().any(|it| it == about)
    });
    !own.any(|alert| alert.state() == AlertState::Pending)
}

fn known_state(state: health::HealthState) -> HealthState {
    match state {
        health::HealthState::Ok => HealthState::Ok,
        health::HealthState::Unknown => HealthState::Unknown,
        health::HealthState::Warning => HealthState::Warning,
        health::HealthState::Failed => HealthState::Failed,
    }
}

fn part(name: &str, state: HealthState, fault: Option<&Fault>) -> PartHealth {
    PartHealth {
        part: cut(name, MAX_NAME_BYTES),
        state,
        rule: fault.map(|fault| fault.kind.name().to_owned()).unwrap_or_default(),
        reason: fault.map(|fault| cut(&fault.detail, MAX_REASON_BYTES)).unwrap_or_default(),
    }
}

/// The same with the alerts that fire about the device itself. Full memory and what a process does are no fault of a
/// device, unless the user has made a critical rule of it. Nothing that a rule of alerts says drains a node.
fn alerted(health: PartHealth, device: &str, alerts: &[Alert]) -> PartHealth {
    let firing = alerts.iter().filter(|alert| {
        alert.device_id == device
            && alert.state() == AlertState::Firing
            && alert.process.is_none()
            && match alert.severity() {
                AlertSeverity::Critical => true,
                AlertSeverity::Warning => alert.space == 0,
                AlertSeverity::Info | AlertSeverity::Unspecified => false,
            }
    });
    let reasons: Vec<&str> = firing.map(|alert| alert.text.as_str()).collect();
    if reasons.is_empty() {
        return health;
    }
    let reason = cut(&reasons.join("; "), MAX_REASON_BYTES);
    PartHealth { state: HealthState::Warning, reason, ..health }
}

fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use telltale_schema::chip::ChipIdentity;
    use telltale_schema::clock::Timestamp;
    use telltale_schema::device::{DeviceClass, DeviceIdentity, OtherIdentity};
    use telltale_schema::health::Fault;
    use telltale_schema::reading::{Absence, Reading};
    use telltale_schema::snapshot::Telemetry;
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

    fn fault(kind: FaultKind, part: &str, detail: &str) -> Fault {
        Fault { part: part.to_owned(), ..Fault::new(kind, Timestamp(1), detail.to_owned()) }
    }

    /// A machine of devices with these faults.
    fn machine(devices: &[(&str, &[Fault])]) -> Snapshot {
        let device = |(id, faults): &(&str, &[Fault])| Device {
            faults: faults.to_vec(),
            ..Device::unread(*id, ChipIdentity::default())
        };
        Snapshot { devices: devices.iter().map(device).collect(), ..Snapshot::empty(Timestamp(1)) }
    }

    /// A card whose driver answers.
    fn card(id: &str) -> Device {
        let mut identity = OtherIdentity::new(id, "nvidia", DeviceClass::Gpu);
        identity.pci = Some("0000:03:00.0".parse().unwrap());
        let mut card =
            Device { identity: identity.into(), ..Device::unread(id, ChipIdentity::default()) };
        card.telemetry.power_watts = Reading::new(70.0, Timestamp(1));
        card
    }

    #[track_caller]
    fn check(snapshot: &Snapshot, alerts: &[Alert], expected: &[(&str, HealthState, &str, &str)]) {
        let found = node_health(snapshot, alerts, &mut BTreeSet::new()).devices;
        let found: Vec<_> =
            found.iter().map(|one| (&*one.part, one.state, &*one.rule, &*one.reason)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_device_s_health_is_its_state_with_the_rule_that_found_it() {
        let stopped = fault(FaultKind::HeartbeatStopped, "", "its heartbeat stands still");
        let narrow = fault(FaultKind::PcieWidthBelowSlot, "", "x8 of x16");
        let snapshot = machine(&[("a", &[narrow.clone(), stopped]), ("b", &[narrow]), ("c", &[])]);
        let (failed, warning) = (HealthState::Failed, HealthState::Warning);
        let expected = [
            ("a", failed, "heartbeat_stopped", "its heartbeat stands still"),
            ("b", warning, "pcie_width_below_slot", "x8 of x16"),
            ("c", HealthState::Unknown, "", ""),
        ];
        check(&snapshot, &[], &expected);
        // What is known of its health says more than alerts do.
        check(&snapshot, &[alert("a", AlertSeverity::Critical, "it is hot")], &expected);
    }

    #[test]
    fn alerts_about_a_device_itself_and_critical_ones_are_warnings() {
        let full = MemorySpace::Dram.into();
        let warning = AlertSeverity::Warning;
        let alerts = [
            alert("a", warning, "it is hot"),
            alert("a", AlertSeverity::Info, "no process uses it"),
            Alert { state: AlertState::Pending.into(), ..alert("b", warning, "not yet") },
            Alert { space: full, ..alert("b", warning, "its DRAM is nearly full") },
            Alert { process: Some(ProcessIdentity::default()), ..alert("b", warning, "a leak") },
            alert("c", warning, "another's"),
        ];
        let both = machine(&[("a", &[]), ("b", &[])]);
        let unknown = ("b", HealthState::Unknown, "", "");
        check(&both, &alerts, &[("a", HealthState::Warning, "", "it is hot"), unknown]);
        let critical = Alert { space: full, ..alert("b", AlertSeverity::Critical, "no L1 left") };
        let of_a = ("a", HealthState::Unknown, "", "");
        check(&both, &[critical], &[of_a, ("b", HealthState::Warning, "", "no L1 left")]);
    }

    #[test]
    fn a_device_that_is_listed_no_longer_has_failed() {
        // Only named by a process, a part of a card, the host, and a chip, of which the service says it.
        let named = Device { telemetry: Telemetry::absent(Absence::Unknown, ""), ..card("named") };
        let mut part = card("part");
        if let DeviceIdentity::Other(identity) = &mut part.identity {
            identity.parent = Some(String::from("a"));
        }
        let host = OtherIdentity::new("host", "", DeviceClass::Host);
        let host = Device { identity: host.into(), ..card("host") };
        let chip = Device { identity: ChipIdentity::default().into(), ..card("chip") };
        let all = vec![card("a"), card("b"), named, part, host, chip];
        let mut known = BTreeSet::new();
        node_health(&Snapshot { devices: all, ..machine(&[]) }, &[], &mut known);
        let later = Snapshot { devices: vec![card("b")], ..machine(&[]) };
        let later = node_health(&later, &[], &mut known);
        let failed: Vec<_> =
            later.devices.iter().filter(|one| one.state == HealthState::Failed).collect();
        assert_eq!(failed.len(), 1);
        assert_eq!((&*failed[0].part, &*failed[0].rule), ("a", "vanished"));
    }

    #[test]
    fn a_part_of_the_machine_that_failed_is_a_fault_of_the_node() {
        let down = fault(FaultKind::NetworkLinkDown, "eth7", "its link is down");
        let fan = fault(FaultKind::FanFailed, "fan1", "it stands still");
        let health = |faults: &[Fault]| {
            let snapshot = Snapshot { faults: faults.to_vec(), ..machine(&[("a", &[])]) };
            node_health(&snapshot, &[], &mut BTreeSet::new())
        };
        let failed = health(&[down, fan.clone()]).failed().expect("a link is down");
        assert_eq!((&*failed.part, &*failed.rule), ("eth7", "network_link_down"));
        assert_eq!(health(&[fan]).failed(), None, "a fan is a warning");
    }

    #[test]
    fn what_may_pass_by_itself_drains_no_node_before_its_alert_fires() {
        let down = fault(FaultKind::NetworkLinkDown, "eth7", "its link is down");
        let hangs = fault(FaultKind::SourceHangs, "nvidia", "it hangs");
        let of = |faults: &[Fault], alerts: &[Alert]| {
            let snapshot = Snapshot { faults: faults.to_vec(), ..machine(&[("a", &[])]) };
            let host = node_health(&snapshot, alerts, &mut BTreeSet::new()).host.unwrap();
            (host.part, host.state)
        };
        let alert = |part: &str, state: AlertState| Alert {
            rule: "network_link_down".to_owned(),
            part: part.to_owned(),
            state: state.into(),
            ..Alert::default()
        };
        let (failed, waits) = (HealthState::Failed, AlertState::Pending);
        for (alerts, expected) in [
            (vec![alert("eth7", waits)], HealthState::Warning),
            (vec![alert("eth7", AlertState::Firing)], failed),
            (vec![alert("eth8", waits)], failed),
            // The user has switched the alert off.
            (vec![], failed),
        ] {
            let found = of(std::slice::from_ref(&down), &alerts);
            assert_eq!(found, ("eth7".to_owned(), expected), "{alerts:?}");
        }
        let found = of(&[down, hangs], &[alert("eth7", waits)]);
        assert_eq!(found, ("nvidia".to_owned(), failed), "another one lasts");
        let stopped = fault(FaultKind::HeartbeatStopped, "", "it stands still");
        let pending = Alert {
            rule: "heartbeat_stopped".to_owned(),
            device_id: "a".to_owned(),
            ..alert("", waits)
        };
        let warning = ("a", HealthState::Warning, "heartbeat_stopped", "it stands still");
        check(&machine(&[("a", &[stopped])]), &[pending], &[warning]);
    }

    #[test]
    fn no_more_is_reported_than_a_coordinator_takes() {
        let names: Vec<String> = (0..MAX_DEVICES + 9).map(|number| number.to_string()).collect();
        let devices = names.iter().map(|name| card(name)).collect();
        let many = Snapshot { devices, ..machine(&[]) };
        let mut known = BTreeSet::new();
        assert_eq!(node_health(&many, &[], &mut known).devices.len(), MAX_DEVICES);
        assert_eq!(known.len(), MAX_DEVICES);
        let long = fault(FaultKind::Vanished, "", &"\u{e9}x".repeat(300));
        let name = "\u{e9}".repeat(100);
        let found = node_health(&machine(&[(&name, &[long])]), &[], &mut BTreeSet::new());
        assert_eq!(found.devices[0].part.len(), MAX_NAME_BYTES);
        assert!(found.devices[0].reason.len() <= MAX_REASON_BYTES);
    }
}
