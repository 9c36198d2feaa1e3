//! A node that computes slowly and a link that carries slowly are named by the coordinator, from what an
//! unchanged script's collectives and transfers take. To learn what is usual takes half a minute, so
//! these are among the long tests.

use serde_json::{Value, json};
use telltale_harness::{long, wait_until};

use crate::cluster::job::TIMEOUT;
use crate::cluster::network::Network;
use crate::cluster::throttle::Throttle;
use crate::cluster::training::{NODES, Training};

/// Seconds of reports from which the coordinator learns what is usual, and a few for the first steps.
const LEARNING_SECONDS: u32 = 30 + 8;

/// Trains until the coordinator knows what is usual.
fn learn(training: &Training, seconds_each: f64) {
    let steps = (f64::from(LEARNING_SECONDS) / seconds_each).ceil();
    training.wait_step(steps as u32);
}

/// What the newest incident is explained by, once there is such a verdict.
fn verdict(training: &Training, kind: &str) -> Value {
    let mut found = None;
    wait_until(kind, TIMEOUT, || {
        let verdicts = training.job.json(&["explain"])["verdicts"].take();
        let mut verdicts = verdicts.as_array().cloned().unwrap_or_default().into_iter();
        found = verdicts.find(|one| one["kind"] == kind);
        found.is_some()
    });
    found.expect("wait_until returns once it is there")
}

/// What `cluster explain` prints of the latencies, and its matrix as JSON.
fn explained(training: &Training) -> (String, Value) {
    let said = training.job.cluster(&["explain"]);
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let map = text.split("Latencies, as multiples").nth(1);
    let map = map.unwrap_or_else(|| panic!("there is no map: {text}")).to_owned();
    (map, training.job.json(&["explain"])["matrix"].take())
}

#[test]
fn a_node_whose_processor_is_throttled_is_named_and_replaced() {
    if !long() {
        return;
    }
    let test = "cluster::slow::a_node_whose_processor_is_throttled";
    let Some(mut training) = Training::new(test) else { return };
    training.job.set("STEPS", "100000");
    training.job.set("PRODUCTS", "30");
    training.add_nodes(&[]);
    training.wait_checkpoint();
    training.job.add("spare", &[]);
    learn(&training, 0.12);
    let _throttle = Throttle::on(training.job.worker("c", 1, 2));
    let named = verdict(&training, "slow_node");
    assert_eq!(named["suspects"][0]["node"], "c", "{named:#}");
    training.resumed_from("spare", 2, 2);
    training.resumed_from("a", 2, 0);
    let incidents = training.job.json(&["incidents"]);
    assert_eq!(incidents[0]["evicted"], json!(["c"]), "{incidents:#}");
}

#[test]
fn a_link_that_is_shaped_is_named_and_nobody_is_replaced() {
    if !long() {
        return;
    }
    let test = "cluster::slow::a_link_that_is_shaped";
    let Some(network) = Network::of(NODES.len(), test) else { return };
    let Some(mut training) = Training::new(test) else { return };
    training.job.set("STEPS", "100000");
    training.job.set("EXCHANGED", "16384");
    training.job.set("GLOO_SOCKET_IFNAME", Network::INTERFACE);
    for (place, node) in NODES.into_iter().enumerate() {
        let (by, address) = (network.entry(place), Network::address(place));
        training.job.add_by(&by, &address, node, &["--stop-grace", "2"]);
    }
    learn(&training, 0.12);
    network.slow(1, 3);
    // One way may be beyond doubt some looks before the other.
    let ways = ["link from b to d", "link from d to b", "link between b and d"];
    wait_until("both ways of the link", TIMEOUT, || {
        let named = verdict(&training, "slow_link");
        let suspects = named["suspects"].as_array().expect("a list");
        let text: Vec<_> = suspects.iter().filter_map(|one| one["text"].as_str()).collect();
        assert!(text.len() == 1 && ways.contains(&text[0]), "{named:#}");
        text[0] == ways[2]
    });
    let (map, matrix) = explained(&training);
    let nodes = matrix["nodes"].as_array().expect("a list");
    let mut sorted: Vec<_> = nodes.iter().filter_map(Value::as_str).collect();
    sorted.sort_unstable();
    assert_eq!(sorted, NODES, "{matrix:#}");
    let slow = matrix["cells"].as_array().into_iter().flatten().filter(|it| it["is_slow"] == true);
    let ends = slow.map(|cell| {
        ["from", "to"].map(|end| nodes[cell[end].as_u64().expect("a place") as usize].as_str())
    });
    let ends: Vec<_> = ends.collect();
    let is_it = |ends: &[_; 2]| [["b", "d"], ["d", "b"]].iter().any(|it| it.map(Some) == *ends);
    assert!(ends.iter().any(is_it), "{matrix:#}");
    let is_marked =
        |metric: &str| metric.strip_suffix('!').is_some_and(|it| it.parse::<f64>().is_ok());
    assert!(map.split_whitespace().any(is_marked), "{map}");
    // Either end may be at fault, so both go on, as slow as it is.
    training.wait_step(training.steps() + 60);
    let incidents = training.job.json(&["incidents"]);
    assert_eq!(incidents[0]["evicted"], json!([]), "{incidents:#}");
    assert_eq!(training.job.json(&["status"])["epoch"], 1);
    let log = training.job.coordinator_log();
    assert!(log.contains("is held: links are not replaced"), "{log}");
}
