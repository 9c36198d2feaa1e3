//! Thousands of simulated clusters: what must never happen does not, and jobs run again.
//!
//! A failing seed says how to run it alone, with everything that happens told.

mod defects;

use telltale_cluster_simulation::{Scenario, World};

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
