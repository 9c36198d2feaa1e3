//! Tenstorrent chips, from sysfs, hwmon and procfs only.
//!
//! No device node is ever opened: that would change the chip's power state, block exclusive
//! openers and show up as a user. Memory is not in any of these files; it comes from processes.

mod chip;
mod decode;
pub(crate) mod faults;
mod fields;
mod pids;
mod traffic;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use telltale_schema::chip::{ChipFacts, ChipIdentity};
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::health::{Fault, FaultKind};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Device, Holder, SourceError, SourceStatus, Telemetry};

use crate::hardware::driver_at;
use crate::report::SourceReport;
use crate::source::{DeviceReading, HardwareSource, SourceReading};
use crate::timeout::{CallLimits, TaskName, Timeout};
use crate::tree::{Tree, Unreadable};
use chip::{FileRead, OpenChip};
use decode::Complaints;
use faults::{DriverListing, Faults};
use fields::{FileLocation, HEARTBEAT, Item, is_wanted, items};

pub use faults::{HEARTBEAT_TIMEOUT_NS, VANISHED_KEPT_NS};
pub use fields::Sensors;
pub use pids::DriverVersion;
pub use traffic::FlitCounter;

/// Chips of one machine that are checked.
pub const MAX_CHIPS: usize = 256;

/// Files from which on two threads share the work: those of about eight chips.
const HALVED_FROM: usize = 400;

/// Where the driver lists its chips.
const CLASS: &str = "sys/class/tenstorrent";

/// The driver's name on the PCI bus.
const DRIVER: &str = "tenstorrent";

const NO_DRIVER: &str = "no Tenstorrent driver is loaded; install tt-kmd and load it with \
                         `modprobe tenstorrent`, or look at another machine with --root";

/// What reading one file gives.
type FileResult = Result<Vec<u8>, Unreadable>;

/// The name of this source in a snapshot.
pub const SOURCE: &str = "tenstorrent";

/// What this source says of one chip.
#[derive(Debug, Clone)]
pub struct ChipReading {
    /// Who it is.
    pub identity: ChipIdentity,
    /// What its board's type reports.
    pub facts: Reading<ChipFacts>,
    /// What its sensors say.
    pub telemetry: Telemetry,
    /// Who has it open, as the driver lists them.
    pub holders: Reading<Vec<Holder>>,
    /// What is wrong with it as a whole.
    pub faults: Vec<Fault>,
}

/// What this source says of the machine.
#[derive(Debug, Clone)]
pub struct HardwareReading {
    /// The chips by PCI address (of a Galaxy by tray and place), a remote chip after its gateway.
    pub chips: Vec<ChipReading>,
    /// The driver's version, where it reports.
    pub driver: Option<DriverVersion>,
    /// How it went.
    pub status: SourceStatus,
}

impl From<ChipReading> for DeviceReading {
    fn from(chip: ChipReading) -> Self {
        let ChipReading { identity, facts, telemetry, holders, faults } = chip;
        Self { identity: identity.into(), facts, telemetry, holders, memory: None, faults }
    }
}

/// Reads the chips of one machine, periodically if asked.
pub struct TenstorrentSource {
    tree: Arc<Tree>,
    clock: Arc<dyn Clock>,
    limits: CallLimits,
    timeout: Timeout,
    items: Vec<Item>,
    /// Which of them are ever read.
    wanted: Vec<bool>,
    chips: Vec<OpenChip>,
    /// Why there is no driver, where the last scan found none.
    no_driver: Option<String>,
    faults: Faults,
}

impl HardwareSource for TenstorrentSource {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn read(&mut self) -> SourceReading {
        let chips = self.read_chips();
        self.said(chips)
    }

    fn read_holders(&mut self) -> Option<SourceReading> {
        let chips = self.read_those(|item| item.place == FileLocation::Proc);
        Some(self.said(chips))
    }

    fn read_heartbeats(&mut self) {
        self.read_those(|item| item.file == HEARTBEAT);
    }

    fn awaits_heartbeats(&self) -> bool {
        self.faults.awaits_heartbeats()
    }

    fn learn_faults(&mut self, devices: &[Device]) {
        self.faults.learn(devices, (self.clock.monotonic_ns(), self.clock.now()));
    }
}

// === impl TenstorrentSource ===

impl TenstorrentSource {
    /// A source for the machine under `tree`, which reads these sensors. One file may take
    /// `timeout`, all of them `deadline`.
    pub fn new(
        tree: Arc<Tree>,
        clock: Arc<dyn Clock>,
        sensors: Sensors,
        (timeout, deadline): (Duration, Duration),
    ) -> Self {
        let items = items();
        let numbered = items.iter().enumerate();
        let wanted = numbered.map(|(index, item)| is_wanted(index, *item, sensors)).collect();
        Self {
            tree,
            clock,
            limits: CallLimits { task: timeout, all: deadline },
            timeout: Timeout::default(),
            items,
            wanted,
            chips: Vec::new(),
            no_driver: None,
            faults: Faults::default(),
        }
    }

