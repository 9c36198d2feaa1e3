//! `telltale demo` without a terminal.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;

use telltale_harness::{Scratch, as_user, needs_pid_namespaces, needs_root, wait_until};
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{Device, Snapshot};

use crate::cli::command::{Running, TIMEOUT, children, is_workload, said, telltale};

/// The demo, making its directory in `place`.
fn demo(place: &Path, arguments: &[&str]) -> Command {
    let mut command = telltale();
    command.arg("demo").args(arguments).env("XDG_RUNTIME_DIR", place);
    command
}

#[track_caller]
fn assert_empty(place: &Path) {
    let left: Vec<_> = fs::read_dir(place).unwrap().map(|one| one.unwrap().path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// Checks what every snapshot of a demo shows.
#[track_caller]
fn check(snapshot: &Snapshot) {
    let ids: Vec<_> = snapshot.devices.iter().map(|device| device.id.as_str()).collect();
    assert_eq!(ids, ["251732099", "251732099R"]);
    assert_eq!(snapshot.processes.len(), 2);
    // Beside other tests an endpoint may be too slow to answer in time.
    let mut errors = snapshot.sources.iter().flat_map(|source| &source.errors);
    assert!(errors.all(|error| error.reason == Absence::TimedOut), "{:?}", snapshot.sources);
    for (place, device) in snapshot.devices.iter().enumerate() {
        check_sums(snapshot, place, device);
    }
}

#[track_caller]
fn check_sums(snapshot: &Snapshot, place: usize, device: &Device) {
    for parts in &device.kinds {
        let held = snapshot.processes.iter().flat_map(|process| &process.devices);
        let of_kind = held.filter(|held| held.device == place).flat_map(|held| &held.kinds);
        let bytes = of_kind.filter(|one| one.kind == parts.kind).map(|one| one.usage.live_bytes());
        assert_eq!(bytes.sum::<u64>(), parts.processes_bytes);
        let sum = parts.processes_bytes + parts.unattributed_bytes + parts.ghost_bytes;
        assert_eq!(sum, parts.total_bytes);
    }
    for space in &device.spaces {
        let kinds = device.kinds.iter().filter(|parts| parts.kind.space() == space.space);
        let total: u64 = kinds.map(|parts| parts.total_bytes).sum();
        assert_eq!(space.used_bytes.value(), Some(&total), "{}", space.space.name());
    }
}

#[test]
fn it_prints_snapshots_and_a_summary_and_leaves_nothing() {
    let workloads = [
        ("gpt", ["telltale gpt --device 0", "telltale gpt --device 1"]),
        ("trace", ["telltale replay train", "telltale replay generate"]),
    ];
    for (workload, commands) in workloads {
        let place = Scratch::new();
        let said = said(&mut demo(place.path(), &["--seconds", "2", "--workload", workload]));
        assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
        let (snapshots, summary) =
            said.out.split_once("At the end:\n").expect("there is a summary");
        let tables = snapshots.matches("ID          ARCH").count();
        assert!((1..=3).contains(&tables), "{tables} snapshots in two seconds: {snapshots}");
        for text in commands.into_iter().chain(["251732099R"]) {
            assert_eq!(snapshots.matches(text).count() % tables, 0, "{text}: {snapshots}");
            assert!(snapshots.contains(text), "{text}: {snapshots}");
        }
        // Traces print nothing.
        assert!(workload == "gpt" || !said.out.contains("printed: "), "{said:?}");
        let (end, gone) = ("PEAK", "The emulated machine and both processes are gone.\n");
        let (summary, _) = summary.split_once("\nTry next:\n").expect("there is more to try");
        assert!(summary.contains(end) && summary.ends_with(gone), "{summary}");
        assert!(!said.out.contains('\x1b'));
        assert_empty(place.path());
    }
}

#[test]
fn without_a_c_compiler_it_replays_traces_unless_a_training_is_asked_for() {
    let place = Scratch::new();
    let run = |arguments: &[&str]| said(demo(place.path(), arguments).env("CC", "/nowhere/cc"));
    let usual = run(&["--seconds", "1"]);
    assert_eq!(usual.status, Some(0), "{usual:?}");
    assert!(usual.out.contains("telltale replay train"), "{usual:?}");
    assert!(
        usual.err.starts_with(
            "telltale: recorded traces are replayed instead of a training: cannot run"
        ),
        "{usual:?}"
    );
    let asked = run(&["--seconds", "600", "--workload", "gpt"]);
    assert_eq!(asked.status, Some(2), "{asked:?}");
    assert!(asked.err.contains("install one, or name it in CC"), "{asked:?}");
    assert_empty(place.path());
}

#[test]
fn the_loss_and_the_prints_of_each_training_are_below_the_tables_and_in_json() {
    let place = Scratch::new();
    let mut tables = Running::start(&mut demo(place.path(), &["--seconds", "600"]));
    let mut seen = vec![tables.line()];
    let pids = children(tables.child.id());
    assert_eq!(pids.len(), 2);
    let reported = |seen: &[String], pid: &u32| {
        let begin = format!("process {pid}: step ");
        seen.windows(2).any(|lines| {
            let [step, printed] = lines else { return false };
            let is_reported = step.starts_with(&begin) && step.contains(", loss ");
            is_reported && printed.starts_with("    printed: loss ") && printed.contains("; 1.")
        })
    };
    while !pids.iter().all(|pid| reported(&seen, pid)) {
        seen.push(tables.line());
        assert!(seen.len() < 2000, "{seen:#?}");
    }
    tables.child.interrupt();
    assert_eq!(tables.status(), Some(0));
    let mut json = Running::start(&mut demo(place.path(), &["--seconds", "600", "--json"]));
    let mut losses = 0;
    while losses < 2 {
        let snapshot: Snapshot = serde_json::from_str(&json.line()).unwrap();
        check(&snapshot);
        let metrics = snapshot.processes.iter().flat_map(|process| process.metrics.iter());
        losses = metrics.filter(|sample| sample.name == "gpt_loss").count();
    }
    json.child.interrupt();
    assert_eq!(json.status(), Some(0));
    assert_empty(place.path());
}

#[test]
fn json_is_one_object_a_line_and_nothing_else() {
    let place = Scratch::new();
    let said = said(&mut demo(place.path(), &["--seconds", "1.5", "--json"]));
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    let snapshots: Vec<Snapshot> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!snapshots.is_empty());
    snapshots.iter().for_each(check);
    assert!(snapshots.is_sorted_by_key(|snapshot| snapshot.taken_at));
}

#[test]
fn a_signal_in_the_middle_ends_it_well_and_a_second_one_does_not_spoil_that() {
    let signals: [fn(&mut Running); 2] =
        [|demo| demo.child.interrupt(), |demo| demo.child.terminate()];
    for signal in signals {
        let place = Scratch::new();
        let mut demo = Running::start(&mut demo(place.path(), &["--seconds", "600", "--json"]));
        check(&serde_json::from_str(&demo.line()).unwrap());
        let workloads = children(demo.child.id());
        assert_eq!(workloads.len(), 2);
        signal(&mut demo);
        // Only the demo ends them, so by then it has seen the signal.
        wait_until("a workload to end", TIMEOUT, || !workloads.iter().all(|pid| is_workload(*pid)));
        signal(&mut demo);
        assert_eq!(demo.status(), Some(0));
        assert!(!workloads.iter().any(|pid| is_workload(*pid)));
        assert_empty(place.path());
    }
}

#[test]
fn the_default_place_is_left_clean_too() {
    let mut command = telltale();
    command.args(["demo", "--seconds", "0.1", "--json"]).env_remove("XDG_RUNTIME_DIR");
    let mut demo = Running::start(&mut command);
    let pid = demo.child.id();
    demo.line();
    let places = [Path::new("/dev/shm").to_path_buf(), std::env::temp_dir()];
    let there = || places.iter().any(|at| at.join(format!("telltale-demo-{pid}")).exists());
    assert_eq!(demo.status(), Some(0));
    assert!(!there());
}

#[test]
fn after_a_kill_the_workloads_end_and_the_next_demo_tidies_up() {
    let place = Scratch::new();
    let mut killed = Running::start(&mut demo(place.path(), &["--seconds", "600", "--json"]));
    killed.line();
    let workloads = children(killed.child.id());
    assert_eq!(workloads.len(), 2);
    killed.child.kill();
    wait_until("the workloads to end", TIMEOUT, || !workloads.iter().any(|pid| is_workload(*pid)));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nobody was left to remove it");
    let said = said(&mut demo(place.path(), &["--seconds", "0.1", "--json"]));
    assert_eq!(said.status, Some(0), "{said:?}");
    assert_empty(place.path());
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let place = Scratch::new();
    let mut demo = Running::start(&mut demo(place.path(), &["--seconds", "600"]));
    demo.line();
    let Running { mut child, lines } = demo;
    drop(lines);
    assert_eq!(child.wait_within("the demo to end", TIMEOUT).code(), Some(0));
    let mut complaints = String::new();
    child.child().stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
    assert_eq!(complaints, "");
    assert_empty(place.path());
}

/// The first snapshot in which each endpoint answered in time, which a busy machine may keep it from.
fn in_time(demo: &mut Running) -> Snapshot {
    let mut snapshots = (0..100).map(|_| serde_json::from_str(&demo.line()).unwrap());
    let is_late = |snapshot: &Snapshot| {
        let mut errors = snapshot.sources.iter().flat_map(|source| &source.errors);
        errors.any(|error| error.reason == Absence::TimedOut)
    };
    snapshots.find(|snapshot| !is_late(snapshot)).expect("endpoints answer in time once")
}

#[test]
fn two_demos_side_by_side_see_only_their_own() {
    let place = Scratch::new();
    let mut demos =
        [(); 2].map(|()| Running::start(&mut demo(place.path(), &["--seconds", "600", "--json"])));
    let pids = demos.each_mut().map(|demo| {
        let snapshot = in_time(demo);
        check(&snapshot);
        let mut pids: Vec<_> = snapshot.processes.iter().filter_map(|one| one.pid).collect();
        let mut expected = children(demo.child.id());
        pids.sort_unstable();
        expected.sort_unstable();
        assert_eq!(pids, expected);
        pids
    });
    assert_ne!(pids[0], pids[1]);
    for demo in &mut demos {
        demo.child.interrupt();
        assert_eq!(demo.status(), Some(0));
    }
    assert_empty(place.path());
}

#[test]
fn settings_meant_for_real_workloads_do_not_reach_it() {
    let (place, elsewhere) = (Scratch::new(), Scratch::new());
    let mut command = demo(place.path(), &["--seconds", "1", "--json"]);
    command.env("TT_METRICS_SOCKET_DIR", elsewhere.path()).env("TELLTALE_DISABLED", "1");
    command.env("TT_METAL_SHM_STATS_ENABLED", "1").env("TT_METAL_SHM_STATS_PER_PID", "1");
    command.env("NEURON_RT_DEBUG_OUTPUT_DIR", elsewhere.path());
    let said = said(command.env("TELLTALE_ROOT", elsewhere.path()));
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    said.out.lines().for_each(|line| check(&serde_json::from_str(line).unwrap()));
    assert_empty(place.path());
    assert_empty(elsewhere.path());
}

#[test]
fn a_useless_runtime_directory_is_passed_over() {
    let nowhere = Scratch::new();
    let file = nowhere.join("file");
    fs::write(&file, "").unwrap();
    // A relative XDG_RUNTIME_DIR is ignored, as its specification asks.
    let relative = said(&mut demo(Path::new("relative"), &["--seconds", "0.1", "--json"]));
    assert_eq!(relative.status, Some(0), "{relative:?}");
    let elsewhere = said(&mut demo(&file, &["--seconds", "0.1", "--json"]));
    assert_eq!(elsewhere.status, Some(0), "a place that is no directory is passed over");
    assert!(!Path::new("relative").exists());
}

#[test]
fn where_memory_is_full_it_goes_to_the_disk() {
    let test = "telltale::cli::demo::where_memory_is_full_it_goes_to_the_disk";
    if !needs_pid_namespaces(test) {
        return;
    }
    // Room for the directory itself, but not for a machine: first no bytes, then no files.
    for limit in ["size=16k", "nr_inodes=20"] {
        // Not below /dev/shm, which is covered here.
        let place = Scratch::within(Path::new("/tmp"));
        let script = format!(
            "mount -t tmpfs -o {limit} none /dev/shm && \"$@\" && ls -A /dev/shm \"$TMPDIR\" >&2"
        );
        let demo = |temporary: &Path| {
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", &script, "sh"]);
            command.args([env!("CARGO_BIN_EXE_telltale"), "demo", "--seconds", "0.1", "--json"]);
            command.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", temporary);
            said(&mut command)
        };
        let left = |temporary: &Path| format!("/dev/shm:\n\n{}:\n", temporary.display());
        let chosen = demo(place.path());
        assert_eq!(chosen.status, Some(0), "{limit}: {chosen:?}");
        assert_eq!(chosen.err, left(place.path()), "{limit}: nothing is said and nothing is left");
        check(&serde_json::from_str(chosen.out.lines().next().unwrap()).unwrap());
        // A temporary directory that is as full, so that only /tmp is left.
        let none = demo(Path::new("/dev/shm"));
        assert_eq!(none.status, Some(0), "{limit}: {none:?}");
    }
}

#[test]
fn without_room_anywhere_it_says_what_is_needed() {
    let test = "telltale::cli::demo::without_room_anywhere_it_says_what_is_needed";
    if !needs_pid_namespaces(test) {
        return;
    }
    let mount = |place: &str| format!("mount -t tmpfs -o size=16k none {place}");
    let script = format!("{} && {} && exec \"$@\"", mount("/dev/shm"), mount("/tmp"));
    // The program may be below what is covered.
    let program = std::fs::File::open(env!("CARGO_BIN_EXE_telltale")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh", "/proc/self/fd/0", "demo"]);
    command.env_remove("XDG_RUNTIME_DIR").env_remove("TMPDIR").stdin(program);
    said(&mut command).complains(2, &["set TMPDIR to one with room", "/dev/shm/", "are needed"]);
}

#[test]
fn the_user_without_a_number_of_its_own_is_reported_why_it_shows_nothing() {
    if !needs_root("telltale::cli::demo::the_user_without_a_number_of_its_own") {
        return;
    }
    // By its descriptor, because others may not reach the directory that it was built in.
    let mut command = Command::new("/proc/self/fd/0");
    command.stdin(File::open(env!("CARGO_BIN_EXE_telltale")).unwrap()).args(["demo", "--json"]);
    let said = said(&mut as_user(65_534, 65_534, command));
    assert_eq!((said.status, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("65534") && said.err.contains("number of its own"), "{said:?}");
}
