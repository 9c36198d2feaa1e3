//! tt-metal's memory regions: those that a program with the runtime keeps, as other programs read
//! them; those that other programs keep; and what `telltale smi -c` takes out of both.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use telltale_harness::{
    ChildGuard, Scratch, as_user, needs_pid_namespaces, needs_root, wait_until,
};
use telltale_runtime::{DeviceDescription, MemoryKind, Options, RegionLayout, Regions, Runtime};

use crate::cli::command::{Running, TIMEOUT, children, emulate, said, smi, snapshot, telltale};

/// The chip of the emulated n150, as UMD names it: by its board.
pub(crate) const UMD_ID: u64 = 0x0100_0186_1173_2099;

/// The same chip, as the first tracker names it: by board and location.
const FIRST_ID: u64 = 0x0001_8611_7320_9900;

/// Whether this is the first PID namespace. Only from there a row's process is known to have ended.
fn sees_all() -> bool {
    fs::read_link("/proc/self/ns/pid").unwrap().to_str() == Some("pid:[4026531836]")
}

/// An emulated n150 with a `/dev/shm`.
struct Bench {
    place: Scratch,
    root: PathBuf,
    _machine: ChildGuard,
}

impl Bench {
    fn new() -> Self {
        let place = Scratch::new();
        let root = place.join("m");
        let machine = emulate("n150", &root, &[]);
        fs::create_dir_all(root.join("dev/shm")).unwrap();
        Self { place, root, _machine: machine }
    }

    fn shm(&self) -> PathBuf {
        self.root.join("dev/shm")
    }

    /// A workload with the runtime, which keeps a region as these variables say.
    fn workload(&self, variables: &[(&str, &str)]) -> Running {
        let mut command = telltale();
        command.args(["replay", "train", "--loop", "--root"]).arg(&self.root);
        command.env("TT_METAL_SHM_STATS_ENABLED", "1").envs(variables.iter().copied());
        let running = Running::start(&mut command);
        wait_until("the workload's memory", TIMEOUT, || {
            let dram = self.regions().iter().filter_map(|one| one["total"]["dram"].as_u64()).max();
            dram > Some(0) && self.processes(running.child.id()).is_some_and(|it| it > 0)
        });
        running
    }

    /// A process of tt-metal with a row.
    fn other(&self, name_id: u64, version: u32, bytes: u64) -> Running {
        self.other_within(&[], name_id, version, bytes)
    }

    /// The same within the namespaces that `unshare` makes by these options.
    fn other_within(&self, options: &[&str], name_id: u64, version: u32, bytes: u64) -> Running {
        let words = [name_id.to_string(), version.to_string(), bytes.to_string()];
        let mut program = self.python("keep", &words);
        if !options.is_empty() {
            let mut within = Command::new("unshare");
            within.args(options).args(["--fork", "--kill-child", "--"]);
            within.arg(program.get_program()).args(program.get_args());
            program = within;
            program.stdin(std::process::Stdio::piped());
        }
        let mut running = Running::start(&mut program);
        assert_eq!(running.line(), "kept");
        running
    }

    /// A process of tt-metal without a row, and without a ledger.
    fn other_without_row(&self, name_id: u64, version: u32, bytes: u64) -> Running {
        let words = [name_id.to_string(), version.to_string(), bytes.to_string()];
        let mut running = Running::start(&mut self.python("join", &words));
        assert_eq!(running.line(), "kept");
        running
    }

    /// The region of layout 1 or 3 that is there.
    fn region(&self, version: u32) -> Value {
        let mut regions = self.regions().into_iter();
        regions.find(|one| one["version"] == version).expect("a region of this layout")
    }

    /// Has a workload that is in the totals alone killed once it has so much.
    fn killed_without_row(&self, version: u32, variables: &[(&str, &str)], bytes: u64) {
        let mut killed = self.workload(variables);
        wait_until("the workload to have enough", TIMEOUT, || {
            self.region(version)["total"]["dram"].as_u64() > Some(bytes)
        });
        killed.child.kill();
    }

    fn python(&self, what: &str, words: &[String]) -> Command {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/regions.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(what).arg(self.shm()).args(words);
        command.stdin(std::process::Stdio::piped());
        command
    }

