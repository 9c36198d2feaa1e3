//! The supervisor with real processes: nothing is lost of how a worker ends, and nothing of it stays.

mod python;
mod wrappers;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use telltale_cluster::agent::{Exit, LocalRank};
use telltale_cluster::epoch::Epoch;
use telltale_cluster::node::{Incarnation, NodeName};
use telltale_control_plane::supervisor::{
    Echo, Supervisor, SupervisorError, WorkerEvent, WorkerSettings,
};
use telltale_harness::{ChildGuard, Scratch, has_own_process, wait_until};

const TIMEOUT: Duration = Duration::from_secs(60);
const EPOCH: Epoch = Epoch::new(3);
const FIRST: LocalRank = LocalRank(0);
/// Tests run beside each other, and must not clear away each other's workers.
static LIVES: AtomicU64 = AtomicU64::new(1);

fn settings(state: &Path, script: &str) -> WorkerSettings {
    WorkerSettings {
        node: NodeName::new("node-a").expect("a name"),
        incarnation: Incarnation::new(
            u64::from(std::process::id()) << 16 | LIVES.fetch_add(1, Ordering::Relaxed),
        ),
        program: PathBuf::from(env!("CARGO_BIN_EXE_telltale")),
        state: state.to_path_buf(),
        command: ["bash", "-c", script].map(OsString::from).to_vec(),
        environment: vec![("TOLD".into(), "everyone".into())],
        logs: Some(state.join("logs")),
        output_bytes: 1 << 20,
        echo: Echo::default(),
        remove_if_killed: None,
        warm: 0,
        shim: false,
    }
}

/// Runs `test` with a supervisor on one thread, as an agent does.
fn with_supervisor<F: Future<Output = ()>>(
    settings: WorkerSettings,
    test: impl FnOnce(Supervisor) -> F,
) {
    with_runtime(async {
        test(Supervisor::open(settings).expect("a supervisor")).await;
    });
}

/// Of a test with a process of its own ([`has_own_process`]): a supervisor takes all dead children of its process that
/// are not its workers off the system's table, and ends orphans.
fn with_runtime(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("an event loop").block_on(test);
}

/// The next event, without what a worker left that failed.
async fn next(supervisor: &mut Supervisor) -> WorkerEvent {
    let event = tokio::time::timeout(TIMEOUT, supervisor.event()).await.expect("an event comes");
    match event {
        WorkerEvent::Exited { epoch, local, exit, .. } => {
            WorkerEvent::Exited { epoch, local, exit, failure: None }
        }
        event => event,
    }
}

fn start(supervisor: &mut Supervisor, local: LocalRank, rank: u32) {
    supervisor.start(EPOCH, local, &[("RANK", rank.to_string())]);
}

fn log(scratch: &Scratch, rank: u32) -> String {
    let path = scratch.join(format!("logs/epoch-3/{rank}.log"));
    fs::read_to_string(path).unwrap_or_default()
}

fn pid_in(path: &Path) -> u32 {
    let mut pid = None;
    wait_until("a process to write its number", TIMEOUT, || {
        pid = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
        pid.is_some()
    });
    pid.expect("it was waited for")
}

fn is_there(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn wait_gone(pid: u32) {
    wait_until("the process to be gone", TIMEOUT, || !is_there(pid));
}

#[test]
fn a_worker_that_failed_leaves_its_exception_and_its_log() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let recorded = r#"echo '{"message": {"message": "ValueError: recorded"}}' > "$TORCHELASTIC_ERROR_FILE"; exit 1"#;
    let printed = "printf 'Traceback\\n  File\\nKeyError: printed\\nlate\\n' >&2; exit 1";
    for (script, message) in [
        (recorded, "ValueError: recorded"),
        (printed, "KeyError: printed"),
        ("echo fine; echo the last words >&2; kill -ABRT $$", "the last words"),
        ("echo fine; exit 3", ""),
        ("echo saved >&2; kill -TERM $$", ""),
    ] {
        with_supervisor(settings(scratch.path(), script), async |mut supervisor| {
            start(&mut supervisor, FIRST, 5);
            let failure = loop {
                if let WorkerEvent::Exited { failure, .. } = supervisor.event().await {
                    break failure.expect("it failed");
                }
            };
            assert_eq!(failure.message, message, "{script}");
            assert_eq!(Path::new(&failure.log), scratch.join("logs/epoch-3/5.log"));
        });
    }
}

