//! The PCIe links of devices, whichever maker's: what each trained to, and what it and its slot can
//! do.
//!
//! From `current_link_speed` and its neighbours in the directory of a PCI function, and from those
//! of the port above it (the kernel's `Documentation/ABI/testing/sysfs-bus-pci`). A device that
//! sleeps is not asked, since that would wake it up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use telltale_schema::chip::PciAddress;
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::device::DeviceIdentity;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::PcieLink;

use super::bus::FUNCTIONS;
use super::inquiry::Inquiry;
use super::topology;
use crate::source::DeviceReading;
use crate::timeout::TaskName;
use crate::tree::{Directory, Tree, Unreadable};

/// How long what is known of a link holds: it trains again at a reset only, or when it goes idle.
const HOLDS_NS: u64 = 10_000_000_000;

/// Ports above one another inside one card that are looked through.
const MAX_PORTS: usize = 4;

/// Speeds of a lane, in the kernel's words before ` GT/s`, by generation from 1 on. Kernels before
/// 5.5 leave out zeros.
const SPEEDS: [[&str; 2]; 7] = [
    ["2.5", "2.5"],
    ["5.0", "5"],
    ["8.0", "8"],
    ["16.0", "16"],
    ["32.0", "32"],
    ["64.0", "64"],
    ["128.0", "128"],
];
/// Widths that PCI Express has.
const WIDTHS: [u64; 7] = [1, 2, 4, 8, 12, 16, 32];
/// What the kernel writes of a width that it does not know: nothing trained, or nothing answers.
const UNKNOWN_WIDTHS: [&str; 3] = ["0", "63", "255"];

const ASLEEP: &str = "the device sleeps, and asking for its link would wake it up";
const DOWN: &str = "the link is down";
const UNCOUNTED: &str = "the driver does not count it";

/// Reads the links of one machine, periodically if asked.
pub(crate) struct Links {
    inquiry: Inquiry,
    known: BTreeMap<PciAddress, KnownLink>,
}

/// What was read of a link, and until when it holds.
struct KnownLink {
    link: PcieLink,
    until_ns: u64,
}

/// One link to be read.
struct LinkQuestion {
    tree: Arc<Tree>,
    pci: PciAddress,
}

/// The text of a file, or why there is none.
type Text = Result<Vec<u8>, Unreadable>;

/// What the files of a link said: speed, then width.
struct LinkFiles {
    now: [Text; 2],
    most: [Text; 2],
    /// Of the port above; a device of the root complex has none.
    slot: [Text; 2],
    numa_node: Text,
}

// === impl Links ===

impl Links {
    /// Of the machine under `tree`: one link may take the first of `limits`, all of them the second.
    pub(crate) fn new(
        tree: Arc<Tree>,
        clock: Arc<dyn Clock>,
        limits: (Duration, Duration),
    ) -> Self {
        Self { inquiry: Inquiry::new(tree, clock, limits), known: BTreeMap::new() }
    }

    /// Adds to each device of the bus what its link is. Without `reads` only links that were never
    /// read are.
    pub(crate) fn add_to(&mut self, devices: &mut [DeviceReading], reads: bool) {
        let places: BTreeSet<PciAddress> = devices.iter().filter_map(place).collect();
        self.known.retain(|pci, _| places.contains(pci));
        let now_ns = self.inquiry.clock.monotonic_ns();
        let is_due = |pci: &&PciAddress| {
            self.known.get(pci).is_none_or(|known| reads && known.until_ns <= now_ns)
        };
        let due: Vec<PciAddress> = places.iter().filter(is_due).copied().collect();
        self.read(due, now_ns);
        for device in devices {
            let Some(known) = place(device).and_then(|pci| self.known.get(&pci)) else { continue };
            let rates = device.telemetry.link.take();
            let rates = rates.map_or_else(
                || PcieLink::absent(Absence::Unsupported, UNCOUNTED),
                |counted| *counted,
            );
            device.telemetry.link = Some(Box::new(PcieLink {
                pcie_received_bytes_per_second: rates.pcie_received_bytes_per_second,
                pcie_sent_bytes_per_second: rates.pcie_sent_bytes_per_second,
                ..known.link.clone()
            }));
        }
    }

    fn read(&mut self, due: Vec<PciAddress>, now_ns: u64) {
        let task = |pci: &PciAddress| {
            // A group of its own for each: one that hangs says nothing of the others.
            let question = LinkQuestion { tree: Arc::clone(&self.inquiry.tree), pci: *pci };
            (TaskName { group: bus_place(*pci), item: 0 }, question)
        };
        let tasks = due.iter().map(task).collect();
        let found = self.inquiry.run(tasks, LinkQuestion::ask);
        let now = self.inquiry.clock.now();
        for (pci, files) in due.into_iter().zip(found) {
            let (link, holds_ns) = match files {
                Some(Some(files)) => (files.link(now), HOLDS_NS),
                Some(None) => (PcieLink::absent(Absence::NotAsked, ASLEEP), 0),
                None => {
                    (PcieLink::absent(Absence::TimedOut, "the kernel did not answer in time"), 0)
                }
            };
            let until_ns = now_ns.saturating_add(holds_ns);
            self.known.insert(pci, KnownLink { link, until_ns });
        }
    }
}

/// Where a device's own link is; none of one without, as a part of another device.
fn place(device: &DeviceReading) -> Option<PciAddress> {
    let is_part = matches!(&device.identity, DeviceIdentity::Other(it) if it.parent.is_some());
    device.identity.pci().filter(|_| !is_part)
}

/// A number for the address, different for each of a machine.
fn bus_place(pci: PciAddress) -> u32 {
    u32::try_from(pci.to_bits() & u64::from(u32::MAX)).expect("32 bits remain")
}

