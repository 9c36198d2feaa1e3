//! Physical network interfaces, from `/sys/class/net` (the kernel's
//! `Documentation/ABI/testing/sysfs-class-net`), and the PCIe link of each.

use std::ffi::OsStr;
use std::path::Path;

use rustix::io::Errno;
use telltale_schema::chip::PciAddress;
use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::PcieLink;

use super::HostPartKind;
use super::entry::{Answer, Found, Readings, cleaned};
use super::gone::IS_THERE;
use super::value::{PartFiles, implausible, truth};
use crate::hardware::link::LinkFiles;
use crate::tree::{Directory, Unreadable};

const NAMES: &[&str] = &[
    IS_THERE,
    "up",
    "is_enabled",
    "has_been_up",
    "carrier_downs_total",
    "speed_bits_per_second",
    "pcie_width",
    "pcie_width_max",
    "pcie_generation",
    "pcie_generation_max",
    "pcie_correctable_errors_total",
    "pcie_nonfatal_errors_total",
    "pcie_fatal_errors_total",
];

/// The flag of an interface that was set up (`IFF_UP`).
const IFF_UP: u64 = 1;
/// No interface is faster, in megabits a second.
const MAX_MEGABITS: u32 = 100_000_000;

const DOWN: &str = "the link is down";

/// The interface of this name, if it is hardware. Virtual functions and their representatives come and
/// go with virtual machines, and their link is that of the physical function.
pub(super) fn survey(directory: &Directory, name: &str) -> Result<Vec<Found>, Unreadable> {
    if directory.link("device").is_err() || directory.stat("device/physfn").is_ok() {
        return Ok(Vec::new());
    }
    let port = directory.attribute("phys_port_name");
    if port.is_ok_and(|port| is_representative(&String::from_utf8_lossy(&port))) {
        return Ok(Vec::new());
    }
    let function = directory.link("device").ok();
    let function = function.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
    Ok(vec![Found {
        kind: HostPartKind::NetworkInterface,
        item: 1,
        owner: cleaned(name),
        // One of another bus has no such address.
        place: function.filter(|it| it.parse::<PciAddress>().is_ok()).map(str::to_owned),
        channel: None,
        gids: None,
        names: NAMES,
        read,
    }])
}

/// Whether a port's name is that of a virtual function or a subfunction: `pf0vf3`, `c1pf0sf88`.
fn is_representative(port: &str) -> bool {
    let of_function = port.trim().split_once("pf").map(|(_, rest)| rest);
    of_function.is_some_and(|rest| rest.contains("vf") || rest.contains("sf"))
}

fn read(directory: &Directory, _: &Found, now: Timestamp) -> Answer {
    let files = PartFiles { directory, now };
    let up = up(&files);
    let ups = files.counter("carrier_up_count");
    let has_been_up = match (up.value(), ups.value()) {
        (Some(up), _) if *up > 0.0 => files.is(true),
        (_, Some(ups)) => files.is(*ups > 0.0),
        (_, None) => ups,
    };
    let speed = match up.value() {
        Some(up) if *up == 0.0 => Reading::absent(Absence::Unknown, DOWN),
        _ => speed(&files),
    };
    let mut readings = Readings::from([
        (IS_THERE, files.is(true)),
        ("up", up),
        ("is_enabled", files.parsed("flags", is_enabled)),
        ("has_been_up", has_been_up),
        ("carrier_downs_total", files.counter("carrier_down_count")),
        ("speed_bits_per_second", speed),
    ]);
    readings.extend(pcie(&files));
    readings.into()
}

/// Whether it has a carrier. One that is not enabled has none, of which the kernel does not speak.
fn up(files: &PartFiles<'_>) -> Reading<f64> {
    match files.text("carrier") {
        Err(Unreadable::Errno(Errno::INVAL)) => files.is(false),
        Err(error) => error.reading(),
        Ok(text) => match truth(&text) {
            Some(up) => Reading::new(up, files.now),
            None => implausible(&text),
        },
    }
}

fn is_enabled(flags: &str) -> Option<f64> {
    let flags = u64::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
    Some(f64::from(u8::from(flags & IFF_UP != 0)))
}

/// The speed that it negotiated; -1 is one that the driver does not know.
fn speed(files: &PartFiles<'_>) -> Reading<f64> {
    match files.text("speed") {
        Ok(text) if text == "-1" => {
            Reading::absent(Absence::Unknown, "the driver does not know it")
        }
        Ok(text) => match text.parse() {
            Ok(megabits @ 0..=MAX_MEGABITS) => Reading::new(f64::from(megabits) * 1e6, files.now),
            _ => implausible(&text),
        },
        Err(Unreadable::Errno(Errno::INVAL)) => {
            Reading::absent(Absence::Unknown, "the driver does not know it")
        }
        Err(error) => error.reading(),
    }
}

/// What the link of its function runs at, what it can do, and its errors.
fn pcie(files: &PartFiles<'_>) -> Readings {
    let link = match files.directory.directory("device") {
        Ok(function) => match LinkFiles::of(&function, None) {
            Some(read) => read.link(files.now),
            None => PcieLink::absent(Absence::NotAsked, "the device sleeps"),
        },
        Err(error) => PcieLink::absent(error.absence(), &error.to_string()),
    };
    [
        ("pcie_width", link.pcie_width),
        ("pcie_width_max", link.pcie_width_max),
        ("pcie_generation", link.pcie_generation),
        ("pcie_generation_max", link.pcie_generation_max),
        ("pcie_correctable_errors_total", link.pcie_correctable_errors_total),
        ("pcie_nonfatal_errors_total", link.pcie_nonfatal_errors_total),
        ("pcie_fatal_errors_total", link.pcie_fatal_errors_total),
    ]
    .into_iter()
    .map(|(name, reading)| (name, reading.map(float)))
    .collect()
}

#[expect(clippy::cast_precision_loss, reason = "counters above 2^53 lose what no rule asks for")]
fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::{is_enabled, is_representative};

    #[test]
    fn a_port_of_a_virtual_function_is_known_by_its_name() {
        for (port, expected) in
            [("pf0vf3\n", true), ("c1pf0sf88", true), ("p0", false), ("pf0", false), ("", false)]
        {
            assert_eq!(is_representative(port), expected, "{port}");
        }
    }

    #[test]
    fn an_interface_is_enabled_by_its_lowest_flag() {
        for (flags, expected) in
            [("0x1003", Some(1.0)), ("0x1002", Some(0.0)), ("1003", None), ("0x", None)]
        {
            assert_eq!(is_enabled(flags), expected, "{flags}");
        }
    }
}
