//! Workers that are Pythons: what is done in them before their script, and those that are started ahead.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use telltale_cluster::agent::{Exit, LocalRank};
use telltale_control_plane::supervisor::{
    Supervisor, SupervisorError, WorkerEvent, WorkerSettings,
};
use telltale_harness::{Scratch, has_own_process, skip, wait_until};

use super::{
    EPOCH, FIRST, TIMEOUT, is_there, log, next, settings, start, wait_gone, with_runtime,
    with_supervisor,
};
use crate::cluster::training::{PYTHON, turn};

/// A script that tells that it has begun, and imports what is seen in its process's maps.
const SCRIPT: &str = "\
import os, sqlite3, sys
open(os.environ['STATE'] + '/begun', 'w').close()
print('rank', os.environ['RANK'], sys.argv[1:], 'TELLTALE_GATE' in os.environ)
print('path', os.environ.get('PYTHONPATH'), [place for place in sys.path if place.endswith('/python')])
";

fn python(state: &Path) -> Option<WorkerSettings> {
    let python = Path::new(PYTHON);
    if !python.exists() {
        skip("cluster::supervision::python", "needs Python at /usr/bin/python3");
        return None;
    }
    let script = state.join("script.py");
    fs::write(&script, SCRIPT).expect("a script can be written");
    let mut settings = settings(state, "");
    settings.command = vec![python.into(), "-u".into(), script.into(), "argument".into()];
    settings.environment.push(("STATE".into(), state.into()));
    Some(settings)
}

fn python_ahead(state: &Path) -> Option<WorkerSettings> {
    python(state).map(|settings| WorkerSettings { warm: 1, ..settings })
}

async fn until_warm(supervisor: &mut Supervisor) {
    supervisor.keep_up().expect("a worker is started ahead");
    let warm = async {
        while supervisor.warm() == 0 {
            // No event comes of a worker that waits: this only lets the supervisor take notice.
            let _ = tokio::time::timeout(Duration::from_millis(20), supervisor.event()).await;
        }
    };
    tokio::time::timeout(TIMEOUT, warm).await.expect("the worker imports what it needs");
}

#[test]
fn a_worker_started_ahead_waits_with_its_imports_done_and_then_runs_its_script() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let Some(settings) = python_ahead(scratch.path()) else { return };
    with_supervisor(settings, async |mut supervisor| {
        until_warm(&mut supervisor).await;
        assert!(!scratch.join("begun").exists(), "nothing of the script may run");
        assert_eq!(supervisor.processes().count(), 0, "it has no rank");
        let record = fs::read_to_string(scratch.join("workers")).unwrap();
        let pid = record.split(' ').nth(2).unwrap();
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        assert!(maps.contains("_sqlite3"), "the script's import is done");
        start(&mut supervisor, FIRST, 6);
        assert_eq!(
            next(&mut supervisor).await,
            WorkerEvent::Started { epoch: EPOCH, local: FIRST }
        );
        let exited =
            WorkerEvent::Exited { epoch: EPOCH, local: FIRST, exit: Exit::Code(0), failure: None };
        assert_eq!(next(&mut supervisor).await, exited);
        wait_until("the output", TIMEOUT, || log(&scratch, 6).lines().count() == 2);
        assert_eq!(log(&scratch, 6), "rank 6 ['argument'] False\npath None []\n");
    });
}

#[test]
fn what_a_pth_file_adds_is_imported_ahead_and_what_lies_beside_the_script_is_not() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let Some(mut settings) = python_ahead(scratch.path()) else { return };
    let base = ("PYTHONUSERBASE", scratch.join("user"));
    let mut site = Command::new(PYTHON);
    site.args(["-c", "import site; print(site.getusersitepackages())"]).env(base.0, &base.1);
    let site = String::from_utf8(site.output().unwrap().stdout).unwrap();
    let (site, added) = (PathBuf::from(site.trim()), scratch.join("elsewhere"));
    for directory in [&site, &added, &scratch.join("job")] {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(site.join("added.pth"), added.to_str().unwrap()).unwrap();
    let import = |name: &str| {
        format!(
            "import os\nopen(os.environ['STATE'] + '/{name}', 'w').write(str('RANK' in os.environ))\n"
        )
    };
    fs::write(added.join("added.py"), import("added")).unwrap();
    let script = scratch.join("job/train.py");
    fs::write(script.with_file_name("beside.py"), import("beside")).unwrap();
    fs::write(&script, "import added, beside\n").unwrap();
    settings.command = vec![PYTHON.into(), script.into()];
    settings.environment.push((base.0.into(), base.1.into()));
    with_supervisor(settings, async |mut supervisor| {
        until_warm(&mut supervisor).await;
        assert_eq!(fs::read_to_string(scratch.join("added")).unwrap(), "False");
        assert!(!scratch.join("beside").exists(), "it is the script's own");
        start(&mut supervisor, FIRST, 0);
        while !matches!(next(&mut supervisor).await, WorkerEvent::Exited { .. }) {}
        assert_eq!(fs::read_to_string(scratch.join("beside")).unwrap(), "True");
    });
}

