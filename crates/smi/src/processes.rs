//! The table of processes: one row for each process and device, if it is not merely open.

use telltale_schema::memory::MemorySpace;
use telltale_schema::quantity;
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{
    Device, HeldDevice, Process, ProcessSource, ProcessState, Snapshot,
};
use telltale_schema::text::printable;

use crate::machine::Machine;
use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Table};
use crate::{rows, text};

/// The table, or a sentence that says why there is none. Machines that have names are distinguished by
/// a first column.
pub(crate) fn section(machines: &[Machine<'_>], style: &Style) -> String {
    if machines.iter().all(|machine| machine.snapshot.processes.is_empty()) {
        let held = |device: &Device| device.holders.value().is_some_and(|list| !list.is_empty());
        let hides = |snapshot: &Snapshot| {
            snapshot.withheld_processes > 0 || snapshot.devices.iter().any(held)
        };
        let filtered =
            |snapshot: &Snapshot| snapshot.left_out.is_some_and(|left| left.processes > 0);
        let any =
            |holds: &dyn Fn(&Snapshot) -> bool| machines.iter().any(|one| holds(one.snapshot));
        let words = if any(&filtered) {
            "No process matches."
        } else if any(&hides) {
            "No process that is visible from here holds a device or has recorded memory."
        } else {
            "No process holds a device or has recorded memory."
        };
        return text::painted(words, Tone::Faint, style);
    }
    let optional = OptionalColumns {
        l1: machines.iter().any(|machine| has_l1(machine.snapshot)),
        system: machines.iter().any(|machine| has_system_memory(machine.snapshot)),
    };
    let mut columns = vec![
        Column::right("PID", 0),
        Column::left("USER", 4),
        Column::left("DEVICE", 2),
        Column::right("DRAM", 0),
    ];
    columns.extend(optional.l1.then_some(Column::right("L1", 1)));
    columns.extend(optional.system.then_some(Column::right("SYSTEM", 1)));
    columns.extend([
        Column::right("BUFFERS", 5),
        Column::right("UP", 6),
        Column::left("COMMAND", 3),
    ]);
    let mut table = Table::new(Machine::column(machines).into_iter().chain(columns).collect());
    for machine in machines {
        for process in &machine.snapshot.processes {
            for held in rows::devices(&process.devices) {
                let row = row(machine.snapshot, process, held, optional);
                table.push(machine.cell().into_iter().chain(row).collect());
            }
        }
    }
    table.render(style)
}

/// Columns of memory that only some machines have.
#[derive(Debug, Clone, Copy)]
struct OptionalColumns {
    l1: bool,
    system: bool,
}

/// Whether a device has on-chip memory, or a process has recorded some.
fn has_l1(snapshot: &Snapshot) -> bool {
    let devices = snapshot.devices.iter().any(|device| device.space(MemorySpace::L1).is_some());
    let mut held = snapshot.processes.iter().flat_map(|process| &process.devices);
    devices || held.any(|held| held.live_bytes(MemorySpace::L1).is_some_and(|bytes| bytes > 0))
}

/// Whether a process has memory of the host's: most have none, and need no column that says so.
fn has_system_memory(snapshot: &Snapshot) -> bool {
    let mut held = snapshot.processes.iter().flat_map(|process| &process.devices);
    held.any(|held| held.live_bytes(MemorySpace::Host).is_some_and(|bytes| bytes > 0))
}

fn row(
    snapshot: &Snapshot,
    process: &Process,
    held: Option<&HeldDevice>,
    optional: OptionalColumns,
) -> Vec<Cell> {
    let device = held.and_then(|held| snapshot.devices.get(held.device));
    let memory = |space| Cell::bytes(held.and_then(|held| held.live_bytes(space)));
    let mut cells = vec![
        process
            .pid
            .map_or_else(|| Cell::toned("hidden", Tone::Faint), |pid| Cell::new(pid.to_string())),
        owner(process),
        device.map_or_else(Cell::absent, |device| Cell::new(printable(&device.id))),
        memory(MemorySpace::Dram),
    ];
    cells.extend(optional.l1.then(|| memory(MemorySpace::L1)));
    cells.extend(optional.system.then(|| memory(MemorySpace::Host)));
    cells.extend([
        Cell::count(held.and_then(|held| held.live_buffers)),
        process
            .uptime_seconds
            .value()
            .map_or_else(Cell::absent, |seconds| Cell::new(quantity::span(*seconds))),
        command(process),
    ]);
    cells
}

/// A pid, or that it cannot be seen from here.
pub(crate) fn pid(pid: Option<u32>) -> String {
    pid.map_or_else(|| String::from("hidden"), |pid| pid.to_string())
}

pub(crate) fn owner(process: &Process) -> Cell {
    match (process.user.value(), process.uid.value()) {
        (Some(user), _) => Cell::new(printable(user)),
        (None, Some(uid)) => Cell::new(uid.to_string()),
        (None, None) => Cell::absent(),
    }
}

pub(crate) fn command(process: &Process) -> Cell {
    let words = match &process.command {
        Reading::Value { value, .. } if !value.is_empty() => without_directories(value),
        Reading::Absent { absent, .. } if process.name.is_empty() => {
            return Cell::toned(format!("({})", absent.words()), Tone::Faint);
        }
        _ => &process.name,
    };
    match process.state {
        ProcessState::Dead => Cell::toned(format!("(ended) {}", printable(words)), Tone::Faint),
        _ if process.known_by == Some(ProcessSource::Legacy) => {
            Cell::new(format!("(legacy) {}", printable(words)))
        }
        _ => Cell::new(printable(words)),
    }
}

/// A command line without the directories of its program, which the details give.
fn without_directories(command: &str) -> &str {
    let end = command.find(' ').unwrap_or(command.len());
    match command[..end].rfind('/') {
        Some(slash) if slash + 1 < end => &command[slash + 1..],
        _ => command,
    }
}

#[cfg(test)]
mod tests {
    use super::command;
    use crate::table::Cell;
    use telltale_schema::reading::{Absence, Reading};
    use telltale_schema::snapshot::{Process, ProcessSource, ProcessState, RecordingFaults};

    #[test]
    fn what_the_legacy_socket_reports_is_marked() {
        let mut process = Process {
            identity: None,
            pid: Some(7),
            namespace_pid: None,
            name: "old".to_owned(),
            command: Reading::absent(Absence::NotYet, ""),
            uid: Reading::absent(Absence::Hidden, ""),
            user: Reading::absent(Absence::Hidden, ""),
            container: None,
            state: ProcessState::Alive,
            known_by: Some(ProcessSource::Legacy),
            started_at: None,
            usage: None,
            uptime_seconds: Reading::absent(Absence::Unknown, ""),
            devices: Vec::new(),
            faults: RecordingFaults::default(),
            metrics: [].into(),
        };
        assert_eq!(command(&process), Cell::new("(legacy) old"));
        process.known_by = Some(ProcessSource::Region);
        assert_eq!(command(&process), Cell::new("old"));
    }
}
