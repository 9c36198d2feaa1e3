//! An emulated machine that processes run on, and what a snapshot of it says.

use std::path::PathBuf;

use telltale_collector::{CollectOptions, Collector};
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;
use telltale_schema::chip::ChipIdentity;
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::{KindMemory, Process, Snapshot};

use crate::collecting::workload::{Child, Role};

/// An emulated machine with its runtime directory.
pub(crate) struct Bench {
    pub(crate) machine: Machine,
    pub(crate) chips: Vec<ChipIdentity>,
    pub(crate) directory: PathBuf,
    pub(crate) scratch: Scratch,
}

impl Bench {
    pub(crate) fn new(kind: MachineKind) -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("machine");
        let machine = Machine::create(&root, kind, &MachineOptions::default()).unwrap();
        let chips = (0..machine.chip_count())
            .flat_map(|place| machine.descriptions(place))
            .map(|description| description.identity)
            .collect();
        let directory = scratch.join("run");
        std::fs::create_dir(&directory).unwrap();
        Self { machine, chips, directory, scratch }
    }

    pub(crate) fn options(&self) -> CollectOptions {
        CollectOptions {
            root: self.machine.root().to_owned(),
            runtime_dir: Some(self.directory.clone()),
            ..CollectOptions::default()
        }
    }

    pub(crate) fn collector(&self) -> Collector {
        Collector::new(self.options()).unwrap()
    }

    pub(crate) fn child(&self, role: Role, bytes: u64) -> Child<'_> {
        Child { role, directory: &self.directory, chips: &self.chips, bytes, named: 0 }
    }
}

pub(crate) fn dram(snapshot: &Snapshot, device: usize) -> KindMemory {
    *snapshot.devices[device].kind(MemoryKind::Dram).expect("somebody has DRAM there")
}

pub(crate) fn process(snapshot: &Snapshot, pid: u32) -> &Process {
    let found: Vec<_> = snapshot.processes.iter().filter(|one| one.pid == Some(pid)).collect();
    let [process] = found.as_slice() else { panic!("{pid} is there {} times", found.len()) };
    process
}

/// What sources noticed of other users, with how many there are.
pub(crate) fn noticed(snapshot: &Snapshot) -> Vec<(u64, String)> {
    let notes = snapshot.sources.iter().flat_map(|source| &source.notes);
    notes.map(|note| (note.count, format!("{}: {}", note.subject, note.detail))).collect()
}

pub(crate) fn subjects(snapshot: &Snapshot) -> Vec<String> {
    let errors = snapshot.sources.iter().flat_map(|source| &source.errors);
    errors.map(|error| format!("{}: {}", error.subject, error.detail)).collect()
}