    /// Reads every chip once.
    pub fn read_chips(&mut self) -> HardwareReading {
        self.read_those(|_| true)
    }

    fn said(&self, reading: HardwareReading) -> SourceReading {
        let HardwareReading { chips, status, .. } = reading;
        let devices = chips.into_iter().map(DeviceReading::from).collect();
        SourceReading { devices, status, absent: self.no_driver.clone() }
    }

    fn read_those(&mut self, are_meant: fn(Item) -> bool) -> HardwareReading {
        let started_ns = self.clock.monotonic_ns();
        let mut report = SourceReport::default();
        let driver = self.driver(&mut report);
        let listed = self.enumerate(&mut report);
        self.read_files(are_meant);
        let mut chips = Vec::with_capacity(self.chips.len());
        let now_ns = self.clock.monotonic_ns();
        for chip in &mut self.chips {
            let mut complaints = Complaints::default();
            let identity = decode::identity(chip, &mut complaints);
            let telemetry = decode::telemetry(chip, &mut complaints);
            let holders = decode::holders(chip, &mut complaints);
            let facts = facts(&identity, decode::why_no_board(chip), self.clock.now());
            complaints.report(&format!("tenstorrent!{}", chip.ordinal), &mut report);
            chips.push(ChipReading { identity, facts, telemetry, holders, faults: Vec::new() });
        }
        let no_driver = self.no_driver.is_some();
        // One that was handed to a virtual machine is another's to report.
        let other_driver = |pci| driver_at(&self.tree, pci).is_some_and(|name| name != DRIVER);
        let ordinals = listed.as_deref();
        let listing = DriverListing { ordinals, no_driver, has_other_driver: &other_driver };
        self.faults.annotate(&mut chips, listing, (now_ns, self.clock.now()));
        let stuck = self.timeout.stuck();
        if stuck > 0 {
            let detail =
                format!("reads that hang in the driver: {stuck}; a reset of the chip ends them");
            report.error("sysfs", Absence::TimedOut, detail);
        }
        let status = report.finish(SOURCE, &*self.clock, started_ns);
        HardwareReading { chips: in_order(chips), driver, status }
    }

    /// The driver's version, and what it means for the list of openers.
    fn driver(&self, report: &mut SourceReport) -> Option<DriverVersion> {
        let text = self.tree.root().attribute("sys/module/tenstorrent/version").ok()?;
        let version = DriverVersion::parse(&text)?;
        let subject = format!("tt-kmd {version}");
        if version < DriverVersion::LISTS_OPENERS {
            let detail = "does not list who holds a device; update the driver to 2.7 or later";
            report.error(subject, Absence::Unsupported, detail);
        } else if version < DriverVersion::TRANSLATES_OPENERS {
            let detail = "lists wrong pids for holders in containers; update the driver to 2.7 or \
                          later";
            report.error(subject, Absence::Implausible, detail);
        }
        Some(version)
    }

    /// Brings the list of open chips in line with the driver's, and gives that; none where it cannot
    /// be read.
    fn enumerate(&mut self, report: &mut SourceReport) -> Option<Vec<u32>> {
        self.no_driver = None;
        let mut readable = true;
        let mut ordinals = match self.tree.root().directory(CLASS) {
            Ok(directory) => match directory.names() {
                Ok(names) => names.iter().filter_map(|name| ordinal(name)).collect(),
                Err(error) => {
                    let subject = self.tree.display(CLASS);
                    report.error(subject, error.absence(), error.to_string());
                    readable = false;
                    Vec::new()
                }
            },
            Err(error) => {
                let subject = self.tree.display(CLASS);
                let (reason, detail) = match error.absence() {
                    Absence::Unsupported => (Absence::Missing, String::from(NO_DRIVER)),
                    Absence::Permission => {
                        let detail =
                            format!("{error}; ask for the right to read it, or pass --root");
                        (Absence::Permission, detail)
                    }
                    reason => (reason, error.to_string()),
                };
                self.no_driver = (reason == Absence::Missing).then(|| detail.clone());
                readable = self.no_driver.is_some();
                report.error(subject, reason, detail);
                Vec::new()
            }
        };
        ordinals.sort_unstable();
        if ordinals.len() > MAX_CHIPS {
            let detail = format!("{} chips, {MAX_CHIPS} are looked at", ordinals.len());
            report.error(CLASS, Absence::Implausible, detail);
            ordinals.truncate(MAX_CHIPS);
        }
        let mut before = std::mem::take(&mut self.chips);
        before.retain(|chip| ordinals.contains(&chip.ordinal) && chip.is_current(&self.tree));
        for &ordinal in &ordinals {
            if let Some(at) = before.iter().position(|chip| chip.ordinal == ordinal) {
                let mut chip = before.swap_remove(at);
                chip.open_the_rest(&self.tree);
                self.chips.push(chip);
                continue;
            }
            match OpenChip::open(&self.tree, ordinal, &self.wanted) {
                Ok(chip) => self.chips.push(chip),
                Err(error) => {
                    let subject = format!("tenstorrent!{ordinal}");
                    report.error(subject, error.absence(), error.to_string());
                }
            }
        }
        readable.then_some(ordinals)
    }

