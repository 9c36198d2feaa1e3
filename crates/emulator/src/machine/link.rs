//! PCIe links: what each card and its slot can do, what a link trained to, and which processors are
//! near.
//!
//! Texts are those of the kernel (`drivers/pci/pci-sysfs.c`: `current_link_speed` and its
//! neighbours, `numa_node`, `local_cpulist`).

use super::kind::MachineKind;

/// A link's transfers per second and lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkSpeed {
    /// 2.5 GT/s: PCIe 1.
    Gen1,
    /// 5 GT/s: PCIe 2.
    Gen2,
    /// 8 GT/s: PCIe 3.
    Gen3,
    /// 16 GT/s: PCIe 4.
    Gen4,
    /// 32 GT/s: PCIe 5.
    Gen5,
}

/// A link's number of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkWidth {
    /// One.
    X1,
    /// Two.
    X2,
    /// Four.
    X4,
    /// Eight.
    X8,
    /// Sixteen.
    X16,
}

/// How fast and how wide a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) speed: LinkSpeed,
    pub(crate) width: LinkWidth,
}

/// The processors that are nearest to a PCI function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Near {
    pub(crate) numa_node: u8,
    pub(crate) cpus: &'static str,
}

/// Speeds as faults name them, in GT/s.
pub(super) const SPEEDS: [(LinkSpeed, &str); 5] = [
    (LinkSpeed::Gen1, "2.5"),
    (LinkSpeed::Gen2, "5"),
    (LinkSpeed::Gen3, "8"),
    (LinkSpeed::Gen4, "16"),
    (LinkSpeed::Gen5, "32"),
];

/// Widths as the kernel and faults write them.
pub(super) const WIDTHS: [(LinkWidth, &str); 5] = [
    (LinkWidth::X1, "1"),
    (LinkWidth::X2, "2"),
    (LinkWidth::X4, "4"),
    (LinkWidth::X8, "8"),
    (LinkWidth::X16, "16"),
];

/// The first bus of the second socket, on machines with two.
const SECOND_SOCKET: u8 = 0x80;

impl Link {
    /// The speed as the kernel writes it.
    pub(crate) fn speed_text(self) -> &'static str {
        match self.speed {
            LinkSpeed::Gen1 => "2.5 GT/s PCIe",
            LinkSpeed::Gen2 => "5.0 GT/s PCIe",
            LinkSpeed::Gen3 => "8.0 GT/s PCIe",
            LinkSpeed::Gen4 => "16.0 GT/s PCIe",
            LinkSpeed::Gen5 => "32.0 GT/s PCIe",
        }
    }

    /// The width as the kernel writes it.
    pub(crate) fn width_text(self) -> &'static str {
        let of = WIDTHS.iter().find(|(width, _)| *width == self.width);
        of.expect("the table has every width").1
    }

    /// Bytes that go over it in a second in one direction, after the encoding of each generation.
    pub(crate) fn bytes_per_second(self) -> u64 {
        let lane = match self.speed {
            LinkSpeed::Gen1 => 250_000_000,
            LinkSpeed::Gen2 => 500_000_000,
            LinkSpeed::Gen3 => 984_600_000,
            LinkSpeed::Gen4 => 1_969_000_000,
            LinkSpeed::Gen5 => 3_938_000_000,
        };
        let lanes = match self.width {
            LinkWidth::X1 => 1,
            LinkWidth::X2 => 2,
            LinkWidth::X4 => 4,
            LinkWidth::X8 => 8,
            LinkWidth::X16 => 16,
        };
        lane * lanes
    }

    /// What a link with these limits trains to, where it is to train to `wanted`.
    pub(crate) fn trained(self, wanted: Self) -> Self {
        Self { speed: self.speed.min(wanted.speed), width: self.width.min(wanted.width) }
    }

    /// What the cards of a machine and their slots can do: the two chips of a p300 share the lanes
    /// of its slot, and so do the chips of a Galaxy's tray.
    pub(crate) fn of_slot(kind: MachineKind) -> Self {
        let (speed, width) = match kind {
            MachineKind::N150 | MachineKind::N300 | MachineKind::T3000 => {
                (LinkSpeed::Gen4, LinkWidth::X16)
            }
            MachineKind::GalaxyWormhole => (LinkSpeed::Gen4, LinkWidth::X8),
            MachineKind::P150 => (LinkSpeed::Gen5, LinkWidth::X16),
            MachineKind::P300 | MachineKind::GalaxyBlackhole => (LinkSpeed::Gen5, LinkWidth::X8),
        };
        Self { speed, width }
    }
}

impl Near {
    /// Those of a function on this bus: machines with several root complexes have two sockets.
    pub(crate) fn of_bus(kind: MachineKind, bus: u8) -> Self {
        let (numa_node, cpus) = match kind {
            MachineKind::N150 | MachineKind::N300 | MachineKind::P150 | MachineKind::P300 => {
                (0, "0-15")
            }
            _ if bus < SECOND_SOCKET => (0, "0-31,64-95"),
            _ => (1, "32-63,96-127"),
        };
        Self { numa_node, cpus }
    }
}
