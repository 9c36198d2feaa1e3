//! Nodes that fall silent and workers that fail.

use std::time::Duration;

use telltale_cluster::node::NodeName;
use telltale_cluster::observation::{Observation, WorkerEnd, WorkerObservation, WorkerState};
use telltale_cluster::rank::Rank;
use telltale_cluster::verdict::VerdictKind;

use crate::detection::job::{Job, at, certain, progress, said};

fn failed(rank: u32, end: WorkerEnd) -> Observation {
    let state = WorkerState::Failed { end, age: Duration::from_millis(u64::from(rank) * 30) };
    let workers = vec![WorkerObservation { rank: Rank(rank), state }];
    Observation { workers, ..Observation::default() }
}

#[test]
fn a_node_is_silent_after_five_seconds_and_not_before() {
    let mut job = Job::of(3);
    job.second(|_| Some(Observation::default()));
    let found = job.seconds_until_verdict(20, |node| (node != 1).then(Observation::default));
    assert_eq!(found, Some((6, vec![certain(VerdictKind::NodeSilent, "node b")])));
    assert_eq!(job.seconds_until_verdict(20, |_| Some(Observation::default())), None);
}

#[test]
fn a_new_epoch_gives_the_whole_time_again() {
    let mut job = Job::of(2);
    job.seconds_until_verdict(5, |_| None);
    job.begin_epoch();
    assert_eq!(job.seconds_until_verdict(20, |_| None).unwrap().0, 6);
}

#[test]
fn the_killed_worker_is_named_and_not_those_who_raised_because_of_it() {
    let mut job = Job::of(4);
    let end = |node| if node == 2 { WorkerEnd::Signal(9) } else { WorkerEnd::Code(1) };
    let verdicts = job.second(|node| Some(failed(node, end(node))));
    assert_eq!(said(&verdicts), [certain(VerdictKind::Crash, "node c")]);
    assert!((verdicts[0].confidence - 1.0).abs() < 1e-9);
    job.begin_epoch();
    assert!(job.second(|_| Some(Observation::default())).is_empty());
}

#[test]
fn the_first_of_many_exit_codes_is_named_after_a_moment() {
    let mut job = Job::of(4);
    let verdicts = job.second(|node| Some(failed(node, WorkerEnd::Code(1))));
    assert_eq!(said(&verdicts), [], "more may come");
    // Ages grow with the rank, so the last rank failed first.
    let later = job.now.after(Duration::from_millis(250));
    let verdicts = job.detector.evaluate(later);
    assert_eq!(said(&verdicts), [certain(VerdictKind::Crash, "node d")]);
    assert!(verdicts[0].confidence < 1.0);
}

#[test]
fn an_end_without_a_fault_is_no_failure() {
    let mut job = Job::of(2);
    let state = |node| if node == 0 { WorkerState::Finished } else { WorkerState::Ended };
    let report = |node| {
        let workers = vec![WorkerObservation { rank: Rank(node), state: state(node) }];
        Some(Observation { workers, ..Observation::default() })
    };
    assert_eq!(job.seconds_until_verdict(20, report), None);
}

#[test]
fn survivors_that_hang_after_a_crash_are_not_accused_of_hanging() {
    let mut job = Job::of(3);
    for second in 0..30 {
        let verdicts = job.second(|node| {
            let mut observation = failed(node, WorkerEnd::Signal(11));
            if node != 1 {
                observation = at(progress(node, 0, 5, 4));
            }
            Some(observation)
        });
        assert_eq!(said(&verdicts), [certain(VerdictKind::Crash, "node b")], "{second} s");
    }
}

#[test]
fn strangers_and_other_nodes_ranks_count_for_nothing() {
    let mut job = Job::of(2);
    let stranger = NodeName::new("stranger").unwrap();
    assert!(!job.detector.observe(job.now, &stranger, &failed(0, WorkerEnd::Signal(9))));
    let verdicts = job.second(|_| Some(failed(1, WorkerEnd::Code(0))));
    assert_eq!(job.detector.counts().strangers, 1);
    assert_eq!(said(&verdicts), [], "only b may speak for rank 1, and it waits for more");
}
