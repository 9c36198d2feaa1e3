//! What each process has done so far: one row a process, device and kind, with peaks.

use telltale_schema::snapshot::Snapshot;
use telltale_schema::text::printable;

use crate::style::Style;
use crate::table::{Cell, Column, Table};

/// The table that the demo closes with.
pub fn summary(snapshot: &Snapshot, style: &Style) -> String {
    let mut table = Table::new(vec![
        Column::right("PID", 0),
        Column::left("DEVICE", 2),
        Column::left("KIND", 0),
        Column::right("LIVE", 0),
        Column::right("PEAK", 1),
        Column::right("BUFFERS", 3),
        Column::right("ALLOCATIONS", 4),
        Column::right("ALLOCATED", 5),
    ]);
    for process in &snapshot.processes {
        let pid = crate::processes::pid(process.pid);
        for held in &process.devices {
            let id = snapshot.devices.get(held.device).map_or("unknown", |device| &device.id);
            for kind in &held.kinds {
                let recorded = kind.usage.recorded();
                table.push(vec![
                    Cell::new(&pid),
                    Cell::new(printable(id)),
                    Cell::new(kind.kind.name()),
                    Cell::bytes(Some(kind.usage.live_bytes())),
                    Cell::bytes(recorded.map(|usage| usage.peak_bytes)),
                    Cell::count(recorded.map(|usage| usage.live_buffers)),
                    Cell::count(recorded.map(|usage| usage.allocations)),
                    Cell::bytes(recorded.map(|usage| usage.allocated_bytes)),
                ]);
            }
        }
    }
    table.render(style)
}