// === impl LinkQuestion ===

impl LinkQuestion {
    /// Reads the files; none of a device that sleeps.
    fn ask(&self) -> Option<LinkFiles> {
        let path = format!("{FUNCTIONS}/{}", self.pci);
        match self.tree.root().directory(&path) {
            Ok(function) => {
                let status = function.attribute("power/runtime_status");
                let is_asleep = status.is_ok_and(|text| text.starts_with(b"suspend"));
                (!is_asleep).then(|| LinkFiles::read(&function))
            }
            Err(error) => Some(LinkFiles {
                now: [Err(error), Err(error)],
                most: [Err(error), Err(error)],
                slot: [Err(error), Err(error)],
                numa_node: Err(error),
            }),
        }
    }
}

// === impl LinkFiles ===

impl LinkFiles {
    fn read(function: &Directory) -> Self {
        let at = outermost(function);
        let texts = |names: [&str; 2]| names.map(|name| function.attribute(&format!("{at}{name}")));
        Self {
            now: texts(["current_link_speed", "current_link_width"]),
            most: texts(["max_link_speed", "max_link_width"]),
            slot: texts(["../max_link_speed", "../max_link_width"]),
            numa_node: function.attribute("numa_node"),
        }
    }

    fn link(&self, now: Timestamp) -> PcieLink {
        let [speed, width] = &self.now;
        let most = |which: usize, parse: fn(&str) -> Result<u64, Absence>| {
            let own = reading(&self.most[which], parse, now);
            // A slot that does not say what it can do is no limit.
            match (own, reading(&self.slot[which], parse, now).value()) {
                (Reading::Value { value, at }, Some(slot)) => Reading::new(value.min(*slot), at),
                (own, _) => own,
            }
        };
        PcieLink {
            pcie_generation: reading(speed, generation, now),
            pcie_generation_max: most(0, generation),
            pcie_width: reading(width, lanes, now),
            pcie_width_max: most(1, lanes),
            numa_node: topology::read(Some(&self.numa_node), topology::numa_node, now)
                .map(u64::from),
            ..PcieLink::absent(Absence::Unsupported, UNCOUNTED)
        }
    }
}

/// The way from a function to the one whose link goes out of its card. Some makers' cards have a
/// switch inside: the link between switch and function is none that anything goes slowly over. Its
/// ports are the same maker's; a port of the processor's is above nothing.
fn outermost(function: &Directory) -> String {
    let vendor = |at: &str| function.attribute(&format!("{at}vendor")).ok();
    let mut at = String::new();
    let Some(own) = vendor(&at) else { return at };
    for _ in 0..MAX_PORTS {
        let port = format!("{at}../");
        if vendor(&port).as_ref() != Some(&own) || vendor(&format!("{port}../")).is_none() {
            break;
        }
        at = port;
    }
    at
}

fn reading(text: &Text, parse: fn(&str) -> Result<u64, Absence>, now: Timestamp) -> Reading<u64> {
    let text = match text {
        Ok(text) => String::from_utf8_lossy(text),
        Err(error) if error.is_missing() => {
            return Reading::absent(Absence::Unsupported, "the kernel shows no PCIe link");
        }
        Err(error) => return error.reading(),
    };
    match parse(text.trim()) {
        Ok(value) => Reading::new(value, now),
        Err(Absence::Unknown) => Reading::absent(Absence::Unknown, DOWN),
        Err(reason) => {
            let excerpt: String = text.chars().take(40).flat_map(char::escape_default).collect();
            Reading::absent(reason, excerpt)
        }
    }
}

/// The generation of a speed: `16.0 GT/s PCIe` is 4.
fn generation(text: &str) -> Result<u64, Absence> {
    if text.starts_with("Unknown") {
        return Err(Absence::Unknown);
    }
    let (speed, _) = text.split_once(" GT/s").ok_or(Absence::Implausible)?;
    let found = (1..).zip(&SPEEDS).find(|(_, names)| names.contains(&speed));
    found.map(|(generation, _)| generation).ok_or(Absence::Implausible)
}

fn lanes(text: &str) -> Result<u64, Absence> {
    if UNKNOWN_WIDTHS.contains(&text) {
        return Err(Absence::Unknown);
    }
    let lanes = text.parse().ok().filter(|lanes| WIDTHS.contains(lanes));
    lanes.ok_or(Absence::Implausible)
}

#[cfg(test)]
mod tests {
    use super::{Absence, generation, lanes};

    #[test]
    fn speeds_are_generations_in_the_words_of_any_kernel() {
        for (text, expected) in [
            ("2.5 GT/s PCIe", Ok(1)),
            ("8 GT/s", Ok(3)),
            ("16.0 GT/s PCIe", Ok(4)),
            ("64.0 GT/s PCIe", Ok(6)),
            ("Unknown", Err(Absence::Unknown)),
            ("Unknown speed", Err(Absence::Unknown)),
            ("17.0 GT/s PCIe", Err(Absence::Implausible)),
            ("16.0", Err(Absence::Implausible)),
            ("", Err(Absence::Implausible)),
        ] {
            assert_eq!(generation(text), expected, "{text}");
        }
    }

    #[test]
    fn widths_are_those_that_there_are() {
        for (text, expected) in [
            ("16", Ok(16)),
            ("1", Ok(1)),
            ("0", Err(Absence::Unknown)),
            ("255", Err(Absence::Unknown)),
            ("3", Err(Absence::Implausible)),
            ("-1", Err(Absence::Implausible)),
            ("18446744073709551616", Err(Absence::Implausible)),
        ] {
            assert_eq!(lanes(text), expected, "{text}");
        }
    }
}
