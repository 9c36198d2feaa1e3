//! Where devices sit on the buses of a machine: bridges, NUMA nodes and processors.
//!
//! From the links in `/sys/bus/pci/devices`, and from `numa_node` and `local_cpulist` there, which
//! the kernel has without asking the device.

use std::path::{Component, Path};

use telltale_schema::chip::PciAddress;
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::Device;
use telltale_schema::topology::{BusPath, DevicePlace, Topology};

use super::bus::FUNCTIONS;
use crate::clock::SystemClock;
use crate::tree::{Directory, OpenTreeError, Tree, Unreadable};

/// Bridges above one another that are looked through.
const MAX_BRIDGES: usize = 32;
/// The longest list of processors that is shown.
const MAX_LIST_BYTES: usize = 256;
/// NUMA nodes that a kernel can have.
const MAX_NODES: u32 = 1024;

const NOWHERE: &str = "it is not on the PCI bus";

/// Where these devices of the machine below `root` sit, and what is between each two of them.
///
/// # Errors
/// When the root cannot be opened.
pub fn topology(root: &Path, devices: &[&Device]) -> Result<Topology, OpenTreeError> {
    let tree = Tree::open(root)?;
    let now = SystemClock.now();
    let place = |device: &&Device| {
        let gateway = gateway(devices, device);
        let pci = device.identity.pci().filter(|_| gateway.is_none());
        let near = gateway.map_or(pci, |place| devices[place].identity.pci());
        device_place(tree.root(), device, (gateway, pci, near), now)
    };
    Ok(Topology::of(devices.iter().map(place).collect()))
}

/// The chip of the same board that a remote one is reached through.
fn gateway(devices: &[&Device], remote: &Device) -> Option<usize> {
    let chip = remote.identity.chip().filter(|chip| chip.remote)?;
    let board = chip.board_id?;
    devices.iter().position(|device| {
        let other = device.identity.chip();
        other.is_some_and(|other| !other.remote && other.board_id == Some(board))
    })
}

/// One device: its own address, and that of which it has the processors.
fn device_place(
    root: &Directory,
    device: &Device,
    (gateway, pci, near): (Option<usize>, Option<PciAddress>, Option<PciAddress>),
    now: Timestamp,
) -> DevicePlace {
    let attribute =
        |name: &str| near.map(|near| root.attribute(&format!("{FUNCTIONS}/{near}/{name}")));
    let path = match pci.map(|pci| root.link(&format!("{FUNCTIONS}/{pci}"))) {
        None => Reading::absent(Absence::Unsupported, NOWHERE),
        Some(Err(error)) => error.reading(),
        Some(Ok(target)) => match bus_path(&target) {
            Some(path) => Reading::new(path, now),
            None => {
                Reading::absent(Absence::NotUnderstood, "its directory is below no host bridge")
            }
        },
    };
    DevicePlace {
        id: device.id.clone(),
        pci,
        gateway,
        path,
        numa_node: read(attribute("numa_node").as_ref(), numa_node, now),
        cpus: read(attribute("local_cpulist").as_ref(), cpus, now),
    }
}

/// The way in a link such as `../../../devices/pci0000:00/0000:00:01.1/0000:01:00.0`.
fn bus_path(target: &Path) -> Option<BusPath> {
    let parts: Vec<&str> = target
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let is_address = |part: &&&str| part.parse::<PciAddress>().is_ok();
    let functions = parts.iter().rev().take_while(is_address).count();
    let host_bridge = parts.iter().rev().nth(functions)?;
    if !host_bridge.starts_with("pci") || functions == 0 || functions > MAX_BRIDGES {
        return None;
    }
    let way = &parts[parts.len() - functions..parts.len() - 1];
    let bridges = way.iter().filter_map(|part| part.parse().ok()).collect();
    Some(BusPath { host_bridge: (*host_bridge).to_owned(), bridges })
}

/// What a file says; it is missing where there is no function to have one.
pub(super) fn read<T>(
    text: Option<&Result<Vec<u8>, Unreadable>>,
    parse: fn(&str) -> Result<T, (Absence, &'static str)>,
    now: Timestamp,
) -> Reading<T> {
    match text {
        None => Reading::absent(Absence::Unsupported, NOWHERE),
        Some(Err(error)) => error.reading(),
        Some(Ok(text)) => match parse(String::from_utf8_lossy(text).trim()) {
            Ok(value) => Reading::new(value, now),
            Err((reason, detail)) => Reading::absent(reason, detail),
        },
    }
}

/// The number in `numa_node`.
pub(super) fn numa_node(text: &str) -> Result<u32, (Absence, &'static str)> {
    if text == "-1" {
        return Err((Absence::Unsupported, "the kernel knows of no NUMA node"));
    }
    let node = text.parse().ok().filter(|node| *node < MAX_NODES);
    node.ok_or((Absence::Implausible, "not the number of a NUMA node"))
}

fn cpus(text: &str) -> Result<String, (Absence, &'static str)> {
    let is_list = text.bytes().all(|byte| byte.is_ascii_digit() || b",-".contains(&byte));
    match (is_list && text.len() <= MAX_LIST_BYTES, text.is_empty()) {
        (true, false) => Ok(text.to_owned()),
        (true, true) => Err((Absence::Unsupported, "the kernel names no processor")),
        (false, _) => Err((Absence::Implausible, "not a list of processors")),
    }
}

#[cfg(test)]
mod tests {
    use super::{bus_path, cpus, numa_node};
    use std::path::Path;

    #[test]
    fn a_way_goes_from_the_host_bridge_to_the_device() {
        let way = |target: &str| {
            let path = bus_path(Path::new(target))?;
            let bridges: Vec<_> = path.bridges.iter().map(ToString::to_string).collect();
            Some(format!("{} {}", path.host_bridge, bridges.join(" ")))
        };
        for (target, expected) in [
            ("../../../devices/pci0000:00/0000:00:08.0", Some("pci0000:00 ")),
            (
                "../../../devices/pci0000:40/0000:40:01.1/0000:41:00.0",
                Some("pci0000:40 0000:40:01.1"),
            ),
            // Intel's VMD has a host bridge below a function.
            (
                "../../../devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0",
                Some("pci10000:e0 10000:e0:06.0"),
            ),
            ("../../../devices/pci0000:00", None),
            ("../../../devices/platform/0000:01:00.0", None),
            ("/", None),
        ] {
            assert_eq!(way(target).as_deref(), expected, "{target}");
        }
    }

    #[test]
    fn nodes_and_processors_are_numbers() {
        assert_eq!(numa_node("1"), Ok(1));
        assert!(["-1", "-2", "1024", "x", ""].iter().all(|text| numa_node(text).is_err()));
        assert_eq!(cpus("0-31,64-95"), Ok(String::from("0-31,64-95")));
        let long = "1,".repeat(200);
        assert!(["", "0-3\u{1b}[2J", &long].iter().all(|text| cpus(text).is_err()));
    }
}
