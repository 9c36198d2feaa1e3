//! Wrong usage, help texts, and output that cannot be written.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;

use crate::cli::command::{said, telltale};

const COMMANDS: [&str; 22] = [
    "smi",
    "serve",
    "config",
    "alerts",
    "cluster",
    "health",
    "history",
    "report",
    "demo",
    "gpt",
    "replay",
    "events",
    "train",
    "emulate",
    "completions",
    "man",
    "agent",
    "coordinator",
    "doctor",
    "top",
    "select",
    "autopsy",
];

#[test]
fn wrong_usage_exits_with_64_and_says_what_is_wrong() {
    let cases: [(&[&str], &str); 33] = [
        (&[], "Usage"),
        (&["frobnicate"], "frobnicate"),
        (&["smi", "--frobnicate"], "--frobnicate"),
        (&["smi", "--json", "--csv"], "--csv"),
        (&["smi", "-w", "0"], "not a number of seconds from 0.1"),
        (&["smi", "-w", "soon"], "not a number of seconds"),
        (&["smi", "--root"], "--root"),
        (&["smi", "--query-gpu=name"], "'--query-device'"),
        (&["smi", "-q", "-x"], "all that is known: '-d'"),
        (&["smi", "-pm", "1"], "telltale writes to no device"),
        (&["smi", "--query-compute-apps=pid"], "'--query-process'"),
        (&["demo", "--workload", "none"], "[possible values: gpt, trace]"),
        (&["demo", "--seconds", "-1"], "unexpected argument '-1'"),
        (&["gpt", "--cache", "maybe"], "[possible values: on, off, check]"),
        (&["gpt", "--resume"], "--checkpoint <DIR>"),
        (&["gpt", "--checkpoint", "/tmp/x", "--checkpoint-every", "0"], "0 is not in 1.."),
        (&["gpt", "--steps", "many"], "invalid digit"),
        (&["replay"], "<TRACE>"),
        (&["replay", "train", "--speed", "fast"], "neither `max` nor a number"),
        (&["events"], "<CAPTURE>"),
        (&["events", "x", "--core", "5-2"], "ends before it begins"),
        (&["events", "x", "--dtype", "float"], "[possible values: int8,"),
        (&["events", "x", "--type", "tensors"], "none of tensor, text"),
        (&["events", "x", "--every", "0"], "0 is not in 1.."),
        (&["events", "x", "--convert", "npy"], "--output <OUT>"),
        (&["events", "x", "--convert", "csv", "-o", "y"], "[possible values: npy,"),
        (&["events", "x", "-f", "--convert", "raw", "-o", "y"], "--follow"),
        (&["emulate", "--machine", "n151", "--root", "/tmp/x"], "[possible values: n150"),
        (&["emulate", "--machine", "n150"], "--root"),
        (
            &["emulate", "n150", "--root", "/tmp/x"],
            "tip: a machine is chosen with '--machine n150'",
        ),
        (
            &["emulate", "--machine", "n150", "--root", "/tmp/x", "--fault", "fire:0"],
            "write missing:N:FILE",
        ),
        (
            &["emulate", "--machine", "n150", "--root", "/tmp/x", "--fault", "fire:0@5"],
            "write missing:N:FILE",
        ),
        (
            &["emulate", "--machine", "n150", "--root", "/tmp/x", "--fault", "stop:0@5..1"],
            "write FAULT@SECONDS or FAULT@FROM..TO",
        ),
    ];
    for (arguments, words) in cases {
        let said = said(telltale().args(arguments));
        assert_eq!((said.status, said.out.as_str()), (Some(64), ""), "{arguments:?}: {said:?}");
        assert!(said.err.contains(words), "{arguments:?}: {}", said.err);
    }
    let said = said(telltale().arg(OsStr::from_bytes(b"--\xff")));
    assert_eq!(said.status, Some(64), "an option that is no text: {said:?}");
}

#[test]
fn a_variable_gives_way_to_an_option_that_an_option_conflicts_with() {
    let conflict = "cannot be used with";
    for (arguments, words) in [
        (["smi", "--hosts", "unix:/nowhere"], "/nowhere"),
        (["smi", "--replay", "/nowhere"], "/nowhere cannot be replayed"),
    ] {
        let of = |more: &[&str]| {
            let mut command = telltale();
            command.args(arguments).args(more).env("TELLTALE_ROOT", "/m");
            command.env("TELLTALE_RUNTIME_DIR", "/r");
            said(command.env("TELLTALE_STATE_DIR", "/s"))
        };
        let variable = of(&[]);
        let all = variable.out + &variable.err;
        assert!(all.contains(words) && !all.contains(conflict), "{arguments:?}: {all}");
        let option = of(&["--root", "/m"]);
        assert_eq!(option.status, Some(64), "{arguments:?}: {option:?}");
        assert!(option.err.contains(conflict), "{arguments:?}: {}", option.err);
    }
}

