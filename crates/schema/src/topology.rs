//! How devices are connected with each other and with processors, as the buses of a machine say.
//!
//! The words are those of `nvidia-smi topo -m`. What no file reports, such as Ethernet between
//! boards, is not guessed.

use serde::Serialize;

use crate::chip::PciAddress;
use crate::reading::Reading;

/// Where a device of the PCI bus sits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DevicePlace {
    /// The device's id.
    pub id: String,
    /// Where its PCI function sits; none for a chip without one.
    pub pci: Option<PciAddress>,
    /// The device through which it is reached, by its place in the list.
    pub gateway: Option<usize>,
    /// The way from a host bridge to it.
    pub path: Reading<BusPath>,
    /// The NUMA node that is nearest.
    pub numa_node: Reading<u32>,
    /// The processors that are nearest, as the kernel lists them: `0-31,64-95`.
    pub cpus: Reading<String>,
}

/// A way from a host bridge to a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BusPath {
    /// The host bridge: `pci0000:00`.
    pub host_bridge: String,
    /// The bridges below it, down to the device.
    pub bridges: Vec<PciAddress>,
}

/// What is between two devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Connection {
    /// Nothing: it is one device.
    #[serde(rename = "X")]
    Same,
    /// They are on one board, on which Ethernet links them.
    #[serde(rename = "BRD")]
    Board,
    /// At most one PCIe switch.
    #[serde(rename = "PIX")]
    OneSwitch,
    /// Several PCIe switches.
    #[serde(rename = "PXB")]
    Switches,
    /// A host bridge.
    #[serde(rename = "PHB")]
    HostBridge,
    /// What connects the host bridges of a NUMA node.
    #[serde(rename = "NODE")]
    Node,
    /// What connects NUMA nodes.
    #[serde(rename = "SYS")]
    System,
    /// It is not known where one of them sits.
    #[serde(rename = "n/a")]
    Unknown,
}

/// Every device's place, and what is between each two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Topology {
    /// The devices.
    pub devices: Vec<DevicePlace>,
    /// By the places of both devices.
    pub connections: Vec<Vec<Connection>>,
}

// === impl Connection ===

impl Connection {
    /// All that stand in a matrix, the farthest first.
    pub const ALL: [Self; 8] = [
        Self::Same,
        Self::System,
        Self::Node,
        Self::HostBridge,
        Self::Switches,
        Self::OneSwitch,
        Self::Board,
        Self::Unknown,
    ];

    /// What stands in a matrix.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "X",
            Self::Board => "BRD",
            Self::OneSwitch => "PIX",
            Self::Switches => "PXB",
            Self::HostBridge => "PHB",
            Self::Node => "NODE",
            Self::System => "SYS",
            Self::Unknown => "n/a",
        }
    }

    /// What it means.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Same => "the device itself",
            Self::Board => "on one board, by Ethernet on it; one is reached through the other",
            Self::OneSwitch => "PCIe, at most one switch",
            Self::Switches => "PCIe, several switches, no host bridge",
            Self::HostBridge => "PCIe and a host bridge (typically the CPU)",
            Self::Node => "PCIe and what connects the host bridges of a NUMA node",
            Self::System => "PCIe and what connects NUMA nodes (e.g. UPI, Infinity Fabric)",
            Self::Unknown => "not known: the kernel does not say where a device sits",
        }
    }
}

// === impl Topology ===

impl Topology {
    /// The topology of devices at these places.
    pub fn of(devices: Vec<DevicePlace>) -> Self {
        let places = 0..devices.len();
        let row = |one: usize| places.clone().map(|other| between(&devices, one, other)).collect();
        let connections = places.clone().map(row).collect();
        Self { devices, connections }
    }

    /// The devices in classes: those of one have the same processors near, and the same connection
    /// to each other device. In the order of their first device.
    pub fn classes(&self) -> Vec<Vec<usize>> {
        let mut classes: Vec<Vec<usize>> = Vec::new();
        for place in 0..self.devices.len() {
            match classes.iter_mut().find(|class| self.are_alike(class[0], place)) {
                Some(class) => class.push(place),
                None => classes.push(vec![place]),
            }
        }
        classes
    }

    fn are_alike(&self, one: usize, other: usize) -> bool {
        let near = |place: usize| {
            let device = &self.devices[place];
            (device.numa_node.value(), device.cpus.value())
        };
        let third = |place: &usize| *place != one && *place != other;
        near(one) == near(other)
            && (0..self.devices.len())
                .filter(third)
                .all(|place| self.connections[one][place] == self.connections[other][place])
    }
}

