//! Runs each benchmark's body once with little work: it must compute what it claims, and leave
//! nothing behind. No time is looked at.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use telltale_bench::address::{self, Script};
use telltale_bench::machine::{BusyMachine, Size};
use telltale_bench::rundir::RunDirectory;
use telltale_bench::sample::Effort;
use telltale_bench::seed::{SeedDevice, SeedRow, Setting, Tracker};
use telltale_bench::stream::ClientProgram;
use telltale_bench::sweep::{self, Bare, Fleet, RunningCollector};
use telltale_bench::workers::{WorkerProcess, WorkerService};
use telltale_bench::{
    cluster, cost, endpoint, experiments, hangs, hosts, launch, preload, program, record, scrape,
    screen, serve, stream,
};
use telltale_harness::{cargo_bin, cargo_library_directory};

const WORKER: &str = env!("CARGO_BIN_EXE_telltale-bench-worker");

#[test]
fn the_seeds_region_counts_one_thread_right_in_the_row_asked_for() {
    for rows_before in [0, 31, 63] {
        let device = SeedDevice::new(Setting::PerPid { rows_before }).unwrap();
        device.record_allocation(4_096);
        device.record_pairs(1_000);
        assert_eq!(device.row(), Some(SeedRow { bytes: 4_096, slot: rows_before }));
        assert_eq!(device.total_bytes(), 4_096);
        device.record_pairs_known_pid(1_000);
        assert_eq!(device.row(), Some(SeedRow { bytes: 4_096, slot: rows_before }));
    }
    assert!(SeedDevice::new(Setting::PerPid { rows_before: 64 }).is_err(), "the table has 64 rows");
}

#[test]
fn the_seeds_other_settings_record_what_they_say() {
    let totals = SeedDevice::new(Setting::Totals).unwrap();
    totals.record_allocation(4_096);
    assert_eq!((totals.total_bytes(), totals.row()), (4_096, None));
    let off = SeedDevice::new(Setting::Off).unwrap();
    off.record_allocation(4_096);
    off.record_pairs_known_pid(10);
    assert_eq!((off.total_bytes(), off.row()), (0, None));
}

#[test]
fn ours_and_the_seeds_shared_total_are_exact_on_two_threads() {
    // The seed's process row is not, which the benchmark prints and no test can rely on.
    let balance = record::balance(2, 1_000).unwrap();
    assert_eq!(balance.ours_bytes, [0, 0]);
    assert_eq!(balance.total_bytes, [0, 0]);
    assert_eq!(balance.row_bytes.len(), 2);
}

#[test]
fn the_seeds_tracker_follows_a_script() {
    let device = SeedDevice::new(Setting::PerPid { rows_before: 0 }).unwrap();
    let tracker = Tracker::new(&device);
    let script = Script::new(100, 3);
    tracker.fill(&script.live);
    let filled: u64 = script.live.iter().map(|block| 2_048 * u64::from(1 + block % 64)).sum();
    assert_eq!((tracker.live(), tracker.dram_bytes(), device.total_bytes()), (100, filled, filled));
    tracker.replay(&script.steps);
    assert_eq!((tracker.live(), tracker.dram_bytes(), device.total_bytes()), (100, filled, filled));
}

#[test]
fn every_sweep_adds_up_and_leaves_nothing() {
    let mut fleet = Fleet::start(Path::new(WORKER), 3).unwrap();
    let expected = fleet.expected();
    assert_eq!(
        (expected.answered, expected.dram_bytes[0], expected.dram_bytes[7]),
        (24, 6_000, 6_021)
    );
    let root = fleet.root().to_owned();
    let mut running = RunningCollector::new(&root, fleet.directory()).unwrap();
    let mut bare = Bare::new(fleet.directory()).unwrap();
    assert_eq!(fleet.seed_sweep(), expected);
    assert_eq!(running.sweep(), expected);
    assert_eq!(bare.sweep().unwrap(), expected);
    assert_eq!(sweep::cold(&root, fleet.directory()).unwrap(), expected);
    assert_eq!(sweep::through_sockets(&root, fleet.directory()).unwrap(), expected);
    let directories = fleet.directories().map(Path::to_owned);

    // Workers stop with their parent's leave, so the last one's ledger goes with it.
    fleet.ours().pop();
    assert_eq!(running.sweep().dram_bytes[0], 3_000);
    assert_eq!(bare.sweep().unwrap().dram_bytes[0], 3_000);
    assert_eq!(sweep::cold(&root, fleet.directory()).unwrap().answered, 16);
    assert_eq!(sweep::through_sockets(&root, fleet.directory()).unwrap().answered, 16);

    drop(fleet);
    assert!(directories.iter().all(|directory| !directory.exists()));
}

