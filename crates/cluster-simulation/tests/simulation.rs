//! Thousands of simulated clusters: what must never happen does not, and jobs run again.
//!
//! With `TELLTALE_SIMULATION_SEED` set, each test runs that seed alone and reports what happens.

mod defects;

use telltale_cluster::policy::Policy;
use telltale_cluster_simulation::{Kinds, RunFailure, RunSummary, Scenario, World};

/// The seed to investigate.
fn chosen_seed() -> Option<u64> {
    std::env::var("TELLTALE_SIMULATION_SEED").ok()?.parse().ok()
}

/// Runs the scenarios of many seeds and says how to run those again that fail.
fn check(test: &str, rounds: u32, scenario: fn(u64) -> Scenario, accepts: fn(&RunSummary) -> bool) {
    let chosen = chosen_seed();
    let seeds = chosen.map_or(0..u64::from(rounds), |seed| seed..seed + 1);
    let mut failures: Vec<(u64, String)> = Vec::new();
    for seed in seeds {
        let mut world = World::new(scenario(seed), None);
        if chosen.is_some() {
            world.narrate();
        }
        match world.run() {
            Ok(summary) if accepts(&summary) => {}
            Ok(summary) => failures.push((seed, format!("{summary:?}"))),
            Err(RunFailure { seed, what }) => failures.push((seed, what)),
        }
    }
    if let Some((seed, _)) = failures.first() {
        let all: Vec<String> =
            failures.iter().map(|(seed, what)| format!("seed {seed}: {what}")).collect();
        panic!(
            "{} of {rounds} seeds fail; to see the first alone, run\n{}\n{}",
            failures.len(),
            command(*seed, test),
            all.join("\n")
        );
    }
}

/// What runs one seed of a test again, and reports what happens.
fn command(seed: u64, test: &str) -> String {
    format!(
        "TELLTALE_SIMULATION_SEED={seed} cargo test -p telltale-cluster-simulation --test main simulation:: \
         {test} -- --nocapture"
    )
}

#[test]
fn whatever_goes_wrong_the_job_runs_again() {
    let rounds = telltale_harness::rounds(300, 10_000);
    check("whatever_goes_wrong", rounds, Scenario::drawn, |_| true);
}

/// Coordinators come and go, and their store fails: no working node may notice.
#[test]
fn failing_coordinators_disturb_no_worker() {
    let scenario = |seed| Scenario {
        kinds: Kinds::Coordinators,
        troubles: 10,
        work: None,
        ..Scenario::plain(seed)
    };
    // Four nodes with two workers each, begun once.
    let undisturbed =
        |summary: &RunSummary| (summary.epochs, summary.processes, summary.evictions) == (1, 8, 0);
    let rounds = telltale_harness::rounds(100, 2000);
    check("failing_coordinators", rounds, scenario, undisturbed);
}

/// An operator runs a job repeatedly: no node is charged, replaced by the coordinator's own judgement or
/// kept out, and no budget is spent, though each would last for one.
#[test]
fn planned_reruns_charge_nobody() {
    let innocent = |summary: &RunSummary| {
        (summary.charges, summary.evictions) == (0, 0) && summary.epochs >= 4
    };
    let rounds = telltale_harness::rounds(200, 3000);
    check("planned_reruns", rounds, Scenario::planned_reruns, innocent);
}

/// A store that is emptied, or an older copy, beside agents that know more: nothing is decided, and no node that works
/// is to notice. When the newest state is back, the job goes on with it.
#[test]
fn a_store_that_is_behind_its_agents_decides_nothing() {
    let scenario = |seed| Scenario { kinds: Kinds::StoreBehind, ..Scenario::plain(seed) };
    // Four nodes with two workers each, begun twice: the second time by an order.
    let undisturbed = |summary: &RunSummary| {
        (summary.epochs, summary.processes, summary.evictions, summary.charges) == (2, 16, 0, 0)
    };
    check("a_store_that_is_behind", telltale_harness::rounds(100, 2000), scenario, undisturbed);
}

/// A crowd that is cut off for less than a minute is held: the job runs on, and no node is replaced.
#[test]
fn a_crowd_that_is_cut_off_is_held() {
    let scenario = |seed| Scenario::crowd(seed, Kinds::CrowdCut);
    // Eight nodes with two workers each, begun once.
    let undisturbed = |summary: &RunSummary| {
        (summary.epochs, summary.processes, summary.evictions, summary.charges) == (1, 16, 0, 0)
    };
    check("a_crowd_that_is_cut_off", telltale_harness::rounds(100, 2000), scenario, undisturbed);
}

