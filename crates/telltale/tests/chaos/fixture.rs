//! The machine, those who use it, and the service that checks it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use telltale_emulator::{Emulator, EmulatorOptions, MachineKind};
use telltale_harness::{Scratch, wait_until};

use crate::chaos::random::Random;
use crate::chaos::service::Service;
use crate::chaos::truth::is_the_truth;
use crate::chaos::workload::{TIMEOUT, Workload};

/// How often a workload allocates or frees a few buffers, in milliseconds.
const PACE_MS: u64 = 200;

/// All of it.
pub(crate) struct Fixture {
    pub(crate) random: Random,
    pub(crate) service: Service,
    pub(crate) emulator: Emulator,
    /// The machine's root.
    pub(crate) root: PathBuf,
    /// The service's state directory.
    pub(crate) state: PathBuf,
    /// Whether that is on a disk that is small, and can be filled.
    pub(crate) has_small_disk: bool,
    /// Who uses the machine; a place is empty while a fault has its workload.
    pub(crate) slots: Vec<Option<Workload>>,
    /// One process that was killed, for a report of it.
    pub(crate) killed: Option<u32>,
    ordinals: Vec<u32>,
    _scratch: Scratch,
}

// === impl Fixture ===

impl Fixture {
    /// An unused machine; the history is on `disk` if there is one.
    pub(crate) fn new(random: Random, disk: Option<&Path>) -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("m");
        let options = EmulatorOptions { tick: Duration::from_millis(200), ..Default::default() };
        let emulator = Emulator::start(&root, MachineKind::T3000, options).unwrap();
        let state = disk.map_or_else(|| scratch.join("state"), Path::to_owned);
        std::fs::create_dir_all(&state).unwrap();
        let service = Service::start(&root, &state);
        let ordinals = emulator.ordinals();
        Self {
            random,
            service,
            emulator,
            root,
            state,
            has_small_disk: disk.is_some(),
            slots: Vec::new(),
            killed: None,
            ordinals,
            _scratch: scratch,
        }
    }

    /// Where ledgers and endpoints are.
    pub(crate) fn directory(&self) -> PathBuf {
        self.root.join("run/tt")
    }

    /// Starts so many workloads.
    pub(crate) fn fill(&mut self, workloads: usize) {
        for slot in 0..workloads {
            let workload = self.start(slot);
            self.slots.push(Some(workload));
        }
    }

    /// A chip, by chance.
    pub(crate) fn ordinal(&mut self) -> u32 {
        self.ordinals[self.random.place(self.ordinals.len())]
    }

    /// A new workload for a place.
    pub(crate) fn start(&mut self, slot: usize) -> Workload {
        let ordinal = self.ordinals[slot % self.ordinals.len()];
        Workload::start(&self.root, ordinal, PACE_MS, self.random.seed())
    }

    /// Takes a workload that has begun out of its place.
    pub(crate) fn take(&mut self) -> (usize, Workload) {
        loop {
            let slot = self.random.place(self.slots.len());
            let Some(mut workload) = self.slots[slot].take() else { continue };
            workload.go_on_if_stopped();
            if workload.begins() {
                return (slot, workload);
            }
            self.slots[slot] = Some(self.start(slot));
        }
    }

    /// Puts a workload into an empty place.
    pub(crate) fn put(&mut self, slot: usize, workload: Workload) {
        assert!(self.slots[slot].is_none(), "somebody has the place");
        self.slots[slot] = Some(workload);
    }

    /// Lets so many things happen to workloads and the service.
    pub(crate) fn churn(&mut self, events: usize) {
        for _ in 0..events {
            let slot = self.random.place(self.slots.len());
            let Some(mut workload) = self.slots[slot].take() else { continue };
            let after = match self.random.below(10) {
                0 | 1 => {
                    workload.kill();
                    None
                }
                2 => {
                    workload.quit();
                    None
                }
                3 | 4 => {
                    workload.stop();
                    Some(workload)
                }
                5 => {
                    workload.go_on_if_stopped();
                    Some(workload)
                }
                6 | 7 => workload.fork().then_some(workload),
                8 => {
                    let newborn = self.start(slot);
                    // The moment is what is random: a wait for a condition would choose it.
                    std::thread::sleep(Duration::from_micros(self.random.below(30_000)));
                    newborn.kill();
                    Some(workload)
                }
                _ => {
                    self.service.reload();
                    Some(workload)
                }
            };
            let after = after.unwrap_or_else(|| self.start(slot));
            self.slots[slot] = Some(after);
        }
    }

    /// Has all stand still, compares the service's values with the emulator's own, and has all go
    /// on.
    #[track_caller]
    pub(crate) fn come_to_rest(&mut self, when: &str) {
        let mut living = BTreeSet::new();
        for slot in 0..self.slots.len() {
            let mut workload = self.slots[slot].take().expect("every fault was undone");
            if !workload.pause() {
                // It had lost its device.
                workload = self.start(slot);
                assert!(workload.pause(), "{when}: a new workload ended");
            }
            living.insert(workload.pid());
            self.slots[slot] = Some(workload);
        }
        wait_until("the emulator to free what the dead had", TIMEOUT, || {
            let usage = self.emulator.usage();
            let mut pids = usage.iter().flat_map(|chip| &chip.processes).map(|(pid, _)| pid);
            pids.all(|pid| living.contains(pid))
        });
        is_the_truth(&self.emulator, &self.service.fresh(), when);
        for workload in self.slots.iter_mut().flatten() {
            assert!(workload.go_on(), "{when}: a workload ended while all stood still");
        }
    }

    /// Removes what the dead left behind.
    pub(crate) fn clean(&self) {
        let mut smi = Command::new(env!("CARGO_BIN_EXE_telltale"));
        let smi = smi.args(["smi", "--clean", "--json", "--root"]).arg(&self.root);
        let output = smi.output().unwrap();
        // Those that are stopped have not answered, which is no failure of the cleaning.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    }

    /// Ends all workloads.
    pub(crate) fn empty(&mut self) {
        for workload in self.slots.drain(..).flatten() {
            workload.quit();
        }
        wait_until("the emulator to be free", TIMEOUT, || {
            self.emulator.usage().iter().all(|chip| chip.processes.is_empty())
        });
    }
}
