//! Ledgers, sockets and `/proc` text that lie: each costs one error, none a crash.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use telltale_collector::{CollectOptions, Collector};
use telltale_emulator::MachineKind;
use telltale_harness::rounds;
use telltale_ledger::directory::{MOST_ENTRIES_LISTED, endpoint_name, ledger_name};
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::Snapshot;

use crate::collecting::bench::{Bench, dram, process, subjects};
use crate::collecting::workload::{Role, start};

#[test]
fn a_ledger_cut_under_its_reader_is_an_error_and_no_signal() {
    let bench = Bench::new(MachineKind::N150);
    let cut = start(&bench.child(Role::Ledger, 70));
    let _whole = start(&bench.child(Role::Ledger, 5));
    let mut collector = bench.collector();
    for _ in 0..2 {
        assert_eq!(dram(&collector.collect(), 0).total_bytes, 75);
    }
    let entries = fs::read_dir(&bench.directory).unwrap().map(|entry| entry.unwrap());
    let prefix = format!("ledger_{}_", cut.id());
    let file = entries
        .map(|entry| entry.path())
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&prefix))
        .unwrap();
    let size = fs::metadata(&file).unwrap().len();
    for length in [0, 100, 512, 600] {
        fs::File::options().write(true).open(&file).unwrap().set_len(length).unwrap();
        collector.read_memory(|_, _| {});
        let snapshot = collector.collect();
        assert_eq!(dram(&snapshot, 0).total_bytes, 5, "cut to {length}");
        assert_eq!(subjects(&snapshot).len(), 1, "{:?}", subjects(&snapshot));
    }
    fs::File::options().write(true).open(&file).unwrap().set_len(size).unwrap();
    assert_eq!(dram(&collector.collect(), 0).total_bytes, 5);
}

#[test]
fn a_directory_with_more_names_than_are_checked_is_reported_until_it_has_fewer() {
    let bench = Bench::new(MachineKind::N150);
    let name = |number: usize| bench.directory.join(format!("x{number}"));
    (0..=MOST_ENTRIES_LISTED).for_each(|number| drop(fs::File::create(name(number)).unwrap()));
    let mut collector = bench.collector();
    for _ in 0..2 {
        let snapshot = collector.collect();
        assert_eq!(collector.truncated(), std::slice::from_ref(&bench.directory));
        assert_eq!(subjects(&snapshot).len(), 1, "{:?}", subjects(&snapshot));
    }
    fs::remove_file(name(0)).unwrap();
    let snapshot = collector.collect();
    assert_eq!((collector.truncated(), subjects(&snapshot)), ([].as_slice(), Vec::new()));
}

#[test]
fn a_process_whose_memory_is_locked_costs_its_command_line() {
    let bench = Bench::new(MachineKind::N150);
    let root = bench.machine.root();
    for pid in [77, 78] {
        let process = root.join(format!("proc/{pid}"));
        fs::create_dir_all(&process).unwrap();
        let zeros = ["0"; 18].join(" ");
        fs::write(process.join("stat"), format!("{pid} (stuck) D {zeros} 5 0 0")).unwrap();
        fs::write(process.join("status"), "Uid:\t1\t1\t1\t1\n").unwrap();
        fs::write(process.join("cmdline"), "a\0b\0").unwrap();
    }
    let hung = root.join("proc/77/cmdline");
    fs::remove_file(&hung).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &hung, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    fs::write(root.join("proc/driver/tenstorrent/0/pids"), "77\n78\n").unwrap();
    let timeout = Duration::from_millis(100);
    let options = CollectOptions { timeout, ..bench.options() };
    let snapshot = Collector::new(options).unwrap().collect();
    let command = |pid| process(&snapshot, pid).command.clone();
    assert_eq!(command(77).absence().map(|(reason, _)| reason), Some(Absence::TimedOut));
    assert_eq!(command(78).value().map(String::as_str), Some("a b"));
}

