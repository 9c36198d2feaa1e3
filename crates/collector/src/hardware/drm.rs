//! Graphics processors and accelerators of the kernel's DRM and accel classes: AMD's, Intel's and
//! any other driver that is one.
//!
//! From sysfs, hwmon and `/proc/<pid>/fdinfo`, never from the device. A device that sleeps is not
//! woken up to be read: its sensors are absent then. Cards without a render node only drive a
//! display (the kernel's `Documentation/gpu/drm-uapi.rst`) and are left out, as are virtual ones.

mod card;
mod clients;
mod fields;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use telltale_schema::chip::PciAddress;
use telltale_schema::clock::Clock;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::Holder;

use super::inquiry::Inquiry;
use crate::report::SourceReport;
use crate::source::{DeviceReading, DriverUsage, HardwareSource, SourceReading};
use crate::timeout::TaskName;
use crate::tree::{Tree, Unreadable};
use card::{Before, Card, CardFiles};
use clients::{Clients, Scan};

/// The name of this source in a snapshot.
const SOURCE: &str = "drm";

/// Devices of one class that are checked.
const MAX_CARDS: usize = 256;

/// Where cards are listed, how their names begin, and from which number on they are counted as
/// tasks, so that no two devices share one.
const CLASSES: [(&str, &str, u32); 2] =
    [("sys/class/drm", "card", 0), ("sys/class/accel", "accel", 1 << 16)];

/// The task that searches for processes.
const SCAN: TaskName = TaskName { group: u32::MAX, item: 0 };

/// Reads the devices of one machine, periodically if asked.
pub struct DrmSource {
    inquiry: Inquiry,
    /// What each device, by its task's group, last reported.
    before: BTreeMap<u32, (DeviceReading, Before)>,
    clients: Option<Clients>,
}

/// What one task does.
enum DrmTask {
    /// Reads a card's files.
    Card(Card),
    /// Searches for processes that have one of the cards open.
    Scan(Scan),
}

/// What came of it.
enum Done {
    Card(Box<CardFiles>),
    Scan(Clients),
}

// === impl DrmSource ===

impl DrmSource {
    /// A source for the machine under `tree`. One device may take the first of `limits`, all of them
    /// and the search for processes the second.
    pub fn new(tree: Arc<Tree>, clock: Arc<dyn Clock>, limits: (Duration, Duration)) -> Self {
        let inquiry = Inquiry::new(tree, clock, limits);
        Self { inquiry, before: BTreeMap::new(), clients: None }
    }

    /// The cards that the kernel lists, each PCI function once.
    fn enumerate(&self, report: &mut SourceReport) -> Vec<Card> {
        let mut cards: Vec<Card> = Vec::new();
        for (class, prefix, first) in CLASSES {
            let directory = match self.inquiry.tree.root().directory(class) {
                Ok(directory) => directory,
                Err(error) if error.is_missing() => continue,
                Err(error) => {
                    report.error(class, error.absence(), error.to_string());
                    continue;
                }
            };
            let mut numbers: Vec<u32> = match directory.names() {
                Ok(names) => names.iter().filter_map(|name| number(name, prefix)).collect(),
                Err(error) => {
                    report.error(class, error.absence(), error.to_string());
                    Vec::new()
                }
            };
            numbers.sort_unstable();
            if numbers.len() > MAX_CARDS {
                let detail = format!("{} cards, {MAX_CARDS} are read", numbers.len());
                report.error(class, Absence::Implausible, detail);
                numbers.truncate(MAX_CARDS);
            }
            for number in numbers {
                let group = first.saturating_add(number.min(0xFFFF));
                let card = Card::open(&directory, prefix, number, group);
                let known = |card: &Card| {
                    card.pci.is_some() && cards.iter().any(|other| other.pci == card.pci)
                };
                cards.extend(card.filter(|card| !known(card)));
            }
        }
        cards
    }

