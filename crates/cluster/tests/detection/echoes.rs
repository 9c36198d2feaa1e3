//! One fault has one verdict: who waits for a hanging rank or a dead host fails in the end, and is not the cause.

use std::time::Duration;

use telltale_cluster::observation::{Observation, WorkerEnd, WorkerObservation, WorkerState};
use telltale_cluster::rank::Rank;
use telltale_cluster::verdict::VerdictKind;

use crate::detection::job::{Job, at, certain, progress, said};

/// A job of four that has run ten collectives of all, one a second.
fn running() -> Job {
    let mut job = Job::of(4);
    for sequence in 1..=10 {
        let verdicts = job.second(|node| Some(at(progress(node, 0, sequence, sequence))));
        assert_eq!(said(&verdicts), []);
    }
    job
}

/// A rank whose library gives up waiting, each rank 30 ms before the one with the next lower number.
fn gives_up(rank: u32) -> Observation {
    let age = Duration::from_millis(u64::from(rank) * 30);
    failed(rank, WorkerState::Failed { end: WorkerEnd::Code(1), age })
}

fn failed(rank: u32, state: WorkerState) -> Observation {
    let workers = vec![WorkerObservation { rank: Rank(rank), state }];
    Observation { workers, ..Observation::default() }
}

/// All but node c are in the eleventh collective.
fn without_c(node: u32) -> Observation {
    at(if node == 2 { progress(2, 0, 10, 10) } else { progress(node, 0, 11, 10) })
}

#[test]
fn survivors_of_a_hang_that_give_up_are_not_the_cause() {
    let mut job = running();
    let hang = [certain(VerdictKind::NonCommunicationHang, "node c")];
    let found = job.seconds_until_verdict(10, |node| Some(without_c(node)));
    assert_eq!(found.unwrap().1, hang);
    for second in 0..20 {
        // The ranks that waited end one after the other, and c stays where it is.
        let gone = |node| node != 2 && second >= 4 * node;
        let report = |node| if gone(node) { gives_up(node) } else { without_c(node) };
        assert_eq!(said(&job.second(|node| Some(report(node)))), hang, "{second} s");
    }
    // A worker that was killed is named all the same.
    let end = WorkerState::Failed { end: WorkerEnd::Signal(11), age: Duration::ZERO };
    let report = |node| if node == 3 { failed(3, end) } else { gives_up(node) };
    let mut other = running();
    other.seconds_until_verdict(10, |node| Some(without_c(node)));
    let verdicts = other.second(|node| Some(report(node)));
    assert_eq!(said(&verdicts), [certain(VerdictKind::Crash, "node d")]);
}

#[test]
fn a_dead_host_has_one_verdict_and_its_survivors_none() {
    let silent = [certain(VerdictKind::NodeSilent, "node c")];
    // It had not entered the collective that the others wait in, or had.
    for last in [10, 11] {
        let mut job = running();
        let alive =
            |node| if node == 2 { progress(2, 0, last, 10) } else { progress(node, 0, 11, 10) };
        assert_eq!(said(&job.second(|node| Some(at(alive(node))))), []);
        let waiting = |node| (node != 2).then(|| at(alive(node)));
        let (seconds, first) = job.seconds_until_verdict(10, waiting).expect("it is silent");
        assert_eq!((seconds, &first[..]), (6, &silent[..]), "after collective {last}");
        for second in 0..60 {
            assert_eq!(said(&job.second(waiting)), silent, "after collective {last}, {second} s");
        }
        for second in 0..10 {
            let verdicts = job.second(|node| (node != 2).then(|| gives_up(node)));
            assert_eq!(said(&verdicts), silent, "after collective {last}, {second} s");
        }
    }
}

#[test]
fn nobody_hangs_while_a_report_is_overdue() {
    let hang = [certain(VerdictKind::NonCommunicationHang, "node c")];
    let mut job = running();
    for second in 0..8 {
        // Node b is not heard for five seconds, which is no silence yet; c would hang from the fifth on.
        let verdicts = job.second(|node| {
            let overdue = node == 1 && (2..7).contains(&second);
            (!overdue).then(|| without_c(node))
        });
        assert_eq!(said(&verdicts), if second < 7 { vec![] } else { hang.to_vec() }, "{second} s");
    }
    // What hung before a node fell silent has not done so because of it.
    let verdicts = (0..8).map(|_| job.second(|node| (node != 1).then(|| without_c(node)))).last();
    let expected = [certain(VerdictKind::NodeSilent, "node b"), hang[0].clone()];
    let mut found = said(&verdicts.unwrap());
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_failure_before_a_silence_is_named() {
    let mut job = running();
    let verdicts = job.second(|node| Some(if node == 3 { gives_up(3) } else { without_c(node) }));
    assert_eq!(said(&verdicts), [], "more may come");
    let crash = certain(VerdictKind::Crash, "node d");
    for second in 0..5 {
        let verdicts = job.second(|node| (node != 1).then(|| without_c(node)));
        assert_eq!(said(&verdicts), std::slice::from_ref(&crash), "{second} s");
    }
    let verdicts = job.second(|node| (node != 1).then(|| without_c(node)));
    assert!(said(&verdicts).contains(&crash), "{verdicts:?}");
}

#[test]
fn who_fails_while_another_is_missed_is_not_named() {
    let crash = [certain(VerdictKind::Crash, "node d")];
    let silent = [certain(VerdictKind::NodeSilent, "node c")];
    // For how many seconds c is not heard before d fails, and whether its connection was closed at its end.
    for (before, closed) in [(3, false), (0, true)] {
        for comes_back in [true, false] {
            let mut job = running();
            for _ in 0..before {
                job.second(|node| (node != 2).then(|| without_c(node)));
            }
            if closed {
                let node = job.names[2].clone();
                job.detector.closed(&node);
            }
            let report = |node| if node == 3 { gives_up(3) } else { without_c(node) };
            for second in before..5 {
                let verdicts = job.second(|node| (node != 2).then(|| report(node)));
                assert_eq!(said(&verdicts), [], "{before} {closed}, {second} s");
            }
            let verdicts = job.second(|node| (comes_back || node != 2).then(|| report(node)));
            let expected = if comes_back { &crash } else { &silent };
            assert_eq!(said(&verdicts), expected, "{before} {closed}");
        }
    }
    // Neither is who has not been missed for long, nor who has nothing left to do.
    for finished in [false, true] {
        let mut job = running();
        if finished {
            let over = |node| match node {
                2 => failed(2, WorkerState::Finished),
                _ => without_c(node),
            };
            job.second(|node| Some(over(node)));
            let node = job.names[2].clone();
            job.detector.closed(&node);
        }
        let report = |node| if node == 3 { gives_up(3) } else { without_c(node) };
        job.second(|node| (node != 2).then(|| report(node)));
        let verdicts = job.second(|node| (node != 2).then(|| report(node)));
        assert_eq!(said(&verdicts), crash, "finished: {finished}");
    }
}
