//! The lines of `dmon` and `pmon`.

use telltale_query::Value;
use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Device, HeldDevice, Holder, Load, Process, Snapshot};
use telltale_smi::{MomentColumns, Monitor, RowsOf};

use crate::golden::snapshots::{empty, idle_device, troubled};

#[test]
fn lines_fit_their_heading() {
    let snapshot = troubled();
    let mut page = String::new();
    for (rows, letters, time) in [
        (RowsOf::Devices, "puc", false),
        (RowsOf::Devices, "met", true),
        (RowsOf::Processes, "um", false),
    ] {
        let monitor = Monitor::parse(rows, letters).unwrap();
        let moment = MomentColumns { date: time, time };
        page += &monitor.heading(&snapshot, moment);
        page += &monitor.lines(&snapshot, moment).join("\n");
        page += "\n\n";
    }
    super::check("monitors", &page);
}

/// A device that is half busy and has so many holders, the first of them known.
fn busy(holders: u32) -> Snapshot {
    let mut load = Load::absent(Absence::Unsupported, "");
    load.busy_ratio = Reading::new(0.5, Timestamp(7));
    let holder = |pid| Holder { pid: Some(pid), open_descriptors: 1, memory_known: true };
    let mut device = Device {
        holders: Reading::new((1..=holders).map(holder).collect(), Timestamp(7)),
        ..idle_device("7")
    };
    device.telemetry.load = Some(Box::new(load));
    let process = Process {
        pid: Some(1),
        devices: vec![HeldDevice::default()],
        ..Process::hidden(None, "train")
    };
    Snapshot { devices: vec![device], processes: vec![process], ..empty() }
}

#[test]
fn a_process_is_as_busy_as_counted_else_as_its_device_if_no_other_holds_it() {
    let monitor = Monitor::parse(RowsOf::Processes, "u").unwrap();
    let counted = Some(0.125);
    for (holders, own, expected) in [
        (1, None, Value::Number(0.5)),
        (2, None, Value::Absent),
        (1, counted, Value::Number(0.125)),
        (2, counted, Value::Number(0.125)),
    ] {
        let mut snapshot = busy(holders);
        snapshot.processes[0].devices[0].busy_ratio = own;
        let rows = monitor.values(&snapshot);
        let [row] = &rows[..] else { panic!("{rows:?}") };
        let value = row.iter().find(|(name, _)| *name == "busy").unwrap();
        assert_eq!(value.1, expected, "{holders}");
    }
}
