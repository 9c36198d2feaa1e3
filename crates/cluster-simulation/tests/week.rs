//! A healthy machine of 1,024 nodes: nobody is suspected.
//!
//! `TELLTALE_LONG_TESTS=1 cargo test --release -p telltale-cluster-simulation --test week -- --nocapture`
//! looks at a whole week of one-second windows.

use std::time::Duration;

use telltale_cluster::detection::Rule;
use telltale_cluster_simulation::faults::machine::Noise;
use telltale_cluster_simulation::faults::week::{look_for, windows_in};
use telltale_harness::long;

const NODES: u32 = 1024;
const SEED: u64 = 20_241_206;

#[test]
fn nobody_is_suspected_in_a_healthy_week() {
    let time = Duration::from_secs(if long() { 7 * 24 * 3600 } else { 120 });
    let alarms = look_for(NODES, windows_in(time), Noise::ROUGH, Rule::OwnHistory, SEED);
    println!("{NODES} healthy nodes for {} s: {alarms:?}", time.as_secs());
    assert_eq!(alarms.nodes, 0);
    assert!(alarms.links <= 1 && alarms.ambiguous <= 1, "{alarms:?}");
}

#[test]
fn the_original_rule_suspects_healthy_nodes() {
    let time = Duration::from_secs(if long() { 3600 } else { 90 });
    let alarms = look_for(NODES, windows_in(time), Noise::ROUGH, Rule::MeanTwoSigma, SEED);
    println!("{NODES} healthy nodes for {} s by mean + 2σ: {alarms:?}", time.as_secs());
    assert!(alarms.nodes >= 10, "{alarms:?}");
}
