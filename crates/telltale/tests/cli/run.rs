//! `telltale run`: the command is what it is without, and `telltale smi` shows what it has.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use telltale_harness::{
    ChildGuard, Scratch, cargo_library_directory, compile_cpp, skip, wait_until,
};
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::Snapshot;

use crate::cli::command::{TIMEOUT, said, telltale};

static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    cargo_library_directory("telltale-preload", "telltale_preload").join("libtelltale_preload.so")
});

/// A runtime directory.
fn place() -> Scratch {
    let place = Scratch::new();
    place.set_mode(0o700);
    place
}

fn run(place: &Scratch, arguments: &[&str]) -> Command {
    let mut command = telltale();
    command.arg("run").arg("--library").arg(&*LIBRARY).arg("--runtime-dir").arg(place.path());
    command.args(arguments);
    command
}

fn snapshot(place: &Scratch) -> Snapshot {
    let said = said(telltale().args(["smi", "--json", "--runtime-dir"]).arg(place.path()));
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

#[test]
fn what_a_command_has_is_shown_on_the_machine_itself_while_it_runs() {
    let test = "cli::run::what_a_command_has_is_shown_on_the_machine_itself_while_it_runs";
    if !PathBuf::from("/usr/bin/python3").exists() {
        return skip(test, "needs Debian's python3");
    }
    let place = place();
    let script =
        "import sys; kept = bytearray(90_000_000); print('has', flush=True); sys.stdin.read()";
    let mut command = run(&place, &["--threshold", "8MiB", "--", "/usr/bin/python3", "-c", script]);
    let mut child = ChildGuard::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut has = [0; 4];
    std::io::Read::read_exact(child.child().stdout.as_mut().unwrap(), &mut has).unwrap();
    let shown = snapshot(&place);
    let host = shown.devices.iter().position(|device| device.identity.is_host()).unwrap();
    let [process] = shown.processes.as_slice() else { panic!("{:?}", shown.processes) };
    assert_eq!(process.pid, Some(child.id()), "the command is this process");
    let held = process.devices.iter().find(|held| held.device == host).unwrap();
    let of_host = held.kinds.iter().find(|one| one.kind == MemoryKind::SystemMemory).unwrap();
    assert_eq!(of_host.usage.live_bytes(), 90_000_001);
    let parts = shown.devices[host].kind(MemoryKind::SystemMemory).unwrap();
    assert_eq!((parts.processes_bytes, parts.total_bytes), (90_000_001, 90_000_001));
    let table = said(telltale().args(["smi", "--runtime-dir"]).arg(place.path()));
    let shown = ["SYSTEM", "host", "85.8 MiB", "python3"];
    assert!(shown.iter().all(|word| table.out.contains(word)), "{}", table.out);
    drop(child.child().stdin.take());
    assert!(child.wait_within("the command to end", TIMEOUT).success());
    wait_until("the process to be gone", TIMEOUT, || snapshot(&place).processes.is_empty());
}

/// The program has a ledger of its own then, and a second one by the library.
#[test]
fn a_program_that_records_itself_is_shown_with_what_both_know_of_it() {
    let (place, built) = (place(), Scratch::new());
    let library = cargo_library_directory("telltale-capi", "telltale").join("libtelltale.a");
    let capi = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../capi");
    let include = format!("-I{}", capi.join("include").display());
    // As docs/integrate.md says.
    let mut flags = vec![include.as_str(), library.to_str().unwrap()];
    flags.extend(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
    let program =
        compile_cpp(&capi.join("examples/allocator.cpp"), &built.join("allocator"), &flags);
    let mut command = run(&place, &["--threshold", "1", "--"]);
    command.arg(program).arg(place.path()).env_remove("TELLTALE_DISABLED");
    let mut child = ChildGuard::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut line = String::new();
    let output = child.child().stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    let live: u64 = line.trim().parse().unwrap();

    let shown = snapshot(&place);
    let [process] = shown.processes.as_slice() else { panic!("{:?}", shown.processes) };
    assert_eq!(process.pid, Some(child.id()));
    let of_kind = |kind: MemoryKind| {
        let kinds = process.devices.iter().flat_map(|held| &held.kinds);
        kinds.filter(|one| one.kind == kind).map(|one| one.usage.live_bytes()).sum::<u64>()
    };
    assert_eq!(of_kind(MemoryKind::Dram), live, "its own ledger, once");
    assert!(of_kind(MemoryKind::SystemMemory) > 0, "and what the library saw");
    assert_eq!(shown.devices.iter().filter(|device| device.identity.is_host()).count(), 1);
    drop(child.child().stdin.take());
    assert!(child.wait_within("the program to end", TIMEOUT).success());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn exit_statuses_and_signals_are_the_commands_own() {
    let place = place();
    let status = |script: &str| run(&place, &["--", "sh", "-c", script]).status().unwrap();
    assert_eq!(status("exit 7").code(), Some(7));
    assert_eq!(status("exit 64").code(), Some(64));
    assert_eq!(status("kill -TERM $$").signal(), Some(15));
    let pid = said(&mut run(&place, &["sh", "-c", "echo $PPID"])).out;
    assert_eq!(pid.trim(), std::process::id().to_string(), "no process stands between");
    let said = said(&mut run(&place, &["--", "echo", "--threshold", "x"]));
    assert_eq!((said.out.as_str(), said.err.as_str()), ("--threshold x\n", ""));
}

#[test]
fn what_cannot_be_run_is_said_as_shells_say_it() {
    let place = place();
    said(&mut run(&place, &["--", "no-such-command"])).complains(127, &["no-such-command", "PATH"]);
    said(&mut run(&place, &["--", "/etc/passwd"])).complains(126, &["/etc/passwd", "executed"]);
    let nowhere = ["run", "--library", "/nowhere/lib.so", "--", "true"];
    said(telltale().args(nowhere)).complains(2, &["/nowhere/lib.so"]);
    assert_eq!(said(telltale().arg("run")).status, Some(64));
    assert_eq!(said(&mut run(&place, &["--threshold", "1MB", "--", "true"])).status, Some(64));
}

#[test]
fn a_command_runs_unrecorded_where_there_is_no_runtime_directory() {
    let library = LIBRARY.to_str().unwrap();
    let arguments = ["--library", library, "--runtime-dir", "/nowhere"];
    let run = |more: &[&str]| {
        said(telltale().arg("run").args(arguments).args(more).args([
            "--",
            "sh",
            "-c",
            "echo $LD_PRELOAD; exit 5",
        ]))
    };
    let reported = run(&[]);
    assert_eq!((reported.status, reported.out.as_str()), (Some(5), "\n"));
    assert!(
        reported.err.starts_with("telltale: nothing is recorded: ")
            && reported.err.lines().count() == 1
    );
    let quiet = run(&["--quiet"]);
    assert_eq!((quiet.status, quiet.err.as_str()), (Some(5), ""));
}

#[test]
fn the_library_is_found_where_it_is_built_or_installed() {
    let place = Scratch::new();
    let prefix = place.join("usr");
    let own = env!("CARGO_BIN_EXE_telltale");
    let find = |library: &str| {
        let _ = std::fs::remove_dir_all(&prefix);
        for directory in ["bin", "lib/telltale"] {
            std::fs::create_dir_all(prefix.join(directory)).unwrap();
        }
        // By a process of its own: what is copied here would be busy while children of other tests have it open.
        let copied = Command::new("cp").arg(own).arg(prefix.join("bin/telltale")).status();
        assert!(copied.unwrap().success());
        if !library.is_empty() {
            std::fs::copy(&*LIBRARY, prefix.join(library)).unwrap();
        }
        let mut command = Command::new(prefix.join("bin/telltale"));
        command.args(["run", "--runtime-dir"]).arg(place.path());
        said(command.args(["--", "sh", "-c", "echo $LD_PRELOAD"]).env_remove("LD_PRELOAD"))
    };
    let prefix = place.path().canonicalize().unwrap().join("usr");
    let name = "libtelltale_preload.so";
    for library in [format!("bin/{name}"), format!("lib/telltale/{name}"), format!("lib/{name}")] {
        let found = find(&library);
        assert_eq!(found.out.trim(), prefix.join(&library).to_str().unwrap(), "{found:?}");
    }
    find("").complains(2, &["libtelltale_preload.so", "--library", "cargo build"]);
    std::fs::write(place.join("text"), "no library").unwrap();
    for (library, why) in [("text", "it is no ELF file"), ("absent", "No such file")] {
        let mut command = Command::new(own);
        command.args(["run", "--library"]).arg(place.join(library)).args(["--", "true"]);
        said(&mut command).complains(2, &["cannot use the library", why, "libtelltale_preload.so"]);
    }
}
