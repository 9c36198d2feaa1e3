//! The page of a process in the full-screen view: its command line as a whole, and its environment for
//! who may read it.

use std::fs;
use std::process::{Command, Stdio};

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{ChildGuard, Scratch, needs_root, wait_until};

use crate::cli::command::TIMEOUT;
use crate::cli::terminal::Terminal;

const ADA: &str = "61002";

/// What the view of a process with a long command line and a secret shows after `E`, run by `user`.
fn page(test: &str, user: &str, expected: &str) -> Option<String> {
    let place = Scratch::new();
    place.set_mode(0o755);
    let root = place.join("m");
    let mut machine =
        Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    let mut holder = Command::new("sleep");
    // Longer than what a snapshot has of a command line.
    holder.args(["600", &format!("0.{}123", "0".repeat(5_000))]);
    let holder =
        ChildGuard::spawn(holder.env_clear().env("SECRET", "of-its-user").stdin(Stdio::null()));
    machine.set_holders(0, &[holder.id()]).unwrap();
    let config = place.join("c");
    fs::create_dir(&config).unwrap();
    let line = format!(
        "setpriv --reuid {user} --clear-groups env LC_ALL=C XDG_CONFIG_HOME={} {} top --root {}",
        config.display(),
        env!("CARGO_BIN_EXE_telltale"),
        root.display(),
    );
    let mut terminal = Terminal::start(test, (100, 30), &line, &place)?;
    let pid = holder.id().to_string();
    wait_until("the process", TIMEOUT, || terminal.text().contains(&pid));
    terminal.type_in(b"E");
    wait_until(expected, TIMEOUT, || {
        // Its end is far below, and there once the page has been read; and all of it again, as cells
        // that were right before are not sent.
        terminal.type_in(b"  \x0c");
        terminal.text().contains(expected)
    });
    terminal.type_in(b"qq");
    Some(terminal.end().1)
}

#[test]
fn a_processs_environment_is_for_its_user_and_root() {
    let test = "cli::environment::a_processs_environment_is_for_its_user_and_root";
    if !needs_root(test) {
        return;
    }
    let Some(text) = page(test, "0", "SECRET=of-its-user") else { return };
    assert!(text.contains("00000123"), "the whole command line: {text}");
    // "only the user of process N and root may read it": a word, as blanks are not sent.
    let Some(text) = page(test, ADA, "only") else { return };
    assert!(!text.contains("of-its-user"), "{text}");
}
