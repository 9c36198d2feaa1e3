//! `telltale emulate`: which directories will do, which faults are possible, and how it ends.

use std::fs;

use telltale_harness::Scratch;

use crate::command::{PATIENCE, emulate, said, smi, telltale};

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
    assert_eq!(machine.wait_within("the machine to end", PATIENCE).code(), Some(0));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_emulated_is_told_in_one_sentence() {
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
