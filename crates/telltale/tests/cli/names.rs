//! Processes with hostile names are shown without harm.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use telltale_harness::{Scratch, wait_until};

use crate::cli::command::{Running, TIMEOUT, emulate, smi, snapshot};

/// Starts a replay whose file is called `name` and whose first argument is `first`.
fn replay_called(place: &Path, root: &Path, name: &[u8], first: &[u8]) -> Running {
    let link = place.join(OsStr::from_bytes(name));
    symlink(env!("CARGO_BIN_EXE_telltale"), &link).unwrap();
    let mut command = Command::new(link);
    command.arg0(OsString::from(OsStr::from_bytes(first)));
    command.args(["replay", "train", "--loop", "--root"]).arg(root);
    Running::start(&mut command)
}

/// Whether a terminal could be steered by `c`.
fn steers(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\r')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn no_name_steers_a_terminal_or_breaks_a_table() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n150", &root, &[]);
    let hostile: [(&[u8], &[u8]); 4] = [
        (b"\x1b[2Jclear", b"\x1b]0;title\x07\x1b[31mred"),
        ("訓練訓練".as_bytes(), "訓練\u{202e}gnp.exe".as_bytes()),
        (b"\xff\xfe\x9b2J", b"\xc3\x28\x80\xffraw"),
        (b"two\nlines,\"q\"", b"a,\"b\"\r\nc\td"),
    ];
    let replays = hostile.map(|(name, first)| replay_called(place.path(), &root, name, first));
    let pids = replays.each_ref().map(|replay| replay.child.id());
    wait_until("all of them to allocate", TIMEOUT, || {
        snapshot(&root).processes.iter().filter(|process| !process.devices.is_empty()).count() == 4
    });
    let forms: [&[&str]; 5] = [&[], &["-d"], &["--csv"], &["--csv", "-d"], &["--json"]];
    for form in forms {
        let said = smi(&root, form);
        assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{form:?}: {}", said.out);
        let bad: Vec<char> = said.out.chars().filter(|c| steers(*c)).collect();
        assert!(bad.is_empty(), "{form:?}: {bad:?} in {}", said.out);
    }
    let table = smi::<&str>(&root, &[]).out;
    let rows = table.lines().skip_while(|line| !line.contains("COMMAND")).skip(1);
    let mut shown: Vec<u32> = rows
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
        .collect();
    shown.sort_unstable();
    let mut expected = pids.to_vec();
    expected.sort_unstable();
    assert_eq!(shown, expected, "one line for each: {table}");
    assert!(table.contains("訓練"), "{table}");
    let rows = smi(&root, &["--csv", "-d"]).out;
    assert_eq!(rows.matches("\r\n").count(), rows.matches('\n').count());
}
