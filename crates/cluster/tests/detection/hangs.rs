//! Collectives that do not end.

use telltale_cluster::observation::{GroupProgress, Observation, WorkerObservation, WorkerState};
use telltale_cluster::rank::Rank;
use telltale_cluster::verdict::{Evidence, VerdictKind};

use crate::detection::job::{Job, Said, at, certain, progress};

/// A job of `nodes` that ran ten collectives of group 0, one a second.
fn running(nodes: u8) -> Job {
    let mut job = Job::of(nodes);
    for sequence in 1..=10 {
        let verdicts = job.second(|node| Some(at(progress(node, 0, sequence, sequence))));
        assert!(verdicts.is_empty(), "{verdicts:?}");
    }
    job
}

fn check(nodes: u8, report: impl Fn(u32) -> Observation, within: u32, expected: &[Said]) {
    let found = running(nodes).seconds_until_verdict(60, |node| Some(report(node)));
    let (seconds, said) = found.expect("it hangs");
    assert_eq!(said, expected);
    assert!(seconds <= within, "{seconds} s");
}

#[test]
fn who_does_not_enter_is_named() {
    let hang = VerdictKind::NonCommunicationHang;
    let stuck = |node| if node == 2 { progress(2, 0, 10, 10) } else { progress(node, 0, 11, 10) };
    check(4, |node| at(stuck(node)), 7, &[certain(hang, "node c")]);
}

#[test]
fn who_has_not_finished_when_most_have_is_named() {
    let hang = VerdictKind::CommunicationHang;
    let stuck = |node| if node == 1 { progress(1, 0, 11, 10) } else { progress(node, 0, 11, 11) };
    check(4, |node| at(stuck(node)), 7, &[certain(hang, "node b")]);
}

#[test]
fn when_all_are_inside_nobody_is_named_alone() {
    let names = ["node a", "node b", "node c"].map(str::to_owned).to_vec();
    let expected = (VerdictKind::CommunicationHang, false, names);
    check(3, |node| at(progress(node, 0, 11, 10)), 7, &[expected]);
}

#[test]
fn who_is_waited_for_in_a_transfer_and_waits_in_none_is_named() {
    let awaits = |node| if node == 1 { vec![] } else { vec![Rank((node + 2) % 3)] };
    let inside = |node| GroupProgress { receives_from: awaits(node), ..progress(node, 0, 11, 10) };
    check(3, |node| at(inside(node)), 7, &[certain(VerdictKind::CommunicationHang, "node b")]);
}

/// All are inside a collective; these transfers have been begun by the ends that are named.
fn transferring(sends: &[(u32, u32)], receives: &[(u32, u32)]) -> impl Fn(u32) -> Observation {
    move |node| {
        let sends_to = sends.iter().filter(|(from, _)| *from == node).map(|(_, to)| Rank(*to));
        let receives_from =
            receives.iter().filter(|(_, to)| *to == node).map(|(from, _)| Rank(*from));
        at(GroupProgress {
            sends_to: sends_to.collect(),
            receives_from: receives_from.collect(),
            ..progress(node, 0, 11, 10)
        })
    }
}

fn unsure(names: &[&str]) -> Said {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    (VerdictKind::CommunicationHang, false, names)
}

#[test]
fn a_transfer_that_both_ends_have_begun_names_the_link_and_its_ends() {
    let ring = [(0, 1), (1, 2), (2, 3)];
    let expected = unsure(&["node a", "node b", "link from a to b"]);
    check(4, transferring(&[(0, 1)], &ring), 12, &[expected]);
    let mut job = running(4);
    let report = transferring(&[(0, 1)], &ring);
    let verdict = (0..12).find_map(|_| job.second(|node| Some(report(node))).pop()).unwrap();
    let is_stuck =
        |one: &Evidence| matches!(one, Evidence::Stuck { from: Rank(0), to: Rank(1), .. });
    assert!(verdict.evidence.iter().any(is_stuck), "{:?}", verdict.evidence);
}