    /// Adds who has each device open and what the kernel counts for each of them.
    fn add_clients(&self, cards: &[Card], devices: &mut [DeviceReading]) {
        let Some(clients) = &self.clients else {
            for device in devices {
                device.holders = Reading::absent(Absence::TimedOut, "processes could not be read");
            }
            return;
        };
        for (card, device) in cards.iter().zip(devices) {
            let users = clients.of(card);
            let holder = |usage: &clients::Use| Holder {
                pid: Some(usage.pid),
                open_descriptors: usage.open_descriptors,
                memory_known: false,
            };
            device.holders = match (users.is_empty(), clients.walked.closed) {
                (true, true) => Reading::absent(
                    Absence::Permission,
                    "processes of other users cannot be read; run as root",
                ),
                _ => Reading::new(users.iter().map(holder).collect(), clients.walked.at),
            };
            let counted = users.into_iter().filter(|usage| usage.counted);
            let processes = counted
                .map(|usage| DriverUsage { pid: usage.pid, kinds: usage.kinds, busy_ratio: None })
                .collect();
            if let Some(memory) = &mut device.memory {
                memory.processes = processes;
            }
        }
    }
}

impl HardwareSource for DrmSource {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn read(&mut self) -> SourceReading {
        let mut inquiry = self.inquiry.begin();
        let report = &mut inquiry.report;
        let cards = self.enumerate(report);
        let mut tasks: Vec<(TaskName, DrmTask)> = (cards.iter())
            .map(|card| (TaskName { group: card.group, item: 0 }, DrmTask::Card(card.clone())))
            .collect();
        if !cards.is_empty() {
            // It ends by itself before the timeout with it does.
            tasks.push((SCAN, DrmTask::Scan(Scan::new(self.inquiry.walk(clients::node_of)))));
        }
        let mut done = self.inquiry.run(tasks, DrmTask::run);
        match done.pop().map(|scan| scan.filter(|_| !cards.is_empty())) {
            Some(Some(Done::Scan(clients))) => {
                clients.complain(report);
                self.clients = Some(clients);
            }
            None => {}
            _ => {
                let detail = "looking for the processes that use the devices takes too long";
                report.error("fdinfo", Absence::TimedOut, detail);
            }
        }
        let clock = &self.inquiry.clock;
        let now = (clock.now(), clock.monotonic_ns());
        let mut devices = Vec::with_capacity(cards.len());
        let mut before = std::mem::take(&mut self.before);
        for (card, done) in cards.iter().zip(done) {
            let last = before.remove(&card.group).filter(|(device, _)| card.is(device));
            let reported = match done {
                Some(Done::Card(files)) => {
                    let (known, counters) = last.unzip();
                    let mut reported = card.reported(&files, counters, now, report);
                    // Asleep it does not say who it is.
                    if let Some(known) = known.filter(|_| files.asleep) {
                        reported.0.identity = known.identity;
                    }
                    reported
                }
                _ => {
                    let detail = "the driver did not answer in time";
                    let kept = last.unwrap_or_else(|| card.silent(detail));
                    let subject = kept.0.identity.display_id();
                    report.error(subject, Absence::TimedOut, format!("{}: {detail}", card.name));
                    kept
                }
            };
            devices.push(reported.0.clone());
            self.before.insert(card.group, reported);
        }
        self.add_clients(&cards, &mut devices);
        let absent = cards.is_empty().then(|| {
            let [drm, accel] = CLASSES.map(|(class, ..)| self.inquiry.tree.display(class));
            format!(
                "no driver of a graphics processor or accelerator is loaded that has a render node \
                 (neither {drm} nor {accel} has one)"
            )
        });
        self.inquiry.reported(inquiry, SOURCE, devices, absent)
    }
}

// === impl DrmTask ===

impl DrmTask {
    fn run(&self) -> Done {
        match self {
            Self::Card(card) => Done::Card(Box::new(card.read())),
            Self::Scan(scan) => Done::Scan(scan.run()),
        }
    }
}

/// N of `cardN`; none for its connectors, `cardN-HDMI-A-1`.
fn number(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// The PCI address that a link in sysfs ends with.
fn pci_of(target: Result<std::path::PathBuf, Unreadable>) -> Option<PciAddress> {
    target.ok()?.file_name()?.to_str()?.parse().ok()
}