    fn reported(&self, what: &str) -> Vec<Value> {
        let reported = said(&mut self.python(what, &[]));
        assert_eq!((reported.status, reported.err.as_str()), (Some(0), ""), "{reported:?}");
        reported.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn regions(&self) -> Vec<Value> {
        self.reported("read")
    }

    /// The bytes of DRAM and L1 that `smi` counts for a process.
    fn processes(&self, pid: u32) -> Option<u64> {
        let seen = snapshot(&self.root);
        let process = seen.processes.iter().find(|one| one.pid == Some(pid))?;
        let kinds = process.devices.iter().flat_map(|held| &held.kinds);
        Some(kinds.map(|one| one.usage.live_bytes()).sum())
    }

    /// What `smi` counts of devices without a living holder: of the dead, and of unknown holders.
    fn of_nobody(&self) -> u64 {
        let devices = snapshot(&self.root).devices;
        let kinds = devices.iter().flat_map(|device| &device.kinds);
        kinds.map(|one| one.ghost_bytes + one.unattributed_bytes).sum()
    }

    fn clean(&self) -> Value {
        self.clean_with_status(0)
    }

    /// The status is 1 while a workload is paused, whose endpoint does not answer.
    #[track_caller]
    fn clean_with_status(&self, status: i32) -> Value {
        let reported = smi(&self.root, &["-c", "--json"]);
        assert_eq!((reported.status, reported.err.as_str()), (Some(status), ""), "{reported:?}");
        serde_json::from_str::<Value>(&reported.out).unwrap()["cleaned"].clone()
    }

    fn ledgers(&self) -> usize {
        let names = fs::read_dir(self.root.join("run/tt")).unwrap().map(|one| one.unwrap());
        names.filter(|one| one.file_name().to_string_lossy().starts_with("ledger_")).count()
    }
}

#[test]
fn upstreams_reader_of_today_sees_what_the_switch_alone_gives() {
    let bench = Bench::new();
    let workload = bench.workload(&[]);
    wait_until("the logger to read of more than the first allocations", TIMEOUT, || {
        let logged = bench.reported("logger").remove(0);
        assert_eq!(logged["chip_count"], 1, "{logged}");
        logged["total_dram_bytes"].as_u64() > Some(1 << 20)
    });
    let regions = bench.regions();
    assert_eq!(regions.len(), 1, "{regions:?}");
    let region = &regions[0];
    assert_eq!(region["name"], format!("tt_device_{UMD_ID}_memory"));
    let head = ["version", "size", "mode", "references", "processes", "board_serial", "asic_id"];
    let head = head.map(|key| region[key].as_u64().unwrap());
    assert_eq!(head, [3, 8576, 0o600, 1, 1, 0, UMD_ID]);
    let row = &region["rows"][0];
    assert_eq!(
        (row["pid"].as_u64(), row["name"].as_str()),
        (Some(workload.child.id().into()), Some("telltale"),)
    );
    // Unix time.
    assert!(row["stamp"].as_u64() > Some(1_700_000_000_000_000_000), "{row}");
    // It counts once, and its ledger reports what no region can.
    let process = snapshot(&bench.root).processes.remove(0);
    assert_eq!(process.known_by.map(|source| source.name()), Some("ledger"));
    assert!(process.devices[0].live_buffers.is_some() && process.uptime_seconds.value().is_some());
    wait_until("the device's total to be its process's", TIMEOUT, || {
        let seen = snapshot(&bench.root);
        let kinds = &seen.devices[0].kinds;
        let total = kinds.iter().map(|one| one.total_bytes).sum::<u64>();
        total == kinds.iter().map(|one| one.processes_bytes).sum::<u64>() && bench.of_nobody() == 0
    });
}

#[test]
fn the_first_and_the_proposed_layout_are_there_for_the_asking() {
    let bench = Bench::new();
    let rows = ("TT_METAL_SHM_STATS_PER_PID", "1");
    let first = bench.workload(&[("TELLTALE_SHM_LAYOUT", "1"), rows]);
    let region = bench.regions().remove(0);
    let head = ["version", "size", "references", "processes"].map(|key| region[key].as_u64());
    assert_eq!(head, [1, 9280, 1, 1].map(Some), "{region}");
    assert_ne!(region["mode"], 0o600, "{region}");
    assert_eq!(region["rows"][0]["pid"], first.child.id());
    let composite =
        region["board_serial"].as_u64().unwrap() << 8 | region["asic_id"].as_u64().unwrap();
    assert_eq!(region["name"], format!("tt_device_{composite}_memory"));
    drop(first);

    let bench = Bench::new();
    let proposed =
        bench.workload(&[("TELLTALE_SHM_LAYOUT", "4"), ("TT_METAL_SHM_STATS_PER_PID", "0")]);
    let region = bench.regions().remove(0);
    let head = ["version", "size", "mode", "init_state", "references"];
    let head = head.map(|key| region[key].as_u64().unwrap());
    assert_eq!(head, [4, 8576, 0o600, 0x5245_4459, 1], "{region}");
    assert_eq!(region["rows"][0]["pid"], proposed.child.id());
    assert_eq!(bench.reported("logger")[0]["chip_count"], 0, "it reads version 3 alone");
}

#[test]
fn bytes_of_kernels_are_in_the_first_layout_alone_and_in_every_ledger() {
    for (layout, kernels) in [
        (RegionLayout::V1, json!(4672)),
        (RegionLayout::V3, Value::Null),
        (RegionLayout::V4, Value::Null),
    ] {
        let bench = Bench::new();
        let chip = snapshot(&bench.root).devices[0].identity.chip().unwrap().clone();
        let runtime = Runtime::start(Options {
            root: Some(bench.root.clone()),
            regions: Some(Regions { per_pid: true, layout }),
            ..Options::new("kernels 1")
        });
        let described = DeviceDescription { identity: chip, logical_id: 0, facts: None };
        let device = runtime.open_device(described);
        let kinds = [
            (MemoryKind::KernelApplication, 4096),
            (MemoryKind::KernelFabric, 512),
            (MemoryKind::KernelDispatch, 64),
        ];
        for (address, (kind, bytes)) in (1..).zip(kinds) {
            device.allocate(kind, address, bytes);
        }
        let region = bench.regions().remove(0);
        for counters in [&region["total"], &region["chips"][0], &region["rows"][0]] {
            assert_eq!(counters["kernel"], kernels, "{region}");
        }
        let process = snapshot(&bench.root).processes.remove(0);
        assert_eq!(process.known_by.map(|source| source.name()), Some("ledger"));
        let held = &process.devices[0].kinds;
        for (kind, bytes) in kinds {
            let found = held.iter().find(|one| one.kind == kind).unwrap();
            assert_eq!(found.usage.live_bytes(), bytes, "{held:?}");
        }
    }
}

#[test]
fn cleaning_takes_the_killed_out_of_the_regions_that_they_kept() {
    for variables in [
        &[][..],
        &[("TT_METAL_SHM_STATS_PER_PID", "0")],
        &[("TELLTALE_SHM_LAYOUT", "1")],
        &[("TELLTALE_SHM_LAYOUT", "1"), ("TT_METAL_SHM_STATS_PER_PID", "1")],
        &[("TELLTALE_SHM_LAYOUT", "4")],
    ] {
        let bench = Bench::new();
        let mut killed = bench.workload(variables);
        killed.child.kill();
        assert_eq!(bench.of_nobody(), 0, "{variables:?}");
        let cleaned = bench.clean();
        assert_eq!(bench.of_nobody(), 0, "{variables:?}: {cleaned}");
        if !sees_all() && bench.ledgers() == 1 {
            // The row stays, and the ledger that tells whose it is.
            continue;
        }
        assert_eq!(cleaned["mended"].as_array().map(Vec::len), Some(1), "{variables:?}: {cleaned}");
        assert_eq!((&cleaned["left"], bench.ledgers()), (&Value::Array(Vec::new()), 0));
        let region = bench.regions().remove(0);
        assert_eq!((&region["references"], &region["processes"]), (&0.into(), &0.into()));
        assert_eq!(
            (&region["rows"], &region["total"]["dram"]),
            (&Value::Array(Vec::new()), &0.into())
        );
        let words = smi(&bench.root, &["-c"]);
        assert!(words.out.ends_with("\nnothing to clean\n"), "{words:?}");
    }
}

#[test]
fn what_the_killed_had_in_two_layouts_of_one_chip_is_theirs() {
    let bench = Bench::new();
    for layout in ["1", "3"] {
        let variables = [("TELLTALE_SHM_LAYOUT", layout), ("TT_METAL_SHM_STATS_PER_PID", "0")];
        bench.workload(&variables).child.kill();
    }
    let rows = bench.regions().iter().map(|one| one["rows"].as_array().map(Vec::len)).max();
    assert_eq!(rows.flatten(), Some(0), "{:?}", bench.regions());
    assert_eq!((bench.of_nobody(), bench.regions().len(), bench.ledgers()), (0, 2, 2));
}

#[test]
fn the_living_keep_what_they_have_in_a_region_that_is_cleaned() {
    for layout in ["1", "3", "4"] {
        let bench = Bench::new();
        let variables = [("TELLTALE_SHM_LAYOUT", layout), ("TT_METAL_SHM_STATS_PER_PID", "1")];
        let living = bench.workload(&variables);
        let mut killed = bench.workload(&variables);
        wait_until("both rows", TIMEOUT, || bench.regions()[0]["processes"] == 2);
        killed.child.kill();
        let cleaned = bench.clean();
        if !sees_all() {
            assert_eq!((bench.of_nobody(), bench.ledgers()), (0, 2), "{layout}: {cleaned}");
            continue;
        }
        assert_eq!(cleaned["mended"].as_array().map(Vec::len), Some(1), "{layout}: {cleaned}");
        let region = bench.regions().remove(0);
        assert_eq!(
            (&region["references"], &region["processes"]),
            (&1.into(), &1.into()),
            "{region}"
        );
        assert_eq!(region["rows"][0]["pid"], living.child.id());
        wait_until("the totals to be those of the living", TIMEOUT, || {
            let region = bench.regions().remove(0);
            region["total"]["dram"] == region["rows"][0]["dram"] && bench.of_nobody() == 0
        });
    }
}

/// In the totals alone: as layout 1 has it by default, and by request.
const WITHOUT_ROW: [(u32, &[(&str, &str)]); 3] = [
    (1, &[("TELLTALE_SHM_LAYOUT", "1")]),
    (1, &[("TELLTALE_SHM_LAYOUT", "1"), ("TT_METAL_SHM_STATS_PER_PID", "0")]),
    (3, &[("TT_METAL_SHM_STATS_PER_PID", "0")]),
];

#[test]
fn the_living_without_a_row_keep_what_they_have_in_a_region_that_is_cleaned() {
    for (version, variables) in WITHOUT_ROW {
        for with_row in [false, true] {
            let bench = Bench::new();
            let mut living = bench.workload(variables);
            living.child.pause();
            let held = bench.region(version)["total"].clone();
            let row = ("TT_METAL_SHM_STATS_PER_PID", if with_row { "1" } else { "0" });
            let of_killed: Vec<_> = variables.iter().copied().chain([row]).collect();
            let mut killed = bench.workload(&of_killed);
            assert_eq!(bench.region(version)["references"], 2);
            killed.child.kill();
            let before = bench.region(version)["total"].clone();
            let cleaned = bench.clean_with_status(1);
            let region = bench.region(version);
            let what = format!("{variables:?}, a row: {with_row}: {cleaned}, {region}");
            if with_row && sees_all() {
                assert_eq!(cleaned["mended"].as_array().map(Vec::len), Some(1), "{what}");
                assert_eq!((&region["references"], &region["total"]), (&1.into(), &held), "{what}");
            } else {
                assert_eq!(cleaned["mended"], Value::Array(Vec::new()), "{what}");
                assert_eq!(
                    (&region["references"], &region["total"]),
                    (&2.into(), &before),
                    "{what}"
                );
                let left = cleaned["left"][0]["why"].as_str().unwrap();
                assert!(left.contains("it stays while"), "{what}");
            }
            assert_eq!(bench.of_nobody(), 0, "{what}");
            living.child.kill();
            let cleaned = bench.clean();
            if sees_all() {
                let region = bench.region(version);
                assert_eq!(
                    (&region["references"], &region["total"]["dram"]),
                    (&0.into(), &0.into())
                );
                assert_eq!(bench.ledgers(), 0, "{cleaned}");
            }
        }
    }
}

/// More than a workload has in L1.
const MARGIN: u64 = 8 << 20;

/// A file is removed under a name, or the chip has another one: the ledger does not say which one its
/// process was in.
#[test]
fn a_region_that_a_living_process_maps_is_not_reset_for_a_killed_one_of_another_file() {
    let cases = [true, false].map(|same| [(same, true), (same, false)]);
    for (version, variables) in [WITHOUT_ROW[0], WITHOUT_ROW[2]] {
        for (is_same_layout, of_tt_metal) in cases.into_iter().flatten() {
            let bench = Bench::new();
            let bytes = if of_tt_metal { 1 << 20 } else { 200 << 20 };
            bench.killed_without_row(version, variables, bytes);
            let layout = if is_same_layout { version } else { 4 - version };
            if is_same_layout {
                // What docs/regions.md names as the remedy.
                let name = bench.region(version)["name"].as_str().unwrap().to_owned();
                fs::remove_file(bench.shm().join(name)).unwrap();
            }
            let living = if of_tt_metal {
                let name_id = if layout == 1 { FIRST_ID } else { UMD_ID };
                bench.other_without_row(name_id, layout, 1 << 20)
            } else {
                let number = layout.to_string();
                let without_row = ("TT_METAL_SHM_STATS_PER_PID", "0");
                let variables = [("TELLTALE_SHM_LAYOUT", number.as_str()), without_row];
                let mut living = bench.workload(&variables);
                wait_until("the living to have less than the killed had", TIMEOUT, || {
                    living.child.pause();
                    let dram = bench.region(layout)["total"]["dram"].as_u64();
                    let is_less = dram.is_some_and(|dram| dram + MARGIN < bytes);
                    if !is_less {
                        living.child.resume();
                    }
                    is_less
                });
                living
            };
            let before = bench.region(layout);
            assert_eq!(before["references"], 1, "{before}");
            let status = if of_tt_metal { 0 } else { 1 };
            let cleaned = bench.clean_with_status(status);
            let what = format!("{variables:?}: {cleaned}");
            assert_eq!(bench.region(layout), before, "{what}");
            let user = format!("; process {} uses that region", living.child.id());
            assert_eq!(what.contains(&user), sees_all(), "{what}");
        }
    }
}

#[test]
fn a_region_is_not_reset_from_within_a_container() {
    if !needs_pid_namespaces("cli::regions::a_region_is_not_reset_from_within_a_container") {
        return;
    }
    for (version, variables) in WITHOUT_ROW {
        let bench = Bench::new();
        bench.killed_without_row(version, variables, 1 << 20);
        let before = bench.region(version);
        let mut command = Command::new("unshare");
        command.args(["--pid", "--mount-proc", "--fork", "--kill-child", "--"]);
        command.arg(env!("CARGO_BIN_EXE_telltale")).args(["smi", "-c", "--root"]).arg(&bench.root);
        let cleaned = said(&mut command);
        assert_eq!(bench.region(version), before, "{cleaned:?}");
        assert_eq!(bench.ledgers(), 1, "{cleaned:?}");
    }
}

#[test]
fn a_region_that_is_reset_is_reported_even_if_it_had_no_bytes() {
    for (version, variables) in WITHOUT_ROW {
        let bench = Bench::new();
        bench.killed_without_row(version, variables, 1 << 20);
        if !sees_all() {
            continue;
        }
        let name = bench.region(version)["name"].as_str().unwrap().to_owned();
        let file = fs::File::options().write(true).open(bench.shm().join(name)).unwrap();
        // As if it had freed all that it had.
        file.write_all_at(&[0; 40], 48).unwrap();
        let cleaned = bench.clean();
        assert_eq!(bench.region(version)["references"], 0, "{cleaned}");
        assert_eq!(cleaned["mended"].as_array().map(Vec::len), Some(1), "{cleaned}");
        let words = smi(&bench.root, &["-c"]);
        assert!(words.out.ends_with("\nnothing to clean\n"), "{words:?}");
    }
}

#[test]
fn a_row_that_tt_metal_left_is_taken_out_too() {
    for (version, name_id) in [(1, 469_504), (3, UMD_ID), (4, UMD_ID)] {
        let bench = Bench::new();
        let living = bench.other(name_id, version, 1 << 20);
        let mut killed = bench.other(name_id, version, 1 << 30);
        let known_by = |pid| {
            let seen = snapshot(&bench.root);
            let process = seen.processes.into_iter().find(|one| one.pid == Some(pid));
            process.and_then(|one| one.known_by).map(|source| source.name())
        };
        for one in [&living, &killed] {
            assert_eq!(known_by(one.child.id()), Some("region"), "version {version}");
        }
        killed.child.kill();
        let words = smi(&bench.root, &["-c"]);
        if !sees_all() {
            assert!(words.out.contains("run this on the host"), "{words:?}");
            continue;
        }
        let file = format!("mended {}/tt_device_{name_id}_memory: ", bench.shm().display());
        assert!(words.out.contains(&file) && !words.out.contains("\nleft "), "{words:?}");
        let region = bench.regions().remove(0);
        assert_eq!(region["total"]["dram"], 1 << 20, "{region}");
        assert_eq!(bench.processes(living.child.id()), Some(1 << 20));
    }
}

#[test]
fn a_row_of_a_process_whose_clocks_are_behind_or_ahead_is_that_of_a_living_one() {
    let test = "cli::regions::a_row_of_a_process_whose_clocks_are_behind_or_ahead";
    if !needs_pid_namespaces(test) {
        return;
    }
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    // As far as the kernel allows for certain: no clock may show less than nothing.
    let (behind, ahead) = (format!("-{:.0}", uptime / 2.0), String::from("864000"));
    for offset in [&behind, &ahead] {
        for version in [1, 3] {
            let bench = Bench::new();
            let name_id = if version == 1 { 469_504 } else { UMD_ID };
            let options = ["--time", "--monotonic", offset, "--boottime", offset];
            let running = bench.other_within(&options, name_id, version, 1 << 30);
            let pid = children(running.child.id())[0];
            let what = format!("version {version}, offset {offset}");
            let seen = bench.processes(pid);
            assert_eq!((seen, bench.of_nobody()), (Some(1 << 30), 0), "{what}");
            // From a time namespace whose boot clock is far behind.
            let mut reader = Command::new("unshare");
            let offset = format!("-{:.0}", uptime - 1.0);
            reader.args(["--time", "--boottime", &offset, "--fork", "--"]);
            reader.arg(env!("CARGO_BIN_EXE_telltale")).args(["smi", "--root"]).arg(&bench.root);
            let read = said(&mut reader);
            assert!(!read.out.contains("rows of dead processes"), "{what}: {read:?}");
        }
    }
}

#[test]
fn what_may_not_be_changed_is_left_and_its_ledger_with_it() {
    if !needs_root("telltale::cli::regions::what_may_not_be_changed_is_left") {
        return;
    }
    let bench = Bench::new();
    let mut killed = bench.workload(&[]);
    killed.child.kill();
    // Another user's region: a user may clean the directory of ledgers and not the region.
    let user = 61_003;
    bench.place.set_mode(0o755);
    std::os::unix::fs::chown(bench.root.join("run/tt"), Some(user), None).unwrap();
    let mut command = telltale();
    command.args(["smi", "-c", "--json", "--root"]).arg(&bench.root);
    let reported = said(&mut as_user(user, user, command));
    let cleaned = serde_json::from_str::<Value>(&reported.out).unwrap()["cleaned"].clone();
    assert_eq!(cleaned["mended"], Value::Array(Vec::new()), "{cleaned}");
    assert_eq!((bench.of_nobody(), bench.ledgers()), (0, 1), "{cleaned}");
}

#[test]
fn a_region_of_root_that_is_private_is_a_note_for_others_and_no_failure() {
    if !needs_root("telltale::cli::regions::a_region_of_root_that_is_private") {
        return;
    }
    let bench = Bench::new();
    let _workload = bench.workload(&[]);
    bench.place.set_mode(0o755);
    let mut command = telltale();
    command.args(["smi", "--json", "--root"]).arg(&bench.root);
    let reported = said(&mut as_user(61_003, 61_003, command));
    assert_eq!(reported.status, Some(0), "all that this user may was read: {reported:?}");
    let snapshot: Value = serde_json::from_str(&reported.out).unwrap();
    let sources = snapshot["sources"].as_array().unwrap();
    let regions = sources.iter().find(|one| one["name"] == "regions").unwrap();
    assert_eq!(regions["errors"], Value::Array(Vec::new()), "{regions}");
    assert_eq!(regions["notes"][0]["subject"], "user 0", "{regions}");
}

#[test]
fn doctor_says_what_the_later_layouts_lack() {
    let bench = Bench::new();
    let _workload = bench.workload(&[]);
    let doctor = || said(telltale().args(["doctor", "--root"]).arg(&bench.root)).out;
    let found = doctor();
    let words = "1 region of tt-metal in layout 3: no bytes of kernels, and only its user and \
                 root may read it; a program that keeps one with TELLTALE_SHM_LAYOUT=1 has both";
    assert!(found.contains(words), "{found}");
    let _first = bench.workload(&[("TELLTALE_SHM_LAYOUT", "1")]);
    assert!(doctor().contains("1 region of tt-metal in layout 1\n"), "{}", doctor());
}

/// Every path below a directory that is a region is one that a user was asked to keep.
#[test]
fn nothing_is_kept_unless_asked_for() {
    let bench = Bench::new();
    let mut command = telltale();
    command.args(["replay", "train", "--speed", "max", "--root"]).arg(&bench.root);
    assert_eq!(said(&mut command).status, Some(0));
    assert_eq!(fs::read_dir(Path::new(&bench.shm())).unwrap().count(), 0);
}
