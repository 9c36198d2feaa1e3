//! A healthy machine of 1,024 nodes under the shipped coordinator, which may act: no node is evicted.
//!
//! `TELLTALE_SIMULATED_HOURS=168 TELLTALE_LONG_TESTS=1 cargo test --release -p telltale-cluster-simulation
//! --test main week:: -- --nocapture` simulates a whole week; without the hours it is a day, and without `--release`
//! an hour of 64 nodes.

use std::time::Duration;

use telltale_cluster::detection::Rule;
use telltale_cluster::policy::{Mode, Policy};
use telltale_cluster_simulation::faults::machine::{Noise, SimulatedFault, name};
use telltale_cluster_simulation::faults::week::{
    LASTING_EVALUATIONS, Plan, Reports, Slow, check_plan,
};
use telltale_harness::long;

const SEED: u64 = 20_241_206;

/// Seconds of a node from one burst to the next, in which its transfers are slow for up to three seconds. At most
/// one in four is reported, as a node or as a link, and none for long.
const BURST_EVERY: u64 = 21_600;
const BURSTS_PER_VERDICT: u64 = 4;

fn healthy(nodes: u32, time: Duration) -> Plan {
    Plan {
        nodes,
        spares: 1,
        time,
        reports: Reports::Spread,
        noise: Noise::ROUGH,
        rule: Rule::OwnHistory,
        mode: Mode::Act,
        continuity_windows: Policy::default().continuity_windows,
        seed: SEED,
        slow: Vec::new(),
        kept_evaluations: LASTING_EVALUATIONS,
    }
}

/// How many hours the long test simulates.
fn hours() -> u64 {
    let hours = std::env::var("TELLTALE_SIMULATED_HOURS");
    hours.map_or(24, |text| text.parse().expect("TELLTALE_SIMULATED_HOURS is a number"))
}

#[test]
fn nobody_is_evicted_in_a_healthy_week() {
    // The short form has two checkpoints, a day all there is.
    let all = long() && !cfg!(debug_assertions);
    let (nodes, seconds) = if all { (1024, hours() * 3600) } else { (64, 3_700) };
    let outcome = check_plan(&healthy(nodes, Duration::from_secs(seconds)));
    println!("{nodes} healthy nodes and a spare for {seconds} s: {outcome:#?}");
    assert_eq!((outcome.metrics.evictions, outcome.answered), (0, 0));
    assert_eq!((outcome.epoch, outcome.runs, outcome.barred.len()), (1, true, 0));
    let alarms = outcome.alarms;
    // A node whose transfers are slow for three seconds, or for some more by two such bursts, is named as
    // long as they are.
    assert_eq!((alarms.lasting, alarms.ambiguous, alarms.not_slow), (0, 0, 0), "{alarms:?}");
    let bursts = u64::from(nodes) * seconds / BURST_EVERY;
    assert!(alarms.nodes + alarms.links <= 1 + bursts / BURSTS_PER_VERDICT, "{alarms:?}");
    // What was said was heard: a report each second or so, and none for nothing.
    assert!(alarms.evaluations >= seconds - 60);
    assert!(outcome.observed >= u64::from(nodes) * (seconds - 60) * 9 / 10, "{outcome:?}");
}

#[test]
fn mean_and_two_deviations_evicts_healthy_nodes() {
    let all = long() && !cfg!(debug_assertions);
    let (nodes, seconds) = if all { (1024, 3_600) } else { (64, 300) };
    let time = Duration::from_secs(seconds);
    for mode in [Mode::Observe, Mode::Act] {
        let rule = Rule::MeanTwoSigma;
        // More than the rule's own authors ask for, who act at once.
        let plan = Plan { rule, mode, continuity_windows: 5, spares: 16, ..healthy(nodes, time) };
        let outcome = check_plan(&plan);
        println!("{nodes} healthy nodes for {seconds} s by mean + 2σ, mode {mode}: {outcome:#?}");
        match mode {
            Mode::Act => assert!(outcome.metrics.evictions > 0, "{outcome:?}"),
            _ => assert!(outcome.alarms.lasting > 0, "{outcome:?}"),
        }
    }
}

#[test]
fn a_slow_node_is_evicted_and_the_spare_takes_its_slot() {
    let (slow, spare) = (17, 32);
    let since = Duration::from_secs(600);
    let plan = Plan {
        slow: vec![Slow {
            fault: SimulatedFault::Node(slow),
            ratio: 1.5,
            from: since,
            turns: None,
        }],
        ..healthy(spare, since + Duration::from_secs(120))
    };
    let outcome = check_plan(&plan);
    assert_eq!((outcome.metrics.evictions, outcome.answered), (1, 1), "{outcome:?}");
    assert_eq!((outcome.epoch, outcome.runs), (2, true), "{outcome:?}");
    assert_eq!(outcome.barred, [name(slow)]);
    assert_eq!(outcome.alarms.lasting, 1, "{outcome:?}");
}
