//! The parts of the machine that are no accelerators, as the kernel shows them at one moment: fans,
//! power supplies, voltages, network interfaces, InfiniBand ports and memory controllers.
//!
//! Each read has three steps: the classes of `/sys` are listed, each entry is surveyed for its parts, and
//! each part is read. Every step is a task that may hang: one that does costs its own part, which keeps
//! its place with readings that timed out. All steps together have one deadline. Values are what the kernel says; what they mean for the
//! machine's health is judged elsewhere.

mod entry;
mod gone;
mod infiniband;
mod mains;
mod memory_controller;
mod network;
mod sensor_chip;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::SourceStatus;

use super::inquiry::Inquiry;
use crate::report::SourceReport;
use crate::timeout::TaskName;
use crate::tree::{Tree, Unreadable};
use entry::{Answer, Entry, Found, Readings};
use gone::Cards;

/// Names of one class that are listed: hosts of containers have hundreds of virtual interfaces.
const MAX_NAMES: usize = 4096;
/// Task numbers of classes are from here on, those of entries below.
const CLASS_GROUPS: u32 = 1 << 31;

const HUNG: &str = "the kernel did not answer in time";

/// A part of the machine that is no accelerator, as the kernel shows it at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct HostPart {
    /// What it is.
    pub kind: HostPartKind,
    /// What it is called, by the kernel's names and not by labels; no two of a kind have the same name. It
    /// does not change while the machine runs, and as a rule not when it boots: `nct6798/fan1`, `eth0`,
    /// `mlx5_0/1`.
    pub name: String,
    /// What the kernel says of it, by names that end in the unit. Truths are 1 or 0.
    pub readings: BTreeMap<&'static str, Reading<f64>>,
}

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPartKind {
    /// `revolutions_per_minute`, `minimum_revolutions_per_minute`, `is_used` (it turns or must) and
    /// `alarm`.
    Fan,
    /// `alarm` and `watts`; of one that the kernel shows as mains, `online`.
    PowerSupply,
    /// `alarm`, `volts`, and its limits `minimum_volts` and `maximum_volts`.
    Voltage,
    /// A physical one: `is_there` (0 of one that is gone with its PCI function, for an hour), `up`,
    /// `is_enabled`, `has_been_up` since it was set up, `carrier_downs_total`, `speed_bits_per_second`,
    /// and of its PCIe link `pcie_width`, `pcie_generation`, the most of both that it and its slot can do
    /// (`_max`), and `pcie_{correctable,nonfatal,fatal}_errors_total`.
    NetworkInterface,
    /// `up`, `physical_state` (5 is a link that is up), `has_been_up` (it is up, or its link went down
    /// before), `rate_bits_per_second`, `link_recoveries_total`, `link_downs_total`,
    /// `symbol_errors_total`, `receive_errors_total`, `gids` that are set, `routable_gids` of them
    /// that reach beyond the link, and `is_infiniband` (or it is Ethernet).
    InfinibandPort,
    /// `corrected_errors_total` and `uncorrected_errors_total`.
    MemoryController,
}

/// What one read of the parts gave.
#[derive(Debug, Clone, PartialEq)]
pub struct PartsReading {
    /// The parts by kind and name, of each kind as many as [`HostPartKind::most`].
    pub parts: Vec<HostPart>,
    /// How the read went. A machine without parts is no error.
    pub status: SourceStatus,
}

/// Reads the parts of one machine, periodically if asked.
pub struct HostParts {
    inquiry: Inquiry,
    entries: BTreeMap<EntryName, Entry>,
    /// The number of the next new entry.
    next_group: u32,
    cards: Cards,
}

/// An entry of a class: the class's place among [`CLASSES`], and the name.
type EntryName = (usize, String);

/// Where the kernel lists entries, and how parts are found in one.
struct Class {
    path: &'static str,
    /// How an entry's name begins.
    prefix: &'static str,
    survey: fn(&crate::tree::Directory, &str) -> Result<Vec<Found>, Unreadable>,
}

/// The place of network interfaces among [`CLASSES`].
const NETWORK: usize = 2;

const CLASSES: [Class; 5] = [
    Class { path: "sys/class/hwmon", prefix: "hwmon", survey: sensor_chip::survey },
    Class { path: "sys/class/power_supply", prefix: "", survey: mains::survey },
    Class { path: "sys/class/net", prefix: "", survey: network::survey },
    Class { path: "sys/class/infiniband", prefix: "", survey: infiniband::survey },
    Class { path: "sys/devices/system/edac/mc", prefix: "mc", survey: memory_controller::survey },
];

