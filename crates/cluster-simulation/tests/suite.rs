//! The suite as one command: the shipped detector, another one, and what is no detector.

use std::process::{Command, Output};

const SUITE: &str = env!("CARGO_BIN_EXE_straggler-suite");
const SLOWEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/slowest.py");

fn suite(arguments: &[&str]) -> Output {
    Command::new(SUITE).args(arguments).output().expect("it runs")
}

fn printed(arguments: &[&str]) -> String {
    let output = suite(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// The cells of the table's last row.
fn sum(printed: &str) -> Vec<String> {
    let row = printed.lines().find(|line| line.starts_with("| all |")).expect(printed);
    row.split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn the_shipped_detector_scores_the_same_as_another_program() {
    let [own, piped] = [&[][..], &["--", SUITE, "detect"]]
        .map(|program| sum(&printed(&[&["score", "--only", "ring-4"], program].concat())));
    // Runs, faults, precision and recall; then the time, which other reports make another.
    assert_eq!(own[2..6], ["6", "4", "1.000", "1.000"], "{own:?}");
    assert_eq!(own[2..6], piped[2..6]);
    // The usual rules.
    assert_eq!(own[7..], piped[7..]);
}

#[test]
fn a_detector_in_another_language_gets_the_score_of_its_rule() {
    let printed = printed(&["score", "--only", "ring-4.", "--", "python3", SLOWEST]);
    let row = sum(&printed);
    // Precision and recall, as the same rule has them that is built in.
    let [ours, built_in] = [format!("{}, {}", row[4], row[5]), row[9].clone()];
    let numbers = |text: &str| -> Vec<i32> {
        let number = |text: &str| text.parse::<f64>().expect("a number");
        text.split(", ").map(|text| (100.0 * number(text)).round() as i32).collect()
    };
    assert_eq!(numbers(&ours), numbers(&built_in), "{printed}");
}

#[test]
fn what_is_no_detector_is_reported_with_the_job_and_the_line() {
    let job = "ring-4.nothing.1000000";
    for (program, words) in [
        (&["/nowhere/detector"][..], "cannot run \"/nowhere/detector\""),
        (&["sh", "-c", "cat > /dev/null; echo no verdict"], "line 1 is no verdict of this job"),
        (
            &["sh", "-c", "cat > /dev/null; echo '{\"at\":1,\"suspects\":[{\"node\":\"n9\"}]}'"],
            "it names no node of the job",
        ),
        (&["sh", "-c", "echo out of memory >&2; exit 3"], "exit status: 3: out of memory"),
        (&["sleep", "100"], "took more than 1 s; --timeout gives it longer"),
    ] {
        let before = ["score", "--only", "ring-4.nothing", "--timeout", "1", "--"];
        let output = suite(&[&before, program].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{program:?}: {said}");
        assert!(said.contains(job) || said.contains("cannot run"), "{said}");
    }
    let unknown = suite(&["job", "ring-5.node.1"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("`straggler-suite list` has them"));
}

#[test]
fn a_job_has_a_name_by_which_it_is_the_same_each_time() {
    let list = printed(&["list", "--only", "tree-7.link", "--runs", "2", "--seed", "7"]);
    let names: Vec<&str> = list.lines().collect();
    assert_eq!(names, ["tree-7.link.7", "tree-7.link.8"]);
    let job = printed(&["job", names[0]]);
    assert_eq!(job, printed(&["job", names[0]]));
    assert!(job.starts_with("{\"job\":\"tree-7.link.7\",\"nodes\":[\"n000000\","), "{job:.100}");
    let truth = printed(&["truth", names[0]]);
    assert!(truth.contains("\"must_be_named\":") && truth.lines().count() == 1, "{truth}");
}

#[test]
fn a_published_job_has_the_worker_named_that_is_slow_from_the_start() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../steps/tests/data/stragglers/AR.csv.gz");
    let job = std::env::temp_dir().join(format!("telltale-trace-{}", std::process::id()));
    std::fs::write(&job, printed(&["trace", trace])).expect("there is room");
    let open = std::fs::File::open(&job).expect("it is there");
    let found = Command::new(SUITE).arg("detect").stdin(open).output().expect("it runs");
    std::fs::remove_file(&job).expect("it is there");
    let found = String::from_utf8(found.stdout).expect("it is text");
    assert!(found.contains("\"suspects\":[{\"node\":\"n000000\"}]"), "{found}");
    assert_eq!(found.lines().count(), 1, "{found}");
}