#[test]
fn ways_to_end_are_reported_as_they_are() {
    if !has_own_process() {
        return;
    }
    let cases = [
        ("exit 0", Exit::Code(0)),
        ("exit 41", Exit::Code(41)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("kill -SEGV $$", Exit::Signal(11)),
    ];
    for (script, exit) in cases {
        let scratch = Scratch::new();
        with_supervisor(settings(scratch.path(), script), async |mut supervisor| {
            start(&mut supervisor, FIRST, 0);
            let started = WorkerEvent::Started { epoch: EPOCH, local: FIRST };
            assert_eq!(next(&mut supervisor).await, started, "{script}");
            let exited = WorkerEvent::Exited { epoch: EPOCH, local: FIRST, exit, failure: None };
            assert_eq!(next(&mut supervisor).await, exited, "{script}");
            assert_eq!(supervisor.processes().count(), 0);
        });
    }
}

#[test]
fn output_is_kept_by_rank_and_the_environment_is_there() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let script =
        "echo rank $RANK told $TOLD; printf 'no end' >&2; read line || echo nothing to read";
    with_supervisor(settings(scratch.path(), script), async |mut supervisor| {
        start(&mut supervisor, LocalRank(1), 5);
        while !matches!(next(&mut supervisor).await, WorkerEvent::Exited { .. }) {}
        wait_until("the output to be written", TIMEOUT, || log(&scratch, 5).lines().count() == 3);
        for line in ["rank 5 told everyone\n", "no end\n", "nothing to read\n"] {
            assert!(log(&scratch, 5).contains(line), "{line:?}");
        }
    });
}

#[test]
fn a_command_that_cannot_be_run_is_reported_with_the_reason() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let mut settings = settings(scratch.path(), "");
    settings.command = vec!["/no/such/program".into()];
    with_supervisor(settings, async |mut supervisor| {
        start(&mut supervisor, FIRST, 0);
        let event = next(&mut supervisor).await;
        let WorkerEvent::NotStarted { epoch: EPOCH, local: FIRST, reason, lasts: true } = event
        else {
            panic!("{event:?}")
        };
        assert!(reason.contains("/no/such/program"), "{reason}");
        assert!(reason.contains("No such file"), "{reason}");
    });
}

/// A worker whose descendants left its process group, its session, or both, and ignore `SIGTERM`.
const FAMILY: &str = "\
trap '' TERM
sleep 600 & echo $! > $STATE/same
timeout 600 sleep 601 & echo $! > $STATE/group
setsid bash -c 'echo $$ > $STATE/session; exec sleep 602' &
(setsid bash -c 'echo $$ > $STATE/orphan; exec sleep 603' &)
touch $STATE/ready";
const FAMILY_FILES: [&str; 4] = ["same", "group", "session", "orphan"];

fn family(state: &Path, then: &str) -> WorkerSettings {
    let mut settings = settings(state, &format!("{FAMILY}\n{then}"));
    settings.environment.push(("STATE".into(), state.into()));
    settings
}

#[test]
fn a_worker_has_ended_only_when_nothing_of_it_is_left() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let then = "while ! test -s $STATE/orphan -a -s $STATE/session; do sleep 0.01; done; exit 3";
    with_supervisor(family(scratch.path(), then), async |mut supervisor| {
        start(&mut supervisor, FIRST, 0);
        next(&mut supervisor).await;
        let exited =
            WorkerEvent::Exited { epoch: EPOCH, local: FIRST, exit: Exit::Code(3), failure: None };
        assert_eq!(next(&mut supervisor).await, exited);
        for name in FAMILY_FILES {
            let pid = pid_in(&scratch.join(name));
            assert!(!is_there(pid), "{name} is left: {pid}");
        }
    });
}

#[test]
fn a_stopped_worker_can_be_terminated() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    with_supervisor(
        settings(scratch.path(), "kill -STOP $$; sleep 600"),
        async |mut supervisor| {
            start(&mut supervisor, FIRST, 0);
            next(&mut supervisor).await;
            let (_, worker) = supervisor.processes().next().unwrap();
            let state = || fs::read_to_string(format!("/proc/{worker}/stat")).unwrap();
            wait_until("the worker to be stopped", TIMEOUT, || state().contains(") T "));
            supervisor.terminate(EPOCH, LocalRank(1));
            supervisor.terminate(Epoch::new(2), FIRST);
            assert!(state().contains(") T "), "neither is this worker");
            supervisor.terminate(EPOCH, FIRST);
            let exited = WorkerEvent::Exited {
                epoch: EPOCH,
                local: FIRST,
                exit: Exit::Signal(15),
                failure: None,
            };
            assert_eq!(next(&mut supervisor).await, exited);
        },
    );
}

#[test]
fn a_worker_that_does_not_listen_is_killed() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let script = "trap '' TERM; touch $STATE/ready; while :; do sleep 1; done";
    let mut settings = settings(scratch.path(), script);
    settings.environment.push(("STATE".into(), scratch.path().into()));
    with_supervisor(settings, async |mut supervisor| {
        start(&mut supervisor, FIRST, 0);
        next(&mut supervisor).await;
        wait_until("the trap", TIMEOUT, || scratch.join("ready").exists());
        supervisor.terminate(EPOCH, FIRST);
        supervisor.kill(EPOCH, FIRST);
        let exited = WorkerEvent::Exited {
            epoch: EPOCH,
            local: FIRST,
            exit: Exit::Signal(9),
            failure: None,
        };
        assert_eq!(next(&mut supervisor).await, exited);
    });
}