/// A task of one entry: to survey it, or to read a part of it.
struct PartQuestion {
    tree: Arc<Tree>,
    class: usize,
    entry: String,
}

// === impl HostPartKind ===

impl HostPartKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Fan,
        Self::PowerSupply,
        Self::Voltage,
        Self::NetworkInterface,
        Self::InfinibandPort,
        Self::MemoryController,
    ];

    /// Its name in rules and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fan => "fan",
            Self::PowerSupply => "power_supply",
            Self::Voltage => "voltage",
            Self::NetworkInterface => "network_interface",
            Self::InfinibandPort => "infiniband_port",
            Self::MemoryController => "memory_controller",
        }
    }

    /// How many of the kind are read; more are left out, which the status says.
    pub const fn most(self) -> usize {
        match self {
            Self::Fan | Self::InfinibandPort | Self::MemoryController => 64,
            Self::PowerSupply => 32,
            Self::Voltage => 128,
            Self::NetworkInterface => 256,
        }
    }
}

// === impl HostParts ===

impl HostParts {
    /// The name of this source in a snapshot.
    pub const NAME: &str = "parts";

    /// Of the machine under `tree`: one file may take the first of `limits`, a read of all parts the
    /// second.
    pub fn new(tree: Arc<Tree>, clock: Arc<dyn Clock>, limits: (Duration, Duration)) -> Self {
        let inquiry = Inquiry::new(tree, clock, limits);
        Self { inquiry, entries: BTreeMap::new(), next_group: 0, cards: Cards::default() }
    }

    /// Reads every part once.
    pub fn read(&mut self) -> PartsReading {
        let mut inquiry = self.inquiry.begin();
        let now = self.inquiry.clock.now();
        let deadline = self.inquiry.deadline();
        self.list(deadline, &mut inquiry.report);
        self.survey(deadline, &mut inquiry.report);
        let parts = self.read_parts(deadline, now, &mut inquiry.report);
        PartsReading { parts, status: self.inquiry.status(inquiry, Self::NAME) }
    }

    /// Learns which entries there are. Those of a class that cannot be listed stay.
    fn list(&mut self, deadline: Instant, report: &mut SourceReport) {
        let task = |class: usize| {
            let number = u32::try_from(class).expect("a few classes");
            let name = TaskName { group: CLASS_GROUPS + number, item: 0 };
            (name, (Arc::clone(&self.inquiry.tree), class))
        };
        let tasks = (0..CLASSES.len()).map(task).collect();
        let listed = self.inquiry.run_until(deadline, tasks, |(tree, class)| names(tree, *class));
        for (class, names) in listed.into_iter().enumerate() {
            let names = match names {
                Some(Ok(names)) => names,
                Some(Err(error)) if error.is_missing() => BTreeSet::new(),
                Some(Err(error)) => {
                    report.error(CLASSES[class].path, error.absence(), error.to_string());
                    continue;
                }
                None => {
                    report.error(CLASSES[class].path, Absence::TimedOut, HUNG);
                    continue;
                }
            };
            self.entries.retain(|(of, name), _| *of != class || names.contains(name));
            for name in names {
                self.entries.entry((class, name)).or_insert_with(|| {
                    let group = self.next_group;
                    self.next_group = (group + 1) % CLASS_GROUPS;
                    Entry::new(group)
                });
            }
        }
    }

    /// Learns which parts each entry has. Those of one that cannot be surveyed stay.
    fn survey(&mut self, deadline: Instant, report: &mut SourceReport) {
        let task = |((class, name), entry): (&EntryName, &Entry)| {
            (TaskName { group: entry.group, item: 0 }, self.question(*class, name))
        };
        let tasks = self.entries.iter().map(task).collect();
        let surveyed = self.inquiry.run_until(deadline, tasks, PartQuestion::survey);
        for (((class, name), entry), found) in self.entries.iter_mut().zip(surveyed) {
            let place = || format!("{}/{name}", CLASSES[*class].path);
            match found {
                Some(Ok(found)) => entry.update(found),
                Some(Err(error)) if error.is_missing() => entry.update(Vec::new()),
                Some(Err(error)) => report.error(place(), error.absence(), error.to_string()),
                None => report.error(place(), Absence::TimedOut, HUNG),
            }
        }
    }

