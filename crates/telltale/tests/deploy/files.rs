//! Finding the files, and reading their formats by parsers that are not ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use telltale_harness::{python_with, skip};

/// Prints a YAML file's documents as a JSON array.
const AS_JSON: &str = "import json, sys, yaml; \
                       print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";

/// A file of the repository.
pub(crate) fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).canonicalize().unwrap()
}

/// A file in `deploy/`.
pub(crate) fn deploy(path: &str) -> PathBuf {
    in_repository("deploy").join(path)
}

/// Its text.
pub(crate) fn text(path: &str) -> String {
    fs::read_to_string(deploy(path)).unwrap()
}

/// Runs a tool. None where it is not installed, which is recorded for `test`.
pub(crate) fn tool(test: &str, command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(_) => {
            skip(test, &format!("there is no {}", command.get_program().to_string_lossy()));
            None
        }
    }
}

/// Asserts that a tool ended well and had nothing to say on standard error.
#[track_caller]
pub(crate) fn is_silent(output: &Output) {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && err.is_empty(), "{}: {out}{err}", output.status);
}

/// The documents of a YAML file in `deploy/`.
pub(crate) fn yaml(test: &str, path: &str) -> Option<Vec<Value>> {
    let mut command = python_with(test, "yaml")?;
    let output = command.args(["-c", AS_JSON]).arg(deploy(path)).output().unwrap();
    is_silent(&output);
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The strings of a JSON array.
#[track_caller]
pub(crate) fn words(value: &Value) -> Vec<String> {
    let words = value.as_array().unwrap_or_else(|| panic!("{value} is no list"));
    words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}