/// A worker that does not pass `SIGTERM` on to the script that it runs, which saves.
const WRAPPED: &str = "\
bash -c 'trap \"echo saved > $STATE/saved; exit\" TERM; touch $STATE/ready
         while :; do sleep 0.05; done'
true";

#[test]
fn what_a_worker_has_started_may_save_when_the_worker_has_ended() {
    if !has_own_process() {
        return;
    }
    for (then, ends, signal) in [("", false, 15), ("trap '' TERM\n", true, 9)] {
        let scratch = Scratch::new();
        let mut settings = settings(scratch.path(), &format!("{then}{WRAPPED}"));
        settings.environment.push(("STATE".into(), scratch.path().into()));
        if ends {
            // Bash cannot trap what it found ignored; the script is not Bash.
            let script = scratch.join("script.py");
            fs::write(&script, SAVES).expect("a scratch file");
            settings.command[2] = format!("{then}python3 {}; true", script.display()).into();
        }
        with_supervisor(settings, async |mut supervisor| {
            start(&mut supervisor, FIRST, 0);
            next(&mut supervisor).await;
            wait_until("the trap", TIMEOUT, || scratch.join("ready").exists());
            supervisor.terminate(EPOCH, FIRST);
            if ends {
                assert!(!scratch.join("saved").exists(), "the worker has not ended");
                supervisor.kill(EPOCH, FIRST);
            }
            let exited = WorkerEvent::Exited {
                epoch: EPOCH,
                local: FIRST,
                exit: Exit::Signal(signal),
                failure: None,
            };
            assert_eq!(next(&mut supervisor).await, exited);
            assert!(scratch.join("saved").exists(), "it was asked, and had time");
        });
    }
}

const SAVES: &str = "\
import os, signal, sys
place = os.environ['STATE']
def save(*_):
    open(place + '/saved', 'w').close()
    sys.exit()
signal.signal(signal.SIGTERM, save)
open(place + '/ready', 'w').close()
while True:
    signal.pause()
";

#[test]
fn a_state_directory_is_for_one_agent() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    with_supervisor(settings(scratch.path(), ""), async |_first| {
        let second = Supervisor::open(settings(scratch.path(), ""));
        assert!(matches!(second, Err(SupervisorError::InUse { .. })));
    });
    with_supervisor(settings(scratch.path(), ""), async |_again| {});
}

/// The variable that makes this test program an agent, which [`an_agent_that_is_killed`] kills.
const AGENT_STATE: &str = "TELLTALE_TEST_AGENT_STATE";

/// What the process runs that is killed; by itself it is nothing.
#[test]
fn an_agent_for_the_tests_beside() {
    let Some(state) = std::env::var_os(AGENT_STATE) else { return };
    let state = PathBuf::from(state);
    with_supervisor(family(&state, "sleep 600"), async |mut supervisor| {
        start(&mut supervisor, FIRST, 0);
        loop {
            let _ = supervisor.event().await;
        }
    });
}

fn agent(state: &Path) -> ChildGuard {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "cluster::supervision::an_agent_for_the_tests_beside", "--nocapture"]);
    command.env(AGENT_STATE, state).stdout(Stdio::null());
    ChildGuard::spawn(&mut command)
}

#[test]
fn nothing_outlives_an_agent_that_is_killed() {
    let scratch = Scratch::new();
    let mut agent = agent(scratch.path());
    wait_until("the worker to be ready", TIMEOUT, || scratch.join("ready").exists());
    let pids = FAMILY_FILES.map(|name| pid_in(&scratch.join(name)));
    assert!(pids.iter().all(|pid| is_there(*pid)));
    agent.kill();
    pids.iter().for_each(|pid| wait_gone(*pid));
}

#[test]
fn the_next_life_clears_away_what_even_the_guard_has_left() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let mut agent = agent(scratch.path());
    wait_until("the worker to be ready", TIMEOUT, || scratch.join("ready").exists());
    let pids = FAMILY_FILES.map(|name| pid_in(&scratch.join(name)));
    // The guard cannot act while it is stopped.
    let guard = child_of(agent.id(), "worker-guard");
    let stop = |signal| rustix::process::kill_process(guard, signal).unwrap();
    stop(rustix::process::Signal::STOP);
    agent.kill();
    assert!(pids.iter().any(|pid| is_there(*pid)), "something is left to clear");
    with_supervisor(settings(scratch.path(), ""), async |mut supervisor| {
        supervisor.clear_leftovers().await.unwrap();
        assert_eq!(next(&mut supervisor).await, WorkerEvent::LeftoversGone);
        assert!(pids.iter().all(|pid| !is_there(*pid)), "{pids:?}");
    });
    stop(rustix::process::Signal::KILL);
}

fn child_of(parent: u32, subcommand: &str) -> rustix::process::Pid {
    let children = fs::read_dir("/proc").expect("a list of processes").filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let of: u32 = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        (of == parent && line.contains(subcommand)).then_some(pid)
    });
    let guard = children.last().and_then(rustix::process::Pid::from_raw);
    guard.expect("the agent has a guard")
}
