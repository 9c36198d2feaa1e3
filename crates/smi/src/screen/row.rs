//! The rows of the process table: which there are, in which order, as a list or as a tree.

use std::collections::{HashMap, HashSet};

use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{HeldDevice, Process, Snapshot};

use super::column::{self, SortKey};
use super::machines::Machines;
use super::settings::ViewSettings;
use crate::rows;

/// Who a process is, as far as recognizable from one snapshot to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Who {
    Known(ProcessIdentity),
    /// On the machine in this place.
    Pid {
        machine: usize,
        pid: u32,
    },
    /// Its place in this snapshot, which the next one may give to another.
    Place(usize),
}

/// What a row is, from one snapshot to the next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum RowId {
    /// A host, container or user, by all that is above it and itself.
    Group(String),
    /// A process, or what it has on one device.
    Process(Who, Option<usize>),
    /// One kind of memory of a process on a device.
    Kind(Who, usize, MemoryKind),
}

/// The values of a row, where they are known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct RowValues {
    pub(super) dram: Option<u64>,
    pub(super) l1: Option<u64>,
    pub(super) host: Option<u64>,
    pub(super) buffers: Option<u64>,
    /// 1 is one processor.
    pub(super) cpu: Option<f64>,
    pub(super) rss: Option<u64>,
    pub(super) threads: Option<u64>,
    /// Bytes a second from disks.
    pub(super) read: Option<u64>,
    /// Bytes a second to disks.
    pub(super) written: Option<u64>,
}

/// One row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) id: RowId,
    /// How many rows it is below in the tree.
    pub(super) depth: usize,
    /// What the tree calls it, where it is no process.
    pub(super) label: String,
    /// The place of its process in the snapshot, if it is of one.
    pub(super) process: Option<usize>,
    /// The place of its device in the snapshot, if it is of one.
    pub(super) device: Option<usize>,
    pub(super) shown_metrics: RowValues,
    /// Whether there are rows below it, and whether they are shown.
    pub(super) open: Option<bool>,
}

// === impl Who ===

impl Who {
    pub(super) fn of(process: &Process, place: usize, machines: &Machines) -> Self {
        match (process.identity, process.pid) {
            (Some(identity), _) => Self::Known(identity),
            (None, Some(pid)) => Self::Pid { machine: machines.of_process(place), pid },
            (None, None) => Self::Place(place),
        }
    }
}

// === impl RowValues ===

impl RowValues {
    fn of(held: &HeldDevice) -> Self {
        Self {
            dram: held.live_bytes(MemorySpace::Dram),
            l1: held.live_bytes(MemorySpace::L1),
            host: held.live_bytes(MemorySpace::Host),
            buffers: held.live_buffers,
            ..Self::default()
        }
    }

    /// The same with what the process uses of the host.
    fn with_usage(self, process: &Process) -> Self {
        let Some(usage) = process.usage.as_deref() else { return self };
        Self {
            cpu: usage.cpu_ratio.value().copied(),
            rss: usage.resident_bytes.value().copied(),
            threads: usage.threads.value().copied(),
            read: usage.read_bytes_per_second.value().copied(),
            written: usage.written_bytes_per_second.value().copied(),
            ..self
        }
    }

    /// Both added up, as far as they are known.
    fn plus(self, other: Self) -> Self {
        fn sum<T>(one: Option<T>, two: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
            match (one, two) {
                (Some(one), Some(two)) => Some(add(one, two)),
                (one, two) => one.or(two),
            }
        }
        let add = |one, two| sum(one, two, u64::saturating_add);
        Self {
            dram: add(self.dram, other.dram),
            l1: add(self.l1, other.l1),
            host: add(self.host, other.host),
            buffers: add(self.buffers, other.buffers),
            cpu: sum(self.cpu, other.cpu, |one, two| one + two),
            rss: add(self.rss, other.rss),
            threads: add(self.threads, other.threads),
            read: add(self.read, other.read),
            written: add(self.written, other.written),
        }
    }

    fn sum(devices: &[HeldDevice]) -> Self {
        devices.iter().map(Self::of).reduce(Self::plus).unwrap_or_default()
    }
}

/// What a process has in a space of all its devices, as far as it is known.
pub(super) fn sum(devices: &[HeldDevice], space: MemorySpace) -> Option<u64> {
    let known = devices.iter().filter_map(|held| held.live_bytes(space));
    known.reduce(u64::saturating_add)
}

