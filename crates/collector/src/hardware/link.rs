//! The PCIe links of devices, whichever maker's: what each trained to, what it and its slot can do, and
//! the errors of its function.
//!
//! From `current_link_speed` and its neighbours in the directory of a PCI function, and from those
//! of the port above it (the kernel's `Documentation/ABI/testing/sysfs-bus-pci`); errors from `aer_dev_*`
//! of the function (`Documentation/PCI/pcieaer-howto.rst`). A device that sleeps is not asked, since
//! that would wake it up.

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

/// How long what a link runs at holds, and its errors: a link that trains again is soon seen.
const HOLDS_NS: u64 = 1_000_000_000;

/// How long it holds what the link can do, which changes with the card only. These files are the most.
const LIMITS_HOLD_NS: u64 = 10_000_000_000;

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
/// The vendor of the ports that QEMU makes up (its list of PCI ids).
const MADE_UP_VENDOR: &[u8] = b"0x1b36";
/// Widths that PCI Express has.
const WIDTHS: [u64; 7] = [1, 2, 4, 8, 12, 16, 32];
/// What the kernel writes of a width that it does not know: nothing trained, or nothing answers.
const UNKNOWN_WIDTHS: [&str; 3] = ["0", "63", "255"];

const ASLEEP: &str = "the device sleeps, and asking for its link would wake it up";
const DOWN: &str = "the link is down";
const UNCOUNTED: &str = "the driver does not count it";
const NO_LINK: &str = "the kernel shows no PCIe link";
const NO_SLOT: &str =
    "the kernel shows no port above it, as in a virtual machine: what its slot can do is not known";
const NO_AER: &str = "the kernel counts no PCIe errors of it";

/// Reads the links of one machine, periodically if asked.
pub(crate) struct Links {
    inquiry: Inquiry,
    known: BTreeMap<PciAddress, KnownLink>,
}

/// What was read of a link, and until when it holds.
struct KnownLink {
    link: PcieLink,
    until_ns: u64,
    limits: Option<(LimitFiles, u64)>,
}

/// One link to be read.
struct LinkQuestion {
    tree: Arc<Tree>,
    pci: PciAddress,
    /// Where they are known.
    limits: Option<LimitFiles>,
}

/// The text of a file, or why there is none.
type Text = Result<Vec<u8>, Unreadable>;

/// What the files of a link said: speed, then width.
pub(super) struct LinkFiles {
    now: [Text; 2],
    /// Correctable, nonfatal and fatal errors.
    errors: [Text; 3],
    limits: LimitFiles,
}

/// What its files said of what it can do.
#[derive(Clone)]
pub(super) struct LimitFiles {
    /// The way from the function to the one whose link it is.
    at: String,
    most: [Text; 2],
    /// Of the port above, where there is one.
    slot: Option<[Text; 2]>,
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
            let known = self.known.get(pci).and_then(|known| known.limits.as_ref());
            let question = LinkQuestion {
                tree: Arc::clone(&self.inquiry.tree),
                pci: *pci,
                limits: known.filter(|(_, until)| now_ns < *until).map(|(known, _)| known.clone()),
            };
            (TaskName { group: bus_place(*pci), item: 0 }, question)
        };
        let tasks = due.iter().map(task).collect();
        let found = self.inquiry.run(tasks, LinkQuestion::ask);
        let now = self.inquiry.clock.now();
        for (pci, files) in due.into_iter().zip(found) {
            let absent = |reason, detail| (PcieLink::absent(reason, detail), 0, None);
            let (link, holds_ns, limits) = match files {
                Some(Some(files)) => (files.link(now), HOLDS_NS, Some(files.limits)),
                Some(None) => absent(Absence::NotAsked, ASLEEP),
                None => absent(Absence::TimedOut, "the kernel did not answer in time"),
            };
            let until = |holds_ns| now_ns.saturating_add(holds_ns);
            let before = self.known.remove(&pci).and_then(|known| known.limits);
            let before = before.map(|(_, until)| until).filter(|until| now_ns < *until);
            let limits_until = before.unwrap_or_else(|| until(LIMITS_HOLD_NS));
            let limits = limits.map(|limits| (limits, limits_until));
            self.known.insert(pci, KnownLink { link, until_ns: until(holds_ns), limits });
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
            Ok(function) => LinkFiles::of(&function, self.limits.clone()),
            Err(error) => Some(LinkFiles::failed(error)),
        }
    }
}

// === impl LinkFiles ===

impl LinkFiles {
    /// Those of the PCI function that has this directory; none where it sleeps. `limits` are not
    /// read where they are known.
    pub(super) fn of(function: &Directory, limits: Option<LimitFiles>) -> Option<Self> {
        let status = function.attribute("power/runtime_status");
        if status.is_ok_and(|text| text.starts_with(b"suspend")) {
            return None;
        }
        let limits = limits.unwrap_or_else(|| LimitFiles::read(function));
        Some(Self {
            now: texts(function, &limits.at, ["current_link_speed", "current_link_width"]),
            errors: texts(
                function,
                "",
                ["aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"],
            ),
            limits,
        })
    }

