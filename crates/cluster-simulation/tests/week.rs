//! A healthy machine of 1,024 nodes: nobody is suspected.
//!
//! `TELLTALE_LONG_TESTS=1 cargo test --release -p telltale-cluster-simulation --test week -- --nocapture`
//! looks at a whole week of one-second windows; without `--release`, which would take hours, at an hour.

use std::time::Duration;

use telltale_cluster::detection::Rule;
use telltale_cluster_simulation::faults::machine::Noise;
use telltale_cluster_simulation::faults::week::{look_for, windows_in};
use telltale_harness::long;

const NODES: u32 = 1024;
const SEED: u64 = 20_241_206;

/// Latencies of edges for each of which one link may be suspected: spikes that happen to come five
/// in eight seconds look like a fault that ends.
const EDGE_WINDOWS_PER_LINK: u64 = 400_000_000;
/// Edges of a node in the ring and its mesh.
const EDGES_PER_NODE: u64 = 9;

#[test]
fn nobody_is_suspected_in_a_healthy_week() {
    let windows = windows_in(Duration::from_secs(match (long(), cfg!(debug_assertions)) {
        (false, _) => 120,
        (true, true) => 3600,
        (true, false) => 7 * 24 * 3600,
    }));
    let alarms = look_for(NODES, windows, Noise::ROUGH, Rule::OwnHistory, SEED);
    println!("{NODES} healthy nodes for {windows} windows: {alarms:?}");
    assert_eq!((alarms.nodes, alarms.ambiguous), (0, 0));
    let edge_windows = u64::from(NODES) * EDGES_PER_NODE * windows;
    assert!(alarms.links <= edge_windows / EDGE_WINDOWS_PER_LINK, "{alarms:?}");
}

#[test]
fn the_original_rule_suspects_healthy_nodes() {
    let time = Duration::from_secs(if long() { 600 } else { 90 });
    let alarms = look_for(NODES, windows_in(time), Noise::ROUGH, Rule::MeanTwoSigma, SEED);
    println!("{NODES} healthy nodes for {} s by mean + 2σ: {alarms:?}", time.as_secs());
    assert!(alarms.nodes >= 10, "{alarms:?}");
}