#[test]
fn workers_of_a_killed_parent_end_and_take_the_directory_with_them() {
    for service in
        [WorkerService::Seed { base: 1 }, WorkerService::Ours { base: 1 }, WorkerService::Bare]
    {
        let run = RunDirectory::create().unwrap();
        let workers: Vec<WorkerProcess> = (0..3)
            .map(|_| WorkerProcess::start(Path::new(WORKER), run.path(), service, None).unwrap())
            .collect();
        let pids: Vec<u32> = workers.iter().map(WorkerProcess::id).collect();
        assert!(run.path().read_dir().unwrap().count() >= 3);
        for worker in workers {
            worker.abandon().unwrap();
        }
        assert!(!run.path().exists(), "{service:?}");
        for pid in pids {
            assert!(!PathBuf::from(format!("/proc/{pid}")).exists());
        }
    }
}

#[test]
fn a_busy_machine_is_seen_whole_and_goes_as_a_whole() {
    // It refuses to start unless a snapshot shows all chips, all workloads and what they hold.
    for size in [Size::Galaxy, Size::Eight] {
        let busy = BusyMachine::start(Path::new(WORKER), size, 3).unwrap();
        let root = busy.root().to_owned();
        assert!(root.join("sys/class/tenstorrent").is_dir());
        drop(busy);
        assert!(!root.exists());
    }

    let run = RunDirectory::create().unwrap();
    let start =
        |service| WorkerProcess::start(Path::new(WORKER), run.path(), service, None).unwrap();
    let size = Size::Galaxy;
    let machine = start(WorkerService::Machine { size });
    let workload = start(WorkerService::Workload { size, number: 1 });
    let visitor = start(WorkerService::Visitor { number: 1 });
    let mut toiler = start(WorkerService::Toiler { pairs: 10 });
    assert!(toiler.ask().unwrap() > 0.0);
    for worker in [workload, visitor, toiler, machine] {
        worker.abandon().unwrap();
    }
    assert!(!run.path().exists());
}

#[test]
fn a_launched_programs_end_and_peak_are_its_own() {
    let worker = Path::new(WORKER);
    let took = |script: &str| {
        let arguments = ["-c".to_owned(), script.to_owned()];
        launch::by_worker(worker, Path::new("/bin/sh"), &arguments).unwrap()
    };
    assert_eq!(took("exit 3").exit_code, Some(3));
    assert_eq!(took("kill -9 $$").exit_code, None);
    // A shell variable of 8 MiB, against none.
    let large = took("x=$(head -c 8388608 /dev/zero | tr '\\0' x)").peak_bytes;
    let small = took("exit 0").peak_bytes;
    assert!(large > small + 8 * 1024 * 1024, "{large} against {small}");
    assert!(launch::by_worker(worker, Path::new("/nonexistent"), &[]).is_err());
}

#[test]
fn every_way_of_dispatching_the_program_leaves_the_same_words() {
    assert!(program::same_words());
}

#[test]
fn every_table_can_be_filled() {
    let worker = Path::new(WORKER);
    let start = launch::table(worker, &cargo_bin("telltale"), Effort::Once).unwrap();
    assert_eq!(start.remarks, ["runs of ours that ended with another status than 0: 0"]);
    let directory = RunDirectory::create().unwrap();
    let libraries = cargo_library_directory("telltale-nrt", "telltale_nrt");
    let client = ClientProgram::compile(&libraries, directory.path()).unwrap();
    let built = cargo_library_directory("telltale-preload", "telltale_preload");
    let libraries = preload::Libraries::compile(&built, directory.path()).unwrap();
    let tables = [
        start,
        preload::table(&libraries, Effort::Once).unwrap(),
        record::table(Effort::Once).unwrap(),
        address::table(Effort::Once).unwrap(),
        sweep::table(worker, Effort::Once).unwrap(),
        endpoint::table(worker, Effort::Once).unwrap(),
        cost::table(worker, Effort::Once).unwrap(),
        program::table(Effort::Once).unwrap(),
        stream::table(Effort::Once, &client).unwrap(),
        experiments::table(Effort::Once).unwrap(),
        scrape::table(worker, &cargo_bin("telltale-serve"), Effort::Once).unwrap(),
        screen::table(worker, &cargo_bin("telltale"), &cargo_bin("telltale-top"), Effort::Once)
            .unwrap(),
        serve::table(worker, &cargo_bin("telltale-serve"), Effort::Once).unwrap(),
        hangs::table(Effort::Once).unwrap(),
        hosts::table(&cargo_bin("telltale"), Effort::Once).unwrap(),
        cluster::table(&cargo_bin("telltale"), Effort::Once).unwrap(),
    ];
    for table in tables {
        assert!(table.rows.iter().any(|row| row.ours.is_some()), "{table}");
    }
}