/// The same while workers of others exit, and those of the crowd take longer to stop than it takes until a crowd that
/// is back is acted on: the job is restarted once, with all nodes, and no node is charged.
#[test]
fn a_crowd_that_comes_back_among_failures_is_waited_for() {
    let undisturbed = |summary: &RunSummary| {
        (summary.epochs, summary.processes, summary.evictions, summary.charges) == (2, 32, 0, 0)
    };
    let rounds = telltale_harness::rounds(100, 2000);
    check("a_crowd_that_comes_back", rounds, Scenario::crowd_that_stops_slowly, undisturbed);
}

/// A crowd that is dead is replaced after the timeout of mass silence, and not before.
#[test]
fn a_crowd_that_is_dead_is_replaced_after_its_timeout() {
    let scenario = |seed| Scenario::crowd(seed, Kinds::CrowdDeath);
    let in_time = |summary: &RunSummary| {
        let seconds = summary.recovered_after.as_secs();
        (60..75).contains(&seconds) && (3..=4).contains(&summary.evictions) && summary.epochs == 2
    };
    check("a_crowd_that_is_dead", telltale_harness::rounds(50, 1000), scenario, in_time);
}

/// How long it takes, in simulated time, until all workers of the next epoch run: after a crash, after an
/// agent is asked to end, and after a node dies or stands still, which is known by the keep-alive of five
/// seconds. The failure is attributed to one
/// node, unless all end with exit codes: then the cause is unknown, whatever was suspected before.
#[test]
fn the_next_epoch_runs_in_time() {
    let cases = [
        (Kinds::OneCrash, 1.0, 1),
        (Kinds::OneDeparture, 1.0, 0),
        (Kinds::OneDeath, 6.0, 1),
        (Kinds::OneFreeze, 7.0, 1),
        (Kinds::CrashAmongSuspicions, 1.0, 0),
    ];
    for (kinds, bound_s, charges) in cases {
        let rounds = u64::from(telltale_harness::rounds(30, 1000));
        let seeds = chosen_seed().map_or(0..rounds, |seed| seed..seed + 1);
        let run = |seed| {
            let policy = Policy { eviction_budget: 1, ..Scenario::plain(seed).policy };
            let scenario = Scenario { kinds, policy, ..Scenario::plain(seed) };
            let mut world = World::new(scenario, None);
            if chosen_seed().is_some() {
                world.narrate();
            }
            let again = || command(seed, "the_next_epoch_runs_in_time");
            let summary =
                world.run().unwrap_or_else(|failure| panic!("{kinds:?}: {failure}\n{}", again()));
            assert_eq!(summary.charges, charges, "{kinds:?}: {summary:?}\n{}", again());
            let evictions = u64::from(matches!(kinds, Kinds::OneDeath | Kinds::OneFreeze));
            assert_eq!(summary.evictions, evictions, "{kinds:?}: {summary:?}\n{}", again());
            summary
        };
        let mut times_s: Vec<f64> =
            seeds.map(|seed| run(seed).recovered_after.as_secs_f64()).collect();
        times_s.sort_by(f64::total_cmp);
        let (median, longest) = (times_s[times_s.len() / 2], times_s[times_s.len() - 1]);
        println!("{kinds:?}: median {median:.3} s, longest {longest:.3} s");
        assert!(median > 0.1 && longest <= bound_s, "{kinds:?}: {median} s, {longest} s");
    }
}

/// The troubles are real ones: what the checkers watch over does happen.
#[test]
fn troubles_lead_to_failovers_evictions_and_restarts() {
    let run = |seed| World::new(Scenario::drawn(seed), None).run().unwrap_or_default();
    let summaries: Vec<RunSummary> = (0..60).map(run).collect();
    let many = |what: fn(&RunSummary) -> bool| summaries.iter().filter(|one| what(one)).count();
    let failovers = many(|one| one.terms > 1);
    let evictions = many(|one| one.evictions > 0);
    let restarts = many(|one| one.epochs > 1);
    println!("of 60: {failovers} with failovers, {evictions} evictions, {restarts} restarts");
    assert!(failovers > 10 && evictions > 10 && restarts > 20);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..10 {
        let run = || World::new(Scenario::drawn(seed), None).run();
        assert_eq!(run(), run());
    }
}
