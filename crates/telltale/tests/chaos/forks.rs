//! A process that forks after it has opened its devices, and goes on as its own child.

use telltale_collector::{CollectOptions, Collector};
use telltale_emulator::{Emulator, EmulatorOptions, MachineKind};
use telltale_harness::{Scratch, wait_until};

use crate::chaos::random::Random;
use crate::chaos::truth::is_the_truth;
use crate::chaos::workload::{TIMEOUT, Workload};

#[test]
fn a_child_is_recorded_on_every_device_that_its_parent_had_opened() {
    let scratch = Scratch::new();
    let root = scratch.join("m");
    let emulator = Emulator::start(&root, MachineKind::N300, EmulatorOptions::default()).unwrap();
    let options = CollectOptions { root: root.clone(), ..CollectOptions::default() };
    let mut collector = Collector::new(options).unwrap();
    let mut workload = Workload::start(&root, 0, 1, Random::announced("forks").seed());
    for generation in 0..3 {
        wait_until("it to have memory on both chips", TIMEOUT, || {
            let usage = emulator.usage();
            usage.iter().all(|chip| chip.total.kinds().any(|(_, kind)| kind.requested_bytes > 0))
        });
        assert!(workload.pause());
        let gone = || {
            let usage = emulator.usage();
            let mut pids = usage.iter().flat_map(|chip| &chip.processes).map(|(pid, _)| *pid);
            pids.all(|pid| pid == workload.pid())
        };
        wait_until("the parent to be gone", TIMEOUT, gone);
        is_the_truth(&emulator, &collector.collect(), &format!("generation {generation}"));
        assert!(workload.go_on() && workload.fork());
    }
    assert!(workload.quit());
    emulator.shutdown().unwrap();
}
