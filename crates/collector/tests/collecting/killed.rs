//! A workload that is killed while it starts or stops leaves nothing that cannot be cleaned.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use telltale_emulator::MachineKind;
use telltale_harness::{ChildGuard, rounds};
use telltale_ledger::directory::temporary_name;
use telltale_runtime::{DeviceDescription, Options, Runtime};

use crate::collecting::bench::Bench;

const DIRECTORY: &str = "TELLTALE_TEST_OPENS_AND_CLOSES_IN";

/// Nothing, unless this process was started by [`opener`].
#[test]
fn opens_and_closes_for_ever() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let options = Options::from_variables("test 1", |_| None);
    let options = Options { directory: Some(PathBuf::from(directory)), ..options };
    let runtime = Runtime::start(options);
    loop {
        drop(runtime.open_device(DeviceDescription::default()));
        println!("\n!");
    }
}

/// This test program, which opens and closes a device in the bench's directory until it is
/// killed, and has done so once.
fn opener(bench: &Bench) -> ChildGuard {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "collecting::killed::opens_and_closes_for_ever", "--nocapture"]);
    command.env(DIRECTORY, &bench.directory).stdout(Stdio::piped());
    let mut child = ChildGuard::spawn(&mut command);
    let mut output = child.child().stdout.take().unwrap();
    let mut byte = [0];
    while byte != *b"!" {
        output.read_exact(&mut byte).unwrap();
    }
    // There is no reader from here on, so the pipe must not fill up or break.
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    child
}

fn names(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(&bench.directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn whenever_a_starting_workload_is_killed_nothing_is_left_after_cleaning() {
    let bench = Bench::new(MachineKind::N150);
    for round in 0..rounds(20, 300) {
        let mut child = opener(&bench);
        // Any moment will do: this is to hit them all in the course of time.
        let moment = Instant::now() + Duration::from_micros(u64::from(round) * 7919 % 1500);
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        child.kill();
        let left = names(&bench);
        let report = telltale_collector::clean(bench.options()).unwrap();
        assert_eq!(names(&bench), [""; 0], "of {left:?}: {report:?}");
    }
}

#[test]
fn an_unfinished_endpoint_stays_while_its_process_lives() {
    let bench = Bench::new(MachineKind::N150);
    let me = telltale_ledger::identity_of_this_process().unwrap();
    let mine = temporary_name(me.pid, me.start_time_ticks, 1);
    let dead = temporary_name(me.pid, me.start_time_ticks + 1, 1);
    let no_socket = temporary_name(me.pid, me.start_time_ticks + 1, 2);
    for name in [&mine, &dead] {
        drop(std::os::unix::net::UnixListener::bind(bench.directory.join(name)).unwrap());
    }
    std::fs::write(bench.directory.join(&no_socket), "").unwrap();
    let report = telltale_collector::clean(bench.options()).unwrap();
    assert_eq!((report.removed.len(), report.left.len(), report.alive), (1, 1, 1), "{report:?}");
    let mut names = names(&bench);
    names.sort();
    let mut kept = [mine, no_socket];
    kept.sort();
    assert_eq!(names, kept);
}
