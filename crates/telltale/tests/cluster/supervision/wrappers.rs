//! Workers that are wrappers: a shell that ends at `SIGTERM` and passes nothing on to the script that saves.

use std::fs;
use std::path::Path;

use telltale_cluster::agent::Exit;
use telltale_control_plane::supervisor::WorkerSettings;
use telltale_harness::{Scratch, has_own_process, skip, wait_until};

use super::{EPOCH, FIRST, TIMEOUT, WorkerEvent, next, settings, start, with_supervisor};
use crate::cluster::training::PYTHON;

/// A script as trainings are: it saves with the help of a process that it has started and that ends at
/// `SIGTERM`, as a DataLoader's do. Then it prints how that went.
const SCRIPT: &str = "\
import os, signal, subprocess, sys, time
place = os.environ['STATE']
helper = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
def save(*_):
    # Whatever else gets SIGTERM has it by then.
    time.sleep(0.5)
    try:
        helper.stdin.write('batch\\n')
        print('saved with', helper.stdout.readline(), end='', flush=True)
    except OSError as error:
        print('lost:', error, flush=True)
    open(place + '/saved', 'w').close()
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
open(place + '/ready', 'w').close()
while True:
    signal.pause()
";

/// What such a script leaves in `$STATE/log` when the worker, which starts it as `way` says, is asked to end.
fn saved_by(test: &str, way: &str) -> Option<String> {
    if !Path::new(PYTHON).exists() {
        skip(test, "needs Python at /usr/bin/python3");
        return None;
    }
    let scratch = Scratch::new();
    let script = scratch.join("script.py");
    fs::write(&script, SCRIPT).expect("a scratch file");
    let script = format!("{PYTHON} {}", script.display());
    let way = way.replace("SCRIPT", &script).replace("PYTHON", PYTHON);
    terminated(settings_of(&scratch, &way), &scratch);
    Some(fs::read_to_string(scratch.join("log")).expect("the script's output"))
}

fn settings_of(scratch: &Scratch, way: &str) -> WorkerSettings {
    let mut settings = settings(scratch.path(), way);
    settings.environment.push(("STATE".into(), scratch.path().into()));
    settings
}

/// Has a worker asked to end when it is ready, and waits until nothing of it is left. Nothing is killed.
fn terminated(settings: WorkerSettings, scratch: &Scratch) {
    with_supervisor(settings, async |mut supervisor| {
        start(&mut supervisor, FIRST, 0);
        next(&mut supervisor).await;
        wait_until("the worker to be ready", TIMEOUT, || scratch.join("ready").exists());
        supervisor.terminate(EPOCH, FIRST);
        let exited = WorkerEvent::Exited {
            epoch: EPOCH,
            local: FIRST,
            exit: Exit::Signal(15),
            failure: None,
        };
        assert_eq!(next(&mut supervisor).await, exited);
    });
}

#[test]
fn a_script_behind_any_wrapper_saves_with_what_it_has_started() {
    if !has_own_process() {
        return;
    }
    for way in [
        "exec > $STATE/log; SCRIPT; true",
        "exec > $STATE/log; sh -c 'SCRIPT; echo done'; true",
        "exec > $STATE/log; exec sh -c 'SCRIPT; echo done'",
        "exec > $STATE/log; exec PYTHON -c 'import os; os.system(\"SCRIPT; true\")'",
        "exec > $STATE/log; timeout --foreground 600 SCRIPT; true",
        // What reads a pipe is needed by what writes into it.
        "SCRIPT | cat > $STATE/log",
        "SCRIPT 2>&1 | grep --line-buffered . | cat > $STATE/log",
        "exec > >(cat > $STATE/log); SCRIPT; true",
        "(SCRIPT; true) | cat > $STATE/log",
    ] {
        let Some(log) = saved_by("cluster::supervision::wrappers::any_wrapper", way) else {
            return;
        };
        assert_eq!(log, "saved with batch\n", "{way}");
    }
}

#[test]
fn what_a_worker_prints_last_reaches_the_end_of_its_pipe() {
    if !has_own_process() {
        return;
    }
    // Slow enough to be at work when the worker has ended.
    const READER: &str = "\
exec > >(while read -r line; do echo $line; done > $STATE/log)
trap 'seq 5000; trap - TERM; kill $$' TERM
touch $STATE/ready
while :; do sleep 0.05; done";
    let scratch = Scratch::new();
    terminated(settings_of(&scratch, READER), &scratch);
    let log = fs::read_to_string(scratch.join("log")).unwrap_or_default();
    assert_eq!(log.lines().last(), Some("5000"));
}

#[test]
fn a_daemon_is_asked_to_end_after_the_script_that_may_need_it() {
    if !has_own_process() {
        return;
    }
    let daemon = "trap 'test -e $STATE/saved && touch $STATE/needed; exit' TERM; touch $STATE/runs; \
                  while :; do sleep 0.05; done";
    let way = format!(
        "export DAEMON='{}'; (setsid bash -c \"$DAEMON\" > /dev/null 2>&1 &)
         while ! test -e $STATE/runs; do sleep 0.01; done
         trap - TERM
         bash -c 'trap \"sleep 0.5; touch $STATE/saved; exit\" TERM; touch $STATE/ready
                  while :; do sleep 0.05; done'
         true",
        daemon.replace('\'', "'\\''")
    );
    let scratch = Scratch::new();
    terminated(settings_of(&scratch, &way), &scratch);
    assert!(scratch.join("saved").exists(), "the script had time");
    assert!(scratch.join("needed").exists(), "the daemon was there until the script had saved");
}

#[test]
fn processes_that_read_from_each_other_are_asked_to_end() {
    if !has_own_process() {
        return;
    }
    let way = "coproc cat; exec 0<&${COPROC[0]} 3>&${COPROC[1]}
               bash -c 'touch $STATE/ready; sleep 600'; true";
    let scratch = Scratch::new();
    terminated(settings_of(&scratch, way), &scratch);
}
