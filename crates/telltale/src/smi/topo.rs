//! `telltale smi topo`: what is between each two devices of this machine.

use telltale_collector::hardware::topology;
use telltale_collector::{Collector, HostUse};
use telltale_schema::snapshot::Device;

use super::{OutputFormat, SnapshotView, options};
use crate::arguments::TopoArguments;
use crate::exit::{Failure, Status};
use crate::output::StandardOutput;

/// Runs the command.
pub(super) fn run(arguments: &TopoArguments) -> Result<Status, Failure> {
    let output = StandardOutput::detect();
    let view = SnapshotView::whole(OutputFormat::List);
    let mut options = arguments.hardware.limit(options(&arguments.place, view));
    // It is on no bus, and where it is alone there is a reason to give.
    options.host = HostUse::Never;
    let root = options.root.clone();
    let mut collector = Collector::new(options).map_err(|error| Failure::because(&error))?;
    let snapshot = collector.collect();
    let devices: Vec<&Device> = snapshot.devices.iter().filter(|device| is_own(device)).collect();
    if devices.is_empty() {
        return Err(Failure::Message(super::why_nothing(&snapshot)));
    }
    let found = topology(&root, &devices).map_err(|error| Failure::because(&error))?;
    let text = match arguments.json {
        true => serde_json::to_string(&found).expect("a topology has only string keys") + "\n",
        false => telltale_smi::matrix(&found, &output.style()),
    };
    output.print(&text)?;
    Ok(if snapshot.has_errors() { Status::Partial } else { Status::Fine })
}

/// Whether it is a device of its own and no part of another.
fn is_own(device: &Device) -> bool {
    device.identity.other().is_none_or(|other| other.parent.is_none())
}
