//! `telltale cluster` and the coordinator's page: a real coordinator, whose nodes are played by the
//! test over gRPC as agents would.

mod nodes;
mod page;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;
use telltale_harness::{ChildGuard, Scratch, wait_until};

use crate::cli::command::{Said, TIMEOUT, said, telltale};
use crate::cli::terminal::Terminal;
use nodes::Nodes;

const TOKEN: &str = "a-token-that-cannot-be-guessed-0123";

/// A coordinator of a job on three nodes.
struct Fixture {
    nodes: Option<Nodes>,
    _coordinator: ChildGuard,
    grpc: String,
    http: String,
    place: Scratch,
}

impl Fixture {
    fn new() -> Self {
        Self::with(true)
    }

    /// The same, where a token is wanted or none.
    fn with(needs_token: bool) -> Self {
        let place = Scratch::new();
        let token = place.join("token");
        fs::write(&token, TOKEN).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = telltale();
        command.args(["coordinator", "--job", "trial", "--nodes", "3"]);
        command.args(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        command.arg("--journal").arg(place.join("journal"));
        if needs_token {
            command.arg("--token-file").arg(&token);
        }
        let mut coordinator = ChildGuard::spawn(command.stderr(Stdio::piped()));
        let mut lines = BufReader::new(coordinator.child().stderr.take().unwrap()).lines();
        let mut address = |before: &str| {
            let found = lines.by_ref().map(Result::unwrap).find_map(|line| {
                let (_, address) = line.split_once(before)?;
                Some(address.trim().to_owned())
            });
            found.unwrap_or_else(|| panic!("the coordinator does not say {before:?}"))
        };
        let grpc = address("listens for agents and operators on ");
        let http = format!("http://{}/", address("listens for HTTP on "));
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let fixture = Self { nodes: None, _coordinator: coordinator, grpc, http, place };
        wait_until("the coordinator to lead", TIMEOUT, || {
            fixture.cluster(&["status"]).status.is_some_and(|status| status < 2)
        });
        fixture
    }

    /// Has nodes with these names register.
    fn attend(&mut self, names: &[&str]) {
        self.nodes = Some(Nodes::attend(&self.grpc, TOKEN, names, false));
    }

    /// Three nodes that train, of which one is slow, and its name.
    fn attend_and_train(&mut self) -> String {
        let names = ["node-a", "node-b", "node-c"];
        self.nodes = Some(Nodes::attend(&self.grpc, TOKEN, &names, true));
        self.until_it_runs();
        wait_until("steps to be analysed", TIMEOUT, || {
            self.json(&["report"])["latest"].is_object()
        });
        self.holder(nodes::SLOW_RANK)
    }

    /// Runs `telltale cluster`.
    fn cluster(&self, arguments: &[&str]) -> Said {
        let mut command = telltale();
        command.arg("cluster").args(arguments).args(["--coordinator", &self.grpc]);
        said(command.arg("--token-file").arg(self.place.join("token")))
    }

    /// The same as JSON.
    fn json(&self, arguments: &[&str]) -> Value {
        let said = self.cluster(&[arguments, &["--json"]].concat());
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    /// Four nodes, of which three run the job.
    fn attend_and_run(&mut self) {
        self.attend(&["node-a", "node-b", "node-c", "node-d"]);
        self.until_it_runs();
        wait_until("three reports of running workers, and a spare", TIMEOUT, || {
            let nodes = self.json(&["nodes"]);
            let nodes = nodes.as_array().unwrap();
            let running = nodes.iter().filter(|one| one["worker_states"][0]["state"] == "running");
            nodes.len() == 4 && running.count() == 3
        });
    }

    /// What is known of a node.
    fn node(&self, name: &str) -> Value {
        let nodes = self.json(&["nodes"]);
        let mut nodes = nodes.as_array().unwrap().iter();
        nodes.find(|node| node["name"] == name).cloned().unwrap_or_default()
    }

    fn has_slot(&self, name: &str, slot: u32) -> bool {
        self.node(name)["slot"] == slot
    }

    /// Who has a slot.
    fn holder(&self, slot: u32) -> String {
        self.named(|node| node["slot"] == slot)
    }

    /// Who is a spare: the one registered last.
    fn standing_by(&self) -> String {
        self.named(|node| node["state"] == "standby")
    }

    fn named(&self, is_it: impl Fn(&Value) -> bool) -> String {
        let nodes = self.json(&["nodes"]);
        let node = nodes.as_array().unwrap().iter().find(|node| is_it(node));
        node.unwrap_or_else(|| panic!("{nodes:#}"))["name"].as_str().unwrap().to_owned()
    }

    fn until_it_runs(&self) {
        wait_until("the job to run", TIMEOUT, || self.json(&["status"])["runs"] == true);
    }

    /// Has the worker of a node killed, and waits until that is answered.
    fn kill(&self, node: &str) {
        self.nodes.as_ref().unwrap().kill(node);
        wait_until("an incident that is answered", TIMEOUT, || {
            self.json(&["incidents"])[0]["standing"] == "answered"
        });
    }
}

#[test]
fn the_full_screen_view_shows_the_job_its_nodes_and_what_became_of_one() {
    let test = "the_full_screen_view_shows_the_job_its_nodes_and_what_became_of_one";
    let mut fixture = Fixture::new();
    fixture.attend_and_run();
    let line = format!(
        "sh -c 'env LC_ALL=C XDG_CONFIG_HOME={0}/c {1} top --root {0} --coordinator {2} \
         --coordinator-token-file {0}/token; echo ended with $?'",
        fixture.place.path().display(),
        env!("CARGO_BIN_EXE_telltale"),
        fixture.grpc
    );
    let Some(mut view) = Terminal::start(test, (100, 40), &line, &fixture.place) else { return };
    let shows = |view: &Terminal, words: &str| {
        wait_until(words, TIMEOUT, || view.text().contains(words));
    };
    shows(&view, "Cluster");
    view.type_in(b"5");
    shows(&view, "trial:");
    for node in ["node-a", "node-b", "node-c", "node-d"] {
        shows(&view, node);
    }
    let lost = fixture.holder(1);
    fixture.kill(&lost);
    wait_until("what became of it", TIMEOUT, || {
        // Everything is sent again, also what was there before.
        view.type_in(b"\x0c");
        view.text().contains("(answered)")
    });
    view.type_in(b"q");
    shows(&view, "ended with 0");
}

#[test]
fn a_slow_rank_is_reported_by_report_explain_and_the_full_screen_view() {
    let mut fixture = Fixture::new();
    let slow = fixture.attend_and_train();
    let sentence =
        format!("Rank 1 on {slow} computes 2.50 times as long as ranks that do the same");
    let report = fixture.cluster(&["report"]);
    for words in [&sentence, "A step takes 51.0 ms", "█", "of which 41 % were useful", "WAITS"] {
        assert!(report.out.contains(words), "{words}: {report:?}");
    }
    // Both others wait 30 ms for the slow one.
    let waits = fixture.json(&["report"])["waits"].take();
    let waits: Vec<(u64, u64, f64)> = waits
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let number = |field: &str| one[field].as_u64().unwrap();
            (number("rank"), number("awaited"), one["seconds"].as_f64().unwrap())
        })
        .collect();
    assert_eq!(waits, [(0, 1, 0.03), (2, 1, 0.03)]);
    wait_until("an incident that explains it", TIMEOUT, || {
        let reported = fixture.cluster(&["explain"]);
        reported.out.contains("Training steps now") && reported.out.contains(&sentence)
    });
    assert!(
        fixture.json(&["explain"])["steps"]["text"][1].as_str().unwrap().starts_with(&sentence)
    );
    let line = format!(
        "env LC_ALL=C.UTF-8 XDG_CONFIG_HOME={0}/c {1} top --root {0} --coordinator {2} \
         --coordinator-token-file {0}/token",
        fixture.place.path().display(),
        env!("CARGO_BIN_EXE_telltale"),
        fixture.grpc
    );
    let test = "a_slow_rank_is_reported_by_report_explain_and_the_full_screen_view";
    let Some(mut view) = Terminal::start(test, (120, 40), &line, &fixture.place) else { return };
    wait_until("the view", TIMEOUT, || view.text().contains("Cluster"));
    view.type_in(b"5");
    wait_until("the sentence", TIMEOUT, || {
        view.type_in(b"\x0c");
        // Spaces are moves of the cursor there.
        ["2.50", "useful;", "██"].iter().all(|word| view.text().contains(word))
    });
    view.type_in(b"q");
}

