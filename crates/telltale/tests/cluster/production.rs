//! Production jobs, replayed through agents and a coordinator: what was published about them is reported.
//!
//! The traces are those of crates/steps/tests/data/stragglers. What a rank did in a step is posted to its agent as a
//! client posts it (docs/cluster-clients.md), or by the Python module, by the clock of its trace and not in its time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use telltale_cluster_simulation::faults::steps::trace::Trace;
use telltale_harness::{long, wait_until};

use crate::cluster::job::{Job, TIMEOUT};

/// A rank that posts by the Python module what it did.
const BY_MODULE: [&str; 2] =
    ["python3", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/replay.py")];
const WORKER: [&str; 3] = ["bash", "-c", "until test -e $STATE/finish; do sleep 1; done"];
/// Steps that are posted together.
const TOGETHER: usize = 8;

/// The trace of this name, of whose ranks so many are on one node.
fn trace(name: &str, workers: u32) -> Trace {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../steps/tests/data/stragglers");
    let file = File::open(root.join(format!("{name}.csv.gz"))).expect("the trace is there");
    Trace::read(BufReader::new(GzDecoder::new(file)), workers).expect("it is a trace")
}

/// Posts lines to an agent's socket.
fn post(socket: &Path, body: &str) {
    let mut stream = UnixStream::connect(socket).expect("the agent listens");
    let head = format!(
        "POST /log_ccl HTTP/1.1\r\nhost: agent\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body.as_bytes()))
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers, and closes");
    assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("refused"), "{answer}");
}

/// A job whose ranks are those of a trace, and its nodes in the order of their ranks.
fn start(trace: &Trace) -> (Job, Vec<String>) {
    let [nodes, workers] =
        [trace.nodes(), trace.workers()].map(|count| u32::try_from(count).expect("few ranks"));
    run(Job::unhurried(nodes, workers, &WORKER), trace)
}

/// Starts a job's nodes.
fn run(mut job: Job, trace: &Trace) -> (Job, Vec<String>) {
    let nodes = u32::try_from(trace.nodes()).expect("few ranks");
    let names: Vec<String> = (0..nodes).map(|node| format!("n{node:02}")).collect();
    names.iter().for_each(|name| job.add(name, &[]));
    let mut node_of = BTreeMap::new();
    wait_until("the job to run", TIMEOUT, || {
        let nodes = job.json(&["nodes"]);
        let found = nodes.as_array().into_iter().flatten().filter_map(|node| {
            let started =
                node["worker_states"].as_array().is_some_and(|workers| !workers.is_empty());
            let rank = node["first_rank"].as_u64().filter(|_| started)?;
            Some((rank, node["name"].as_str()?.to_owned()))
        });
        node_of = found.collect();
        u64::try_from(node_of.len()) == Ok(trace.nodes())
    });
    (job, node_of.into_values().collect())
}

/// Replays `steps` steps from number `first`, and returns what is reported once they were analysed.
fn replay(job: &Job, trace: &Trace, nodes: &[String], (first, steps): (u64, u64)) -> Value {
    // All ranks are about as far.
    for begin in (first..first + steps).step_by(TOGETHER) {
        let count = (first + steps - begin).min(TOGETHER as u64);
        for (rank, records) in trace.posts(begin, count) {
            let node = &nodes[usize::try_from(rank / trace.workers()).expect("few ranks")];
            post(&job.path(node).join("agent.sock"), &records.join("\n"));
        }
    }
    let mut report = Value::Null;
    wait_until("the steps to be analysed", TIMEOUT, || {
        report = job.json(&["report"]);
        report["all"]["last_step"].as_u64() == Some(first + steps - 1)
    });
    report
}

fn assert_near(what: &str, ours: &Value, published: f64, within: f64) {
    let ours = ours.as_f64().unwrap_or_else(|| panic!("{what}: {ours}"));
    assert!((ours / published - 1.0).abs() <= within, "{what}: {ours}, published {published}");
}

#[test]
fn a_worker_that_was_slow_from_the_start_is_named_by_the_end_of_its_second_step() {
    let trace = trace("AR", 1);
    let (job, nodes) = start(&trace);
    let report = replay(&job, &trace, &nodes, (0, 2));
    let slow = &report["latest"]["ranks"];
    assert_eq!(slow.as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!((&slow[0]["rank"], &slow[0]["node"]), (&json!(0), &json!(nodes[0])), "{slow}");
    assert_eq!(report["latest"]["links"], json!([]), "{report}");
    let text = report["text"][1].as_str().unwrap_or_default();
    assert!(text.starts_with(&format!("Rank 0 on {} computes 2.", nodes[0])), "{report}");
    wait_until("the node to be suspected", TIMEOUT, || {
        let incidents = job.json(&["incidents"]);
        let events = incidents[0]["signs"].as_array().cloned().unwrap_or_default();
        events
            .iter()
            .any(|event| event["text"].as_str().is_some_and(|text| text.contains(&nodes[0])))
    });
    // All of the trace: the slow-down is the published one.
    let report = replay(&job, &trace, &nodes, (2, 42));
    assert_near("S", &report["all"]["slowdown"], 1.973, 0.01);
    job.finish();
}

#[test]
fn a_stage_with_more_to_do_is_reported_and_nobody_is_at_fault() {
    let trace = trace("ST", 1);
    let (job, nodes) = start(&trace);
    let report = replay(&job, &trace, &nodes, (0, 32));
    let (latest, all) = (&report["latest"], &report["all"]);
    assert_near("S", &all["slowdown"], 1.179, 0.01);
    assert_eq!((&latest["ranks"], &latest["links"]), (&json!([]), &json!([])), "{report}");
    assert_eq!(latest["stages"][0]["stage"], 3, "{report}");
    let text = report["text"][1].as_str().unwrap_or_default();
    assert!(text.starts_with("The last stage computes 1.6"), "{report}");
    assert!(text.contains("no node"), "{report}");
    assert_eq!(job.json(&["incidents"]), json!([]));
    job.finish();
}

#[test]
fn a_job_whose_data_vary_has_nobody_at_fault() {
    let trace = trace("SE", 8);
    let (job, nodes) = start(&trace);
    let report = replay(&job, &trace, &nodes, (0, 43));
    assert_near("S", &report["all"]["slowdown"], 1.537, 0.01);
    let latest = &report["latest"];
    assert_eq!((&latest["ranks"], &latest["links"]), (&json!([]), &json!([])), "{report}");
    let text = report["text"][1].as_str().unwrap_or_default();
    assert!(text.contains("with their data: no node is at fault"), "{report}");
    assert_eq!(job.json(&["incidents"]), json!([]));
    job.finish();
}

/// A job whose ranks post by the Python module the first steps of a trace, as many at a time as are asked for.
fn start_by_module(trace: &Trace, steps: u64) -> (Job, Vec<String>) {
    let [nodes, workers] =
        [trace.nodes(), trace.workers()].map(|count| u32::try_from(count).expect("few ranks"));
    let job = Job::unhurried(nodes, workers, &BY_MODULE);
    let of_steps: Vec<BTreeMap<u64, Vec<Value>>> =
        (0..steps).map(|step| done(trace, step)).collect();
    // Who is in a group is known from all of them.
    let mut groups: BTreeMap<&str, BTreeMap<u64, u64>> = BTreeMap::new();
    for (rank, records) in &of_steps[0] {
        for record in records {
            let name = record["group"].as_str().filter(|name| !name.is_empty());
            if let (Some(name), Some(place)) = (name, record["context_rank"].as_u64()) {
                groups.entry(name).or_default().insert(place, *rank);
            }
        }
    }
    let members =
        |(name, members): (_, BTreeMap<u64, u64>)| (name, members.into_values().collect());
    let groups: BTreeMap<&str, Vec<u64>> = groups.into_iter().map(members).collect();
    for rank in 0..trace.ranks() {
        let steps: Vec<&[Value]> =
            of_steps.iter().map(|of| of.get(&rank).map_or(&[][..], Vec::as_slice)).collect();
        let text = json!({ "groups": groups, "steps": steps }).to_string();
        fs::write(job.path(&format!("rank-{rank}.json")), text).expect("there is room");
    }
    fs::write(job.path("steps"), "0").expect("there is room");
    run(job, trace)
}

/// What each rank does in a step.
fn done(trace: &Trace, step: u64) -> BTreeMap<u64, Vec<Value>> {
    let posts = trace.posts(step, 1).into_iter();
    let parse = |record: &String| serde_json::from_str::<Value>(record).expect("it is JSON");
    // The module tells by the next step's first operation that a step has ended.
    let is_done = |record: &Value| record["opType"] != "step";
    posts
        .map(|(rank, records)| (rank, records.iter().map(parse).filter(is_done).collect()))
        .collect()
}

#[test]
fn the_python_module_s_records_of_production_jobs_are_reported_alike() {
    if !long() {
        return;
    }
    let jobs = [("AR", 1, 44, 1.973), ("ST", 1, 32, 1.179), ("SE", 8, 43, 1.537)];
    for (name, workers, steps, published) in jobs {
        let trace = trace(name, workers);
        let (job, nodes) = start_by_module(&trace, steps);
        let mut report = Value::Null;
        // As many as are checked together, and the one that ends these.
        for posted in (11..steps).step_by(10).chain([steps]) {
            let next = job.path("steps.new");
            fs::write(&next, posted.to_string()).expect("there is room");
            fs::rename(next, job.path("steps")).expect("it is there");
            wait_until("the steps to be analysed", TIMEOUT, || {
                report = job.json(&["report"]);
                report["all"]["last_step"].as_u64() == Some(posted - 2)
            });
        }
        assert_near(name, &report["all"]["slowdown"], published, 0.01);
        assert_eq!(report["left_out"].as_u64().unwrap_or(0), 0, "{report}");
        let slow: Vec<&Value> = report["all"]["ranks"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| &one["node"])
            .collect();
        let expected = if name == "AR" { vec![json!(nodes[0])] } else { Vec::new() };
        assert_eq!(slow, expected.iter().collect::<Vec<_>>(), "{report}");
        assert_eq!(report["latest"]["links"], json!([]), "{report}");
        job.finish();
    }
}