#[test]
fn a_worker_started_ahead_that_has_gone_is_made_good_by_another() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let Some(settings) = python_ahead(scratch.path()) else { return };
    with_supervisor(settings, async |mut supervisor| {
        until_warm(&mut supervisor).await;
        let record = fs::read_to_string(scratch.join("workers")).unwrap();
        let pid = record.split(' ').nth(2).and_then(|pid| pid.parse().ok()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        wait_gone(u32::try_from(pid.as_raw_nonzero().get()).unwrap());
        start(&mut supervisor, FIRST, 0);
        let mut ended_ahead = 0;
        loop {
            match next(&mut supervisor).await {
                WorkerEvent::WarmEnded { .. } => ended_ahead += 1,
                WorkerEvent::Exited { exit, .. } => break assert_eq!(exit, Exit::Code(0)),
                _ => {}
            }
        }
        assert_eq!(ended_ahead, 1);
    });
}

#[test]
fn workers_started_ahead_end_with_the_supervisor() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let Some(settings) = python_ahead(scratch.path()) else { return };
    with_supervisor(settings, async |mut supervisor| {
        until_warm(&mut supervisor).await;
        let record = fs::read_to_string(scratch.join("workers")).unwrap();
        let pid: u32 = record.split(' ').nth(2).and_then(|pid| pid.parse().ok()).unwrap();
        assert!(is_there(pid));
        supervisor.stop(Signal::TERM, TIMEOUT).await;
        assert!(!is_there(pid));
        assert!(!scratch.join("begun").exists(), "nothing of the script may run");
    });
}

#[test]
fn a_python_sees_nothing_of_the_module_that_was_before_it() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let Some(settings) = python(scratch.path()) else { return };
    with_supervisor(settings, async |mut supervisor| {
        start(&mut supervisor, FIRST, 6);
        while !matches!(next(&mut supervisor).await, WorkerEvent::Exited { .. }) {}
        wait_until("the output", TIMEOUT, || log(&scratch, 6).lines().count() == 2);
        assert_eq!(log(&scratch, 6), "rank 6 ['argument'] False\npath None []\n");
    });
}

/// In the place of PyTorch's module: a store whose clients are not patient at all.
const RENDEZVOUS: &str = "\
import datetime, socket
class TCPStore:
    def __init__(self, host_name, port, world_size, is_master, timeout):
        assert (world_size, timeout) == (2, datetime.timedelta(hours=1))
        if not is_master:
            socket.create_connection((host_name, port)).close()
";
const OPENS_A_STORE: &str = "\
import datetime, os
from torch.distributed import rendezvous
hour = datetime.timedelta(hours=1)
rank, place = int(os.environ['RANK']), os.environ['STATE']
open(place + '/opens', 'w').close()
rendezvous.TCPStore('127.0.0.1', int(os.environ['PORT']), 2, rank == 0, timeout=hour)
";

#[test]
fn a_rank_opens_the_store_when_somebody_listens_there() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let Some(mut settings) = python(scratch.path()) else { return };
    fs::create_dir_all(scratch.join("torch/distributed")).expect("a package");
    for (module, text) in [
        ("torch/__init__.py", ""),
        ("torch/distributed/__init__.py", ""),
        ("torch/distributed/rendezvous.py", RENDEZVOUS),
        ("script.py", OPENS_A_STORE),
    ] {
        fs::write(scratch.join(module), text).expect("a file of the script");
    }
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.expect("the loopback has a free port");
    settings.environment.push(("PORT".into(), address.port().to_string().into()));
    with_supervisor(settings, async |mut supervisor| {
        start(&mut supervisor, FIRST, 1);
        wait_until("the rank to open its store", TIMEOUT, || scratch.join("opens").exists());
        let listener = TcpListener::bind(address).expect("the port is free still");
        start(&mut supervisor, LocalRank(1), 0);
        let mut fine = 0;
        while fine < 2 {
            match next(&mut supervisor).await {
                WorkerEvent::Exited { exit: Exit::Code(0), .. } => fine += 1,
                WorkerEvent::Exited { exit, .. } => panic!("{exit}: {}", log(&scratch, 1)),
                _ => {}
            }
        }
        drop(listener);
    });
}

#[test]
fn a_python_that_does_not_look_is_not_told_where_nor_are_its_children() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let Some(mut settings) = python(scratch.path()) else { return };
    settings.command.insert(1, "-S".into());
    with_supervisor(settings, async |mut supervisor| {
        start(&mut supervisor, FIRST, 6);
        while !matches!(next(&mut supervisor).await, WorkerEvent::Exited { .. }) {}
        wait_until("the output", TIMEOUT, || log(&scratch, 6).lines().count() == 2);
        assert!(log(&scratch, 6).contains("path None"), "{}", log(&scratch, 6));
    });
}

#[test]
fn a_state_directory_that_would_be_two_places_is_refused() {
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let Some(settings) = python(scratch.path()) else { return };
    let settings = WorkerSettings { state: scratch.join("rack:1"), ..settings };
    with_runtime(async {
        let error = Supervisor::open(settings).expect_err("Python would not find the module");
        assert!(matches!(error, SupervisorError::Divided { .. }), "{error}");
    });
}

