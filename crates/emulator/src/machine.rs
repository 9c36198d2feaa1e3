//! The directory tree of a machine, and its life.
//!
//! What each file says comes from [`driver`], how values move from [`model`], what goes wrong
//! from [`fault`]; this file joins them. It opens no device and starts no thread: the holder of a
//! [`Machine`] calls [`Machine::tick`].

mod aer;
mod boards;
mod driver;
mod fault;
mod kind;
mod link;
mod model;
mod parts;
mod random;
mod root;
mod shown;
mod tree;

pub use aer::AerSeverity;
pub use boards::ChipDescription;
pub use driver::{DriverVersion, ParseDriverVersionError};
pub use fault::{Fault, Garbage, InjectedErrno, ParseFaultError, PartFailure, PidsFault};
pub use kind::{MachineKind, ParseMachineKindError};
pub use link::{LinkSpeed, LinkWidth};
pub use model::ChipLoad;
pub use root::{CreateError, MAX_LEFTOVERS, TreeError};

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use aer::AerCounts;
use boards::DriverChip;
use driver::{ATTRIBUTES, BEFORE_PIDS, DriverView, FileDirectory, PIDS};
use link::{Link, Near};
use model::ChipModel;
use parts::Parts;
use root::Root;
use tree::ChipTree;

/// How a machine is made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MachineOptions {
    /// Ids, starting values and noise follow from it. With 0 the first n300 is 251732099.
    pub seed: u64,
    /// The driver decides which files there are.
    pub driver_version: DriverVersion,
}

/// Faults that a machine may have at a time.
pub const MAX_FAULTS: usize = 1024;

