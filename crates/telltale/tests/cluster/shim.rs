//! The Python module that reports collectives: as the agent gives it to workers, and installed by pip.

use std::path::Path;
use std::process::{Command, Output};

use telltale_harness::{Scratch, skip};

use crate::cluster::job::Job;

const PYTHON: &str = "/usr/bin/python3";
const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python");
/// Prints which copy of the module was imported, by whom ever.
const PRINT: &str = "\
import sys, time
print('told by', sys.modules['telltale_ccl'].__file__)
print('path', [place for place in sys.path if 'shim' in place])
";

#[test]
fn an_agent_gives_its_own_copy_to_workers_warm_or_not() {
    if !Path::new(PYTHON).exists() {
        skip("cluster::shim::an_agent_gives_its_own_copy", "needs Python at /usr/bin/python3");
        return;
    }
    for options in [&["--shim"][..], &["--shim", "--warm"]] {
        let place = Scratch::new();
        let script = place.join("script.py");
        std::fs::write(&script, PRINT).expect("a script");
        let mut job = Job::start(1, &[PYTHON, "-u", script.to_str().unwrap()]);
        job.set("PYTHONPATH", "");
        job.add("a", options);
        job.wait_printed("a", 1, 0, "path");
        let printed = job.printed("a", 1, 0);
        let own = format!("told by {}/telltale_ccl/", job.path("a/shim").display());
        assert!(printed.contains(&own), "{printed}");
        job.wait_finished();
    }
}

#[test]
fn a_copy_behind_another_is_no_trouble() {
    if !Path::new(PYTHON).exists() {
        skip("cluster::shim::a_copy_behind_another", "needs Python at /usr/bin/python3");
        return;
    }
    // This job's agents have the repository's on their own path already.
    let mut job = Job::start(1, &[PYTHON, "-c", PRINT]);
    job.add("a", &["--shim"]);
    job.wait_printed("a", 1, 0, "path");
    let printed = job.printed("a", 1, 0);
    assert!(!printed.contains("Error"), "{printed}");
    job.wait_finished();
}

#[test]
fn pip_installs_the_module() {
    let test = "cluster::shim::pip_installs_the_module";
    let place = Scratch::new();
    let environment = place.join("environment");
    let made = Command::new(PYTHON)
        .args(["-m", "venv", "--system-site-packages"])
        .arg(&environment)
        .output();
    if !made.as_ref().is_ok_and(|made| made.status.success()) {
        skip(test, "needs python3 with venv and pip (Debian: python3-venv)");
        return;
    }
    // What it needs to be built with is Python's own or in the environment: nothing is fetched.
    let has_tools = run(&environment, &["-c", "import setuptools, wheel, pip"]).status.success();
    if !has_tools {
        skip(test, "needs setuptools and wheel (Debian: python3-setuptools, python3-wheel)");
        return;
    }
    // pip builds in the directory that it is given.
    let client = place.join("python");
    let copied = Command::new("cp").args(["-r", CLIENT]).arg(&client).status();
    assert!(copied.is_ok_and(|copied| copied.success()));
    let install = ["-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-cache-dir"];
    let client = client.to_str().unwrap();
    let installed = run(&environment, &[&install[..], &[client]].concat());
    assert!(installed.status.success(), "{installed:?}");
    let printed = run(
        &environment,
        &["-c", "import telltale_ccl as t; print(t.__file__, t.__version__, sorted(t.counts()))"],
    );
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    let in_environment = format!("{}/lib/", environment.display());
    assert!(text.starts_with(&in_environment) && text.contains("site-packages"), "{printed:?}");
}

fn run(environment: &Path, words: &[&str]) -> Output {
    let mut python = Command::new(environment.join("bin/python3"));
    python.args(words).current_dir("/").env_remove("PYTHONPATH");
    python.output().expect("the environment's Python runs")
}