    /// Reads every file that is meant and due.
    fn read_files(&mut self, are_meant: fn(Item) -> bool) {
        let now_ns = self.clock.monotonic_ns();
        let mut tasks: Vec<(TaskName, FileRead)> = Vec::new();
        for chip in &self.chips {
            for (number, (index, item)) in (0..).zip(self.items.iter().enumerate()) {
                if are_meant(*item)
                    && let Some(read) = chip.due(index, *item, now_ns)
                {
                    tasks.push((TaskName { group: chip.ordinal, item: number }, read));
                }
            }
        }
        let names: Vec<TaskName> = tasks.iter().map(|(name, _)| *name).collect();
        let results = self.run(tasks);
        let now = (self.clock.now(), self.clock.monotonic_ns());
        let mut chips = self.chips.iter_mut().peekable();
        for (name, result) in names.into_iter().zip(results) {
            while chips.peek().is_some_and(|chip| chip.ordinal != name.group) {
                chips.next();
            }
            if let Some(chip) = chips.peek_mut() {
                let index = usize::try_from(name.item).expect("an index that came from a usize");
                chip.note(index, self.items[index], result, now);
            }
        }
    }
}

impl TenstorrentSource {
    /// Reads the files, those of a large machine in two halves at once.
    fn run(&self, mut tasks: Vec<(TaskName, FileRead)>) -> Vec<Option<FileResult>> {
        let all_of = |tasks| self.timeout.run(tasks, FileRead::run, self.limits);
        if tasks.len() < HALVED_FROM {
            return all_of(tasks);
        }
        let second = tasks.split_off(tasks.len() / 2);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| all_of(second));
            let mut results = all_of(tasks);
            results.extend(second.join().expect("reading files does not panic"));
            results
        })
    }
}

/// Whether an error of this source only says that there is no driver, which is no error on a machine
/// with other devices.
pub(crate) fn is_no_driver(error: &SourceError) -> bool {
    error.reason == Absence::Missing && error.detail == NO_DRIVER
}

/// N of `tenstorrent!N`.
fn ordinal(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("tenstorrent!")?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

fn facts(
    identity: &ChipIdentity,
    why_no_board: Option<Absence>,
    now: Timestamp,
) -> Reading<ChipFacts> {
    match (ChipFacts::of_board(identity.board_type), why_no_board) {
        (Some(facts), _) => Reading::new(facts, now),
        (None, Some(reason)) => Reading::absent(reason, "its board cannot be read"),
        (None, None) => Reading::absent(Absence::Unknown, "a board type that is not in our table"),
    }
}

/// Chips by PCI address, each followed by those that are reached through it. Those of a Galaxy go
/// by tray and place instead, as they are named: the bus numbers of its trays do not ascend.
fn in_order(mut chips: Vec<ChipReading>) -> Vec<ChipReading> {
    chips.sort_by_key(|chip| {
        let identity = &chip.identity;
        (identity.pci.is_none(), identity.galaxy, identity.pci, identity.driver_ordinal)
    });
    number_on_boards(&mut chips);
    let mut all = Vec::with_capacity(chips.len());
    for chip in chips {
        let remote: Vec<ChipReading> = (1..=chip.identity.board_type.remote_chips())
            .map(|location| remote_chip(&chip, location))
            .collect();
        all.push(chip);
        all.extend(remote);
    }
    all
}

/// Numbers the chips of each card that has several on the bus (a p300), in their order there: the
/// driver does not distinguish their places.
fn number_on_boards(chips: &mut [ChipReading]) {
    let mut counts = BTreeMap::new();
    for identity in chips.iter_mut().map(|chip| &mut chip.identity) {
        let Some(board_id) = identity.board_id else { continue };
        if !identity.board_type.is_galaxy() && identity.board_type.remote_chips() == 0 {
            let next: &mut u8 = counts.entry(board_id).or_default();
            identity.location = *next;
            *next = next.saturating_add(1);
        }
    }
}

/// A chip that only the board's type reports: the driver shows nothing of it.
fn remote_chip(gateway: &ChipReading, location: u8) -> ChipReading {
    let through = format!(
        "reached through {}; the driver shows nothing of it",
        gateway.identity.display_id()
    );
    let identity = ChipIdentity {
        driver_ordinal: None,
        pci: None,
        location,
        galaxy: None,
        remote: true,
        ..gateway.identity.clone()
    };
    // Its own heartbeat is not shown; it is lost with the chip that it is reached through.
    let mut faults = gateway.faults.iter();
    let lost = faults.find(|fault| fault.kind == FaultKind::Vanished);
    ChipReading {
        identity,
        facts: gateway.facts.clone(),
        telemetry: Telemetry::absent(Absence::Unsupported, &through),
        holders: match lost {
            Some(fault) => Reading::absent(Absence::Gone, fault.detail.clone()),
            None => Reading::absent(Absence::Unsupported, through),
        },
        faults: lost.into_iter().cloned().collect(),
    }
}
