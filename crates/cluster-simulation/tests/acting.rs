//! Jobs of training steps whose coordinator may act: healthy nodes stay, and slow ones are replaced together.
//!
//! `TELLTALE_SIMULATED_HOURS=168 TELLTALE_LONG_TESTS=1 cargo test --release -p telltale-cluster-simulation
//! --test main acting:: -- --nocapture` runs healthy jobs of one hour each for a week in all; without the hours it is a day.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use telltale_cluster_simulation::faults::steps::{
    Acted, Broken, Case, Lie, act, cases, groups, replaced_by_lies,
};
use telltale_harness::{long, rounds};

const SEED: u64 = 2_000_000;
/// Until slow nodes are replaced, and those that they hid.
const REPAIR: Duration = Duration::from_secs(240);
/// Jobs of more ranks are run by the release build alone.
const MOST_IN_DEBUG: u32 = 9;

fn all() -> bool {
    long() && !cfg!(debug_assertions)
}

/// Cases in which one of these is wrong, `each` of every shape.
fn broken(wanted: &[Broken], each: u64) -> Vec<Case> {
    let most = if all() { u32::MAX } else { MOST_IN_DEBUG };
    let groups = groups(most).into_iter().filter(|one| wanted.contains(&one.broken));
    groups.flat_map(|group| cases(group, SEED..SEED + each)).collect()
}

/// What came of each, on all processors.
fn acted(cases: &[Case], time: Duration) -> Vec<(&Case, Acted)> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let some = |first| cases.iter().skip(first).step_by(workers);
    let run = |first| some(first).map(|case| (case, act(case, time))).collect::<Vec<_>>();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|first| scope.spawn(move || run(first))).collect();
        threads.into_iter().flat_map(|one| one.join().expect("no case panics")).collect()
    })
}

#[test]
fn no_node_is_replaced_in_a_healthy_week_of_steps() {
    let hours = std::env::var("TELLTALE_SIMULATED_HOURS");
    let hours =
        hours.map_or(24, |text| text.parse().expect("TELLTALE_SIMULATED_HOURS is a number"));
    let healthy = [Broken::Nothing, Broken::Stage, Broken::Data];
    let (jobs, time) = if all() { (hours, 3600) } else { (6, 120) };
    let each = broken(&healthy, 1).len();
    let mut cases = broken(&healthy, (jobs / each + 1) as u64);
    cases.truncate(jobs);
    assert_eq!(cases.len(), jobs);
    for (case, acted) in acted(&cases, Duration::from_secs(time)) {
        assert!(
            acted.innocent.is_empty() && acted.restarts == 0 && acted.runs,
            "{case}: {acted:?}"
        );
    }
    println!("{jobs} healthy jobs of {time} s: no node was replaced");
}

#[test]
fn slow_nodes_are_replaced_by_one_restart_and_no_other() {
    let cases = broken(&[Broken::Several], u64::from(rounds(1, 10)));
    let mut restarts: BTreeMap<(usize, u64), u32> = BTreeMap::new();
    for (case, acted) in acted(&cases, REPAIR) {
        assert!(acted.innocent.is_empty() && acted.runs, "{case}: {acted:?}");
        if acted.restarts > 1 || !acted.left.is_empty() {
            println!("{case}: {acted:?}");
        }
        *restarts.entry((acted.replaced.len(), acted.restarts)).or_default() += 1;
    }
    for ((nodes, restarts), jobs) in &restarts {
        println!("{nodes} nodes replaced by {restarts} restarts: {jobs} jobs");
    }
    assert!(restarts.contains_key(&(2, 1)), "{restarts:?}");
}

#[test]
fn a_rank_that_lies_has_no_other_replaced() {
    for case in broken(&[Broken::Nothing], u64::from(rounds(1, 4))) {
        for lie in Lie::ALL {
            let (replaced, refused) = replaced_by_lies(&case, 1, lie);
            assert_eq!(replaced, [], "{case}, {lie:?}");
            assert!(refused > 0 || lie != Lie::Garbage, "{case}");
        }
    }
}
