//! Each mistake that can be put into the cluster is found by the checkers, which shows that they could
//! find it in the machines.

use std::collections::BTreeMap;

use telltale_cluster::detection::Rule;
use telltale_cluster::observation::Observation;
use telltale_cluster::rank::Rank;
use telltale_cluster_simulation::faults::machine::{Noise, SimulatedFault, Topology};
use telltale_cluster_simulation::faults::run::{Case, Distortion, run_distorted};
use telltale_cluster_simulation::{Defect, Kinds, Scenario, World};

/// Seeds that are tried before a mistake counts as not found.
const SEEDS: u64 = 400;

/// What the checkers say of a defect.
const fn sign(defect: Defect) -> &'static str {
    match defect {
        Defect::LockedUp
        | Defect::SilenceIgnored
        | Defect::VerdictsUnread
        | Defect::StragglersLeft => "the job does not run again",
        Defect::EveryReportEvicts | Defect::AmbiguityIgnored => {
            "was evicted, and nothing was wrong"
        }
        Defect::Unfenced => "at once",
        Defect::AcknowledgementAssumed | Defect::FinishedIsFailed | Defect::CrowdsEvicted => {
            "was begun, and nothing was wrong"
        }
        Defect::MasterKept => "as it was not stored",
        Defect::RanksSorted => "was moved out of slot",
        Defect::ReturnedIsActive => "is ordered to take slot",
        Defect::SilentlyShrunk => "the job got smaller",
        Defect::Forgetful => "was followed by",
        Defect::CommandedUnstored => "is the last that was stored",
        Defect::LeaseIgnored => "commands, and",
        Defect::ObserveIgnored => "by one who only observes",
        Defect::BudgetIgnored => "allowed",
        Defect::PortKept => "has the port of the one before",
        Defect::RerunsCharged => "was charged, and nothing was wrong",
    }
}

/// A job in which nothing is wrong but that detection names one node.
fn one_suspicion(seed: u64) -> Scenario {
    Scenario { kinds: Kinds::OneSuspicion, ..Scenario::plain(seed) }
}

#[test]
fn who_is_named_for_long_is_replaced_where_the_coordinator_may_act() {
    for seed in 0..u64::from(telltale_harness::rounds(10, 300)) {
        let summary =
            World::new(one_suspicion(seed), None).run().unwrap_or_else(|it| panic!("{it}"));
        assert_eq!((summary.evictions, summary.epochs), (1, 2), "{summary:?}");
        assert!(summary.recovered_after.as_secs() < 10, "{summary:?}");
    }
}

/// The original's average over a node's row and column in place of each of its latencies.
fn averaged(reports: &[Observation]) -> Vec<Observation> {
    let mut reports = reports.to_vec();
    let mut sums: BTreeMap<Rank, (u64, u64)> = BTreeMap::new();
    for edge in reports.iter().flat_map(|report| &report.edges) {
        for end in [edge.key.rank, edge.key.peer] {
            let (sum, count) = sums.entry(end).or_default();
            (*sum, *count) = (*sum + edge.window.median_ns, *count + 1);
        }
    }
    for edge in reports.iter_mut().flat_map(|report| &mut report.edges) {
        let (sum, count) = sums[&edge.key.rank];
        edge.window.median_ns = sum / count;
    }
    reports
}

/// Whether exactly the nodes that are slow are named, in machines of these numbers of nodes.
fn names_slow_nodes(
    nodes: &[u32],
    rule: Rule,
    distortion: Option<Distortion>,
) -> Result<(), String> {
    for (nodes, slow) in nodes.iter().flat_map(|nodes| [(*nodes, 0), (*nodes, 1)]) {
        let faults: Vec<_> = (0..slow).map(|node| (SimulatedFault::Node(node), 3.0)).collect();
        let expected: Vec<_> = faults.iter().map(|(fault, _)| fault.suspect()).collect();
        let (topology, noise) = (Topology::Mesh, Noise::CALM);
        let case = Case { topology, nodes, faults, noise, seed: 7 };
        let outcome = run_distorted(&case, rule, distortion);
        let named: Vec<_> = outcome.named.into_keys().collect();
        if named != expected || !outcome.ambiguous.is_empty() {
            return Err(format!("{named:?} of {nodes} nodes, and {expected:?} are slow"));
        }
    }
    Ok(())
}

/// Defect 2: a mean and two deviations, which five nodes or fewer never reach. Defect 4: rows and columns
/// averaged, so that one slow node is all over its peers.
#[test]
fn the_originals_defects_of_detection_are_found() {
    assert_eq!(names_slow_nodes(&[4, 5, 8, 16], Rule::OwnHistory, None), Ok(()));
    let never = names_slow_nodes(&[4], Rule::MeanTwoSigma, None).expect_err("it cannot fire");
    assert!(never.starts_with("[] of 4 nodes"), "{never}");
    let smeared = names_slow_nodes(&[8], Rule::OwnHistory, Some(averaged)).expect_err("it smears");
    println!("mean + 2σ: {never}\naveraged: {smeared}");
}

#[test]
fn every_defect_is_found() {
    let mut missed = Vec::new();
    for defect in Defect::ALL {
        let scenario = match defect {
            Defect::VerdictsUnread => one_suspicion,
            Defect::RerunsCharged => Scenario::planned_reruns,
            Defect::CrowdsEvicted => |seed| Scenario::crowd(seed, Kinds::CrowdCut),
            _ => Scenario::drawn,
        };
        let mut failures =
            (0..SEEDS).filter_map(|seed| World::new(scenario(seed), Some(defect)).run().err());
        match failures.find(|failure| failure.what.contains(sign(defect))) {
            Some(failure) => println!("{defect:?}: seed {}: {}", failure.seed, failure.what),
            None => missed.push(defect),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