    /// Reads each part that was found.
    fn read_parts(
        &mut self,
        deadline: Instant,
        now: Timestamp,
        report: &mut SourceReport,
    ) -> Vec<HostPart> {
        let chosen = self.chosen(report);
        let task = |(entry, found): &(EntryName, Found)| {
            let group = self.entries[entry].group;
            let question = self.question(entry.0, &entry.1);
            (TaskName { group, item: found.item }, (question, found.clone(), now))
        };
        let tasks = chosen.iter().map(task).collect();
        let read = self
            .inquiry
            .run_until(deadline, tasks, |(question, found, now)| question.read(found, *now));
        let owners = shared_owners(&chosen);
        let mut parts = BTreeMap::new();
        for ((entry, found), answer) in chosen.into_iter().zip(read) {
            let known = self.entries.get_mut(&entry).expect("it was chosen from there");
            let mut name = known.name(&found, owners.contains(&found.owner));
            let readings = match answer {
                Some(Answer { readings, gids }) => {
                    known.keep(found.item, gids);
                    readings
                }
                None => found.absent(Absence::TimedOut, HUNG),
            };
            while parts.contains_key(&(found.kind, name.clone())) {
                // They differ in what names leave out: control characters, or their ends.
                name.push('\'');
            }
            if found.kind == HostPartKind::NetworkInterface {
                self.cards.see(&entry.1, &name, &found);
            }
            complain(found.kind, &name, &readings, report);
            parts.insert((found.kind, name), readings);
        }
        let part = |((kind, name), readings)| HostPart { kind, name, readings };
        let mut parts: Vec<HostPart> = parts.into_iter().map(part).collect();
        let listed = |name: &str| self.entries.contains_key(&(NETWORK, name.to_owned()));
        parts.extend(self.cards.gone((&self.inquiry, deadline), CLASS_GROUPS - 1, listed, now));
        parts
    }

    /// The parts that are read: of each kind as many as there may be.
    fn chosen(&self, report: &mut SourceReport) -> Vec<(EntryName, Found)> {
        let mut counts: BTreeMap<HostPartKind, usize> = BTreeMap::new();
        let all = self
            .entries
            .iter()
            .flat_map(|(name, entry)| entry.found().map(move |found| (name.clone(), found)));
        let chosen = all.filter(|(_, found)| {
            let count = counts.entry(found.kind).or_default();
            *count += 1;
            *count <= found.kind.most()
        });
        let chosen = chosen.collect();
        for (kind, count) in counts {
            let most = kind.most();
            if count > most {
                let detail = format!("there are {count}, of which {most} are read");
                report.error(kind.name(), Absence::Implausible, detail);
            }
        }
        chosen
    }

    fn question(&self, class: usize, entry: &str) -> PartQuestion {
        PartQuestion { tree: Arc::clone(&self.inquiry.tree), class, entry: entry.to_owned() }
    }
}

// === impl PartQuestion ===

impl PartQuestion {
    fn survey(&self) -> Result<Vec<Found>, Unreadable> {
        let directory = self.tree.root().directory(&self.path())?;
        (CLASSES[self.class].survey)(&directory, &self.entry)
    }

    /// The readings of a part.
    fn read(&self, found: &Found, now: Timestamp) -> Answer {
        match self.tree.root().directory(&self.path()) {
            Ok(directory) => (found.read)(&directory, found, now),
            Err(error) => found.absent(error.absence(), &error.to_string()).into(),
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", CLASSES[self.class].path, self.entry)
    }
}

/// The names of a class's entries.
fn names(tree: &Tree, class: usize) -> Result<BTreeSet<String>, Unreadable> {
    let Class { path, prefix, .. } = CLASSES[class];
    let mut names = tree.root().directory(path)?.names_up_to(MAX_NAMES)?;
    names.retain(|name| name.starts_with(prefix));
    Ok(names.into_iter().collect())
}

/// Owners that parts of several entries have.
fn shared_owners(chosen: &[(EntryName, Found)]) -> BTreeSet<String> {
    let mut entries: BTreeMap<&str, BTreeSet<&EntryName>> = BTreeMap::new();
    for (entry, found) in chosen {
        entries.entry(&found.owner).or_default().insert(entry);
    }
    let shared = entries.into_iter().filter(|(_, entries)| entries.len() > 1);
    shared.map(|(owner, _)| owner.to_owned()).collect()
}

/// Notes what of a part could not be read and should have been.
fn complain(kind: HostPartKind, part: &str, readings: &Readings, report: &mut SourceReport) {
    for (name, reading) in readings {
        let Some((reason, detail)) = reading.absence() else { continue };
        let is_news = matches!(
            reason,
            Absence::TimedOut | Absence::Failed | Absence::Implausible | Absence::Gone
        );
        if is_news {
            report.error(format!("{} {part}: {name}", kind.name()), reason, detail);
        }
    }
}
