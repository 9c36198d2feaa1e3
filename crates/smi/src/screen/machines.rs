//! Several machines in one view: put together as one snapshot, with what is needed to tell whose a
//! process is.

use std::ops::Range;
use std::sync::Arc;

use telltale_query::Query;
use telltale_schema::fleet::{Fleet, Host, HostState};
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{Device, HeldDevice, Process, Snapshot, SourceError, SourceStatus};

/// Whose the processes and devices of a snapshot are: the name of each machine, and the places after
/// its last ones. One machine has a name and no end.
#[derive(Debug, Clone, Default)]
pub(super) struct Machines(Vec<HostEntry>);

#[derive(Debug, Clone)]
struct HostEntry {
    name: String,
    /// How long ago it was as it is shown, where it does not answer.
    age: Option<String>,
    processes: usize,
    devices: usize,
}

impl Machines {
    /// The only machine.
    pub(super) fn only(name: &str) -> Self {
        let (processes, devices) = (usize::MAX, usize::MAX);
        Self(vec![HostEntry { name: name.to_owned(), age: None, processes, devices }])
    }

    /// The machines, each with how old its rows are if they are, and the places of its processes.
    pub(super) fn places(
        &self,
        processes: usize,
    ) -> impl Iterator<Item = (&str, Option<&str>, [usize; 2])> {
        let mut from = 0;
        self.0.iter().map(move |machine| {
            let places = [from, machine.processes.min(processes)];
            from = places[1];
            (machine.name.as_str(), machine.age.as_deref(), places)
        })
    }

    /// Whether the process in this place is as its host reported it some time ago.
    pub(super) fn is_old_process(&self, place: usize) -> bool {
        self.is_old(self.of_process(place))
    }

    /// The place of the machine that the process in this place is on.
    pub(super) fn of_process(&self, place: usize) -> usize {
        self.0.partition_point(|machine| machine.processes <= place)
    }

    /// Whether the device in this place is as its host reported it some time ago.
    pub(super) fn is_old_device(&self, place: usize) -> bool {
        self.is_old(self.0.partition_point(|machine| machine.devices <= place))
    }

    fn is_old(&self, machine: usize) -> bool {
        self.0.get(machine).is_some_and(|machine| machine.age.is_some())
    }

    /// The machines, each with the places of its devices.
    pub(super) fn devices(&self, devices: usize) -> impl Iterator<Item = (&str, Range<usize>)> {
        let mut from = 0;
        self.0.iter().map(move |machine| {
            let places = from..machine.devices.min(devices);
            from = places.end;
            (machine.name.as_str(), places)
        })
    }
}

/// How many answer, as the title says it.
pub(super) fn words(fleet: &Fleet) -> String {
    let all = fleet.hosts.len();
    match fleet.count(HostState::Answering) == all {
        true if all == 1 => String::from("1 host"),
        true => format!("{all} hosts"),
        false => crate::fleet::answering(fleet),
    }
}

/// The machines as one snapshot, with only the rows that a query wants. A device is called by its
/// machine and its own name; a machine that does not answer is an error, beside what it said last.
pub(super) fn together(fleet: &Fleet, filter: Option<&Query>) -> (Snapshot, Machines) {
    let mut whole = Snapshot::empty(fleet.taken_at);
    let mut machines = Machines::default();
    for host in &fleet.hosts {
        if let Some(snapshot) = &host.snapshot {
            match filter {
                Some(filter) => add(&host.name, &filter.select(snapshot), &mut whole),
                None => add(&host.name, snapshot, &mut whole),
            }
        }
        machines.0.push(HostEntry {
            name: host.name.clone(),
            age: age(fleet, host),
            processes: whole.processes.len(),
            devices: whole.devices.len(),
        });
    }
    whole.sources.extend(silent(fleet));
    (whole, machines)
}

fn add(name: &str, snapshot: &Snapshot, whole: &mut Snapshot) {
    let before = whole.devices.len();
    let named = |device: &Device| Device { id: format!("{name}/{}", device.id), ..device.clone() };
    whole.devices.extend(snapshot.devices.iter().map(named));
    let moved = |held: &HeldDevice| HeldDevice { device: held.device + before, ..held.clone() };
    let there = |process: &Process| Process {
        devices: process.devices.iter().map(moved).collect(),
        metrics: Arc::clone(&process.metrics),
        ..process.clone()
    };
    whole.processes.extend(snapshot.processes.iter().map(there));
    whole.closed_processes = whole.closed_processes.saturating_add(snapshot.closed_processes);
    whole.withheld_processes = whole.withheld_processes.saturating_add(snapshot.withheld_processes);
    let failed = snapshot
        .sources
        .iter()
        .filter(|source| !source.errors.is_empty() || !source.notes.is_empty());
    whole.sources.extend(
        failed.map(|source| SourceStatus {
            name: format!("{name}: {}", source.name),
            ..source.clone()
        }),
    );
}

/// How long ago a machine that does not answer said what is shown of it.
fn age(fleet: &Fleet, host: &Host) -> Option<String> {
    let is_old = host.state == HostState::Unreachable && host.snapshot.is_some();
    is_old.then(|| crate::fleet::age(fleet, host))
}

/// The machines that do not answer, as what a source could not read.
fn silent(fleet: &Fleet) -> Option<SourceStatus> {
    let silent = fleet.hosts.iter().filter(|host| host.state == HostState::Unreachable);
    let errors: Vec<SourceError> = silent
        .map(|host| {
            let why = host.reason.clone().unwrap_or_default();
            let last = age(fleet, host).map(|age| format!("; its rows are of {age} ago"));
            SourceError {
                subject: host.name.clone(),
                reason: Absence::Missing,
                detail: why + &last.unwrap_or_default(),
            }
        })
        .collect();
    let name = String::from("hosts");
    (!errors.is_empty()).then_some(SourceStatus {
        name,
        duration_ns: 0,
        errors,
        errors_dropped: 0,
        notes: Vec::new(),
    })
}
