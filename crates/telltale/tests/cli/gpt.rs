//! `telltale gpt`: what it prints and reports, that its weights do not depend on the cache, and that
//! whatever ends it, it goes on from its checkpoint with the same bits.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use telltale_harness::{Scratch, needs_pid_namespaces, rounds};
use telltale_schema::snapshot::MetricValue;

use crate::cli::command::{Running, Said, TIMEOUT, emulate, said, smi, snapshot, telltale};

/// A model so small that its steps take milliseconds.
const SMALL: [&str; 10] =
    ["--layers", "1", "--heads", "2", "--width", "16", "--context", "8", "--batch", "2"];
const CHECKPOINT: &str = "gpt.checkpoint";

/// A training of a small model whose machine and records are below `place`.
pub(crate) fn gpt(place: &Path, arguments: &[&str]) -> Command {
    let mut command = telltale();
    command.arg("gpt").args(SMALL).args(arguments);
    command.arg("--runtime-dir").arg(place).env("XDG_RUNTIME_DIR", place);
    command
}

pub(crate) fn lines(said: &Said) -> Vec<Value> {
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The digest in the last line.
pub(crate) fn digest(said: &Said) -> String {
    lines(said).last().unwrap()["weights_digest"].as_str().unwrap().to_owned()
}

fn steps(lines: &[Value]) -> Vec<u64> {
    lines.iter().filter_map(|line| line.get("step")?.as_u64()).collect()
}

#[track_caller]
fn assert_empty(place: &Path) {
    let left: Vec<_> = fs::read_dir(place).unwrap().map(|one| one.unwrap().path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn it_prints_a_loss_that_falls_and_leaves_nothing() {
    let place = Scratch::new();
    let said = said(&mut gpt(place.path(), &["--steps", "40", "--json"]));
    let lines = lines(&said);
    assert_eq!(lines[0]["chip"], "251732099");
    assert_eq!(lines[0]["cache"], "on");
    assert_eq!(steps(&lines), (1..=40).collect::<Vec<u64>>());
    let losses: Vec<f64> = lines[1..].iter().map(|line| line["loss"].as_f64().unwrap()).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    assert!(mean(&losses[30..]) < mean(&losses[..10]) - 0.1, "{losses:?}");
    assert_empty(place.path());
}

#[test]
fn a_person_gets_a_line_for_each_step() {
    let place = Scratch::new();
    let said = said(&mut gpt(place.path(), &["--steps", "2", "--device", "1", "--weights-digest"]));
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].contains("layers 1, heads 2, width 16"), "{lines:?}");
    assert!(lines[0].ends_with("on chip 251732099R, program cache on"), "{lines:?}");
    assert!(lines[1].starts_with("step 1  loss 4."), "{lines:?}");
    assert!(lines[2].ends_with(" tokens/s"), "{lines:?}");
    assert!(lines[3].starts_with("weights after step 2: "), "{lines:?}");
    assert_eq!(lines.len(), 4);
}

#[test]
fn weights_do_not_depend_on_the_cache_and_the_option_beats_the_variable() {
    let place = Scratch::new();
    let run = |mode: &str, variable: &str| {
        let arguments = ["--steps", "4", "--json", "--weights-digest", "--cache", mode];
        let said = said(gpt(place.path(), &arguments).env("TELLTALE_PROGRAM_CACHE", variable));
        assert_eq!(lines(&said)[0]["cache"], mode, "beside {variable}");
        digest(&said)
    };
    let on = run("on", "off");
    assert_eq!(run("off", "on"), on);
    assert_eq!(run("check", "on"), on);
    let mut command = gpt(place.path(), &["--steps", "1", "--json"]);
    assert_eq!(lines(&said(command.env("TELLTALE_PROGRAM_CACHE", "check")))[0]["cache"], "check");
    let mut command = gpt(place.path(), &["--steps", "1"]);
    said(command.env("TELLTALE_PROGRAM_CACHE", "maybe")).complains(2, &["maybe", "check", "off"]);
}

#[test]
fn ctrl_c_leaves_a_checkpoint_from_which_it_goes_on_with_the_same_bits() {
    let (place, kept) = (Scratch::new(), Scratch::new());
    let kept = kept.path().to_str().unwrap();
    let mut running = Running::start(&mut gpt(place.path(), &["--json", "--checkpoint", kept]));
    while steps(&[serde_json::from_str(&running.line()).unwrap()]).iter().all(|step| *step < 3) {}
    running.child.interrupt();
    assert_eq!(running.status(), Some(0));
    assert!(Path::new(kept).join(CHECKPOINT).exists());
    let reached = running.rest().iter().fold(3, |last, line| {
        steps(&[serde_json::from_str(line).unwrap()]).first().copied().unwrap_or(last)
    });
    let wanted = (reached + 3).to_string();
    let arguments = ["--steps", &wanted, "--json", "--weights-digest"];
    let whole = said(&mut gpt(place.path(), &arguments));
    let resumed = said(gpt(place.path(), &arguments).args(["--resume", "--checkpoint", kept]));
    assert_eq!(lines(&resumed)[0]["steps_before"], reached);
    assert_eq!(steps(&lines(&resumed)), [reached + 1, reached + 2, reached + 3]);
    assert_eq!(digest(&resumed), digest(&whole));
    assert_empty(place.path());
}

#[test]
fn a_kill_at_any_time_leaves_a_checkpoint_that_is_whole() {
    let (place, kept) = (Scratch::new(), Scratch::new());
    let kept = kept.path().to_str().unwrap();
    // A checkpoint takes longer to write than a step, so that most kills hit one.
    let arguments =
        ["--json", "--checkpoint", kept, "--checkpoint-every", "1", "--resume", "--seed", "3"];
    let mut reported = 0;
    for round in 0..u64::from(rounds(4, 30)) {
        let mut running = Running::start(&mut gpt(place.path(), &arguments));
        let start: Value = serde_json::from_str(&running.line()).unwrap();
        let before = start["steps_before"].as_u64().unwrap();
        // A step is reported before its checkpoint is written.
        assert!(before + 1 >= reported, "round {round}: {before} after {reported} was reported");
        for _ in 0..=round % 3 {
            reported =
                serde_json::from_str::<Value>(&running.line()).unwrap()["step"].as_u64().unwrap();
        }
        running.child.kill();
    }
    let wanted = (reported + 2).to_string();
    let end = ["--steps", &wanted, "--json", "--weights-digest", "--seed", "3"];
    let resumed = said(gpt(place.path(), &end).args(["--checkpoint", kept, "--resume"]));
    assert_eq!(digest(&resumed), digest(&said(&mut gpt(place.path(), &end))));
}

#[test]
fn it_ends_with_a_checkpoint_when_nobody_reads_its_output() {
    let (place, kept) = (Scratch::new(), Scratch::new());
    let path = kept.path().to_str().unwrap();
    let arguments = ["--checkpoint", path, "--checkpoint-every", "1000000000"];
    let mut training = Running::start(&mut gpt(place.path(), &arguments));
    training.line();
    let Running { mut child, lines } = training;
    drop(lines);
    assert_eq!(child.wait_within("the training to end", TIMEOUT).code(), Some(0));
    assert!(kept.join(CHECKPOINT).exists());
    assert_empty(place.path());
}

#[test]
fn what_it_cannot_go_on_from_is_refused_in_one_sentence() {
    let (place, kept) = (Scratch::new(), Scratch::new());
    let path = kept.path().to_str().unwrap();
    let first = ["--steps", "1", "--json", "--checkpoint", path];
    assert_eq!(lines(&said(&mut gpt(place.path(), &first))).len(), 2);
    let cases: [(&[&str], &[&str]); 5] = [
        (&["--checkpoint", path], &["is there already", "--resume"]),
        (&["--checkpoint", path, "--resume", "--seed", "2"], &["made with seed 1", "has 2"]),
        (&["--device", "2"], &["no chip 2", "--device"]),
        (&["--checkpoint", "/proc/none"], &["/proc/none", "choose one that you may write"]),
        (&["--root", "/nowhere"], &["no emulated machine in /nowhere", "telltale emulate"]),
    ];
    for (arguments, words) in cases {
        let mut command = gpt(place.path(), &["--steps", "1"]);
        said(command.args(arguments)).complains(2, words);
    }
    let mut command = telltale();
    said(command.args(["gpt", "--heads", "3"])).complains(2, &["width of 128", "among 3 heads"]);
    fs::write(kept.join(CHECKPOINT), "no checkpoint").unwrap();
    let resume = ["--checkpoint", path, "--resume"];
    said(&mut gpt(place.path(), &resume)).complains(2, &[CHECKPOINT, "does not begin"]);
    assert_empty(place.path());
}

#[test]
fn a_full_disk_is_one_clear_error_and_the_training_goes_on() {
    let test = "telltale::cli::gpt::a_full_disk_is_one_clear_error_and_the_training_goes_on";
    if !needs_pid_namespaces(test) {
        return;
    }
    let (place, kept) = (Scratch::new(), Scratch::new());
    let path = kept.path().to_str().unwrap();
    let script = format!("mount -t tmpfs -o size=16k none {path} && exec \"$@\"");
    let mut training = gpt(
        place.path(),
        &["--steps", "6", "--json", "--checkpoint", path, "--checkpoint-every", "2"],
    );
    training.env("TMPDIR", place.path());
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh"]);
    command.arg(training.get_program()).args(training.get_args());
    for (name, value) in training.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let said = said(&mut command);
    assert_eq!(said.status, Some(1), "the last checkpoint is missing: {said:?}");
    let lines: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(steps(&lines), [1, 2, 3, 4, 5, 6]);
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    for word in ["writing the checkpoint", "No space left on device", "the training goes on"] {
        assert!(said.err.contains(word), "{said:?}");
    }
}

#[test]
fn others_see_its_loss_and_memory_and_nothing_of_it_once_it_ended() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n300", &root, &[]);
    let mut command = telltale();
    command.arg("gpt").args(SMALL).args(["--device", "1", "--json", "--root"]).arg(&root);
    let mut running = Running::start(&mut command);
    let mut last = serde_json::from_str::<Value>(&running.line()).unwrap();
    while last["step"].as_u64().is_none_or(|step| step < 2) {
        last = serde_json::from_str(&running.line()).unwrap();
    }
    let seen = snapshot(&root);
    assert!(!seen.has_errors(), "{:?}", seen.sources);
    let process = seen.processes.iter().find(|one| one.pid == Some(running.child.id())).unwrap();
    let gauge = |name: &str| {
        let sample = process.metrics.iter().find(|sample| sample.name == name);
        match sample.unwrap_or_else(|| panic!("{name}: {:?}", process.metrics)).value {
            MetricValue::Gauge(value) => value,
            _ => panic!("{name} is no gauge"),
        }
    };
    assert!((1.0..6.0).contains(&gauge("gpt_loss")));
    assert!(gauge("gpt_step") >= 2.0);
    assert!(gauge("gpt_tokens_per_second") > 0.0);
    let held: u64 = process
        .devices
        .iter()
        .filter(|held| seen.devices[held.device].id == "251732099R")
        .flat_map(|held| &held.kinds)
        .map(|kind| kind.usage.live_bytes())
        .sum();
    assert!(held > 0, "{process:?}");
    let programs = process.programs().expect("its cache is shown");
    assert!(programs.cached > 10 && programs.hits > programs.cached, "{programs:?}");
    let details = smi(&root, &["-d"]).out;
    for words in [" cached, found by ", "kernel_application", "gpt_loss"] {
        assert!(details.contains(words), "{words}: {details}");
    }
    running.child.terminate();
    running.child.wait_within("the training to end", TIMEOUT);
    assert!(snapshot(&root).processes.is_empty());
}
