//! Slow nodes by the training steps that all ranks report, from the first step on; and what a rank that lies can do.

use std::cell::Cell;

use telltale_cluster::group::GroupId;
use telltale_cluster::latency::{Collective, SizeBucket};
use telltale_cluster::observation::{GroupProgress, Observation};
use telltale_cluster::rank::Rank;
use telltale_cluster::verdict::VerdictKind;
use telltale_cluster::work::{FinishedOperation, Operations, Work};

use crate::detection::job::{Job, certain, said};

const NODES: u32 = 4;

/// One step of data parallelism as a rank reports it: it computes so long, and meets the others.
fn step(rank: u32, number: u64, compute_us: [u64; 4]) -> Vec<FinishedOperation> {
    let begin_us = i64::try_from(number).unwrap() * 75_000 + i64::from(rank) * 86_400_000_000;
    let own = compute_us[rank as usize];
    let slowest = compute_us.into_iter().max().unwrap();
    let operation = |work, start_us, duration_us| FinishedOperation {
        rank: Rank(rank),
        step: number,
        work,
        start_us,
        duration_us,
    };
    let meet = Work::Collective {
        collective: Collective::AllReduce,
        group: GroupId::WORLD,
        members: NODES,
        bucket: SizeBucket::of(1 << 20),
    };
    let met_us = begin_us + i64::try_from(own).unwrap();
    vec![
        operation(Work::Compute("forward".into()), begin_us, own),
        operation(meet, met_us, slowest - own + 500),
        operation(Work::StepEnd, 0, 0),
    ]
}

/// Some percent that differ from rank to rank and step to step.
fn jitter(rank: u32, number: u64, us: u64) -> u64 {
    us + us * ((number * 7 + u64::from(rank) * 5) % 11) / 200
}

fn reported(list: Vec<FinishedOperation>) -> Observation {
    Observation { operations: Operations { list, before: None }, ..Observation::default() }
}

/// Computes 20 ms a step, but for `slow`, which takes so many times as long.
fn computed(number: u64, slow: Option<(u32, u64)>) -> [u64; 4] {
    [0, 1, 2, 3].map(|rank| {
        let times = slow.filter(|(one, _)| *one == rank).map_or(1, |(_, times)| times);
        jitter(rank, number, 20_000) * times
    })
}

#[test]
fn a_node_that_was_slow_from_the_first_step_is_named_after_ten() {
    let mut job = Job::of(4);
    let number = Cell::new(0);
    let mut reports = None;
    for second in 1..=12 {
        let works = computed(number.get(), Some((1, 2)));
        let verdicts = job.second(|rank| Some(reported(step(rank, number.get(), works))));
        number.set(number.get() + 1);
        if !verdicts.is_empty() {
            reports = Some((second, said(&verdicts)));
            break;
        }
    }
    assert_eq!(reports, Some((10, vec![certain(VerdictKind::SlowNode, "node b")])));
    let seen = job.detector.steps().unwrap();
    assert_eq!((seen.latest.steps, seen.left_out), (10, 0));
    assert_eq!(seen.latest.ranks[0].rank, Rank(1));
}

#[test]
fn a_healthy_job_and_one_whose_data_vary_have_nobody_at_fault() {
    for varies in [false, true] {
        let mut job = Job::of(4);
        for number in 0..200 {
            let times = if varies { 1 + number % 3 } else { 1 };
            let works = computed(number, None).map(|us| us * times);
            let verdicts = job.second(|rank| Some(reported(step(rank, number, works))));
            assert_eq!(said(&verdicts), [], "step {number}, {varies}");
        }
        assert!(job.detector.steps().is_some());
    }
}

/// How many verdicts a healthy job of 60 steps has, when node b's agent loses the computation of 20 steps on the way and
/// counts it or not; and how many steps were left out.
fn with_losses(are_counted: bool) -> (usize, u64) {
    let mut job = Job::of(4);
    let mut verdicts = 0;
    for number in 0..60 {
        let said = job.second(|rank| {
            let mut list = step(rank, number, computed(number, None));
            let count = u64::try_from(list.len()).unwrap();
            let is_lost = rank == 1 && (20..40).contains(&number);
            if is_lost {
                list.remove(0);
            }
            let lost = u64::from(is_lost);
            let mut report = reported(list);
            report.operations.before = are_counted.then_some(number * count + lost);
            Some(report)
        });
        verdicts += said.len();
    }
    (verdicts, job.detector.steps().map_or(0, |seen| seen.left_out))
}

#[test]
fn a_step_of_which_operations_were_lost_says_nothing_of_any_rank() {
    // More may have been lost behind the last of these reports.
    assert_eq!(with_losses(true), (0, 21));
    // Of agents that do not count what they report, none is known.
    assert_eq!(with_losses(false).1, 0);
}

