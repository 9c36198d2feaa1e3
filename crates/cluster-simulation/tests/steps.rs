//! Jobs of training steps in which something is slow from the first step on, or comes and goes.
//!
//! `TELLTALE_STEP_RUNS=40 cargo test --release -p telltale-cluster-simulation --test main steps:: -- --nocapture` runs forty of
//! each shape and fault; `TELLTALE_STEP_SEED` is the first seed.

use telltale_cluster_simulation::faults::steps::{Score, cases, groups, score, table};
use telltale_harness::rounds;

/// What must be right of who is named, and found of what must be.
const LEAST: f64 = 0.99;
/// Verdicts of which less is claimed are not counted by the confidence that they have.
const SURE_TENTH: u32 = 9;
/// Jobs of more ranks are run by the release build alone.
const MOST_IN_DEBUG: u32 = 9;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn who_is_slow_is_named_and_no_other() {
    let runs = number("TELLTALE_STEP_RUNS", u64::from(rounds(1, 4)));
    let first = number("TELLTALE_STEP_SEED", 1_000_000);
    let most = if cfg!(debug_assertions) { MOST_IN_DEBUG } else { u32::MAX };
    let (mut all, mut sum) = (Vec::new(), Score::default());
    for group in groups(most) {
        let one = score(&cases(group, first..first + runs));
        one.notes.iter().take(5).for_each(|note| println!("{note}"));
        sum.add(&one);
        all.push((format!("{}, {:?}", group.shape, group.broken), one));
    }
    all.push(("all".to_owned(), sum.clone()));
    println!("{}", table(&all));
    println!("by confidence, all verdicts and right ones: {:?}", sum.confidence);
    assert!(sum.ours.due > 0 && sum.ours.recall() >= LEAST, "{:?}", sum.ours);
    assert!(sum.ours.precision() >= LEAST, "{:?}", sum.ours);
    let (said, right) = sum.confidence.get(&SURE_TENTH).copied().expect("some are sure");
    assert!(f64::from(right) >= 0.9 * f64::from(said), "{right} of {said}");
}
