//! Jobs of every shape, healthy and with one fault: a healthy machine is named for long in none.
//!
//! `TELLTALE_BLIND_RUNS=1000 cargo test --release -p telltale-cluster-simulation --test main blind:: -- --nocapture`
//! runs a thousand of each.

use telltale_cluster_simulation::faults::blind::{
    Broken, HEAD, Measured, Score, TableLine, groups, scores,
};
use telltale_harness::rounds;

/// With 12 jobs of each shape 0.969 of slow nodes and 0.966 of slow links were found in time, with
/// precisions of 1.000 and 0.985; one job of each small shape finds 19 of 21.
const LEAST_RECALL: f64 = 0.9;

/// In this part of the healthy jobs whose ranks hold each other up a node may be named for ten evaluations.
const MOST_TRANSIENT: f64 = 0.002;

/// How many jobs of each shape are run.
fn runs() -> u64 {
    let given = std::env::var("TELLTALE_BLIND_RUNS").ok();
    let given = given.map(|text| text.parse().expect("TELLTALE_BLIND_RUNS is a number"));
    given.unwrap_or(if cfg!(debug_assertions) { 1 } else { u64::from(rounds(4, 24)) })
}

fn run(broken: Broken, measured: Measured) -> Score {
    let most = if cfg!(debug_assertions) { 18 } else { u32::MAX };
    // Each of them is run for each way of being held up too.
    let runs = if measured == Measured::Alone { runs() } else { runs().div_ceil(4) };
    println!("{HEAD}");
    let mut all = Score::default();
    for (group, score) in scores(&groups(broken, measured, most), runs) {
        println!("{}", TableLine(&group.shape.to_string(), &score));
        score.notes.iter().take(5).for_each(|note| println!("{note}"));
        all.add(&score);
    }
    println!("{}", TableLine("all", &all));
    all
}

#[test]
fn nobody_healthy_is_named_for_long_or_evicted() {
    let all = run(Broken::Nothing, Measured::Alone);
    assert_eq!((all.misjudged, all.evicted), (0, 0));
}

#[test]
fn nobody_healthy_is_named_for_long_or_evicted_where_ranks_hold_each_other_up() {
    for measured in [Measured::Late, Measured::Overlapped] {
        let all = run(Broken::Nothing, measured);
        assert_eq!(all.evicted, 0, "{measured:?}");
        // A link that wanders can make its receiver the last to each collective: in one job of some thousands for
        // ten evaluations, never for the 30 after which a node is replaced.
        assert!(f64::from(all.misjudged) <= MOST_TRANSIENT * f64::from(all.runs), "{measured:?}");
    }
}

#[test]
fn where_ranks_hold_each_other_up_nobody_is_named_instead_of_who_is_slow() {
    for measured in [Measured::Late, Measured::Overlapped] {
        for broken in [Broken::Node, Broken::Link] {
            let all = run(broken, measured);
            assert_eq!(all.evicted, 0, "{measured:?}");
            assert!(all.precision() > 0.9, "{measured:?}, {broken:?}");
        }
    }
}

#[test]
fn a_slow_node_is_named() {
    let all = run(Broken::Node, Measured::Alone);
    assert_eq!(all.evicted, 0);
    assert!(all.precision() > 0.99 && all.recall() > LEAST_RECALL);
}

#[test]
fn a_slow_link_is_named() {
    let all = run(Broken::Link, Measured::Alone);
    assert_eq!(all.evicted, 0);
    assert!(all.precision() > 0.94 && all.recall() > LEAST_RECALL);
}