/// The rows of a snapshot, of all devices or of the `chosen` one. In the tree, those in `turned` are open where they
/// usually are closed and the other way round.
pub(super) fn rows(
    snapshot: &Snapshot,
    settings: &ViewSettings,
    machines: &Machines,
    turned: &HashSet<RowId>,
    chosen: Option<usize>,
) -> Vec<Row> {
    match settings.tree {
        true => tree(snapshot, settings, machines, turned, chosen),
        false => list(snapshot, settings, machines, chosen),
    }
}

/// What a process has on the chosen device.
fn on_device(process: &Process, device: usize) -> Option<&HeldDevice> {
    process.devices.iter().find(|held| held.device == device)
}

fn list(
    snapshot: &Snapshot,
    settings: &ViewSettings,
    machines: &Machines,
    chosen: Option<usize>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for (place, process) in snapshot.processes.iter().enumerate() {
        let held = match chosen {
            Some(device) => on_device(process, device).map(Some).into_iter().collect(),
            None => rows::devices(&process.devices),
        };
        for held in held {
            let who = Who::of(process, place, machines);
            let held_metrics = held.map(RowValues::of).unwrap_or_default();
            let device = held.map(|held| held.device);
            rows.push(process_row(who, place, device, held_metrics.with_usage(process)));
        }
    }
    sort(&mut rows, snapshot, settings);
    rows
}

fn process_row(who: Who, place: usize, device: Option<usize>, shown_metrics: RowValues) -> Row {
    Row {
        id: RowId::Process(who, device),
        depth: 0,
        label: String::new(),
        process: Some(place),
        device,
        shown_metrics,
        open: None,
    }
}

/// Orders rows of processes.
fn sort(rows: &mut Vec<Row>, snapshot: &Snapshot, settings: &ViewSettings) {
    let key = |row: &Row| {
        let process = row.process.and_then(|place| snapshot.processes.get(place));
        process.map_or(SortKey::Number(None), |process| {
            settings.sort.key(snapshot, process, row.device, &row.shown_metrics)
        })
    };
    let mut keyed: Vec<(SortKey, Row)> = rows.drain(..).map(|row| (key(&row), row)).collect();
    // Stable, so that equal rows stay in the snapshot's order and do not dance.
    keyed.sort_by(|one, two| one.0.compare(&two.0, settings.descending));
    rows.extend(keyed.into_iter().map(|(_, row)| row));
}

// --- the tree: host, container or pod, user, process, kind -----------------------------------

/// A group of the tree while it is put together.
struct RowGroup {
    id: String,
    label: String,
    below: Vec<usize>,
}

fn tree(
    snapshot: &Snapshot,
    settings: &ViewSettings,
    machines: &Machines,
    turned: &HashSet<RowId>,
    chosen: Option<usize>,
) -> Vec<Row> {
    let all = snapshot.processes.iter().enumerate();
    let mut processes: Vec<Row> = all
        .filter_map(|(place, process)| {
            let shown_metrics = match chosen {
                Some(device) => RowValues::of(on_device(process, device)?),
                None => RowValues::sum(&process.devices),
            };
            let who = Who::of(process, place, machines);
            Some(process_row(who, place, None, shown_metrics.with_usage(process)))
        })
        .collect();
    sort(&mut processes, snapshot, settings);
    let mut rows = Vec::new();
    let mut levels = Levels { snapshot, processes: &processes, turned, chosen, rows: &mut rows };
    for (host, age, [from, to]) in machines.places(snapshot.processes.len()) {
        let is_there =
            |at: &usize| processes[*at].process.is_some_and(|place| (from..to).contains(&place));
        let below: Vec<usize> = (0..processes.len()).filter(is_there).collect();
        let label = match age {
            Some(age) => format!("{host}, {age} ago"),
            None => host.to_owned(),
        };
        levels.group(&RowGroup { id: format!("host\n{host}"), label, below }, 0);
    }
    rows
}

/// Writes the levels of the tree, from the host down.
struct Levels<'a> {
    snapshot: &'a Snapshot,
    processes: &'a [Row],
    turned: &'a HashSet<RowId>,
    chosen: Option<usize>,
    rows: &'a mut Vec<Row>,
}

