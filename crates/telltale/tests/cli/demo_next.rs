//! The commands that a demo names at its end: how the program is called in them, and that each works as it is
//! printed.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use telltale_harness::Scratch;

use crate::cli::command::{Running, said, telltale};
use crate::cli::serve::Serving;

const HEADING: &str = "Try next:";
const PROGRAM: &str = env!("CARGO_BIN_EXE_telltale");

/// The commands in what a demo printed, without what each shows.
#[track_caller]
fn named(lines: &[String]) -> Vec<String> {
    let mut lines = lines.iter().skip_while(|line| *line != HEADING);
    assert!(lines.next().is_some(), "nothing to try");
    let command = |line: &String| {
        let (command, shows) =
            line.trim_start().split_once("   ").expect("a command and what it shows");
        assert!(!shows.trim().is_empty(), "{line}");
        command.trim_end().to_owned()
    };
    lines.map(command).collect()
}

/// What the demo of one machine names, started by `command`.
#[track_caller]
fn after_machine(command: &mut Command, place: &Path) -> Vec<String> {
    command.args(["demo", "--workload", "trace", "--seconds", "0.1"]);
    let said = said(command.env("XDG_RUNTIME_DIR", place));
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    named(&said.out.lines().map(str::to_owned).collect::<Vec<_>>())
}

/// What the demo of a cluster names, which is ended at its first line.
fn after_cluster(place: &Path) -> Vec<String> {
    let mut command = telltale();
    command.args(["demo", "--cluster"]).env("XDG_RUNTIME_DIR", place);
    let mut demo = Running::start(&mut command);
    demo.line();
    demo.child.interrupt();
    assert_eq!(demo.status(), Some(0));
    named(&demo.rest())
}

/// A command line in a shell, with the environment of other commands and places of its own.
fn in_a_shell(line: &str, place: &Path) -> Command {
    let mut command = Command::new("sh");
    for (name, value) in telltale().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .env("XDG_RUNTIME_DIR", place)
        .env("TELLTALE_STATE_DIR", place.join("state"))
        .env("XDG_CONFIG_HOME", place);
    command.args(["-c", &format!("exec {line}")]).stdin(Stdio::null());
    command
}

#[test]
fn each_command_works_as_it_is_printed() {
    let place = Scratch::new();
    let mut lines = after_machine(&mut telltale(), place.path());
    lines.extend(after_cluster(place.path()));
    assert_eq!(lines.len(), 6);
    lines.sort();
    lines.dedup();
    for line in &lines {
        let arguments = line.strip_prefix(&format!("{PROGRAM} ")).expect("it is called as it was");
        let mut command = in_a_shell(line, place.path());
        match arguments {
            "smi" => {
                let said = said(&mut command);
                assert_eq!(said.status, Some(0), "{said:?}");
                assert!(said.out.starts_with("ID "), "{said:?}");
            }
            "serve" => {
                // The usual port may be another service's here.
                let mut serve = Serving::start(command.env("TELLTALE_HTTP_LISTEN", "127.0.0.1:0"));
                serve.says("http listens on 127.0.0.1:");
                serve.end();
            }
            "demo" | "demo --cluster" => {
                let mut demo = Running::start(&mut command);
                assert!(!demo.line().is_empty());
                demo.child.interrupt();
                assert_eq!(demo.status(), Some(0), "{line}");
            }
            "gpt --steps 20" => {
                let said = said(&mut command);
                assert_eq!(said.status, Some(0), "{said:?}");
                let last = said.out.lines().last().unwrap();
                assert!(last.starts_with("step 20  loss "), "{said:?}");
            }
            other => panic!("no test of `telltale {other}`"),
        }
    }
}

#[test]
fn the_program_is_called_as_short_as_it_can_be() {
    let (place, bin) = (Scratch::new(), Scratch::new());
    std::fs::create_dir_all(bin.join("target/release")).unwrap();
    let program = bin.join("target/release/telltale");
    symlink(PROGRAM, &program).unwrap();
    let first = |command: &mut Command| {
        let lines = after_machine(command, place.path());
        lines[0].strip_suffix(" smi").expect("that is the first one").to_owned()
    };
    let program = program.display().to_string();
    // As cargo calls it, which starts it by its whole path in the current directory.
    assert_eq!(first(Command::new(&program).current_dir(bin.path())), "target/release/telltale");
    assert_eq!(first(Command::new(&program).current_dir(bin.join("target"))), "release/telltale");
    let beside = bin.join("target/release");
    assert_eq!(first(Command::new(&program).current_dir(&beside)), "./telltale");
    assert_eq!(first(&mut Command::new(&program)), program);
    let path = format!("{}:{}", beside.display(), std::env::var("PATH").unwrap());
    assert_eq!(first(Command::new(&program).env("PATH", &path)), "telltale");
    let by_name = &mut Command::new("sh");
    by_name.args(["-c", "exec telltale \"$@\"", "sh"]).env("PATH", &path);
    assert_eq!(first(by_name), "telltale");
}
