//! Files that other tools write, from a worker to what the coordinator says.

use std::path::Path;

use telltale_harness::{skip, wait_until};

use crate::cluster::job::{Job, TIMEOUT, metrics};

const PYTHON: &str = "/usr/bin/python3";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/files.py");

/// A job of two nodes whose workers write files as `tool` does.
fn writing(test: &str, tool: &str) -> Option<Job> {
    if !Path::new(PYTHON).exists() {
        skip(test, "needs Python at /usr/bin/python3");
        return None;
    }
    Some(Job::start(2, &[PYTHON, "-u", SCRIPT, tool]))
}

#[test]
fn a_rank_that_is_missing_from_a_collective_is_named_by_dumps_of_the_flight_recorder() {
    let test = "cluster::files::a_rank_that_is_missing";
    let Some(mut job) = writing(test, "flight-recorder") else { return };
    for node in ["a", "b"] {
        let place = job.path(&format!("dumps-{node}"));
        job.add(node, &["--flight-recorder", place.to_str().unwrap()]);
    }
    job.wait_printed("a", 1, 0, "dumps-a/nccl_trace_rank_");
    wait_until("the missing rank's node to be named", TIMEOUT, || {
        let incidents = job.json(&["incidents"]).to_string();
        incidents.contains("others wait in a collective for a rank: node b")
    });
    let explained = job.json(&["explain", "1-1"]).to_string();
    assert!(explained.contains("rank 1 has entered 6 collectives"), "{explained}");
}

#[test]
fn lines_of_the_inspector_are_counted_for_the_worker_that_wrote_them() {
    let test = "cluster::files::lines_of_the_inspector";
    let Some(mut job) = writing(test, "inspector") else { return };
    for node in ["a", "b"] {
        let place = job.path(&format!("lines-{node}"));
        job.add(node, &["--inspector", place.to_str().unwrap()]);
    }
    job.wait_printed("b", 1, 1, "writes");
    let socket = job.path("b/agent.sock");
    wait_until("the lines to be counted", TIMEOUT, || {
        let text = metrics(&socket);
        text.contains(
            "telltale_agent_read_records_total{format=\"inspector\",outcome=\"given\"} 40",
        ) && text.contains("telltale_agent_records_total{outcome=\"taken\"} 40")
    });
    job.finish();
}