#[test]
fn a_page_in_one_file_replaces_the_old_one_or_leaves_it() {
    let mut fixture = Fixture::new();
    let page = fixture.place.join("report.html");
    let name = page.to_str().unwrap().to_owned();
    // Nothing is known yet: nothing is written.
    fixture
        .cluster(&["report", "--page", &name])
        .complains(1, &["No training steps are known yet"]);
    assert!(!page.exists());
    fixture.attend_and_train();
    // What is no file is not replaced by one.
    let pipe = fixture.place.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let refused = fixture.cluster(&["report", "--page", pipe.to_str().unwrap()]);
    refused.complains(2, &["it is no regular file", "`-` for standard output"]);
    assert!(!pipe.symlink_metadata().unwrap().is_file());
    let shown = fixture.cluster(&["report", "--page", "-"]);
    assert!(shown.out.contains("computes 2.50 times"), "{shown:?}");
    fs::write(&page, "old").unwrap();
    let written = fixture.cluster(&["report", "--page", &name]);
    assert_eq!(written.status, Some(0), "{written:?}");
    assert!(fs::read_to_string(&page).unwrap().contains("computes 2.50 times"));
    assert!(!fixture.place.join("report.html.part").exists());
    let nowhere = fixture.place.join("no/where.html");
    let nowhere = fixture.cluster(&["report", "--page", nowhere.to_str().unwrap()]);
    nowhere.complains(2, &["cannot write the page to", "--page names a file"]);
}