/// A Python that has no `sitecustomize` of its own, as pyenv's has none: Debian's without that file.
/// Where it is, as `PYTHONHOME` has it.
fn home_without_sitecustomize(scratch: &Scratch) -> PathBuf {
    let asks = "import sysconfig; print(sysconfig.get_path('stdlib'))";
    let said = Command::new(PYTHON).args(["-S", "-c", asks]).output().expect("it was found");
    let library = PathBuf::from(String::from_utf8(said.stdout).expect("a path").trim_end());
    let home = scratch.join("home");
    let beside = home.join("lib").join(library.file_name().expect("it has a version"));
    fs::create_dir_all(&beside).expect("a directory");
    for entry in fs::read_dir(&library).expect("Python's modules").flatten() {
        if !["sitecustomize.py", "__pycache__"].iter().any(|name| entry.file_name() == *name) {
            symlink(entry.path(), beside.join(entry.file_name())).expect("a link");
        }
    }
    home
}

#[test]
fn a_python_without_a_sitecustomize_of_its_own_says_nothing_of_ours() {
    if !has_own_process() {
        return;
    }
    for warm in [0, 1] {
        let scratch = Scratch::new();
        let Some(mut settings) = python(scratch.path()) else { return };
        settings.warm = warm;
        let home = home_without_sitecustomize(&scratch);
        settings.environment.push(("PYTHONHOME".into(), home.into()));
        with_supervisor(settings, async |mut supervisor| {
            if warm > 0 {
                until_warm(&mut supervisor).await;
            }
            start(&mut supervisor, FIRST, 6);
            while !matches!(next(&mut supervisor).await, WorkerEvent::Exited { .. }) {}
            wait_until("the output", TIMEOUT, || log(&scratch, 6).lines().count() >= 2);
            assert_eq!(log(&scratch, 6), "rank 6 ['argument'] False\npath None []\n");
        });
    }
}

const JOINS: &str = "\
import datetime, torch.distributed as dist
dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=200))
dist.barrier()
print('joined', flush=True)
";

#[test]
fn a_rank_of_another_job_or_epoch_is_refused_by_the_store() {
    let Some(_turn) = turn("cluster::supervision::python::a_rank_of_another_job") else { return };
    if !has_own_process() {
        return;
    }
    let scratch = Scratch::new();
    let Some(settings) = python(scratch.path()) else { return };
    fs::write(scratch.join("script.py"), JOINS).expect("a script can be written");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("the loopback has a free port").port().to_string();
    with_supervisor(settings, async |mut supervisor| {
        let begin =
            |supervisor: &mut Supervisor, local: u32, rank: &str, job: [&str; 2], epoch: &str| {
                let [job, identity] = job;
                let environment = [
                    ("RANK", rank),
                    ("WORLD_SIZE", "2"),
                    ("MASTER_ADDR", "127.0.0.1"),
                    ("MASTER_PORT", &port),
                    ("TORCHELASTIC_RUN_ID", job),
                    ("TORCHELASTIC_USE_AGENT_STORE", "False"),
                    ("TELLTALE_EPOCH", epoch),
                    ("TELLTALE_JOB_IDENTITY", identity),
                ];
                let environment = environment.map(|(name, value)| (name, value.to_owned()));
                supervisor.start(EPOCH, LocalRank(local), &environment);
            };
        begin(&mut supervisor, 0, "0", ["ours", "00ab"], "3");
        begin(&mut supervisor, 1, "1", ["theirs", "00ab"], "3");
        begin(&mut supervisor, 2, "1", ["ours", "00ab"], "2");
        // Another job of the same name, epoch and size.
        begin(&mut supervisor, 3, "1", ["ours", "00cd"], "3");
        let mut refused = 0;
        while refused < 3 {
            match next(&mut supervisor).await {
                WorkerEvent::Exited { local: LocalRank(1..=3), exit: Exit::Code(1), .. } => {
                    refused += 1
                }
                WorkerEvent::Exited { exit, .. } => panic!("{exit}: {}", log(&scratch, 1)),
                _ => {}
            }
        }
        let words = "is that of job ours, epoch 3, 2 ranks, and this rank is of job";
        wait_until("both to say why", TIMEOUT, || log(&scratch, 1).matches(words).count() == 2);
        let words = "is that of job ours, epoch 3, 2 ranks, identity 00ab, and this rank is of job ours, epoch 3, \
                     2 ranks, identity 00cd;";
        wait_until("the other to say why", TIMEOUT, || log(&scratch, 1).contains(words));
        // Rank 0 has counted none of them as its own.
        begin(&mut supervisor, 4, "1", ["ours", "00ab"], "3");
        let mut joined = 0;
        while joined < 2 {
            match next(&mut supervisor).await {
                WorkerEvent::Exited { exit: Exit::Code(0), .. } => joined += 1,
                WorkerEvent::Exited { exit, .. } => panic!("{exit}: {}", log(&scratch, 0)),
                _ => {}
            }
        }
    });
}
