//! Jobs of several shapes with one rank or link that is slow from the first step, each host with a clock of its own.

#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod program;

use telltale_steps::attribution::Attribution;
use telltale_steps::{Kinds, Processors, Roles, Step};

use crate::shapes::program::{Action, Machine, Transfer, run};

const MS: i64 = 1_000_000;

/// Each rank sends to the next and receives from the one before, `rounds` times.
fn ring(ranks: u32, rounds: u32) -> Vec<Vec<Action>> {
    let exchange = |rank: u32| {
        let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        Action::Exchange(vec![Transfer::Send(next), Transfer::Receive(before)])
    };
    let round = |rank| [Action::Compute("work", 20 * MS), exchange(rank)];
    (0..ranks).map(|rank| (0..rounds).flat_map(|_| round(rank)).collect()).collect()
}

/// All pairs one after the other, as `isend(rank ^ q)`.
fn all_pairs(ranks: u32, rounds: u32) -> Vec<Vec<Action>> {
    let exchange = |rank: u32, q: u32| {
        Action::Exchange(vec![Transfer::Send(rank ^ q), Transfer::Receive(rank ^ q)])
    };
    let round = |rank| {
        std::iter::once(Action::Compute("work", 20 * MS))
            .chain((1..ranks).map(move |q| exchange(rank, q)))
    };
    (0..ranks).map(|rank| (0..rounds).flat_map(|_| round(rank)).collect()).collect()
}

/// Replicas of a pipeline: all forward, all backward, then a collective of each stage.
fn pipeline(stages: u32, replicas: u32, micro_batches: u32) -> Vec<Vec<Action>> {
    let of_rank = |rank: u32| {
        let stage = rank % stages;
        let (first, last) = (stage == 0, stage + 1 == stages);
        let one = |transfer| Action::Exchange(vec![transfer]);
        let mut actions = Vec::new();
        for _ in 0..micro_batches {
            (!first).then(|| actions.push(one(Transfer::Receive(rank - 1))));
            actions.push(Action::Compute("forward", 20 * MS));
            (!last).then(|| actions.push(one(Transfer::Send(rank + 1))));
        }
        for _ in 0..micro_batches {
            (!last).then(|| actions.push(one(Transfer::Receive(rank + 1))));
            actions.push(Action::Compute("backward", 40 * MS));
            (!first).then(|| actions.push(one(Transfer::Send(rank - 1))));
        }
        actions.push(Action::Collective(u64::from(stage), replicas));
        actions
    };
    (0..stages * replicas).map(of_rank).collect()
}

/// Data parallelism: compute, then meet.
fn data_parallel(ranks: u32) -> Vec<Vec<Action>> {
    let step = vec![
        Action::Compute("forward", 20 * MS),
        Action::Compute("backward", 40 * MS),
        Action::Collective(0, ranks),
    ];
    vec![step; ranks as usize]
}

fn attribute((steps, kinds): (Vec<Step>, Kinds)) -> Attribution {
    let roles = Roles::of(&steps[0], &kinds);
    Attribution::of(&steps, &kinds, &roles, &Processors::default())
}