#[test]
fn the_latest_steps_are_a_trace_of_slices_that_do_not_overlap() {
    let mut fixture = Fixture::new();
    let slow = fixture.attend_and_train();
    let file = fixture.place.join("steps.json");
    let written = fixture.cluster(&["report", "--trace", file.to_str().unwrap()]);
    assert_eq!(written.status, Some(0), "{written:?}");
    let trace: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of_phase = |phase: &str| events.iter().filter(|one| one["ph"] == phase).collect::<Vec<_>>();
    let names: Vec<&str> =
        of_phase("M").iter().filter_map(|one| one["args"]["name"].as_str()).collect();
    for name in ["rank 0", "rank 1", "rank 2", &format!("node {slow}")] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let slices = of_phase("X");
    // Each rank computes and meets the others in each step.
    assert!(slices.len() >= 10 * 3 * 2, "{}", slices.len());
    let slow_pid = slices.iter().find(|one| one["args"]["rank"] == 1).unwrap()["pid"].clone();
    assert!(of_phase("M").iter().any(|one| one["pid"] == slow_pid
        && one["name"] == "process_name"
        && one["args"]["name"] == format!("node {slow}")));
    let mut threads: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for one in &slices {
        let [begin, duration] = ["ts", "dur"].map(|field| one[field].as_f64().unwrap());
        let thread = one["tid"].as_u64().unwrap();
        threads.entry(thread).or_default().push((begin, begin + duration));
    }
    for (thread, mut slices) in threads {
        slices.sort_by(|one, other| one.0.total_cmp(&other.0));
        let overlaps = slices.windows(2).find(|pair| pair[1].0 < pair[0].1 - 1e-6);
        assert_eq!(overlaps, None, "thread {thread}");
    }
    let wait = slices.iter().find(|one| one["args"]["rank"] == 0 && one["cat"] == "communication");
    assert_eq!(wait.unwrap()["args"]["waited_us"], 30_000.0);
}

