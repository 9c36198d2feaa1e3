//! What is missing costs accounting and never the workload.

use std::process::Command;

use crate::runtime::asking::{endpoints, numbered, options, started};
use crate::runtime::roles::{Player, program, role};
use telltale_harness::{Scratch, needs_pid_namespaces, needs_root};
use telltale_ledger::directory::{Purpose, RuntimeDirectory, temporary_name};
use telltale_runtime::{MemoryKind, Problem, ProblemStep, Runtime};

#[test]
fn a_full_file_system_degrades_recording() {
    const NAME: &str = "runtime::a_full_file_system_degrades_recording";
    if !needs_root(NAME) || !needs_pid_namespaces(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let program = program(&scratch);
    let full = scratch.join("full");
    std::fs::create_dir(&full).unwrap();
    let inner = role(&program, "record", &full);
    let mut command = Command::new("unshare");
    // The first page of the ledger does not fit beside the one that is written beforehand.
    let script = "mount -t tmpfs -o size=4k,mode=0700 none \"$1\" && echo x >\"$1/x\" && shift && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(&full).arg(inner.get_program());
    command.args(inner.get_args());
    for (name, value) in inner.get_envs() {
        command.env(name, value.expect("only set variables"));
    }
    command.stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut player = Player::start(&mut command);
    player.says("waits");
    player.go_on();
    assert_eq!(player.says("recorded"), "[\"ledger\"]");
    let reported = player.end();
    assert!(
        reported.contains("memory is not recorded") && reported.lines().count() == 1,
        "{reported}"
    );
    assert!(reported.contains(&*full.to_string_lossy()), "{reported}");
}

#[test]
fn a_directory_that_does_not_exist_is_reported_once() {
    let scratch = Scratch::new();
    let mut chosen = options(&scratch.join("absent"));
    let reported = std::sync::Arc::new(std::sync::Mutex::new(Vec::<Problem>::new()));
    let sink = std::sync::Arc::clone(&reported);
    chosen.on_problem =
        Some(std::sync::Arc::new(move |problem| sink.lock().unwrap().push(problem.clone())));
    let runtime = Runtime::start(chosen);
    for _ in 0..3 {
        let device = runtime.open_device(numbered(0));
        device.allocate(MemoryKind::Dram, 0, 1);
        device.free(MemoryKind::Dram, 0);
    }
    assert_eq!(runtime.problems(), [(ProblemStep::Directory, 3)]);
    let reported = reported.lock().unwrap();
    assert_eq!(reported.len(), 1);
    assert!(reported[0].cause.contains("absent"), "{}", reported[0]);
}

#[test]
fn names_that_others_have_taken_do_not_disable_the_endpoint() {
    let scratch = Scratch::new();
    let directory = RuntimeDirectory::open(scratch.path(), Purpose::Writing).unwrap();
    let me = telltale_ledger::identity_of_this_process().unwrap();
    for number in 0..16 {
        // Left by a killed process of this pid, or taken by a process that guesses.
        let left = temporary_name(me.pid, me.start_time_ticks, number);
        std::fs::write(scratch.join(left), "").unwrap();
        let guessed = format!(".metrics_{}.{number}.new", me.pid);
        std::fs::write(scratch.join(guessed), "").unwrap();
    }
    let runtime = Runtime::start(options(scratch.path()));
    let device = runtime.open_device(numbered(0));
    assert_eq!(endpoints(&scratch).len(), 1);
    assert_eq!(directory.list().unwrap().temporaries.len(), 16);
    drop(device);
    assert_eq!(runtime.problems(), []);
}

#[test]
fn a_lowered_limit_on_open_files_does_not_keep_the_last_close_waiting() {
    let scratch = Scratch::new();
    let directory = scratch.join("run");
    std::fs::create_dir(&directory).unwrap();
    let mut player = Player::start(&mut role(&program(&scratch), "lower", &directory));
    player.says("closed");
    assert_eq!(player.end(), "");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn names_that_readers_would_see_twice_are_refused() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let registry = runtime.registry();
    registry.counter("jobs").register().add(1);
    for (gauge, why) in [
        (
            registry.gauge("jobs").label("queue", "a"),
            "metric jobs is registered already with another kind",
        ),
        (registry.gauge("jobs_created"), "metric jobs_created would be shown as jobs_created"),
        (registry.gauge("done_total"), "metric done_total ends with _total, which is for counters"),
    ] {
        let error = gauge.try_register().map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }
}

#[test]
fn metrics_that_cannot_be_kept_work_for_their_owner() {
    let scratch = Scratch::new();
    let mut chosen = options(scratch.path());
    let reported = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = std::sync::Arc::clone(&reported);
    chosen.on_problem = Some(std::sync::Arc::new(move |problem| {
        sink.lock().unwrap().push(problem.cause.clone());
    }));
    let runtime = Runtime::start(chosen);
    let _device = runtime.open_device(numbered(0));
    let registry = runtime.registry();
    registry.gauge("loss").label("rank", "0").register().set(1.0);
    registry.counter("jobs").register().add(1);
    let refused = [
        (registry.counter("telltale_own"), "metric telltale_own begins like telltale's own"),
        (
            registry.counter("two words"),
            "metric \"two words\" is not a name of letters, digits and underscores",
        ),
        (
            registry.counter("loss").label("rank", "0"),
            "metric loss is registered already with another kind, unit or bounds",
        ),
        (
            registry.counter("jobs").unit("things"),
            "metric jobs is registered already with another kind, unit or bounds",
        ),
        (
            registry.counter("jobs").label("queue", "a").unit("things"),
            "metric jobs is registered already with another kind, unit or bounds",
        ),
        (
            registry.counter("jobs_total"),
            "metric jobs_total would be shown as jobs_total, which metric jobs is already",
        ),
        (
            registry.counter("loss_total"),
            "metric loss_total would be shown as loss, which metric loss is already",
        ),
        (registry.counter("a").label("b", "").label("b", ""), "label b of metric a is given twice"),
    ];
    let count = refused.len() as u64;
    let mut expected = Vec::new();
    for (registration, why) in refused {
        let (counter, error) = registration.registered();
        counter.add(1);
        assert_eq!(error.map(|error| error.to_string()).as_deref(), Some(why));
        expected.push(why.to_owned());
    }
    registry.histogram("h", [2.0, 1.0]).register().observe(1.0);
    assert!(registry.gauge("9x").try_register().is_err());
    assert_eq!(runtime.problems(), [(ProblemStep::Metric, count + 2)]);
    let reported = reported.lock().unwrap().clone();
    assert_eq!(reported[..expected.len()], expected, "each is reported");
    for number in 0..telltale_runtime::MAX_SERIES {
        registry.counter("many").label("number", number.to_string()).register().add(1);
    }
    // Two places were taken before.
    assert_eq!(runtime.problems(), [(ProblemStep::Metric, count + 4)]);
    assert_eq!(endpoints(&scratch).len(), 1);
}
