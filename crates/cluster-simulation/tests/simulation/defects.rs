//! Each mistake that can be put into the cluster is found by the checkers, which shows that they could
//! find it in the machines.

use telltale_cluster_simulation::{Defect, Scenario, World};

/// Seeds that are tried before a mistake counts as not found.
const SEEDS: u64 = 400;

/// What the checkers say of a defect.
const fn sign(defect: Defect) -> &'static str {
    match defect {
        Defect::LockedUp | Defect::SilenceIgnored => "the job does not run again",
        Defect::EveryReportEvicts | Defect::AmbiguityIgnored => {
            "was evicted, and nothing was wrong"
        }
        Defect::Unfenced => "at once",
        Defect::AcknowledgementAssumed | Defect::FinishedIsFailed => {
            "was begun, and nothing was wrong"
        }
        Defect::MasterKept => "as it was not stored",
        Defect::RanksSorted => "was moved out of slot",
        Defect::ReturnedIsActive => "is told to take slot",
        Defect::SilentlyShrunk => "the job got smaller",
        Defect::Forgetful => "was followed by",
        Defect::CommandedUnstored => "is the last that was stored",
        Defect::LeaseIgnored => "commands, and",
        Defect::BudgetIgnored => "allowed",
        Defect::PortKept => "has the port of the one before",
    }
}

#[test]
fn every_defect_is_found() {
    let mut missed = Vec::new();
    for defect in Defect::ALL {
        let mut failures = (0..SEEDS)
            .filter_map(|seed| World::new(Scenario::drawn(seed), Some(defect)).run().err());
        match failures.find(|failure| failure.what.contains(sign(defect))) {
            Some(failure) => println!("{defect:?}: seed {}: {}", failure.seed, failure.what),
            None => missed.push(defect),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
