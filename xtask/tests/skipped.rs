//! What was skipped is printed once, can be cleared, and can be made to fail a build.

use std::process::{Command, Output};

use telltale_harness::Scratch;

fn xtask_skipped(file: &std::path::Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("skipped")
        .args(arguments)
        .env("TELLTALE_SKIP_FILE", file)
        .output()
        .expect("the program under test starts")
}

#[test]
fn skipped_tests_are_printed_refused_and_cleared() {
    let scratch = Scratch::new();
    let file = scratch.join("skipped.txt");
    let text = |arguments: &[&str]| {
        let output = xtask_skipped(&file, arguments);
        (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
    };
    assert_eq!(text(&[]), (String::new(), Some(0)));
    assert_eq!(text(&["--expect-none"]), (String::new(), Some(0)));

    std::fs::write(&file, "b: needs root\na: needs PyTorch\nb: needs root\n").unwrap();
    let lines = "a: needs PyTorch\nb: needs root\n".to_owned();
    assert_eq!(text(&[]), (lines.clone(), Some(0)));
    assert_eq!(text(&["--expect-none"]), (lines, Some(1)));

    assert_eq!(text(&["--clear"]), (String::new(), Some(0)));
    assert_eq!(text(&["--expect-none"]), (String::new(), Some(0)));
    assert!(!file.exists());
}

#[test]
fn a_test_that_only_takes_long_lacks_nothing() {
    let report = "a: needs root\nb: takes a minute; TELLTALE_LONG_TESTS=1 runs it\n";
    assert_eq!(xtask::skipped::missing(report), "a: needs root\n");
}
