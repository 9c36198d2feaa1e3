//! Who holds each device, and the options that people know from nvidia-smi: `-L`, `-i`, `-l`, `--sort`.

use std::fs;
use std::path::Path;

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};
use telltale_runtime::{DeviceDescription, MemoryKind, Options, Runtime};

use crate::cli::command::{Running, TIMEOUT, emulate, smi, snapshot, telltale};

const GIB: u64 = 1 << 30;

/// A Galaxy without a driver's process: its chips are known by their files.
fn galaxy(root: &Path) -> Machine {
    Machine::create(root, MachineKind::GalaxyWormhole, &MachineOptions::default()).unwrap()
}

/// This process, with memory on the chips of these driver's numbers.
pub(crate) fn holding(root: &Path, chips: &[(u32, u64)]) -> Vec<telltale_runtime::Device> {
    fs::create_dir_all(root.join("run/tt")).unwrap();
    let mut options = Options::from_variables("test 1", |_| None);
    options.root = Some(root.to_path_buf());
    let runtime = Runtime::start(options);
    let open = |(driver_ordinal, bytes): &(u32, u64)| {
        let mut description =
            DeviceDescription { logical_id: *driver_ordinal, ..Default::default() };
        description.identity.driver_ordinal = Some(*driver_ordinal);
        let device = runtime.open_device(description);
        device.allocate(MemoryKind::Dram, 0, *bytes);
        device
    };
    chips.iter().map(open).collect()
}

/// The last column of the row of a device.
fn held_by<'a>(table: &'a str, id: &str) -> &'a str {
    let row = table.lines().find(|line| line.starts_with(&format!("{id} ")));
    row.unwrap_or_else(|| panic!("{table}")).rsplit("  ").next().unwrap()
}

#[test]
fn each_device_names_its_biggest_holder_and_how_many_more() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("galaxy-wormhole", &root, &[]);
    let _devices = holding(&root, &[(3, GIB), (4, GIB)]);
    let mut command = telltale();
    command.args(["replay", "train", "--loop", "--device", "3", "--root"]).arg(&root);
    let replay = Running::start(&mut command);
    wait_until("two processes", TIMEOUT, || snapshot(&root).processes.len() == 2);
    let table = smi::<&str>(&root, &[]).out;
    let pid = std::process::id();
    assert!(held_by(&table, "T1:N3").starts_with(&format!("{pid} ")), "{table}");
    assert!(held_by(&table, "T1:N3").ends_with(" +1"), "{table}");
    assert!(held_by(&table, "T1:N4").starts_with(&format!("{pid} ")), "{table}");
    assert!(!held_by(&table, "T1:N4").contains('+'), "{table}");
    assert_eq!(held_by(&table, "T4:N7"), "-", "{table}");
    // Chosen alone, a device has its holders and no others.
    let chosen = smi(&root, &["-i", "T1:N4", "--query-process", "pid,device,dram"]);
    let rows: Vec<&str> = chosen.out.lines().skip(1).collect();
    assert_eq!(rows, [format!("{pid},T1:N4,{GIB}")], "{chosen:?}");
    let sorted = smi(&root, &["--sort", "dram:desc", "--query-process", "pid"]);
    let pids: Vec<u32> = sorted.out.lines().skip(1).map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids, [pid, replay.child.id()], "{sorted:?}");
}

#[test]
fn devices_are_listed_and_chosen_by_index_id_and_address() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = galaxy(&root);
    let list = smi(&root, &["-L"]);
    assert_eq!((list.status, list.out.lines().count()), (Some(0), 32), "{list:?}");
    let line = list.out.lines().nth(9).unwrap();
    assert!(line.starts_with("Device 9: T2:N1: galaxy-wormhole Wormhole_B0 (PCI: 0000:"), "{line}");
    let address = line.split("PCI: ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    for name in ["9", "T2:N1", "t2:n1", address] {
        let found = smi(&root, &["-i", name, "--query-device=device", "--format=csv,noheader"]);
        assert_eq!(found.out, "T2:N1\r\n", "{name}: {found:?}");
    }
    let absent = smi(&root, &["-i", "0,32"]);
    assert_eq!((absent.status, absent.out.as_str()), (Some(2), ""), "{absent:?}");
    let expected = "telltale: there is no device 32; `telltale smi -L` lists the 32 there are\n";
    assert_eq!(absent.err, expected);
}

#[test]
fn a_loop_repeats_the_tables() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = galaxy(&root);
    let mut command = telltale();
    command.args(["smi", "-l", "0.1", "-i", "0", "--root"]).arg(&root);
    let mut running = Running::start(&mut command);
    for _ in 0..2 {
        while !running.line().starts_with("T1:N0 ") {}
    }
}

#[test]
fn all_fields_are_listed_with_their_units() {
    let place = Scratch::new();
    let said = smi(place.path(), &["--help-fields"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    for field in telltale_query::Field::all() {
        let line = said.out.lines().find(|line| line.starts_with(&format!("{} ", field.name)));
        assert!(line.is_some_and(|line| line.ends_with(field.help)), "{}: {said:?}", field.name);
    }
}