#[test]
fn an_operator_sees_a_job_from_its_forming_to_its_next_epoch() {
    let mut fixture = Fixture::new();
    let forming = fixture.cluster(&["status"]);
    assert_eq!(forming.status, Some(1), "{forming:?}");
    assert!(forming.out.starts_with("Job trial: waits for nodes: 0 of 3 are there"), "{forming:?}");
    assert_eq!(fixture.cluster(&["nodes"]).out, "no node has registered\n");
    let none = fixture.cluster(&["explain"]);
    assert_eq!((none.status, none.out.as_str()), (Some(1), ""), "{none:?}");
    none.complains(1, &["no incident is known"]);
    assert_eq!(fixture.cluster(&["incidents"]).out, "no incident is known\n");

    fixture.attend_and_run();
    let runs = fixture.cluster(&["status"]);
    assert_eq!(runs.status, Some(0), "{runs:?}");
    assert!(runs.out.starts_with("Job trial: runs; epoch 1, mode recover\n"), "{runs:?}");
    assert!(runs.out.contains("3 of 3 slots filled, 3 heard; 1 standby"), "{runs:?}");
    let nodes = fixture.cluster(&["nodes"]);
    assert!(nodes.out.contains("node-b") && nodes.out.contains("1 running"), "{nodes:?}");

    let killed = fixture.holder(1);
    fixture.kill(&killed);
    fixture.until_it_runs();
    // What a failure was is known shortly after it is answered.
    wait_until("the verdict", TIMEOUT, || {
        fixture.json(&["explain"])["verdicts"].as_array().is_some_and(|all| !all.is_empty())
    });
    let reported = fixture.cluster(&["explain"]);
    assert_eq!(reported.status, Some(0), "{reported:?}");
    for words in [
        format!("Answered by epoch 2; the cause is {killed}"),
        format!("the worker of rank 1 on {killed} failed: signal 9 (KILL)"),
        format!("a worker died: node {killed}; confidence 1.00, in "),
    ] {
        assert!(reported.out.contains(&words), "{words}: {reported:?}");
    }
    assert!(!reported.out.contains('\u{1b}'), "{reported:?}");
    let map = fixture.json(&["explain"])["matrix"].is_object();
    let no_map = "reported no transfers between two nodes.\n";
    assert_eq!(reported.out.ends_with(no_map), !map, "{reported:?}");
    assert!(!reported.out.contains(" 0 ns"), "{reported:?}");
    let incidents = fixture.cluster(&["incidents"]);
    assert_eq!(incidents.status, Some(0), "none is open: {incidents:?}");
}

