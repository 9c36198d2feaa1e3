//! Workers that are Pythons: what is done in them before their script, and those that are started ahead.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use telltale_cluster::agent::{Exit, LocalRank};
use telltale_cluster::supervisor::{Event, Settings, Supervisor, SupervisorError};
use telltale_harness::{Scratch, skip, wait_until};

use super::{
    EPOCH, FIRST, PATIENCE, is_there, log, next, settings, start, wait_gone, with_runtime,
    with_supervisor,
};

/// A script that tells that it has begun, and imports what is seen in its process's maps.
const SCRIPT: &str = "\
import os, sqlite3, sys
open(os.environ['STATE'] + '/begun', 'w').close()
print('rank', os.environ['RANK'], sys.argv[1:], 'TELLTALE_GATE' in os.environ)
print('path', os.environ.get('PYTHONPATH'), [place for place in sys.path if place.endswith('/python')])
";

fn python(state: &Path) -> Option<Settings> {
    let python = Path::new("/usr/bin/python3");
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

fn python_ahead(state: &Path) -> Option<Settings> {
    python(state).map(|settings| Settings { warm: 1, ..settings })
}

async fn until_warm(supervisor: &mut Supervisor) {
    supervisor.keep_up().expect("a worker is started ahead");
    let warm = async {
        while supervisor.warm() == 0 {
            // No event comes of a worker that waits: this only lets the supervisor take notice.
            let _ = tokio::time::timeout(Duration::from_millis(20), supervisor.event()).await;
        }
    };
    tokio::time::timeout(PATIENCE, warm).await.expect("the worker imports what it needs");
}

#[test]
fn a_worker_started_ahead_waits_with_its_imports_done_and_then_runs_its_script() {
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
        assert_eq!(next(&mut supervisor).await, Event::Started { epoch: EPOCH, local: FIRST });
        let exited = Event::Exited { epoch: EPOCH, local: FIRST, exit: Exit::Code(0) };
        assert_eq!(next(&mut supervisor).await, exited);
        wait_until("the output", PATIENCE, || log(&scratch, 6).lines().count() == 2);
        assert_eq!(log(&scratch, 6), "rank 6 ['argument'] False\npath None []\n");
    });
}

#[test]
fn a_worker_started_ahead_that_has_gone_is_made_good_by_another() {
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
                Event::WarmEnded { .. } => ended_ahead += 1,
                Event::Exited { exit, .. } => break assert_eq!(exit, Exit::Code(0)),
                _ => {}
            }
        }
        assert_eq!(ended_ahead, 1);
    });
}

#[test]
fn workers_started_ahead_end_with_the_supervisor() {
    let scratch = Scratch::new();
    let Some(settings) = python_ahead(scratch.path()) else { return };
    with_supervisor(settings, async |mut supervisor| {
        until_warm(&mut supervisor).await;
        let record = fs::read_to_string(scratch.join("workers")).unwrap();
        let pid: u32 = record.split(' ').nth(2).and_then(|pid| pid.parse().ok()).unwrap();
        assert!(is_there(pid));
        supervisor.stop(PATIENCE).await;
        assert!(!is_there(pid));
        assert!(!scratch.join("begun").exists(), "nothing of the script may run");
    });
}

#[test]
fn a_python_sees_nothing_of_the_module_that_was_before_it() {
    let scratch = Scratch::new();
    let Some(settings) = python(scratch.path()) else { return };
    with_supervisor(settings, async |mut supervisor| {
        start(&mut supervisor, FIRST, 6);
        while !matches!(next(&mut supervisor).await, Event::Exited { .. }) {}
        wait_until("the output", PATIENCE, || log(&scratch, 6).lines().count() == 2);
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
        wait_until("the rank to open its store", PATIENCE, || scratch.join("opens").exists());
        let listener = TcpListener::bind(address).expect("the port is free still");
        start(&mut supervisor, LocalRank(1), 0);
        let mut fine = 0;
        while fine < 2 {
            match next(&mut supervisor).await {
                Event::Exited { exit: Exit::Code(0), .. } => fine += 1,
                Event::Exited { exit, .. } => panic!("{exit}: {}", log(&scratch, 1)),
                _ => {}
            }
        }
        drop(listener);
    });
}

#[test]
fn a_python_that_does_not_look_is_not_told_where_nor_are_its_children() {
    let scratch = Scratch::new();
    let Some(mut settings) = python(scratch.path()) else { return };
    settings.command.insert(1, "-S".into());
    with_supervisor(settings, async |mut supervisor| {
        start(&mut supervisor, FIRST, 6);
        while !matches!(next(&mut supervisor).await, Event::Exited { .. }) {}
        wait_until("the output", PATIENCE, || log(&scratch, 6).lines().count() == 2);
        assert!(log(&scratch, 6).contains("path None"), "{}", log(&scratch, 6));
    });
}

#[test]
fn a_state_directory_that_would_be_two_places_is_refused() {
    let scratch = Scratch::new();
    let Some(settings) = python(scratch.path()) else { return };
    let settings = Settings { state: scratch.join("rack:1"), ..settings };
    with_runtime(async {
        let error = Supervisor::open(settings).expect_err("Python would not find the module");
        assert!(matches!(error, SupervisorError::Divided { .. }), "{error}");
    });
}
