//! When the machine itself is among the devices of a snapshot.

use telltale_collector::{CollectOptions, Collector, HostUse};
use telltale_schema::chip::FactSource;
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::snapshot::Snapshot;

use crate::hardware::host::furnish;
use crate::hardware::tree::Machine;

fn collect(machine: &Machine, host: HostUse) -> (Snapshot, Vec<(&'static str, String)>) {
    let options = CollectOptions {
        root: machine.path().to_owned(),
        runtime_dir: Some(machine.path().join("run")),
        host,
        ..CollectOptions::default()
    };
    let mut collector = Collector::new(options).unwrap();
    let snapshot = collector.collect();
    (snapshot, collector.absent_sources())
}

fn with_runtime_directory() -> Machine {
    let machine = Machine::new();
    machine.write("run/.keep", "");
    machine
}

#[test]
fn a_machine_without_accelerators_is_shown_itself_and_complains_of_nothing() {
    let machine = with_runtime_directory();
    furnish(&machine);
    let (snapshot, absent) = collect(&machine, HostUse::LastResort);
    let [host] = snapshot.devices.as_slice() else { panic!("{:?}", snapshot.devices) };
    assert!(host.identity.is_host());
    assert!(!snapshot.has_errors(), "{:?}", snapshot.sources);
    assert!(snapshot.sources.iter().any(|source| source.name == "host"));
    // What is in use by no known process is what the kernel counts: the parts add up to it.
    let dram = host.space(MemorySpace::Dram).unwrap();
    let parts = host.kind(MemoryKind::Dram).unwrap();
    assert_eq!(dram.used_bytes.value(), Some(&parts.total_bytes));
    assert_eq!(parts.processes_bytes + parts.unattributed_bytes, parts.total_bytes);
    assert_eq!(dram.capacity_source, Some(FactSource::Driver));
    assert!(host.space(MemorySpace::L1).is_none());
    // Why there is no accelerator is reported to each client.
    let (_, why) = absent.iter().find(|(name, _)| *name == "tenstorrent").unwrap();
    assert!(why.contains("install tt-kmd"), "{why}");
}

#[test]
fn a_machine_with_an_accelerator_is_shown_only_if_asked_for() {
    let machine = with_runtime_directory();
    furnish(&machine);
    let class = "sys/class/tenstorrent/tenstorrent!0";
    machine.write(&format!("{class}/tt_card_type"), "n150\n");
    machine.write("sys/devices/pci0000:00/0000:03:00.0/vendor", "0x1e52\n");
    machine.link(&format!("{class}/device"), "../../../devices/pci0000:00/0000:03:00.0");
    let hosts = |host| {
        let (snapshot, _) = collect(&machine, host);
        assert!(snapshot.devices.iter().any(|device| device.identity.chip().is_some()));
        snapshot.devices.iter().filter(|device| device.identity.is_host()).count()
    };
    assert_eq!(hosts(HostUse::LastResort), 0);
    assert_eq!(hosts(HostUse::Never), 0);
    assert_eq!(hosts(HostUse::Always), 1);
}

#[test]
fn nothing_at_all_is_reported_with_what_helps() {
    let machine = with_runtime_directory();
    let (snapshot, absent) = collect(&machine, HostUse::LastResort);
    assert!(snapshot.devices.is_empty() && snapshot.has_errors());
    assert!(absent.iter().any(|(name, why)| *name == "host" && why.contains("proc/meminfo")));
}