/// Some percent of noise that is the same in each run.
fn noise(rank: u32, ns: i64, step: u64) -> i64 {
    let mixed = (u64::from(rank) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ (step + 1).wrapping_mul(0xD1B5_4A32_D192_ED03);
    ns + ns * i64::try_from(mixed.rotate_left(23) % 1000).unwrap() / 20_000
}

fn check(
    name: &str,
    actions: &[Vec<Action>],
    slow_rank: Option<u32>,
    slow_link: Option<(u32, u32)>,
) {
    let compute =
        |rank, ns, step| noise(rank, ns, step) * if slow_rank == Some(rank) { 2 } else { 1 };
    let link = |from, to| if slow_link == Some((from, to)) { 10 * MS } else { MS };
    let lost = attribute(run(actions, 10, &Machine { compute: &compute, link: &link }));
    let ranks: Vec<u32> = lost.ranks.iter().map(|one| one.rank).collect();
    let links: Vec<(u32, u32)> = lost.links.iter().map(|one| (one.from, one.to)).collect();
    assert_eq!(
        ranks,
        Vec::from_iter(slow_rank),
        "{name} with {slow_rank:?} {slow_link:?}: {lost:#?}"
    );
    assert_eq!(
        links,
        Vec::from_iter(slow_link),
        "{name} with {slow_rank:?} {slow_link:?}: {lost:#?}"
    );
}

#[test]
fn a_slow_rank_and_a_slow_link_are_distinguished_in_jobs_of_each_shape() {
    let shapes = [
        ("ring of 4", ring(4, 4), (1, 2)),
        ("ring of 16", ring(16, 4), (7, 8)),
        ("all pairs of 4", all_pairs(4, 2), (1, 2)),
        ("all pairs of 8", all_pairs(8, 2), (3, 5)),
        ("4 pipelines of 4", pipeline(4, 4, 8), (5, 6)),
        ("3 pipelines of 8", pipeline(8, 3, 8), (9, 10)),
    ];
    for (name, actions, link) in shapes {
        check(name, &actions, None, None);
        check(name, &actions, Some(link.0), None);
        check(name, &actions, None, Some(link));
    }
    check("data parallel of 2", &data_parallel(2), None, None);
    check("data parallel of 2", &data_parallel(2), Some(1), None);
    check("data parallel of 8", &data_parallel(8), None, None);
    check("data parallel of 8", &data_parallel(8), Some(5), None);
}

#[test]
fn a_slow_rank_that_a_slower_one_hides_is_found_and_their_costs_add_up() {
    let job = |ratios: [i64; 2]| {
        let compute = |rank, ns, step| {
            let ratio = [5, 2].iter().zip(ratios).find(|(slow, _)| **slow == rank);
            noise(rank, ns, step) * ratio.map_or(10, |(_, ratio)| ratio) / 10
        };
        attribute(run(&data_parallel(8), 10, &Machine { compute: &compute, link: &|_, _| MS }))
    };
    let both = job([30, 13]);
    let [slowest, hidden] = &both.ranks[..] else { panic!("{both:#?}") };
    assert_eq!((slowest.rank, hidden.rank), (5, 2), "{both:#?}");
    let [one, none] = [job([10, 13]), job([10, 10])];
    // Where all ranks are alike the noise of the slowest counts, up to 5 %.
    let is_near = |one: f64, other: f64| (one - other).abs() < 0.03 * other;
    let without = both.actual_ns - slowest.slowness.cost_ns;
    assert!(is_near(without, one.actual_ns), "{both:#?}, {one:#?}");
    assert!(is_near(without - hidden.slowness.cost_ns, none.actual_ns), "{both:#?}, {none:#?}");
    assert!(slowest.slowness.alone_ns > slowest.slowness.cost_ns, "{both:#?}");
    assert_eq!(hidden.slowness.alone_ns.to_bits(), hidden.slowness.cost_ns.to_bits());
}

#[test]
fn a_slow_link_that_a_slower_one_hides_is_found_and_their_costs_add_up() {
    // Two pipelines of one job that end together, with a slow link in each.
    let job = |slow: &[(u32, u32, i64)]| {
        let link = |from: u32, to: u32| {
            let ends = (from.min(to), from.max(to));
            slow.iter().find(|(one, other, _)| (*one, *other) == ends).map_or(MS, |(_, _, ns)| *ns)
        };
        attribute(run(&pipeline(4, 4, 8), 10, &Machine { compute: &noise, link: &link }))
    };
    let all = [(5, 6, 60 * MS), (9, 10, 40 * MS)];
    let [none, one, both] = [&all[..0], &all[1..], &all[..]].map(job);
    let costs = |found: &Attribution, from: u32, to: u32| -> f64 {
        let ways = found
            .links
            .iter()
            .filter(|one| (one.from.min(one.to), one.from.max(one.to)) == (from, to));
        ways.map(|way| way.slowness.cost_ns).sum()
    };
    let is_near = |one: f64, other: f64| (one - other).abs() < 0.05 * other;
    let without = both.actual_ns - costs(&both, 5, 6);
    assert!(is_near(without, one.actual_ns), "{both:#?}, {one:#?}");
    assert!(is_near(without - costs(&both, 9, 10), none.actual_ns), "{both:#?}, {none:#?}");
    let firsts: Vec<(u32, u32)> = both.links.iter().map(|one| (one.from, one.to)).collect();
    assert_eq!(firsts, [(5, 6), (6, 5), (9, 10), (10, 9)], "{both:#?}");
}

#[test]
fn what_nobody_measures_is_the_rank_s_work() {
    let unmeasured = |of: Vec<Vec<Action>>| -> Vec<Vec<Action>> {
        let hide = |action| match action {
            Action::Compute(_, ns) => Action::Unmeasured(ns),
            other => other,
        };
        of.into_iter().map(|actions| actions.into_iter().map(hide).collect()).collect()
    };
    for (name, actions, link) in [
        ("ring of 4", ring(4, 4), Some((1, 2))),
        ("all pairs of 8", all_pairs(8, 2), Some((3, 5))),
        ("3 pipelines of 8", pipeline(8, 3, 8), Some((9, 10))),
        ("data parallel of 8", data_parallel(8), None),
    ] {
        let actions = unmeasured(actions);
        check(name, &actions, None, None);
        check(name, &actions, Some(3), None);
        if link.is_some() {
            check(name, &actions, None, link);
        }
    }
}

#[test]
fn a_rank_that_only_has_more_to_do_between_its_operations_is_distinguished() {
    let mut actions = data_parallel(4);
    for (rank, actions) in actions.iter_mut().enumerate() {
        actions.insert(0, Action::Unmeasured(if rank == 0 { 50 * MS } else { 5 * MS }));
    }
    let compute = |rank, ns, step| noise(rank, ns, step);
    let lost = attribute(run(&actions, 10, &Machine { compute: &compute, link: &|_, _| MS }));
    let [slow] = &lost.ranks[..] else { panic!("{lost:#?}") };
    assert!(slow.rank == 0 && slow.is_between, "{lost:#?}");
    assert!((slow.slowness.cost_ns / MS as f64 - 45.0).abs() < 5.0, "{lost:#?}");
    // Whether it must be so is not known, so nothing is lost by it.
    assert!(lost.lost_ns() < 10.0 * MS as f64, "{lost:#?}");
    let parts = lost.roles_ns + lost.ranks_ns + lost.data_ns + lost.noise_ns + lost.links_ns;
    assert!((lost.even_ns + parts - lost.actual_ns).abs() < 1.0, "{lost:#?}");
    assert!((lost.actual_ns / MS as f64 - 113.0).abs() < 5.0, "{lost:#?}");
}

#[test]
fn a_link_of_a_rank_that_may_lack_its_processor_is_not_named() {
    let (actions, compute) = (ring(4, 4), |rank, ns, step| noise(rank, ns, step));
    let link = |from, to| if (from, to) == (2, 3) { 7 * MS } else { MS };
    let (steps, kinds) = run(&actions, 10, &Machine { compute: &compute, link: &link });
    let roles = Roles::of(&steps[0], &kinds);
    // The processor of rank 2 is withheld by these parts in its reports; those of the others never are.
    let links = |parts: &[f64]| -> Vec<(u32, u32)> {
        let mut processors = Processors::default();
        (0..4).for_each(|rank| processors.add(rank, vec![0.0; 3]));
        processors.add(2, parts.to_vec());
        let lost = Attribution::of(&steps, &kinds, &roles, &processors);
        lost.links.iter().map(|one| (one.from, one.to)).collect()
    };
    assert_eq!(links(&[0.0; 3]), [(2, 3)]);
    assert_eq!(links(&[0.0; 2]), [], "too little is known");
    assert_eq!(links(&[0.0, 0.0, 0.8]), [], "it has begun to be withheld");
    assert_eq!(links(&[0.0, 0.0, 0.05]), [(2, 3)]);
}

#[test]
fn a_stage_of_one_rank_is_distinguished_from_its_processor_by_what_is_withheld() {
    let actions = pipeline(4, 1, 8);
    let times = |rank, step| if rank == 2 && step % 2 == 0 { 3 } else { 1 };
    let compute = |rank, ns, step| noise(rank, ns, step) * times(rank, step);
    let (steps, kinds) = run(&actions, 10, &Machine { compute: &compute, link: &|_, _| MS });
    let roles = Roles::of(&steps[0], &kinds);
    let lost = |withheld: &[(u32, f64)]| {
        let mut processors = Processors::default();
        withheld.iter().for_each(|(rank, part)| processors.add(*rank, vec![*part; 3]));
        Attribution::of(&steps, &kinds, &roles, &processors)
    };
    // No other rank does its work, so it may just have more to do.
    assert_eq!(lost(&[]).ranks, []);
    assert_eq!(lost(&[(0, 0.02), (1, 0.03), (2, 0.05), (3, 0.02)]).ranks, []);
    // All are as busy.
    assert_eq!(lost(&[(0, 0.4), (1, 0.38), (2, 0.41), (3, 0.42)]).ranks, []);
    let found = lost(&[(0, 0.01), (1, 0.01), (2, 0.31), (3, 0.02)]);
    let [slow] = &found.ranks[..] else { panic!("{found:#?}") };
    assert!(slow.rank == 2 && !slow.is_between && (slow.withheld - 0.3).abs() < 0.01, "{slow:?}");
    assert!(slow.slowness.cost_ns > 0.2 * found.actual_ns, "{found:#?}");
}
