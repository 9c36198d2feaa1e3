//! Thousands of simulated clusters: what must never happen does not, and jobs run again.
//!
//! A failing seed says how to run it alone, with everything that happens told.

mod defects;

use telltale_cluster_simulation::{Kinds, Scenario, Summary, World};

#[test]
fn seeds() {
    let mut failures = Vec::new();
    for seed in 0..telltale_harness::rounds(300, 10_000) {
        if let Err(failure) = World::new(Scenario::drawn(u64::from(seed)), None).run() {
            failures.push(failure.to_string());
        }
    }
    assert!(failures.is_empty(), "{} seeds:\n{}", failures.len(), failures.join("\n"));
}

/// Coordinators come and go, and their store fails: nobody who works is to notice.
#[test]
fn failing_coordinators_disturb_no_worker() {
    for seed in 0..u64::from(telltale_harness::rounds(100, 2000)) {
        let scenario = Scenario {
            kinds: Kinds::Coordinators,
            troubles: 10,
            work: None,
            ..Scenario::plain(seed)
        };
        let ranks = u64::from(scenario.job.slots * scenario.job.workers.get());
        match World::new(scenario, None).run() {
            Ok(summary) => {
                let found = (summary.epochs, summary.processes, summary.evictions);
                assert_eq!(found, (1, ranks, 0), "seed {seed}: {summary:?}");
            }
            Err(failure) => panic!("{failure}"),
        }
    }
}

/// The troubles are real ones: what the checkers watch over does happen.
#[test]
fn troubles_lead_to_failovers_evictions_and_restarts() {
    let run = |seed| World::new(Scenario::drawn(seed), None).run().unwrap_or_default();
    let summaries: Vec<Summary> = (0..60).map(run).collect();
    let many = |what: fn(&Summary) -> bool| summaries.iter().filter(|one| what(one)).count();
    let failovers = many(|one| one.terms > 1);
    let evictions = many(|one| one.evictions > 0);
    let restarts = many(|one| one.epochs > 1);
    println!(
        "of 60: {failovers} with failovers, {evictions} with evictions, {restarts} with restarts"
    );
    assert!(failovers > 10 && evictions > 10 && restarts > 20);
}

/// For whoever looks into a failing seed.
#[test]
fn one_seed() {
    let seed = std::env::var("TELLTALE_SIMULATION_SEED").ok().and_then(|text| text.parse().ok());
    let mut world = World::new(Scenario::drawn(seed.unwrap_or(1)), None);
    if seed.is_some() {
        world.narrate();
    }
    match world.run() {
        Ok(summary) => println!("{summary:?}"),
        Err(failure) => panic!("{failure}"),
    }
}