#[test]
fn a_hang_of_transfers_alone_is_reported_soon_once_a_step_was_ended() {
    let wait = |rank: u32, transferred: u64| GroupProgress {
        group: GroupId::WORLD,
        rank: Rank(rank),
        entered: 0,
        finished: 0,
        // Stages before and after rank 2 wait for it.
        sends_to: Vec::new(),
        receives_from: if rank == 2 { Vec::new() } else { vec![Rank(2)] },
        transferred,
    };
    let seconds = |has_steps: bool| {
        let mut job = Job::of(4);
        for number in 0..3 {
            let verdicts = job.second(|rank| {
                let list = step(rank, number, computed(number, None));
                let list = if has_steps { list } else { Vec::new() };
                Some(Observation { progress: vec![wait(rank, number)], ..reported(list) })
            });
            assert_eq!(said(&verdicts), []);
        }
        job.seconds_until_verdict(60, |rank| {
            Some(Observation { progress: vec![wait(rank, 2)], ..Observation::default() })
        })
    };
    let named = vec![certain(VerdictKind::NonCommunicationHang, "node c")];
    let (after, reports) = seconds(true).expect("it hangs");
    assert!(after <= 8 && reports == named, "{after} s: {reports:?}");
    // Something may be compiled in the first step.
    assert_eq!(seconds(false), None);
}

#[test]
fn that_every_step_was_left_out_is_reported() {
    let mut job = Job::of(4);
    for number in 0..20 {
        let verdicts = job.second(|rank| {
            let mut report = reported(step(rank, number, computed(number, Some((1, 2)))));
            // One is lost before each report.
            report.operations.before = Some(4 * number + 1);
            Some(report)
        });
        assert_eq!(said(&verdicts), []);
    }
    let seen = job.detector.steps().expect("something is known");
    assert_eq!((seen.latest.steps, seen.all.steps), (0, 0));
    assert!(seen.left_out >= 18, "{}", seen.left_out);
}

#[test]
fn a_rank_that_lies_gets_nobody_else_named() {
    type Lie = fn(u64, Vec<FinishedOperation>) -> Vec<FinishedOperation>;
    let lies: [(&str, Lie); 7] = [
        ("it is quicker than can be", |_, mut list| {
            list.iter_mut().for_each(|one| one.duration_us = 1);
            list
        }),
        ("its times make no sense", |number, mut list| {
            list.iter_mut().for_each(|one| one.start_us = i64::MIN.rotate_left(number as u32));
            list
        }),
        ("its steps are far ahead", |number, mut list| {
            list.iter_mut().for_each(|one| one.step = u64::MAX - number);
            list
        }),
        ("it reports nothing", |_, _| Vec::new()),
        ("it repeats itself", |_, list| list.iter().cycle().take(300).cloned().collect()),
        ("it speaks for another", |_, mut list| {
            for one in &mut list {
                (one.rank, one.duration_us) = (Rank(0), 90_000_000);
            }
            list
        }),
        ("it never ends a step", |_, mut list| {
            list.iter_mut().for_each(|one| one.step = 0);
            list
        }),
    ];
    for (lie, reports) in lies {
        let mut job = Job::of(4);
        for number in 0..150 {
            let works = computed(number, None);
            let verdicts = job.second(|rank| {
                let list = step(rank, number, works);
                Some(reported(if rank == 3 { reports(number, list) } else { list }))
            });
            for (kind, is_certain, names) in said(&verdicts) {
                assert_eq!(
                    (is_certain, &names[..]),
                    (true, &["node d".to_owned()][..]),
                    "{lie}: {kind:?}"
                );
            }
        }
    }
}

#[test]
fn who_reports_no_steps_any_more_is_not_waited_for() {
    let mut job = Job::of(4);
    let mut reports = Vec::new();
    for number in 0..200 {
        let slow = (number >= 100).then_some((1, 2));
        let works = computed(number, slow);
        let verdicts = job.second(|rank| {
            let is_mute = rank == 3 && number >= 20;
            Some(if is_mute { Observation::default() } else { reported(step(rank, number, works)) })
        });
        reports.extend(said(&verdicts));
    }
    assert!(reports.contains(&certain(VerdictKind::SlowNode, "node b")), "{reports:?}");
    assert!(
        reports.iter().all(|one| *one == certain(VerdictKind::SlowNode, "node b")),
        "{reports:?}"
    );
}

#[test]
fn steps_whose_computations_were_not_measured_change_nothing() {
    let mut job = Job::of(4);
    let mut reports = Vec::new();
    for number in 0..100 {
        let works = computed(number, Some((1, 2)));
        let verdicts = job.second(|rank| {
            let mut list = step(rank, number, works);
            if number >= 12 {
                list.retain(|one| !matches!(one.work, Work::Compute(_)));
            }
            Some(reported(list))
        });
        reports.push(said(&verdicts));
    }
    let named = vec![certain(VerdictKind::SlowNode, "node b")];
    assert!(reports[10..].iter().all(|one| *one == named), "{reports:?}");
    assert_eq!(job.detector.steps().unwrap().all.steps, 12);
}