#[test]
fn an_operator_drains_removes_readmits_restarts_and_sets_the_mode() {
    let mut fixture = Fixture::new();
    fixture.attend_and_run();
    let (spare, second, third) = (fixture.standing_by(), fixture.holder(1), fixture.holder(2));

    let drained = fixture.cluster(&["drain", &second]);
    assert_eq!(drained.status, Some(0), "{drained:?}");
    let words = format!("{second} leaves as soon as a spare can take its slot");
    assert!(drained.out.starts_with(&words), "{drained:?}");
    wait_until("the spare to have its slot", TIMEOUT, || fixture.has_slot(&spare, 1));
    fixture.until_it_runs();
    assert_eq!(fixture.node(&second)["bar"], "draining");

    // It may come back, and does when the next one is taken out.
    let readmitted = fixture.cluster(&["readmit", &second]);
    assert_eq!(readmitted.status, Some(0), "{readmitted:?}");
    wait_until("it to stand by", TIMEOUT, || fixture.node(&second)["state"] == "standby");
    let removed = fixture.cluster(&["remove", &third]);
    assert_eq!(removed.status, Some(0), "{removed:?}");
    wait_until("it to have the slot", TIMEOUT, || fixture.has_slot(&second, 2));
    fixture.until_it_runs();
    assert_eq!(fixture.node(&third)["bar"], "removed");

    let before = fixture.json(&["status"])["epoch"].as_u64().unwrap();
    let restarted = fixture.cluster(&["restart", "--wait", "60"]);
    assert_eq!(restarted.status, Some(0), "{restarted:?}");
    let words = format!("the job runs again; epoch {}", before + 1);
    assert!(restarted.out.starts_with(&words), "{restarted:?}");

    let mode = fixture.cluster(&["mode", "observe"]);
    assert_eq!((mode.status, mode.out.split(';').next()), (Some(0), Some("the mode is observe")));
    assert_eq!(fixture.json(&["status"])["mode"], "observe");
    // Who only observes does not restart what has failed.
    fixture.nodes.as_ref().unwrap().kill(&second);
    wait_until("the incident", TIMEOUT, || fixture.json(&["incidents"])[0]["hold"] == "mode");
    assert_eq!(fixture.json(&["status"])["epoch"], before + 1);
    assert_eq!(fixture.cluster(&["incidents"]).status, Some(1), "one is open");
}

#[test]
fn who_asks_wrongly_is_reported_why() {
    let fixture = Fixture::new();
    let unknown = fixture.cluster(&["readmit", "nobody"]);
    unknown.complains(1, &["nobody"]);
    let json = fixture.cluster(&["readmit", "nobody", "--json"]);
    assert_eq!(json.status, Some(1), "{json:?}");
    assert!(json.out.starts_with("{\"refused\":"), "{json:?}");
    let ask = |more: &[&str]| said(telltale().args(["cluster", "status"]).args(more));
    ask(&["--coordinator", &fixture.grpc]).complains(2, &["wants its token: --token-file"]);
    ask(&["--coordinator", "127.0.0.1:1"]).complains(2, &["no process listens at 127.0.0.1:1"]);
    // Of several, those that are there are found.
    let several = format!("127.0.0.1:1,{}", fixture.grpc);
    let found = said(
        telltale()
            .args(["cluster", "status", "--coordinator", &several, "--token-file"])
            .arg(fixture.place.join("token")),
    );
    assert_eq!(found.status, Some(1), "{found:?}");
    assert!(found.out.starts_with("Job trial: "), "{found:?}");
    for (wrong, words) in [
        (&["mode", "fast"][..], "observe"),
        (&["drain"], "NODE"),
        (&["explain", "abc"], "like 1-2"),
        (&["--coordinator", "here", "status"], "NAME:9440"),
    ] {
        let said = said(telltale().arg("cluster").args(wrong));
        assert!(said.status == Some(64) && said.err.contains(words), "{words}: {said:?}");
    }
    for (wrong, words) in [
        (&["--journal", "/nowhere"][..], "on how many nodes"),
        (&["--journal", "/nowhere", "--nodes", "0"], "0 nodes"),
        (&["--nodes", "2"], "where are decisions"),
    ] {
        said(telltale().arg("coordinator").args(wrong)).complains(64, &[words]);
    }
    let no_directory = ["coordinator", "--nodes", "2", "--journal", "/dev/null"];
    said(telltale().args(no_directory)).complains(2, &["/dev/null is no directory; --journal"]);
    let no_address = said(telltale().args(["coordinator", "--nodes", "2", "--listen", "9440"]));
    let reported = no_address.err.contains("write 127.0.0.1:PORT, ");
    assert!(no_address.status == Some(64) && reported, "{no_address:?}");
}