#[test]
fn the_node_that_stuck_transfers_share_is_named_and_never_for_certain() {
    let ring = [(0, 1), (1, 2), (2, 3)];
    check(4, transferring(&[(0, 1), (1, 2)], &ring), 12, &[unsure(&["node b"])]);
}

#[test]
fn where_all_transfers_seem_stuck_nothing_is_concluded() {
    let line = [(0, 1), (1, 2)];
    check(3, transferring(&line, &line), 12, &[unsure(&["node a", "node b", "node c"])]);
}

#[test]
fn who_is_missing_from_a_group_that_may_take_longer_is_not_named() {
    // Group 1 is {a, b} and hangs for b; group 2 is {c, d, e}, whose first collective e has not entered yet.
    let mut job = Job::of(5);
    let report = |node: u32, done: u64, waits: bool| match node {
        0 => progress(0, 1, done + u64::from(waits), done),
        1 => progress(1, 1, done, done),
        4 => progress(4, 2, 0, 0),
        node => progress(node, 2, u64::from(waits), 0),
    };
    for done in 1..=10 {
        let verdicts = job.second(|node| Some(at(report(node, done, false))));
        assert!(verdicts.is_empty(), "{verdicts:?}");
    }
    let found = job.seconds_until_verdict(30, |node| Some(at(report(node, 10, true))));
    let expected = certain(VerdictKind::NonCommunicationHang, "node b");
    assert_eq!(found.expect("it hangs").1, [expected]);
}

#[test]
fn who_finishes_transfers_does_not_stand_still_although_it_is_found_waiting_each_time() {
    let mut job = running(3);
    for second in 0..60 {
        let awaits = |node| if node == 1 { vec![] } else { vec![Rank((node + 2) % 3)] };
        let moving = |node| {
            let progress =
                GroupProgress { receives_from: awaits(node), ..progress(node, 0, 10, 10) };
            at(GroupProgress { transferred: second, ..progress })
        };
        assert_eq!(job.seconds_until_verdict(1, |node| Some(moving(node))), None);
    }
}

#[test]
fn a_stopped_process_is_named_wherever_it_stands() {
    let report = |node| {
        let state = if node == 2 { WorkerState::Stopped } else { WorkerState::Running };
        let workers = vec![WorkerObservation { rank: Rank(node), state }];
        Observation { workers, ..at(progress(node, 0, 11, 10)) }
    };
    check(3, report, 7, &[certain(VerdictKind::NonCommunicationHang, "node c")]);
}

/// What the nodes of a job report whose clients tell nothing, while these are stopped.
fn only_stopped(stopped: &'static [u32]) -> impl Fn(u32) -> Option<Observation> {
    move |node| {
        let is_stopped = stopped.contains(&node);
        let state = if is_stopped { WorkerState::Stopped } else { WorkerState::Running };
        let workers = vec![WorkerObservation { rank: Rank(node), state }];
        Some(Observation { workers, ..Observation::default() })
    }
}

#[test]
fn a_stopped_process_is_named_where_nobody_reports_progress() {
    let hang = VerdictKind::NonCommunicationHang;
    let (seconds, said) =
        Job::of(4).seconds_until_verdict(60, only_stopped(&[2])).expect("it is seen");
    assert_eq!(said, [certain(hang, "node c")]);
    assert!((5..=7).contains(&seconds), "{seconds} s");
    // A stop that ends is a pause.
    let mut job = Job::of(4);
    for second in 0..40 {
        let report = only_stopped(if second % 5 == 4 { &[] } else { &[2] });
        let verdicts = job.second(report);
        assert!(verdicts.is_empty(), "{second}: {verdicts:?}");
    }
    // Most of them: it was done on purpose, or the fault is elsewhere.
    let (_, said) =
        Job::of(4).seconds_until_verdict(60, only_stopped(&[0, 1, 3])).expect("it is seen");
    let names = ["node a", "node b", "node d"].map(str::to_owned).to_vec();
    assert_eq!(said, [(hang, false, names)]);
}