#[test]
fn entries_of_every_wrong_kind_are_reported_and_passed_over() {
    let bench = Bench::new(MachineKind::N150);
    let lives = start(&bench.child(Role::LedgerAndEndpoint, 8));
    let at = |name: String| bench.directory.join(name);
    fs::write(at(ledger_name(11, 1, None)), vec![0xAA; 70_000]).unwrap();
    fs::write(at(ledger_name(12, 1, None)), "short").unwrap();
    fs::create_dir(at(ledger_name(13, 1, None))).unwrap();
    symlink("/dev/zero", at(ledger_name(14, 1, None))).unwrap();
    fs::write(at(endpoint_name(15, None)), "no socket").unwrap();
    let _silent = UnixListener::bind(at(endpoint_name(16, None))).unwrap();
    let fifo = at(ledger_name(17, 1, None));
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let timeout = Duration::from_millis(100);
    let options = CollectOptions { timeout, ..bench.options() };
    let started = Instant::now();
    let mut collector = Collector::new(options).unwrap();
    // The second time, who kept silent is not waited for.
    let snapshots = [collector.collect(), collector.collect()];
    assert!(started.elapsed() < Duration::from_secs(10));
    for snapshot in snapshots {
        check_wrong_entries(&snapshot, lives.id());
    }
}

fn check_wrong_entries(snapshot: &Snapshot, lives: u32) {
    assert_eq!(dram(snapshot, 0).total_bytes, 8);
    assert_eq!(process(snapshot, lives).devices.len(), 1);
    let found = subjects(snapshot);
    for pid in 11..=17 {
        let named = |text: &&String| {
            text.contains(&format!("_{pid}_")) || text.contains(&format!("_{pid}."))
        };
        assert_eq!(found.iter().filter(named).count(), 1, "{pid}: {found:?}");
    }
    let silent = snapshot.sources.iter().flat_map(|source| &source.errors);
    assert!(silent.into_iter().any(|error| error.reason == Absence::TimedOut));
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(rounds(24, 2_000))
    })]
    #[test]
    fn whatever_the_machine_shows_is_survived(
        attribute in prop::collection::vec(any::<u8>(), 0..5_000),
        pids in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            "[0-9\\n -]{0,300}".prop_map(String::into_bytes),
        ],
        stat in prop::collection::vec(any::<u8>(), 0..300),
        line in "[0-9]{1,3} \\([a-z)( ]{0,9}\\) [A-Z] [0-9 -]{0,120}",
        cgroup in "[0-9a-f:/._-]{0,300}",
    ) {
        let bench = Bench::new(MachineKind::N150);
        let root = bench.machine.root();
        let class = root.join("sys/class/tenstorrent/tenstorrent!0");
        for file in ["tt_aiclk", "tt_serial", "tt_asic_id", "tt_card_type", "tt_fw_bundle_ver"] {
            fs::write(class.join(file), &attribute).unwrap();
        }
        fs::write(class.join("device/hwmon").read_dir().unwrap().next().unwrap().unwrap().path().join("temp1_input"), &attribute).unwrap();
        fs::write(root.join("sys/module/tenstorrent/version"), &attribute).unwrap();
        let mut listed = pids.clone();
        listed.extend_from_slice(b"\n77\n78\n");
        fs::write(root.join("proc/driver/tenstorrent/0/pids"), &listed).unwrap();
        for (pid, stat) in [(77, stat), (78, line.into_bytes())] {
            let process = root.join(format!("proc/{pid}"));
            fs::create_dir_all(&process).unwrap();
            fs::write(process.join("stat"), stat).unwrap();
            fs::write(process.join("status"), "Uid:\t1\t1\t1\t1\nNSpid:\t78\n").unwrap();
            fs::write(process.join("cmdline"), &attribute).unwrap();
            fs::write(process.join("cgroup"), &cgroup).unwrap();
        }
        let snapshot = bench.collector().collect();
        prop_assert_eq!(snapshot.devices.iter().filter(|one| !one.identity.is_remote()).count(), 1);
        let text = serde_json::to_string(&snapshot).unwrap();
        prop_assert!(text.len() < 300_000);
        for process in &snapshot.processes {
            let command = process.command.value().map_or("", String::as_str);
            prop_assert!(!command.chars().any(char::is_control));
        }
    }
}