#[test]
fn options_of_our_own_look_are_refused_where_somebody_else_has_looked() {
    let reported = |command: &str, ours: &str, theirs: &[&str]| {
        let said = said(telltale().args([command, ours]).args(theirs));
        assert_eq!((said.status, said.out.as_str()), (Some(64), ""), "{theirs:?}: {said:?}");
        for words in [ours, theirs[0], "cannot be used with"] {
            assert!(said.err.contains(words), "{words}: {}", said.err);
        }
    };
    for theirs in [["--at", "3m ago"], ["--replay", "x"], ["--hosts", "x"]] {
        reported("smi", "--no-nvml", &theirs);
        reported("smi", "--with-host", &theirs);
    }
    for theirs in [["--replay", "x"], ["--hosts", "x"]] {
        reported("top", "--no-nvml", &theirs);
    }
    reported("alerts", "--no-nvml", &["--replay", "x"]);
    reported("alerts", "--no-nvml", &["--rules"]);
}

#[test]
fn every_command_explains_itself_in_lines_that_fit() {
    let texts = COMMANDS.map(|command| said(telltale().args([command, "--help"])));
    for (command, help) in COMMANDS.iter().zip(&texts) {
        assert_eq!((help.status, help.err.as_str()), (Some(0), ""), "{command}");
        assert!(help.out.contains(&format!("Usage: telltale {command}")), "{}", help.out);
        assert!(!help.out.contains("end-with-parent"), "an option between our own processes");
        for line in help.out.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        // A written line that is too long is broken again, and a word of it stands alone.
        let lines: Vec<&str> = help.out.lines().collect();
        for around in lines.windows(2).filter(|around| !around[1].is_empty()) {
            let is_alone = !around[0].is_empty() && !around[0].contains(' ');
            assert!(!is_alone || around[0].ends_with(':'), "{command}: {around:?}");
        }
    }
    let whole = said(telltale().arg("--help"));
    assert_eq!(whole.status, Some(0));
    for command in COMMANDS {
        assert!(whole.out.contains(command), "{}", whole.out);
    }
    let version = said(telltale().arg("--version"));
    assert_eq!(version.out, format!("telltale {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_full_disk_is_reported_in_one_sentence_and_a_failing_exit_status() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    let root = root.to_str().unwrap();
    let commands: [&[&str]; 10] = [
        &["smi", "--root", root],
        &["smi", "--root", root, "-d"],
        &["smi", "--root", root, "--json"],
        &["smi", "--root", root, "--csv"],
        &["smi", "--root", root, "-w", "0.1"],
        &["demo", "--seconds", "1"],
        &["gpt", "--steps", "1", "--runtime-dir", root],
        &["replay", "train", "--speed", "max"],
        &["completions", "bash"],
        &["--help"],
    ];
    for arguments in commands {
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let reported =
            said(telltale().args(arguments).env("XDG_RUNTIME_DIR", place.path()).stdout(full()));
        reported.complains(2, &["standard output", "No space left"]);
        let speechless = telltale().args(arguments).stdout(full()).stderr(full()).status().unwrap();
        assert_eq!(speechless.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_limit_on_open_files_that_is_too_low_is_named() {
    for limit in [10, 31] {
        for words in ["smi", "doctor", "serve", "coordinator --job a --nodes 1", "gpt", "health"] {
            let mut shell = std::process::Command::new("sh");
            let program = env!("CARGO_BIN_EXE_telltale");
            shell.args(["-c", &format!("ulimit -n {limit}; exec {program} {words}")]);
            let limit = format!("at most {limit} files");
            said(&mut shell).complains(2, &[&limit, "raise the limit on open files (ulimit -n)"]);
        }
    }
    // A workload runs with whatever it was given.
    let mut shell = std::process::Command::new("sh");
    let program = env!("CARGO_BIN_EXE_telltale");
    shell.args(["-c", &format!("ulimit -n 10; exec {program} run -- true")]);
    assert_eq!(said(&mut shell).status, Some(0));
}