#[test]
fn who_is_seen_stopped_and_goes_on_all_the_same_does_not_hang() {
    // Stopped for most of the time, and so at each evaluation, and continued in between.
    let report = |done: u64| {
        move |node| {
            let stopped = only_stopped(&[2])(node)?;
            Some(Observation { progress: vec![progress(node, 0, done, done)], ..stopped })
        }
    };
    let mut job = Job::of(4);
    for done in 1..=40 {
        let verdicts = job.second(report(done));
        assert!(verdicts.is_empty(), "{done}: {verdicts:?}");
    }
    // And then for good.
    let (seconds, said) = job.seconds_until_verdict(60, report(40)).expect("it hangs");
    assert_eq!(said, [certain(VerdictKind::NonCommunicationHang, "node c")]);
    assert!((4..=8).contains(&seconds), "{seconds} s");
}

#[test]
fn who_waits_elsewhere_is_not_the_cause() {
    // Group 1 is {a, b} and group 2 is {b, c}: a waits for b, b waits for c.
    let report = |node| {
        let inside = |group| progress(node, group, 11, 10);
        let outside = |group| progress(node, group, 10, 10);
        let progress = match node {
            0 => vec![inside(1)],
            1 => vec![outside(1), inside(2)],
            _ => vec![outside(2)],
        };
        Observation { progress, ..Observation::default() }
    };
    let mut job = Job::of(3);
    let found = job.seconds_until_verdict(60, |node| Some(report(node))).expect("it hangs");
    assert_eq!(found.1, [certain(VerdictKind::NonCommunicationHang, "node c")]);
}

#[test]
fn a_rank_that_never_reports_the_job_s_group_is_missing_from_it() {
    let mut job = Job::of(3);
    let report =
        |node| Some(if node == 0 { Observation::default() } else { at(progress(node, 0, 1, 0)) });
    let (seconds, said) = job.seconds_until_verdict(200, report).expect("it hangs");
    assert_eq!(said, [certain(VerdictKind::NonCommunicationHang, "node a")]);
    assert!((120..=123).contains(&seconds), "the start is given two minutes: {seconds} s");
}

#[test]
fn checkpoints_pauses_and_ends_are_no_hangs() {
    let stuck = |node| if node == 2 { progress(2, 0, 10, 10) } else { progress(node, 0, 11, 10) };
    let excused = |node| Some(Observation { excused: node == 0, ..at(stuck(node)) });
    assert_eq!(running(4).seconds_until_verdict(60, excused), None, "a checkpoint");

    let idle = |node| Some(at(progress(node, 0, 10, 10)));
    assert_eq!(running(4).seconds_until_verdict(60, idle), None, "nobody waits");

    let ended = |node| {
        let state = if node == 2 { WorkerState::Finished } else { WorkerState::Running };
        let workers = vec![WorkerObservation { rank: Rank(node), state }];
        Some(Observation { workers, ..at(stuck(node)) })
    };
    assert_eq!(running(4).seconds_until_verdict(60, ended), None, "one has finished");

    let mut slow_steps = Job::of(4);
    for second in 0..100 {
        let step = second / 8;
        let entered = |node| if node == 2 { step } else { step + 1 };
        let report = |node| Some(at(progress(node, 0, entered(node), step)));
        assert!(slow_steps.second(report).is_empty(), "steps of eight seconds, {second} s");
    }
}

#[test]
fn the_evidence_says_who_waits_for_what() {
    let mut job = running(4);
    let stuck = |node| if node == 2 { progress(2, 0, 10, 10) } else { progress(node, 0, 11, 10) };
    let verdicts = (0..7).map(|_| job.second(|node| Some(at(stuck(node))))).last().unwrap();
    let Evidence::Behind { rank, entered, awaited, .. } = verdicts[0].evidence[0] else {
        panic!("{verdicts:?}")
    };
    assert_eq!((rank, entered, awaited), (Rank(2), 10, 11));
}
