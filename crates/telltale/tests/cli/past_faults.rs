//! What was wrong is in the history: before, while and after it was so, and over a service that is killed.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use telltale_emulator::{Fault, Machine, MachineKind, MachineOptions};
use telltale_harness::{ChildGuard, Scratch};
use telltale_schema::calendar;
use telltale_schema::clock::Timestamp;
use telltale_schema::history::{HistoryAnswer, PastFault};

use crate::cli::command::{Said, TIMEOUT, said, telltale};

/// A machine whose firmware counts, and the state directory of its service.
struct Fixture {
    machine: Machine,
    began: Instant,
    root: PathBuf,
    state: PathBuf,
    scratch: Scratch,
}

impl Fixture {
    fn new() -> Self {
        let scratch = Scratch::new();
        let (root, state) = (scratch.join("m"), scratch.join("state"));
        let machine = Machine::create(&root, MachineKind::P150, &MachineOptions::default());
        let (machine, began) = (machine.unwrap(), Instant::now());
        // It counts when the test finds the time, which may be late.
        let rule = "[[health.rule]]\nname = \"heartbeat_stopped\"\nenabled = false\n";
        fs::write(scratch.join("t.toml"), rule).unwrap();
        let mut fixture = Self { machine, began, root, state, scratch };
        fixture.tick();
        fixture
    }

    fn serve(&self) -> ChildGuard {
        let mut serve = telltale();
        serve.args(["serve", "--http", "off", "--interval", "0.1", "--root"]).arg(&self.root);
        serve.arg("--state-dir").arg(&self.state).env("TELLTALE_HISTORY_WRITE_SECONDS", "1");
        serve.arg("--config").arg(self.scratch.join("t.toml"));
        ChildGuard::spawn(serve.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    fn tick(&mut self) {
        let now_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap();
        self.machine.tick(now_ns, &[]).unwrap();
    }

    fn ask(&self, arguments: &[&str]) -> Said {
        said(telltale().args(arguments).arg("--state-dir").arg(&self.state))
    }

    /// Lets the machine run until its faults are so, and gives the one that is so.
    fn runs_until(&mut self, what: &str, is_so: impl Fn(&PastFault) -> bool) -> PastFault {
        let began = Instant::now();
        while began.elapsed() < TIMEOUT {
            self.tick();
            let asked = self.ask(&["history", "--faults", "--json"]);
            let answer = serde_json::from_str::<HistoryAnswer>(&asked.out);
            let faults = answer.map(|answer| answer.faults).unwrap_or_default();
            if let Some(found) = faults.into_iter().find(|one| is_so(one)) {
                return found;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{what} is not in the history: {:?}", self.ask(&["history", "--faults"]));
    }

    /// The rules by which the device of this moment is wrong, and its state.
    fn then(&self, at: Timestamp) -> (Vec<String>, String) {
        let at = calendar::format(at);
        let json = self.ask(&["smi", "--at", &at, "--json"]);
        let snapshot: Value = serde_json::from_str(&json.out).unwrap();
        let faults = snapshot["devices"][0]["faults"].as_array().cloned().unwrap_or_default();
        let kinds = faults.iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect();
        let query = ["smi", "--at", &at, "--query-device", "health", "--format", "csv,noheader"];
        (kinds, self.ask(&query).out.trim().to_owned())
    }
}

fn is(kind: &str) -> impl Fn(&PastFault) -> bool {
    move |one| one.fault.kind.name() == kind
}

fn later(at: Timestamp, seconds: u64) -> Timestamp {
    Timestamp(at.0 + seconds * 1_000_000_000)
}

#[test]
fn a_fault_is_in_the_history_and_outlives_a_service_that_is_killed() {
    let mut fixture = Fixture::new();
    let mut first = fixture.serve();
    let [narrow, trip] = ["link:0:32:4", "trip:0"].map(|text| text.parse::<Fault>().unwrap());
    // A while in which all is well.
    let well = Instant::now();
    while fixture.ask(&["smi", "--at", "3s ago"]).status != Some(0) {
        assert!(well.elapsed() < TIMEOUT, "no history");
        fixture.tick();
    }
    fixture.machine.inject(narrow.clone()).unwrap();
    fixture.machine.inject(trip).unwrap();
    fixture.runs_until("a lasting narrow link", |one| {
        is("pcie_width_below_slot")(one) && one.lasted_ns() > 3_000_000_000
    });
    fixture.machine.clear(&narrow).unwrap();
    let narrow = fixture
        .runs_until("its end", |one| is("pcie_width_below_slot")(one) && one.until.is_some());
    let (since, until) = (narrow.fault.since, narrow.until.unwrap());
    fixture.runs_until("what comes after", |one| one.last_seen > later(until, 2));
    assert_eq!(fixture.then(Timestamp(since.0 - 1_000_000_000)), (vec![], "ok".to_owned()));
    let (kinds, state) = fixture.then(later(since, 2));
    assert!(kinds.contains(&"pcie_width_below_slot".to_owned()), "{kinds:?}");
    assert!(kinds.contains(&"thermal_trip".to_owned()) && state == "failed", "{kinds:?} {state}");
    let after = fixture.then(later(until, 1));
    assert_eq!(after, (vec!["thermal_trip".to_owned()], "failed".to_owned()));
    let before = fixture.runs_until("the trip", is("thermal_trip"));
    first.kill();
    let _second = fixture.serve();
    let after = fixture.runs_until("what the second service recorded", |one| {
        is("thermal_trip")(one) && one.last_seen > later(before.last_seen, 5)
    });
    assert_eq!((after.fault.since, after.until), (before.fault.since, None));
    let alerts = said(telltale().args(["alerts", "--root"]).arg(&fixture.root));
    assert!(alerts.out.contains("thermal_trip"), "{alerts:?}");
    let table = fixture.ask(&["history", "--faults"]);
    let rows: Vec<&str> = table.out.lines().filter(|row| row.contains("thermal_trip")).collect();
    assert!(rows.len() == 1 && rows[0].contains("+  failed "), "{table:?}");
    let refused = fixture.ask(&["history", "--faults", "--metric", "power"]);
    assert_eq!(refused.status, Some(64), "{refused:?}");
}