fn between(devices: &[DevicePlace], one: usize, other: usize) -> Connection {
    if one == other {
        return Connection::Same;
    }
    let bus_place = |place: usize| devices[place].gateway.unwrap_or(place);
    let (one, other) = (bus_place(one), bus_place(other));
    if one == other {
        return Connection::Board;
    }
    let (Some(one), Some(other)) = (devices.get(one), devices.get(other)) else {
        return Connection::Unknown;
    };
    let (Some(path), Some(another)) = (one.path.value(), other.path.value()) else {
        return Connection::Unknown;
    };
    if path.host_bridge != another.host_bridge {
        // Where the kernel knows of no NUMA nodes, there is one.
        return match one.numa_node.value() == other.numa_node.value() {
            true => Connection::Node,
            false => Connection::System,
        };
    }
    let pairs = path.bridges.iter().zip(&another.bridges);
    let common = pairs.take_while(|(one, other)| one == other).count();
    let below = path.bridges.len().max(another.bridges.len()) - common;
    match (common, below) {
        (0, _) => Connection::HostBridge,
        // A switch is a bridge for each of its ports: of one switch, one is below the common way.
        (_, 0 | 1) => Connection::OneSwitch,
        _ => Connection::Switches,
    }
}

#[cfg(test)]
mod tests {
    use super::{BusPath, Connection, DevicePlace, Topology};
    use crate::clock::Timestamp;
    use crate::reading::{Absence, Reading};

    const NOW: Timestamp = Timestamp(1);

    /// A device below these bridges of a host bridge.
    fn device(host_bridge: &str, bridges: &[&str], numa_node: Option<u32>) -> DevicePlace {
        let bridges = bridges.iter().map(|bridge| bridge.parse().unwrap()).collect();
        let numa_node = numa_node
            .map_or_else(|| Reading::absent(Absence::Unsupported, ""), |it| Reading::new(it, NOW));
        DevicePlace {
            id: String::new(),
            pci: None,
            gateway: None,
            path: Reading::new(BusPath { host_bridge: host_bridge.to_owned(), bridges }, NOW),
            numa_node,
            cpus: Reading::absent(Absence::Unsupported, ""),
        }
    }

    fn check(one: DevicePlace, other: DevicePlace, expected: Connection) {
        let topology = Topology::of(vec![one, other]);
        assert_eq!(
            topology.connections,
            [[Connection::Same, expected], [expected, Connection::Same]]
        );
    }

    #[test]
    fn devices_are_as_far_apart_as_what_is_between_them() {
        const PORT: &str = "0000:00:01.1";
        const UP: &str = "0000:01:00.0";
        const DOWN: [&str; 2] = ["0000:02:00.0", "0000:02:01.0"];
        let in_switch = |which: usize| device("pci0000:00", &[PORT, UP, DOWN[which]], Some(0));
        let below_another =
            device("pci0000:00", &[PORT, UP, DOWN[1], "0000:04:00.0", "0000:05:00.0"], Some(0));
        check(in_switch(0), in_switch(1), Connection::OneSwitch);
        check(in_switch(0), in_switch(0), Connection::OneSwitch);
        check(in_switch(0), below_another, Connection::Switches);
        let port = |name: &str| device("pci0000:00", &[name], Some(0));
        check(port(PORT), port("0000:00:02.1"), Connection::HostBridge);
        let bridge = |name: &str, node| device(name, &[PORT], node);
        let [first, second] = ["pci0000:00", "pci0000:40"];
        check(bridge(first, Some(0)), bridge(second, Some(0)), Connection::Node);
        check(bridge(first, None), bridge(second, None), Connection::Node);
        check(bridge(first, Some(0)), bridge(second, Some(1)), Connection::System);
        check(bridge(first, Some(0)), bridge(second, None), Connection::System);
        let path = Reading::absent(Absence::Unknown, "");
        check(bridge(first, None), DevicePlace { path, ..port(PORT) }, Connection::Unknown);
    }

    #[test]
    fn a_chip_that_is_reached_through_another_is_where_that_is() {
        let bridge = |name: &str, node| device(name, &["0000:00:01.1"], Some(node));
        let remote = |gateway| DevicePlace {
            gateway: Some(gateway),
            path: Reading::absent(Absence::Unsupported, ""),
            ..bridge("", 7)
        };
        let devices =
            vec![bridge("pci0000:00", 0), remote(0), bridge("pci0000:80", 1), remote(2), remote(9)];
        let topology = Topology::of(devices);
        let row: Vec<&str> = topology.connections[1].iter().map(|it| it.name()).collect();
        assert_eq!(row, ["BRD", "X", "SYS", "SYS", "n/a"]);
    }

    #[test]
    fn devices_that_are_connected_alike_are_a_class() {
        let tray = |root: &str, port: &str, node| device(root, &[port], Some(node));
        let devices = vec![
            tray("pci0000:00", "0000:00:01.1", 0),
            tray("pci0000:80", "0000:80:01.1", 1),
            tray("pci0000:00", "0000:00:02.1", 0),
            tray("pci0000:80", "0000:80:02.1", 1),
            tray("pci0000:40", "0000:40:02.1", 0),
        ];
        assert_eq!(Topology::of(devices).classes(), [vec![0, 2], vec![1, 3], vec![4]]);
    }
}
