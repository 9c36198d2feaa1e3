//! What appears of the workers' output, and what is kept.

use std::fs;

use telltale_harness::wait_until;

use crate::train::fixture::{Place, TIMEOUT};

const SCRIPT: &str = "echo out $RANK; echo err $RANK >&2";

/// The lines that workers have printed, in an order that does not depend on which was first.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn output_appears_as_it_was_written() {
    let ended = Place::new().run(&["--nproc", "2", "--", "sh", "-c", SCRIPT]);
    assert_eq!(sorted(&ended.output), ["out 0", "out 1"]);
    assert_eq!(sorted(&ended.errors), ["err 0", "err 1"]);
    let unfinished = Place::new().run(&["--", "printf", "10%%\\r20%%\\rdone"]);
    assert_eq!(unfinished.output, "10%\r20%\rdone");
}

#[test]
fn a_line_that_is_not_whole_appears_while_its_worker_goes_on() {
    let place = Place::new();
    let script = "printf '10%%\\r'; printf . >&2; until [ -e seen ]; do sleep 0.05; done";
    let running = place.start(&["--", "sh", "-c", script]);
    wait_until("what was printed", TIMEOUT, || {
        running.output() == "10%\r" && running.errors() == "."
    });
    fs::write(place.path("seen"), "").expect("a file");
    assert_eq!(running.wait().code, Some(0));
}

/// Runs a line of a shell in which `$train` is the command; what it printed, and its errors.
fn piped(place: &Place, line: &str) -> (String, String) {
    let mut shell = place.command("sh");
    shell.args(["-c", line]).env("train", env!("CARGO_BIN_EXE_telltale").to_owned() + " train");
    let output = shell.output().expect("a shell runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

#[test]
fn a_reader_that_takes_its_time_gets_all_of_it() {
    let place = Place::new();
    let line = "{ $train -- sh -c 'seq 100000; exit 3'; echo $? > status; } | (sleep 4; wc -l)";
    let (count, errors) = piped(&place, line);
    assert_eq!((count.trim(), &*place.read("status")), ("100000", "3\n"), "{errors}");
}

#[test]
fn a_reader_that_is_gone_is_noticed_by_the_worker() {
    let place = Place::new();
    let line = "{ $train -- sh -c 'while echo y; do :; done'; echo $? > status; } | head -n 1";
    let (first, errors) = piped(&place, line);
    // As in a pipe of the worker's own: it is ended by SIGPIPE.
    assert_eq!((&*first, &*place.read("status")), ("y\n", "141\n"), "{errors}");
}

#[test]
fn output_that_cannot_be_written_is_reported_and_the_training_goes_on() {
    let place = Place::new();
    let (_, errors) = piped(&place, "$train -- sh -c 'echo hello; touch done' > /dev/full");
    assert!(errors.starts_with("telltale: showing the workers' output failed: "), "{errors}");
    assert!(place.path("done").exists());
}

#[test]
fn a_report_is_on_a_line_of_its_own() {
    let ended = Place::new().run(&["--json", "--", "sh", "-c", "printf half >&2; exit 3"]);
    let (first, report) = ended.errors.split_once('\n').expect("two lines");
    assert_eq!(first, "half");
    let report: serde_json::Value = serde_json::from_str(report).expect("the report is JSON");
    assert_eq!(report["exit_code"], 3);
}

#[test]
fn a_tee_has_the_role_in_front_and_a_file() {
    let place = Place::new();
    let options = ["--nproc", "2", "--tee", "0:3", "--redirects", "1:1", "--role", "trainer"];
    let command = ["--log-dir", "logs", "--rdzv-id", "run/7", "--", "sh", "-c", SCRIPT];
    let ended = place.run(&[&options[..], &command].concat());
    assert_eq!(ended.output, "[trainer0]:out 0\n");
    assert_eq!(sorted(&ended.errors), ["[trainer0]:err 0", "err 1"]);
    let runs: Vec<_> = fs::read_dir(place.path("logs")).expect("logs").flatten().collect();
    let [run] = &runs[..] else { panic!("one run: {runs:?}") };
    assert!(run.file_name().to_string_lossy().starts_with("run_7-"), "{run:?}");
    for rank in ["0", "1"] {
        let kept = fs::read_to_string(run.path().join(format!("epoch-1/{rank}.log")));
        let kept = kept.expect("the output is kept");
        assert_eq!(sorted(&kept), [format!("err {rank}"), format!("out {rank}")]);
    }
}

#[test]
fn a_template_of_torchrun_says_what_stands_in_front() {
    let place = Place::new();
    let template = [("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "<$role_name:${rank}> ")];
    let options = ["--nproc", "2", "--tee", "3", "--role", "trainer", "--log-dir", "logs"];
    let command = ["--", "sh", "-c", "echo step"];
    let ended = place.start_with(&[&options[..], &command].concat(), &template).wait();
    assert_eq!(sorted(&ended.output), ["<trainer:0> step", "<trainer:1> step"], "{ended:?}");
}

#[test]
fn variables_of_torchrun_stand_for_its_options() {
    let place = Place::new();
    let variables = [
        ("PET_NPROC_PER_NODE", "3"),
        ("PET_LOCAL_RANKS_FILTER", "1"),
        ("PET_MONITOR_INTERVAL", "0.5"),
        ("PET_STANDALONE", "1"),
        ("PET_MODULE", "0"),
    ];
    let ended = place.start_with(&["--", "sh", "-c", SCRIPT], &variables).wait();
    assert_eq!((ended.code, &*ended.output, &*ended.errors), (Some(0), "out 1\n", "err 1\n"));
    let given =
        place.start_with(&["--nproc", "1", "--", "sh", "-c", SCRIPT], &variables[..1]).wait();
    assert_eq!(given.output, "out 0\n", "the option counts");
    for variable in [
        ("PET_SIGNALS_TO_HANDLE", "SIGUSR1"),
        ("TORCHELASTIC_ENABLE_FILE_TIMER", "1"),
        ("TORCHELASTIC_HEALTH_CHECK_PORT", "8080"),
    ] {
        let refused = place.start_with(&["true"], &[variable]).wait();
        assert_eq!(refused.code, Some(64));
        assert!(refused.errors.contains(variable.0), "{refused:?}");
    }
}
