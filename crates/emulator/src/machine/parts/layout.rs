//! Which parts a host has, what they are called and where the kernel shows them.
//!
//! The names are those of a dual-socket server: a Super I/O chip with its fans and voltages, two PMBus
//! supplies on an I2C bus, two Ethernet and two InfiniBand adapters.

use super::super::fault::FailingKind;

/// The driver of the chip that has the fans and the voltages, and its device.
pub(crate) const SENSOR_CHIP: (&str, &str) = ("nct6798", "platform/nct6775.656");
pub(crate) const FANS: usize = 4;
/// Millivolts of each voltage, the least and the most that they may be.
pub(crate) const VOLTAGES: [(u32, u32, u32); 3] =
    [(12_096, 10_800, 13_200), (5_040, 4_500, 5_500), (3_312, 2_970, 3_630)];
/// Millivolts of the inputs after them, for which the board has set no limits, as boards ship: their alarms
/// are on for ever.
pub(crate) const VOLTAGES_WITHOUT_LIMITS: [u32; 5] = [1_024, 2_040, 1_472, 248, 184];

/// The driver of the supplies, the adapter that their bus is of, and where they are on the bus.
pub(crate) const SUPPLY_DRIVER: &str = "pmbus";
pub(crate) const SUPPLY_BUS: &str = "pci0000:00/0000:00:14.0/i2c-7";
pub(crate) const SUPPLIES: usize = 2;
pub(crate) const SUPPLY_DEVICES: [&str; SUPPLIES] = ["7-0058", "7-0059"];

/// An adapter: what it is called, and the bus behind which port it is.
pub(crate) struct Adapter {
    pub(crate) name: &'static str,
    pub(crate) port: &'static str,
    pub(crate) function: &'static str,
}

const fn adapter(name: &'static str, port: &'static str, function: &'static str) -> Adapter {
    Adapter { name, port, function }
}

/// No machine has chips on these buses.
pub(crate) const NICS: [Adapter; 2] = [
    adapter("eth0", "0000:e0:01.1", "0000:e1:00.0"),
    adapter("eth1", "0000:e0:02.1", "0000:e2:00.0"),
];
pub(crate) const PORTS: [Adapter; 2] = [
    adapter("mlx5_0", "0000:e0:03.1", "0000:e3:00.0"),
    adapter("mlx5_1", "0000:e0:04.1", "0000:e4:00.0"),
];
pub(crate) const MEMORY_CONTROLLER: &str = "mc0";
pub(crate) const MEMORY: &str = "system/edac/mc/mc0";

// === impl Adapter ===

impl Adapter {
    /// The directory of the port above it, relative to `sys/devices`.
    pub(crate) fn port_path(&self) -> String {
        format!("pci0000:e0/{}", self.port)
    }

    /// That of its PCI function.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.port_path(), self.function)
    }
}

/// The names of the parts of a kind, as faults name them and a collector shows them.
pub(crate) fn names(kind: FailingKind) -> Vec<String> {
    let (chip, _) = SENSOR_CHIP;
    match kind {
        FailingKind::Fan => (1..=FANS).map(|fan| format!("{chip}/fan{fan}")).collect(),
        FailingKind::PowerSupply => {
            SUPPLY_DEVICES.iter().map(|device| format!("{SUPPLY_DRIVER}-{device}")).collect()
        }
        FailingKind::Voltage => (0..VOLTAGES.len()).map(|of| format!("{chip}/in{of}")).collect(),
        FailingKind::Nic => NICS.iter().map(|nic| nic.name.to_owned()).collect(),
        FailingKind::Port => PORTS.iter().map(|port| format!("{}/1", port.name)).collect(),
        FailingKind::Memory => vec![MEMORY_CONTROLLER.to_owned()],
    }
}

/// A chip of sensors: paths below `sys/devices`.
pub(crate) struct HwmonPlace {
    pub(crate) name: String,
    pub(crate) device: String,
    pub(crate) path: String,
}

/// The chips of sensors: that of fans and voltages, then the supplies.
pub(crate) fn hwmons(first: u32) -> [HwmonPlace; 1 + SUPPLIES] {
    let (_, sensors) = SENSOR_CHIP;
    let [one, other] = SUPPLY_DEVICES.map(|device| format!("{SUPPLY_BUS}/{device}"));
    let mut number = first;
    [sensors.to_owned(), one, other].map(|device| {
        let name = format!("hwmon{number}");
        number += 1;
        HwmonPlace { path: format!("{device}/hwmon/{name}"), name, device }
    })
}

/// The directories in that of a device of this class.
pub(crate) fn directories_of(class: &str) -> &'static [&'static str] {
    match class {
        "infiniband" => &["ports/1/counters", "ports/1/gids"],
        _ => &[],
    }
}
