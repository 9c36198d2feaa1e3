//! What the documents show in Python is Python, and what they pipe `telltale smi --json` into prints what the page says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use telltale_harness::{Scratch, code_blocks, skip};

use crate::cli::command::{emulate, telltale};

/// The pages below docs/.
fn pages() -> Vec<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let entries = fs::read_dir(docs).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect()
}

/// Python that can be run, if there is one.
fn python(test: &str) -> Option<&'static str> {
    let found = Command::new("python3").arg("-V").output().is_ok_and(|it| it.status.success());
    if !found {
        skip(test, "needs python3");
    }
    found.then_some("python3")
}

#[test]
fn each_python_block_compiles() {
    let Some(python) = python("telltale::cli::documented::each_python_block_compiles") else {
        return;
    };
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for block in code_blocks(&text, "python") {
            let compile = "import sys; compile(sys.argv[1], sys.argv[2], 'exec')";
            let output =
                Command::new(python).args(["-c", compile, block]).arg(&page).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            count += 1;
        }
    }
    assert!(count >= 4, "{count}");
}

#[test]
fn the_python_behind_a_pipe_counts_the_processes_of_devices() {
    let test = "telltale::cli::documented::the_python_behind_a_pipe";
    if python(test).is_none() {
        return;
    }
    let place = Scratch::new();
    let _machine = emulate("n150", &place.join("m"), &[]);
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md"));
    let page = page.unwrap();
    let [shell] = code_blocks(&page, "sh")[..] else { panic!("one block of shell is shown") };
    let (_, python) = shell.split_once(" | python3").expect("the second line pipes into Python");
    let json = telltale().args(["smi", "--json", "--root"]).arg(place.join("m")).output().unwrap();
    fs::write(place.join("json"), &json.stdout).unwrap();
    let script = format!("python3{python} < {}", place.join("json").display());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert!(numbers.len() == 2 && numbers[0] > 1_700_000_000 && numbers[1] == 0, "{text}");
}
