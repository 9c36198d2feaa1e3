//! Detection of a large job: what it says, and what one second of it costs.
//!
//! `TELLTALE_LONG_TESTS=1 cargo test --release -p telltale-cluster-simulation --test main scale:: -- --nocapture`
//! prints time and memory for 10,000 nodes. No test asserts on a time.

use std::fs;
use std::time::{Duration, Instant};

use prost::Message as _;
use telltale_cluster::detection::{DetectionSettings, Detector};
use telltale_cluster::epoch::Epoch;
use telltale_cluster::lookout::{Lookout, Work, observed};
use telltale_cluster::message::{AgentActivity, FromNode, FromNodeBody, Report};
use telltale_cluster::node::Incarnation;
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::Suspects;
use telltale_cluster_simulation::faults::machine::{
    Noise, SimulatedFault, SyntheticMachine, Topology, name, ranks,
};
use telltale_cluster_simulation::faults::steps::{Load, StepShape};
use telltale_control_plane::protocol::{decode, encode};
use telltale_harness::long;

/// Windows before the faults, more than are learned from, and with them.
const HEALTHY: usize = 36;
const FAULTY: usize = 12;

#[test]
fn a_slow_node_and_a_slow_link_are_found_among_thousands() {
    let nodes = if long() { 10_000 } else { 1_000 };
    let mut groups = vec![Topology::Ring.edges(0, nodes)];
    groups.extend((0..nodes / 8).map(|mesh| Topology::Mesh.edges(mesh * 8, 8)));
    let edges: usize = groups.iter().map(Vec::len).sum();
    let mut machine = SyntheticMachine::new(nodes, &groups, Noise::CALM, 5);
    let names: Vec<_> = (0..nodes).map(name).collect();
    machine.window();
    let before_bytes = resident_bytes();
    let mut detector = Detector::new(DetectionSettings::default());
    let mut now = Moment::default();
    detector.set_ranks(now, &ranks(nodes));
    let faults = [(SimulatedFault::Node(17), 1.5), (SimulatedFault::BothWays(400, 401), 1.5)];
    let (mut spent, mut longest) = (Duration::ZERO, Duration::ZERO);
    let mut found = Vec::new();
    for window in 0..HEALTHY + FAULTY {
        if window == HEALTHY {
            machine.break_down(&faults);
        }
        now = now.after(Duration::from_secs(1));
        let reports = machine.window();
        let start = Instant::now();
        for (node, observation) in names.iter().zip(reports) {
            detector.observe(now, node, observation);
        }
        found = detector.evaluate(now);
        spent += start.elapsed();
        longest = longest.max(start.elapsed());
    }
    let grown_bytes = resident_bytes().saturating_sub(before_bytes);
    println!(
        "{nodes} nodes, {edges} edges: {:?} a window, {longest:?} at most, {} bytes a node",
        spent / u32::try_from(HEALTHY + FAULTY).expect("a few dozen"),
        grown_bytes / u64::from(nodes)
    );
    let named: Vec<_> = found.into_iter().map(|verdict| verdict.suspects).collect();
    let expected: Vec<_> = faults.iter().map(|(fault, _)| Suspects::One(fault.suspect())).collect();
    assert_eq!(named, expected);
}

/// Seconds that the job of training steps is watched.
const SECONDS: u32 = 40;

#[test]
fn a_slow_rank_and_a_slow_link_are_found_among_a_thousand_that_report_training_steps() {
    let is_whole = long() && !cfg!(debug_assertions);
    let shape = StepShape::BusyTorus(25, if is_whole { 40 } else { 4 });
    let faults = [(SimulatedFault::Node(17), 1.5), (SimulatedFault::OneWay(34, 35), 4.0)];
    let mut load = Load::new(shape, &faults, 3);
    let ranks_of_job = ranks(shape.ranks());
    let mut lookout = Lookout::new(DetectionSettings::default());
    let epoch = Epoch::new(1);
    let mut now = Moment::default();
    lookout.take(&Work::Ranks { now, epoch, map: Box::new(ranks_of_job) });
    let names: Vec<_> = (0..shape.ranks()).map(name).collect();
    let (mut decoding, mut detecting) = (Duration::ZERO, Duration::ZERO);
    let (mut longest, mut operations, mut bytes_sent) = (Duration::ZERO, 0, 0);
    let mut verdicts = Vec::new();
    for sequence in 1..=u64::from(SECONDS) {
        now = now.after(Duration::from_secs(1));
        let observations = load.second();
        operations += observations.iter().map(|one| one.operations.list.len()).sum::<usize>();
        let sent: Vec<Vec<u8>> = names
            .iter()
            .zip(observations)
            .map(|(node, observation)| {
                let activity = AgentActivity::Committed(epoch);
                let body = FromNodeBody::Report(Report { activity, observation, fault: None });
                let incarnation = Incarnation::new(1);
                let message = FromNode { node: node.clone(), incarnation, sequence, body };
                encode::node_message(&message, None).encode_to_vec()
            })
            .collect();
        bytes_sent += sent.iter().map(Vec::len).sum::<usize>();
        let start = Instant::now();
        let decoded: Vec<_> = names
            .iter()
            .zip(&sent)
            .map(|(node, bytes)| decode::node_message(bytes, Some(node)).expect("it was encoded"))
            .collect();
        decoding += start.elapsed();
        let start = Instant::now();
        for mut word in decoded {
            if let Some(work) = observed(now, &mut word.message) {
                lookout.take(&work);
            }
        }
        let seen =
            lookout.take(&Work::Evaluate { now, metrics: false }).expect("it knows an epoch");
        detecting += start.elapsed();
        longest = longest.max(start.elapsed());
        verdicts = seen.verdicts;
    }
    let part = |time: Duration| 100.0 * time.as_secs_f64() / f64::from(SECONDS);
    println!(
        "{} ranks, {:.0} records a second each in {} bytes: decoding {:.1} %, detection {:.1} % of a core, a look \
         {longest:?} at most, {} bytes resident",
        shape.ranks(),
        operations as f64 / f64::from(SECONDS) / f64::from(shape.ranks()),
        bytes_sent / SECONDS as usize / names.len(),
        part(decoding),
        part(detecting),
        resident_bytes()
    );
    let named: Vec<_> = verdicts.into_iter().map(|verdict| verdict.suspects).collect();
    let expected: Vec<_> = faults.iter().map(|(fault, _)| Suspects::One(fault.suspect())).collect();
    assert_eq!(named, expected);
}

/// The process's resident memory (the second field of `/proc/self/statm`, in pages of 4 KiB).
fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|field| field.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
