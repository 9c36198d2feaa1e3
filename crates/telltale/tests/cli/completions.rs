//! Completion scripts, loaded and used by the shells themselves.

use std::io::Write;
use std::process::{Command, Stdio};

use telltale_harness::{Scratch, skip};

use crate::cli::command::{said, telltale};

/// Runs `program` of `shell` with the completion script at `$SCRIPT`, and gives what it prints.
/// None where there is no such shell, which is recorded.
fn completed(test: &str, shell: &str, arguments: &[&str], program: &str) -> Option<String> {
    let script = said(telltale().args(["completions", shell]));
    assert_eq!((script.status, script.err.as_str()), (Some(0), ""));
    let place = Scratch::new();
    // The name that zsh wants of a function it loads by itself.
    let path = place.join("_telltale");
    std::fs::write(&path, script.out).unwrap();
    let mut command = Command::new(shell);
    command.args(arguments).env("SCRIPT", &path).env("HOME", place.path()).env("TERM", "dumb");
    command.env("DIRECTORY", place.path()).env("XDG_CONFIG_HOME", place.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        skip(test, &format!("there is no {shell}"));
        return None;
    };
    child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.is_empty(), "{shell}: {err}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn bash_completes_commands_and_their_options() {
    let program = r#"
        set -u
        source "$SCRIPT"
        complete -p telltale
        complete_words() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
            _telltale telltale "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            echo "${COMPREPLY[@]}"
        }
        complete_words telltale he
        complete_words telltale serve --st
        complete_words telltale config ch
        complete_words telltale demo --workload ""
        complete_words telltale worker-
    "#;
    let arguments = ["--norc", "--noprofile"];
    let found = completed("cli::completions::bash", "bash", &arguments, program).unwrap();
    let lines: Vec<&str> = found.lines().collect();
    assert!(lines[0].contains("-F _telltale") && lines[0].ends_with(" telltale"), "{found}");
    assert_eq!(lines[1..], ["health help", "--state-dir", "check", "gpt trace", ""], "{found}");
}

#[test]
fn zsh_loads_the_script_by_itself() {
    let program = r#"
        fpath=("$DIRECTORY" $fpath)
        autoload -Uz compinit
        compinit -u -D
        print -r -- $_comps[telltale]
        autoload +X _telltale && whence -w _telltale
    "#;
    let found = completed("cli::completions::zsh", "zsh", &["-f"], program);
    let Some(found) = found else { return };
    assert_eq!(found, "_telltale\n_telltale: function\n");
}

#[test]
fn fish_completes_commands_and_their_options() {
    let program = r#"
        source $SCRIPT
        complete -C "telltale hea"
        complete -C "telltale serve --state"
        complete -C "telltale demo --workload t"
    "#;
    let found = completed("cli::completions::fish", "fish", &["--no-config"], program);
    let Some(found) = found else { return };
    let words: Vec<&str> = found.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(words, ["health", "--state-dir", "trace"], "{found}");
}