impl Levels<'_> {
    fn group(&mut self, group: &RowGroup, depth: usize) {
        let id = RowId::Group(group.id.clone());
        let open = !self.turned.contains(&id);
        let shown_metrics = group.below.iter().map(|at| self.processes[*at].shown_metrics);
        self.rows.push(Row {
            id,
            depth,
            label: format!("{} ({})", group.label, group.below.len()),
            process: None,
            device: None,
            shown_metrics: shown_metrics.reduce(RowValues::plus).unwrap_or_default(),
            open: Some(open),
        });
        if !open {
            return;
        }
        let name = |at: usize| {
            let process = self.processes[at].process.map(|place| &self.snapshot.processes[place]);
            match (depth, process) {
                (0, Some(process)) => {
                    column::container(process).unwrap_or_else(|| String::from("no container"))
                }
                (_, Some(process)) => crate::processes::owner(process).text().to_owned(),
                (_, None) => String::new(),
            }
        };
        match depth {
            0 | 1 => {
                for below in groups(group, name) {
                    self.group(&below, depth + 1);
                }
            }
            _ => group.below.iter().for_each(|at| self.process(*at, depth + 1)),
        }
    }

    fn process(&mut self, at: usize, depth: usize) {
        let row = &self.processes[at];
        let Some(place) = row.process else { return };
        let process = &self.snapshot.processes[place];
        let has_kinds = process.devices.iter().any(|held| !held.kinds.is_empty());
        let open = has_kinds.then(|| self.turned.contains(&row.id));
        self.rows.push(Row { depth, open, ..row.clone() });
        if open != Some(true) {
            return;
        }
        let RowId::Process(who, _) = row.id else { return };
        let is_chosen = |held: &&HeldDevice| self.chosen.is_none_or(|chosen| held.device == chosen);
        for held in process.devices.iter().filter(is_chosen) {
            for one in &held.kinds {
                self.rows.push(Row {
                    id: RowId::Kind(who, held.device, one.kind),
                    depth: depth + 1,
                    label: one.kind.name().to_owned(),
                    process: Some(place),
                    device: Some(held.device),
                    shown_metrics: of_kind(one),
                    open: None,
                });
            }
        }
    }
}

fn of_kind(one: &telltale_schema::snapshot::HeldKind) -> RowValues {
    let bytes = Some(one.usage.live_bytes());
    let buffers = one.usage.recorded().map(|usage| usage.live_buffers);
    let nothing = RowValues { buffers, ..RowValues::default() };
    match one.kind.space() {
        MemorySpace::Dram => RowValues { dram: bytes, ..nothing },
        MemorySpace::L1 => RowValues { l1: bytes, ..nothing },
        MemorySpace::Host => RowValues { host: bytes, ..nothing },
    }
}

/// What is below a group, by name, in the order in which the names come up.
fn groups(above: &RowGroup, name: impl Fn(usize) -> String) -> Vec<RowGroup> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<RowGroup> = Vec::new();
    for at in &above.below {
        let label = name(*at);
        let place = *places.entry(label.clone()).or_insert(groups.len());
        if place == groups.len() {
            // No name has a line feed once it is shown, so that none is taken for two.
            let id = format!("{}\n{label}", above.id);
            groups.push(RowGroup { id, label, below: Vec::new() });
        }
        groups[place].below.push(*at);
    }
    groups
}

#[cfg(test)]
mod tests {
    use telltale_schema::clock::Timestamp;
    use telltale_schema::fleet::{FLEET_VERSION, Fleet, Host, HostState};

    use super::*;
    use crate::screen::machines;

    fn with_process(pid: u32) -> Snapshot {
        let process = Process { pid: Some(pid), ..Process::hidden(None, "") };
        let (empty, _) = machines::together(&fleet(Vec::new()), None);
        Snapshot { processes: vec![process], ..empty }
    }

    fn fleet(hosts: Vec<Host>) -> Fleet {
        Fleet { fleet_version: FLEET_VERSION, taken_at: Timestamp(1), hosts }
    }

    #[test]
    fn equal_pids_of_two_machines_are_two_processes() {
        let host = |name: &str| Host {
            name: name.to_owned(),
            state: HostState::Answering,
            reason: None,
            answered_at: None,
            snapshot: Some(with_process(7).into()),
        };
        let fleet = fleet(vec![host("a"), host("b")]);
        let (snapshot, machines) = machines::together(&fleet, None);
        let who = |place: usize| Who::of(&snapshot.processes[place], place, &machines);
        assert_eq!(
            (who(0), who(1)),
            (Who::Pid { machine: 0, pid: 7 }, Who::Pid { machine: 1, pid: 7 },)
        );
    }
}
