//! `telltale emulate`: which directories will do, which faults are possible, and how it ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use telltale_emulator::Fault;
use telltale_harness::Scratch;

use crate::cli::command::{Running, TIMEOUT, emulate, said, smi, telltale};

#[test]
fn it_runs_until_a_signal_and_leaves_nothing() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut machine = emulate("p300", &root, &["--fault", "missing:0:tt_aiclk"]);
    let shown = smi::<&str>(&root, &[]);
    assert_eq!(shown.status, Some(0), "{shown:?}");
    // The fault is there from the beginning, on the first chip only.
    assert_eq!(shown.out.matches(" n/a ").count(), 1, "{}", shown.out);
    machine.terminate();
    assert_eq!(machine.wait_within("the machine to end", TIMEOUT).code(), Some(0));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_emulated_is_reported_in_one_sentence() {
    let place = Scratch::new();
    let path = |name: &str| place.join(name).to_str().unwrap().to_owned();
    let _running = emulate("n150", &place.join("taken"), &[]);
    fs::create_dir(path("full")).unwrap();
    fs::write(path("full/file"), "").unwrap();
    fs::write(path("file"), "").unwrap();
    let cases: [(&str, &[&str], &[&str]); 5] = [
        ("taken", &[], &["running in", "choose another directory"]),
        ("full", &[], &["is not empty", "choose a new or an empty directory"]),
        ("file", &[], &["file"]),
        ("new", &["--fault", "missing:7:tt_aiclk"], &["missing:7:tt_aiclk", "no chip 7"]),
        ("new", &["--fault", "missing:0:tt_nonsense"], &["no file", "tt_nonsense"]),
    ];
    for (root, more, words) in cases {
        let mut command = telltale();
        command.args(["emulate", "--machine", "n150", "--root", &path(root)]);
        said(command.args(more)).complains(2, words);
    }
    assert!(!place.join("new").exists(), "a machine that did not start leaves nothing");
}

#[test]
fn files_of_others_that_keep_its_directory_are_named() {
    for (count, words) in [(1, "run/tt/0; remove"), (9, ", and others; remove")] {
        let place = Scratch::new();
        let root = place.join("m");
        let mut command = telltale();
        command.args(["emulate", "--machine", "n150", "--root"]).arg(&root);
        let mut child = Running::start(command.stdout(Stdio::piped())).child;
        let mut lines = BufReader::new(child.child().stderr.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().starts_with("An emulated "));
        for number in 0..count {
            fs::write(root.join(format!("run/tt/{number}")), "").unwrap();
        }
        child.interrupt();
        let reported = lines.next().unwrap().unwrap();
        assert!(reported.contains(&format!("{} stays", root.display())), "{reported}");
        assert!(reported.contains(words), "{reported}");
        assert!(lines.next().is_none());
        assert_eq!(child.wait_within("the machine to end", TIMEOUT).code(), Some(0));
        let names = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["run"], "nothing of its own stays");
    }
}

#[test]
fn the_help_lists_every_fault() {
    let help = said(telltale().args(["emulate", "--help"])).out;
    for (form, effect) in Fault::forms() {
        let line = help.lines().find(|line| line.trim_start().starts_with(&form));
        assert!(line.is_some_and(|line| line.ends_with(&effect)), "{form}: {help}");
    }
}