/// Why a fault could not be injected or cleared.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// There is no such chip now.
    #[error("there is no chip {0} on this machine now")]
    NoSuchChip(u32),
    /// No part of the host has this name and can fail so.
    #[error("there is no {kind} {name:?} on this machine")]
    NoSuchPart {
        /// The kind of part, as faults name it.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The chip has no such file.
    #[error(transparent)]
    Attribute(#[from] AttributeError),
    /// The ordinal under which the chip would come back is another chip's.
    #[error("ordinal {0} is taken by another chip: choose a free one")]
    OrdinalTaken(u32),
    /// There are as many as there may be.
    #[error("there are {MAX_FAULTS} faults already: clear some first")]
    TooMany,
    /// The fault to be cleared is not there.
    #[error("the fault {0} was not injected")]
    NotInjected(Fault),
    /// The tree could not be changed.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// A chip has no such file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("chip {ordinal} has no file {attribute:?} with this driver")]
pub struct AttributeError {
    /// The chip.
    pub ordinal: u32,
    /// The file that it does not have.
    pub attribute: String,
}

/// A machine's tree under a root. Dropping it removes what it made; a process that is killed
/// leaves it, for the next machine on the same root to replace.
#[derive(Debug)]
pub struct Machine {
    root: Root,
    kind: MachineKind,
    driver_version: DriverVersion,
    chips: Vec<Chip>,
    parts: Parts,
    /// With the index of the chip, where the fault is about one.
    faults: Vec<(Option<usize>, Fault)>,
    last_tick_ns: Option<u64>,
    /// How many open connections each process with a link in `proc` has.
    processes: BTreeMap<u32, u32>,
}

/// A chip with a PCI link.
#[derive(Debug)]
struct Chip {
    found: DriverChip,
    model: ChipModel,
    /// Absent while the chip has vanished.
    tree: Option<ChipTree>,
    aer: AerCounts,
    /// One pid for each time the device is open.
    holders: Vec<u32>,
}

impl Machine {
    /// Makes the tree of a machine under `root`, which must not exist, be empty, or be left
    /// from an emulator that ended; its parent must exist.
    ///
    /// # Errors
    /// When the root is another user's or the tree cannot be written.
    pub fn create(
        root: &Path,
        kind: MachineKind,
        options: &MachineOptions,
    ) -> Result<Self, CreateError> {
        let MachineOptions { seed, driver_version } = *options;
        let architecture =
            kind.board_type().architecture().expect("every emulated board has an architecture");
        let chips: Vec<Chip> = boards::chips(kind, seed, driver_version)
            .into_iter()
            .map(|found| Chip {
                model: ChipModel::new(architecture, random::mixed(seed, found.asic_id.0)),
                found,
                tree: None,
                aer: AerCounts::default(),
                holders: Vec::new(),
            })
            .collect();
        let root = Root::take(root)?;
        // The kernel finds the other sensors after those of the chips.
        let first_hwmon = chips.iter().map(|chip| chip.found.hwmon + 1).max().unwrap_or(1);
        let parts = Parts::new(root.path(), root.staging(), seed, first_hwmon);
        let mut machine = Self {
            root,
            kind,
            driver_version,
            chips,
            parts,
            faults: Vec::new(),
            last_tick_ns: None,
            processes: BTreeMap::new(),
        };
        machine.lay_out()?;
        Ok(machine)
    }

    /// The root, as an absolute path without links.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The kind of machine.
    pub fn kind(&self) -> MachineKind {
        self.kind
    }

    /// How many chips the driver knows, vanished ones included. Chips are numbered by their
    /// place in this list, which never changes; ordinals may.
    pub fn chip_count(&self) -> usize {
        self.chips.len()
    }

    /// The ordinal of the chip at this place; none while it has vanished.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn ordinal(&self, place: usize) -> Option<u32> {
        let chip = &self.chips[place];
        chip.tree.is_some().then_some(chip.found.ordinal)
    }

    /// The chip at this place, followed by those that are reached through it.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn descriptions(&self, place: usize) -> Vec<ChipDescription> {
        self.chips[place].found.descriptions()
    }

    /// Lets time pass up to `now_ns` on a clock that never goes back; the first call only sets
    /// the beginning. `loads` has one entry for each chip, in order; missing ones are idle.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn tick(&mut self, now_ns: u64, loads: &[ChipLoad]) -> Result<(), TreeError> {
        let before = self.last_tick_ns.replace(now_ns).unwrap_or(now_ns);
        let elapsed_ns = now_ns.saturating_sub(before);
        for place in 0..self.chips.len() {
            let load = loads.get(place).copied().unwrap_or_default();
            let stops = |(about, fault): &(Option<usize>, Fault)| {
                *about == Some(place) && matches!(fault, Fault::Stop { .. })
            };
            let is_stopped = self.faults.iter().any(stops);
            self.chips[place].model.stop(is_stopped);
            self.chips[place].model.step(elapsed_ns, load);
            self.refresh(place)?;
        }
        self.parts.step(self.chips.iter().map(|chip| chip.model.sensors().power_watts).sum())
    }

    /// Bytes that the link of each chip carries in a second in one direction, as it trained.
    pub(crate) fn links_bytes_per_second(&self) -> Vec<u64> {
        (0..self.chips.len()).map(|place| self.link(place).bytes_per_second()).collect()
    }

    /// What the link of the chip at this place trained to under its faults.
    fn link(&self, place: usize) -> Link {
        let slot = Link::of_slot(self.kind);
        let wanted = self.faults.iter().rev().find_map(|(about, fault)| match fault {
            Fault::Link { speed, width, .. } if *about == Some(place) => {
                Some(Link { speed: *speed, width: *width })
            }
            _ => None,
        });
        wanted.map_or(slot, |wanted| slot.trained(wanted))
    }

    /// Sets who has the device of the chip at this place open: one pid for each descriptor, in
    /// the order of opening.
    ///
    /// # Errors
    /// When a file cannot be written.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn set_holders(&mut self, place: usize, pids: &[u32]) -> Result<(), TreeError> {
        let before = std::mem::replace(&mut self.chips[place].holders, pids.to_vec());
        // All is counted before anything is written, so that a failure leaves no wrong count.
        let (mut came, mut left) = (Vec::new(), Vec::new());
        for pid in pids {
            let open = self.processes.entry(*pid).or_insert(0);
            *open += 1;
            if *open == 1 {
                came.push(*pid);
            }
        }
        for pid in before {
            let open = self.processes.get_mut(&pid).expect("every holder was counted");
            *open -= 1;
            if *open == 0 {
                self.processes.remove(&pid);
                left.push(pid);
            }
        }
        let link_of = |pid: u32| self.root.path().join(format!("proc/{pid}"));
        // 0 stands for a process that is not visible from here: there is nothing to link to.
        for pid in came.into_iter().filter(|pid| *pid != 0) {
            tree::link(&format!("/proc/{pid}"), &link_of(pid))?;
        }
        for pid in left {
            tree::remove_file(&link_of(pid))?;
        }
        self.refresh(place)
    }

    /// Makes something go wrong until it is cleared. A later fault of the same file wins.
    ///
    /// # Errors
    /// When the fault names a chip or file that is not there, or the tree cannot be changed.
    pub fn inject(&mut self, fault: Fault) -> Result<(), InjectError> {
        let place = self.check(&fault)?;
        if let Fault::Part { name, failure, count } = &fault {
            self.parts.begin((*failure, part_place(name, *failure)?), *count)?;
            self.faults.push((None, fault));
            return Ok(());
        }
        self.faults.push((place, fault.clone()));
        match (place, &fault) {
            (Some(place), Fault::Vanish { .. }) => {
                self.set_holders(place, &[])?;
                if let Some(tree) = self.chips[place].tree.take() {
                    tree.remove()?;
                }
            }
            (Some(place), _) => {
                let chip = &mut self.chips[place];
                match &fault {
                    Fault::Trip { .. } => chip.model.trip(),
                    Fault::Raise { severity, count, .. } => chip.aer.raise(*severity, *count),
                    _ => {}
                }
                self.refresh(place)?;
            }
            (None, _) => self.change_driver()?,
        }
        Ok(())
    }

    /// Whether a fault can be injected now; the place of the chip, where it is about one.
    pub(crate) fn check(&self, fault: &Fault) -> Result<Option<usize>, InjectError> {
        if self.faults.len() >= MAX_FAULTS {
            return Err(InjectError::TooMany);
        }
        if let Fault::Part { name, failure, .. } = fault {
            part_place(name, *failure)?;
        }
        let place = fault.ordinal().map(|ordinal| self.place_of(ordinal)).transpose()?;
        if let (Some(place), Some(attribute)) = (place, fault.needs()) {
            self.check_attribute(place, attribute)?;
        }
        if let (Some(place), Fault::Vanish { returns_as: Some(new), .. }) = (place, fault) {
            let taken =
                |(other, chip): (usize, &Chip)| other != place && chip.found.ordinal == *new;
            if self.chips.iter().enumerate().any(taken) {
                return Err(InjectError::OrdinalTaken(*new));
            }
        }
        Ok(place)
    }

    /// Undoes a fault. A chip that had vanished or was being reset starts again with its
    /// counters at zero; other counters keep what faults added.
    ///
    /// # Errors
    /// When the fault was not injected, or the tree cannot be changed.
    pub fn clear(&mut self, fault: &Fault) -> Result<(), InjectError> {
        let found = self.faults.iter().rposition(|(_, injected)| injected == fault);
        let Some(index) = found else {
            return Err(InjectError::NotInjected(fault.clone()));
        };
        let (place, fault) = self.faults.remove(index);
        if let Fault::Part { name, failure, .. } = &fault {
            return Ok(self.parts.end((*failure, part_place(name, *failure)?))?);
        }
        let Some(place) = place else {
            return Ok(self.change_driver()?);
        };
        match fault {
            Fault::Reset { .. } => self.chips[place].model.reset(),
            Fault::Vanish { returns_as, .. } => {
                let chip = &mut self.chips[place];
                chip.model.reset();
                // The kernel counts for a function that it has just found.
                chip.aer = AerCounts::default();
                chip.found.ordinal = returns_as.unwrap_or(chip.found.ordinal);
                self.make_tree(place)?;
            }
            _ => {}
        }
        Ok(self.refresh(place)?)
    }

    /// Undoes all faults.
    ///
    /// # Errors
    /// When the tree cannot be changed.
    pub fn clear_all(&mut self) -> Result<(), InjectError> {
        while let Some((_, fault)) = self.faults.last().cloned() {
            self.clear(&fault)?;
        }
        Ok(())
    }

    /// The faults that are injected now, the oldest first.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter().map(|(_, fault)| fault)
    }

    /// Removes the tree. Files of others in `dev/shm` and `run/tt` stay, and the root with them;
    /// up to [`MAX_LEFTOVERS`] of them are returned.
    ///
    /// # Errors
    /// When something of ours cannot be removed.
    pub fn remove(mut self) -> Result<Vec<PathBuf>, TreeError> {
        self.root.remove()
    }

    /// Makes everything that is not a chip's own, then the chips.
    fn lay_out(&mut self) -> Result<(), TreeError> {
        let root = self.root.path().to_path_buf();
        for inside in ["sys/class/tenstorrent", "sys/class/hwmon", "sys/bus/pci/devices"] {
            tree::directories(&root, inside)?;
        }
        tree::directories(&root, "sys/module/tenstorrent")?;
        self.make_processor_sensor()?;
        self.write_version()?;
        self.parts.lay_out()?;
        for place in 0..self.chips.len() {
            self.make_tree(place)?;
            self.refresh(place)?;
        }
        Ok(())
    }

    /// The processor's own sensor, which a real machine has too and which is none of ours.
    fn make_processor_sensor(&self) -> Result<(), TreeError> {
        let root = self.root.path();
        let inside = "sys/devices/pci0000:00/0000:00:18.3/hwmon/hwmon0";
        tree::directories(root, inside)?;
        let staging = self.root.staging();
        for (name, text) in [("name", "k10temp\n"), ("temp1_input", "48250\n")] {
            tree::write_file(&staging, &root.join(inside).join(name), text)?;
        }
        let target = "../../devices/pci0000:00/0000:00:18.3/hwmon/hwmon0";
        tree::link(target, &root.join("sys/class/hwmon/hwmon0"))
    }

    fn write_version(&self) -> Result<(), TreeError> {
        let path = self.root.path().join("sys/module/tenstorrent/version");
        tree::write_file(&self.root.staging(), &path, &format!("{}\n", self.shown_driver()))
    }

    fn make_tree(&mut self, place: usize) -> Result<(), TreeError> {
        let proc = self.shown_driver() >= PIDS;
        let staging = self.root.staging();
        let chip = &mut self.chips[place];
        chip.tree = Some(ChipTree::create(self.root.path(), staging, &chip.found, proc)?);
        Ok(())
    }

    /// The version that the files are of.
    fn shown_driver(&self) -> DriverVersion {
        let old = self.faults.iter().any(|(_, fault)| *fault == Fault::OldDriver);
        if old { self.driver_version.min(BEFORE_PIDS) } else { self.driver_version }
    }

    /// Brings all files to the version to show now.
    fn change_driver(&mut self) -> Result<(), TreeError> {
        self.write_version()?;
        let proc = self.shown_driver() >= PIDS;
        for chip in &mut self.chips {
            match &mut chip.tree {
                Some(tree) if proc => tree.make_proc()?,
                Some(tree) => tree.remove_proc()?,
                None => {}
            }
        }
        if !proc {
            root::remove_tree(&self.root.path().join("proc/driver"))?;
        }
        (0..self.chips.len()).try_for_each(|place| self.refresh(place))
    }

    fn place_of(&self, ordinal: u32) -> Result<usize, InjectError> {
        self.chips
            .iter()
            .position(|chip| chip.tree.is_some() && chip.found.ordinal == ordinal)
            .ok_or(InjectError::NoSuchChip(ordinal))
    }

    fn check_attribute(&self, place: usize, attribute: &str) -> Result<(), AttributeError> {
        let driver = self.shown_driver();
        let architecture = self.architecture();
        let known = (attribute == "pids" && driver >= PIDS)
            || ATTRIBUTES
                .iter()
                .filter(|known| known.place != FileDirectory::Port)
                .any(|known| known.name == attribute && known.exists(architecture, driver));
        let ordinal = self.chips[place].found.ordinal;
        if known {
            Ok(())
        } else {
            Err(AttributeError { ordinal, attribute: attribute.chars().take(64).collect() })
        }
    }

    fn architecture(&self) -> telltale_schema::chip::Architecture {
        self.kind.board_type().architecture().expect("every emulated board has an architecture")
    }

    /// Brings the files of a chip up to date.
    fn refresh(&mut self, place: usize) -> Result<(), TreeError> {
        let driver = self.shown_driver();
        let architecture = self.architecture();
        let faults: Vec<&Fault> = self
            .faults
            .iter()
            .filter(|(about, _)| *about == Some(place))
            .map(|(_, fault)| fault)
            .collect();
        let (slot, link) = (Link::of_slot(self.kind), self.link(place));
        let Chip { found, model, tree: Some(tree), aer, holders } = &mut self.chips[place] else {
            return Ok(());
        };
        let view = DriverView {
            ordinal: found.ordinal,
            architecture,
            board_id: found.board_id,
            asic_id: found.asic_id.0,
            sensors: model.sensors(),
            slot,
            link,
            near: Near::of_bus(self.kind, found.pci.bus),
            aer,
        };
        for attribute in ATTRIBUTES {
            let content = attribute
                .exists(architecture, driver)
                .then(|| shown::content(attribute, &view, &faults))
                .flatten();
            tree.show(attribute.place, attribute.name, content)?;
        }
        if driver >= PIDS {
            let lines = holders.iter().fold(String::new(), |mut lines, pid| {
                writeln!(lines, "{pid}").expect("a string takes any text");
                lines
            });
            tree.show(FileDirectory::Proc, "pids", shown::pids_content(lines, &faults))?;
        }
        Ok(())
    }
}

/// The place of a part of this name among those that can fail so.
fn part_place(name: &str, failure: PartFailure) -> Result<usize, InjectError> {
    Parts::place_of(name, failure).ok_or_else(|| InjectError::NoSuchPart {
        kind: failure.kind().name(),
        name: name.chars().take(64).collect(),
    })
}

/// The descriptions of every device of a machine, without making one.
#[cfg(test)]
pub(crate) fn chips_of(
    kind: MachineKind,
    seed: u64,
    driver: DriverVersion,
) -> impl Iterator<Item = Vec<ChipDescription>> {
    boards::chips(kind, seed, driver).into_iter().map(|chip| chip.descriptions())
}

impl Drop for Machine {
    fn drop(&mut self) {
        // No one is left to notify; a later start on the same root tries again.
        let _ = self.root.remove();
    }
}
