//! What a service recorded, as the commands show it: while it runs, after it was killed, and where
//! there is none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use telltale_harness::{ChildGuard, Scratch, wait_until};
use telltale_schema::history::ProcessReport;

use crate::cli::command::{Said, TIMEOUT, emulate, said, telltale};

/// A machine with a workload, and a directory for its history.
struct Fixture {
    _machine: ChildGuard,
    workload: ChildGuard,
    root: PathBuf,
    state: PathBuf,
    _scratch: Scratch,
}

impl Fixture {
    fn new() -> Self {
        let scratch = Scratch::new();
        let (root, state) = (scratch.join("m"), scratch.join("state"));
        let machine = emulate("n150", &root, &[]);
        let mut replay = telltale();
        replay.args(["replay", "train", "--loop", "--root"]).arg(&root);
        let workload = ChildGuard::spawn(replay.stdout(Stdio::null()).stderr(Stdio::null()));
        Self { _machine: machine, workload, root, state, _scratch: scratch }
    }

    fn serve(&self) -> ChildGuard {
        let mut serve = telltale();
        serve.args(["serve", "--http", "off", "--interval", "0.1", "--root"]).arg(&self.root);
        serve.arg("--state-dir").arg(&self.state).env("TELLTALE_HISTORY_WRITE_SECONDS", "1");
        ChildGuard::spawn(serve.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    fn ask(&self, arguments: &[&str]) -> Said {
        said(telltale().args(arguments).arg("--state-dir").arg(&self.state))
    }

    /// The workload's report, once it was watched for longer than `seconds`.
    fn report_after(&self, seconds: f64) -> ProcessReport {
        let pid = self.workload.id().to_string();
        let mut found = None;
        wait_until("the history to have that much", TIMEOUT, || {
            let said = self.ask(&["report", &pid, "--json"]);
            found = serde_json::from_str::<ProcessReport>(&said.out)
                .ok()
                .filter(|report| report.usage.iter().any(|one| one.watched_seconds > seconds));
            found.is_some()
        });
        found.expect("it was found just now")
    }
}

fn dram_watched(report: &ProcessReport) -> f64 {
    report.usage.iter().map(|one| one.watched_seconds).fold(0.0, f64::max)
}

#[test]
fn a_killed_service_goes_on_where_it_was_and_a_finished_job_has_its_report() {
    let mut fixture = Fixture::new();
    let mut first = fixture.serve();
    let before = fixture.report_after(1.0);
    first.kill();
    let _second = fixture.serve();
    let after = fixture.report_after(dram_watched(&before) + 1.0);
    assert_eq!(after.process.identity, before.process.identity);
    assert_eq!(after.first_seen, before.first_seen);
    assert_eq!(after.ending, None);
    for (one, other) in before.usage.iter().zip(&after.usage) {
        assert!(other.byte_seconds >= one.byte_seconds && other.peak_bytes >= one.peak_bytes);
        let lived = after.last_seen.since_ns(after.first_seen) as f64 / 1e9;
        assert!(other.watched_seconds <= lived + 0.001, "nothing is counted twice: {after:?}");
    }
    let pid = fixture.workload.id();
    fixture.workload.kill();
    wait_until("its end to be recorded", TIMEOUT, || {
        let said = fixture.ask(&["report", &pid.to_string()]);
        said.status == Some(0) && said.out.contains("left its ledger behind")
    });
    let shown = fixture.ask(&["report", "replay"]);
    assert!(shown.out.starts_with(&format!("Process {pid} (telltale)\n")), "{shown:?}");
    assert!(shown.out.contains("GIB-HOURS"), "{shown:?}");
}

#[test]
fn series_and_past_moments_are_shown_in_every_form() {
    let fixture = Fixture::new();
    let _service = fixture.serve();
    let report = fixture.report_after(1.0);
    let pid = fixture.workload.id().to_string();
    let table = fixture.ask(&["history", "--since", "1m ago"]);
    assert_eq!((table.status, table.err.as_str()), (Some(0), ""), "{table:?}");
    for word in
        ["in steps of", "temperature", "memory used space dram", "memory live space dram", &pid]
    {
        assert!(table.out.contains(word), "{word}: {}", table.out);
    }
    let one = ["history", "--process", &pid, "--metric", "live_bytes", "--since", "1m", "--json"];
    let answer: Value = serde_json::from_str(&fixture.ask(&one).out).unwrap();
    let series = answer["series"].as_array().unwrap();
    assert!(!series.is_empty());
    let number = u64::from(fixture.workload.id());
    assert!(series.iter().all(|one| one["process"]["pid"] == number), "{answer}");
    // Rows of a kind and of a space of the same name differ by their label.
    let csv = [&one[..one.len() - 1], &["--csv"]].concat();
    let csv = fixture.ask(&csv).out;
    let keys: Vec<String> = csv.lines().map(|row| row.split(',').take(6).collect()).collect();
    assert!(csv.contains(",kind=dram,") && csv.contains(",space=dram,"), "{csv}");
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{csv}");
    let csv = fixture.ask(&["history", "--metric", "power", "--since", "1m", "--csv"]).out;
    let rows: Vec<usize> = csv.lines().map(|row| row.split(',').count()).collect();
    assert!(rows.len() > 1 && rows.iter().all(|row| *row == rows[0]), "{csv}");
    for (wrong, words) in [
        (["--metric", "qqqq"], "no metric qqqq; it keeps device_busy_ratio, "),
        (["--metric", "powr"], "no metric powr; did you mean power?"),
        (["--device", "none"], "no device none; it has "),
        (["--process", "nobody"], "no process nobody that you may see"),
    ] {
        fixture.ask(&[["history"].as_slice(), &wrong].concat()).complains(2, &[words]);
    }
    let at = telltale_schema::calendar::format(report.last_seen);
    let past = fixture.ask(&["smi", "--at", &at]);
    assert!(past.out.starts_with(&format!("As of {}", &at[..14])), "{past:?}");
    assert!(past.out.contains("from the history") && past.out.contains(&pid), "{past:?}");
    let json = fixture.ask(&["smi", "--at", &at, "--json"]);
    let snapshot: telltale_schema::snapshot::Snapshot = serde_json::from_str(&json.out).unwrap();
    assert_eq!(snapshot.processes[0].pid, Some(fixture.workload.id()));
}

#[test]
fn what_is_not_there_is_said_with_what_to_do() {
    let scratch = Scratch::new();
    let ask = |arguments: &[&str], state: &Path| {
        said(telltale().args(arguments).arg("--state-dir").arg(state))
    };
    for command in [&["history"][..], &["report", "1"], &["smi", "--at", "3m ago"]] {
        ask(command, scratch.path()).complains(2, &["no history", "`telltale serve` keeps one"]);
    }
    let refused = ask(&["smi", "--at", "2100-01-01T00:00:00Z"], scratch.path());
    assert_eq!(refused.status, Some(64), "{refused:?}");
    assert!(refused.err.contains("has not come yet"), "{refused:?}");
    let refused = ask(&["smi", "--at", "yesterday"], scratch.path());
    assert_eq!(refused.status, Some(64), "{refused:?}");
    assert!(refused.err.contains("write `3m ago`"), "{refused:?}");
    let swapped = ["history", "--since", "1m", "--until", "2m"];
    ask(&swapped, scratch.path()).complains(64, &["--since is not before --until"]);
}
