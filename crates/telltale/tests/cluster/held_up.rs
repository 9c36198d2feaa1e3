//! A slow link in a job that only sends and receives: each rank is held up by the one before it, so its
//! own transfers take longer too. No node is evicted for what others kept waiting, nor named for certain.

use serde_json::{Value, json};
use telltale_harness::{long, wait_until};

use crate::cluster::job::{Job, TIMEOUT};
use crate::cluster::network::Network;
use crate::cluster::training::{NODES, PYTHON, turn};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/transfers.py");
/// Seconds of steps in which the coordinator learns what is usual.
const LEARNING_SECONDS: f64 = 60.0;
/// Seconds with the slow link: more than it takes until a node named for certain is evicted.
const SLOW_SECONDS: f64 = 60.0;

/// How long the job has made steps, by its own clock.
fn seconds(job: &Job) -> f64 {
    let printed = job.printed("a", 1, 0);
    let mut times = printed
        .lines()
        .filter_map(|line| line.strip_prefix("step ")?.split_once(' ')?.1.parse::<f64>().ok());
    let first = times.next();
    first.zip(times.next_back()).map_or(0.0, |(first, last)| last - first)
}

/// The verdicts about slow nodes and links that the newest incident has.
fn verdicts(job: &Job) -> Vec<Value> {
    let all = job.json(&["explain"])["verdicts"].take();
    let all = all.as_array().cloned().unwrap_or_default();
    all.into_iter()
        .filter(|one| one["kind"].as_str().is_some_and(|it| it.starts_with("slow")))
        .collect()
}

/// What the slow link may be called: one way may be beyond doubt some looks before the other.
const SLOW_LINK: [&str; 3] = ["link between b and c", "link from b to c", "link from c to b"];

/// Whether a verdict names the link that is slow, or no single node.
fn is_earned(verdict: &Value) -> bool {
    let suspects = verdict["suspects"].as_array();
    let is_link = |one: &Value| one["text"].as_str().is_some_and(|text| SLOW_LINK.contains(&text));
    let is_right = suspects.is_some_and(|all| all.iter().all(is_link));
    let confidence = verdict["confidence"].as_f64().expect("a number");
    is_right || (confidence <= 0.5 && verdict["is_certain"] == false)
}

fn nobody_is_named(pattern: &'static str) {
    let test = format!("cluster::held_up::nobody_is_named_in_{pattern}");
    if !long() {
        return;
    }
    let Some(network) = Network::of(NODES.len(), &test) else { return };
    let Some(_turn) = turn(&test) else { return };
    let mut job = Job::start(4, &[PYTHON, "-u", SCRIPT]);
    job.set("PATTERN", pattern);
    job.set("GLOO_SOCKET_IFNAME", Network::INTERFACE);
    for (place, node) in NODES.into_iter().enumerate() {
        job.add_by(&network.entry(place), &Network::address(place), node, &[]);
    }
    // Else the spare might be first, and make steps without an address in that network.
    NODES.iter().for_each(|node| job.wait_connected(node));
    job.add("spare", &[]);
    job.wait_connected("spare");
    wait_until("what is usual to be learned", TIMEOUT, || seconds(&job) >= LEARNING_SECONDS);
    assert_eq!(verdicts(&job), Vec::<Value>::new());
    network.slow(1, 2);
    let begun = seconds(&job);
    wait_until("the job to go on with a slow link", TIMEOUT, || {
        for verdict in verdicts(&job) {
            assert!(is_earned(&verdict), "{verdict:#}");
        }
        seconds(&job) >= begun + SLOW_SECONDS
    });
    assert_eq!(job.json(&["status"])["epoch"], 1);
    let incidents = job.json(&["incidents"]);
    assert_eq!(incidents[0]["evicted"], json!([]), "{incidents:#}");
}

#[test]
fn a_slow_link_of_a_ring_gets_nobody_evicted() {
    nobody_is_named("ring");
}

#[test]
fn a_slow_link_among_all_pairs_gets_nobody_evicted() {
    nobody_is_named("pairs");
}