    /// Those of one that cannot be read.
    fn failed(error: Unreadable) -> Self {
        Self {
            now: [Err(error), Err(error)],
            errors: [Err(error), Err(error), Err(error)],
            limits: LimitFiles {
                at: String::new(),
                most: [Err(error), Err(error)],
                slot: Some([Err(error), Err(error)]),
                numa_node: Err(error),
            },
        }
    }

    /// What they say, read at `now`. Rates are absent.
    pub(super) fn link(&self, now: Timestamp) -> PcieLink {
        let Self { now: [speed, width], errors: [correctable, nonfatal, fatal], limits } = self;
        let most = |which: usize, parse: fn(&str) -> Result<u64, Absence>| {
            let own = reading(&limits.most[which], parse, NO_LINK, now);
            let Some(slot) = &limits.slot else {
                return own
                    .value()
                    .map_or(own.clone(), |_| Reading::absent(Absence::Unknown, NO_SLOT));
            };
            // A slot that does not say what it can do is no limit.
            match (own, reading(&slot[which], parse, NO_LINK, now).value()) {
                (Reading::Value { value, at }, Some(slot)) => Reading::new(value.min(*slot), at),
                (own, _) => own,
            }
        };
        let errors = |text: &Text, total: fn(&str) -> Result<u64, Absence>| {
            reading(text, total, NO_AER, now)
        };
        PcieLink {
            pcie_generation: reading(speed, generation, NO_LINK, now),
            pcie_generation_max: most(0, generation),
            pcie_width: reading(width, lanes, NO_LINK, now),
            pcie_width_max: most(1, lanes),
            numa_node: topology::read(Some(&limits.numa_node), topology::numa_node, now)
                .map(u64::from),
            pcie_correctable_errors_total: errors(correctable, |text| total(text, "TOTAL_ERR_COR")),
            pcie_nonfatal_errors_total: errors(nonfatal, |text| total(text, "TOTAL_ERR_NONFATAL")),
            pcie_fatal_errors_total: errors(fatal, |text| total(text, "TOTAL_ERR_FATAL")),
            ..PcieLink::absent(Absence::Unsupported, UNCOUNTED)
        }
    }
}

// === impl LimitFiles ===

impl LimitFiles {
    fn read(function: &Directory) -> Self {
        let at = outermost(function);
        let [numa_node] = texts(function, "", ["numa_node"]);
        Self {
            most: texts(function, &at, ["max_link_speed", "max_link_width"]),
            slot: has_port(function, &at)
                .then(|| texts(function, &at, ["../max_link_speed", "../max_link_width"])),
            numa_node,
            at,
        }
    }
}

/// Whether the function at the end of this way is below a port of the machine. One that a virtual
/// machine was given is below none, or below one that its hypervisor makes up: a T4 or L40S of a
/// cloud has 8 of 16 lanes there, and is well.
fn has_port(function: &Directory, at: &str) -> bool {
    let vendor = function.attribute(&format!("{at}../vendor"));
    vendor.is_ok_and(|text| !text.starts_with(MADE_UP_VENDOR))
}

/// Files of the function at the end of this way from another one.
fn texts<const N: usize>(function: &Directory, at: &str, names: [&str; N]) -> [Text; N] {
    names.map(|name| function.attribute(&format!("{at}{name}")))
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

fn reading(
    text: &Text,
    parse: fn(&str) -> Result<u64, Absence>,
    missing: &str,
    now: Timestamp,
) -> Reading<u64> {
    let text = match text {
        Ok(text) => String::from_utf8_lossy(text),
        Err(error) if error.is_missing() => {
            return Reading::absent(Absence::Unsupported, missing);
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

/// The number in the line of a sum: `TOTAL_ERR_COR 3`.
fn total(text: &str, name: &str) -> Result<u64, Absence> {
    let number = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    number.and_then(|number| number.trim().parse().ok()).ok_or(Absence::Implausible)
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
    use super::{Absence, generation, lanes, total};

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

    #[test]
    fn errors_are_the_number_in_the_line_of_the_sum() {
        let text = "RxErr 4\nBadTLP 3\nTOTAL_ERR_COR 7";
        assert_eq!(total(text, "TOTAL_ERR_COR"), Ok(7));
        assert_eq!(total(text, "TOTAL_ERR_FATAL"), Err(Absence::Implausible));
        for bad in
            ["", "TOTAL_ERR_COR", "TOTAL_ERR_COR -1", "TOTAL_ERR_COR 1e3", "TOTAL_ERR_CORX 1"]
        {
            assert_eq!(total(bad, "TOTAL_ERR_COR"), Err(Absence::Implausible), "{bad}");
        }
    }
}
