//! Python stacks are what Python itself says they are, with every interpreter that is here.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use telltale_harness::Scratch;

use crate::fixture::{sampled, start};

/// Prints its own stack as `function line` and stays where it is. What it is in is what layouts and tables of
/// lines differ in: methods, generators, lambdas, names of other alphabets, many lines, deep recursion.
const PROGRAM: &str = r#"
import sys, threading, time

def own_stack(frame):
    while frame is not None:
        yield "%s %d" % (frame.f_code.co_name, frame.f_lineno)
        frame = frame.f_back

def stays():
    print("|".join(own_stack(sys._getframe())), flush=True); time.sleep(1000)

class Größe:
    def метод(self, depth):
        if depth:
            return self.метод(depth - 1)
        return (lambda: [
            None,
            stays(),
        ])()

def generates():
    for number in range(2):
        yield Größe().метод(20)

LINES

def main():
    try:
        return list(
            generates()
        )
    finally:
        pass

other = threading.Thread(target=time.sleep, args=(1000,), daemon=True)
other.start()
exec(compile("main()", "text", "exec"))
"#;

/// `python3`, and those of pyenv, each once.
fn interpreters() -> BTreeSet<PathBuf> {
    let home = std::env::var("HOME").unwrap_or_default();
    let versions = std::fs::read_dir(PathBuf::from(home).join(".pyenv/versions"));
    let installed =
        versions.into_iter().flatten().flatten().map(|one| one.path().join("bin/python3"));
    let known = ["/usr/bin/python3", "/usr/local/bin/python3"].map(PathBuf::from);
    let all = installed.chain(known).filter_map(|path| path.canonicalize().ok());
    // Before 3.8 nothing is known of how stacks are kept.
    let is_old = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let minor = name.strip_prefix("python3.").and_then(|minor| minor.parse::<u32>().ok());
        minor.is_none_or(|minor| minor < 8)
    };
    all.filter(|path| !is_old(path)).collect()
}

#[test]
fn stacks_are_what_python_says_they_are() {
    let scratch = Scratch::new();
    let script = scratch.join("program.py");
    // A function with a long table of lines before the one that is looked at.
    let lines: String = (0..400).map(|number| format!("x{number} = {number}\n\n")).collect();
    std::fs::write(&script, PROGRAM.replace("LINES", &lines)).unwrap();
    let interpreters = interpreters();
    assert!(!interpreters.is_empty(), "there is a Python");
    for python in interpreters {
        let (program, own) = start(Command::new(&python).arg("-u").arg(&script));
        let evidence = sampled(program.id()).unwrap();
        assert_eq!(evidence.missing, [], "{python:?}");
        let sample = &evidence.samples[0];
        let last = |function: &str| function.rsplit('.').next().unwrap().to_owned();
        let frames = &sample.main().unwrap().python.as_ref().unwrap().frames;
        let found: Vec<String> = frames
            .iter()
            .map(|frame| format!("{} {}", last(&frame.function), frame.line))
            .collect();
        // Its innermost frame has gone on to sleep, on the same line.
        let expected: Vec<&str> =
            own.split('|').skip_while(|line| !line.starts_with("stays")).collect();
        assert_eq!(found, expected, "{python:?}");
        assert!(frames.iter().any(|frame| frame.file == script.to_str().unwrap()), "{python:?}");
        assert!(frames.iter().any(|frame| frame.file == "text"), "{python:?}");
        let threads = sample.threads.iter().filter(|thread| thread.python.is_some());
        assert_eq!(threads.count(), 2, "{python:?}");
    }
}
