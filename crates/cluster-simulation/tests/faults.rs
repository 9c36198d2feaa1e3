//! The fault suite: what detection names, how soon, and how often wrongly.
//!
//! `TELLTALE_LONG_TESTS=1 cargo test --release -p telltale-cluster-simulation --test main faults:: -- --nocapture`
//! runs all of it and prints its table; without `--release` a part.

use telltale_cluster_simulation::faults::suite::{HEAD, Score, groups, table};
use telltale_harness::long;

/// What precision and recall must be at least.
const PROMISED: f64 = 0.99;

#[test]
fn the_suite_finds_what_can_be_found() {
    let (most, rounds) = match (long(), cfg!(debug_assertions)) {
        (false, _) => (8, 1),
        (true, true) => (16, 2),
        (true, false) => (64, 5),
    };
    let lines = table(&groups(most), rounds);
    println!("{HEAD}");
    lines.iter().for_each(|line| println!("{line}"));
    let all = lines.last().expect("the sum comes last");
    let Score { ambiguous, ambiguous_at_best, ambiguous_beyond, .. } = all.ours;
    assert!(all.ours.knowable > 50, "the suite has faults");
    assert!(all.ours.precision() >= PROMISED, "{all}");
    assert!(all.ours.recall() >= PROMISED, "{all}");
    assert!(ambiguous <= ambiguous_at_best, "{ambiguous} sets, {ambiguous_at_best} at best");
    assert_eq!(ambiguous_beyond, 0, "sets named where one explanation is smallest");
    let ours = [all.ours.plain_precision(), all.ours.plain_recall(), all.ours.recall_of_sure()];
    let readings = [
        "precision with nothing set apart",
        "recall with nothing set apart",
        "recall with ambiguity sets set apart, and nothing else",
    ];
    for ((reading, ours), at_best) in readings.iter().zip(ours).zip(all.ours.at_best()) {
        println!("{reading}: {ours:.4}, the oracle's own {at_best:.4}");
        // Noise costs no more than this of what could be had without.
        assert!(ours >= at_best - (1.0 - PROMISED), "{reading}: {ours:.4}, {at_best:.4} at best");
    }
    println!("{} cases with more explanations than were tried", all.ours.untried);
    // On the same data, the original's rule misses most.
    assert!(all.original.recall() < 0.5, "{all}");
}
