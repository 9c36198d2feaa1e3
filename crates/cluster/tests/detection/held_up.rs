//! A ring of ranks that send to the next and receive from the one before: what is slow at one link makes each
//! of them wait, and what they measure then is not their own.

use telltale_cluster::group::GroupId;
use telltale_cluster::latency::{EdgeWindow, SizeBucket, WaitWindow};
use telltale_cluster::observation::Observation;
use telltale_cluster::rank::Rank;
use telltale_cluster::verdict::{Evidence, VerdictKind};

use crate::detection::job::{Job, Said, certain, received, said, sent, waited};

const NODES: u32 = 4;
/// The link that becomes slow.
const SLOW: (u32, u32) = (1, 2);

/// How many times as long as usual what is sent from one node to the next takes.
type Times = fn(from: u32) -> f64;

/// The second's report of a node whose transfers are marked by `mark`, with what is sent and what is
/// received taking so many times as long as usual.
fn report(
    node: u32,
    second: u32,
    [sends, receives]: [Times; 2],
    mark: Mark,
) -> Option<Observation> {
    let (before, after) = ((node + NODES - 1) % NODES, (node + 1) % NODES);
    let latency = |from: u32, times: Times| {
        let noise = 1.0 + f64::from((from * 3 + node + 5 * second) % 7) / 100.0;
        ((200_000.0 + 20_000.0 * f64::from(from)) * noise * times(from)) as u64
    };
    let mut edges = vec![
        sent(node, after, latency(node, sends)),
        received(before, node, latency(before, receives)),
    ];
    edges.iter_mut().for_each(mark);
    Some(Observation { edges, ..Observation::default() })
}

type Mark = fn(&mut EdgeWindow);

/// All begin when others let them.
fn all_late(edge: &mut EdgeWindow) {
    edge.window.late = edge.window.count;
}

/// The ranks have met just before; the send is waited for behind the receive.
fn sends_overlapped(edge: &mut EdgeWindow) {
    if matches!(edge.key.direction, telltale_cluster::latency::Direction::Send) {
        edge.window.overlapped = edge.window.count;
    }
}

const fn as_usual(_: u32) -> f64 {
    1.0
}

fn one_slow(from: u32) -> f64 {
    if from == SLOW.0 { 50.0 } else { 1.0 }
}

/// The slow link, and what waits for it.
fn all_slow(from: u32) -> f64 {
    if from == SLOW.0 { 50.0 } else { 8.0 }
}

fn learned(mark: Mark) -> Job {
    let mut job = Job::of(4);
    for second in 0..45 {
        let verdicts = job.second(|node| report(node, second, [as_usual; 2], mark));
        assert_eq!(said(&verdicts), [], "{second} s");
    }
    job
}

#[test]
fn ranks_that_hold_each_other_up_are_reported_together_and_nobody_alone() {
    let cases: [[Times; 2]; 3] = [[all_slow, all_slow], [one_slow, all_slow], [one_slow, one_slow]];
    for times in cases {
        let mut job = learned(all_late);
        let verdicts =
            (45..90).map(|second| job.second(|node| report(node, second, times, all_late)));
        let verdicts: Vec<_> = verdicts.flatten().collect();
        assert!(verdicts.len() > 20, "it is told of as long as it lasts");
        for verdict in &verdicts {
            let names = ["node a", "node b", "node c", "node d"].map(str::to_owned).to_vec();
            assert_eq!(
                said(std::slice::from_ref(verdict)),
                [(VerdictKind::SlowLink, false, names)]
            );
            assert!((verdict.confidence - 0.25).abs() < 1e-9, "{verdict:?}");
            assert!(matches!(verdict.evidence[0], Evidence::HeldUp { connections: 1.. }));
            let Evidence::Slower { from, to, .. } = &verdict.evidence[1] else {
                panic!("{verdict:?}")
            };
            assert_eq!((from.as_str(), to.as_str()), ("b", "c"), "the slowest comes first");
        }
    }
}

#[test]
fn what_was_measured_alone_names_the_link_though_the_rest_was_held_up() {
    let mut job = learned(sends_overlapped);
    let times: [Times; 2] = [all_slow, one_slow];
    let verdicts =
        (45..60).map(|second| job.second(|node| report(node, second, times, sends_overlapped)));
    let verdicts = verdicts.last().expect("there are seconds");
    assert_eq!(said(&verdicts), [certain(VerdictKind::SlowLink, "link from b to c")]);
}

/// The stages a, b and c, d: each of the first sends to one of the second, and each stage meets in collectives of its
/// own. So all transfers begin late.
fn stages(node: u32, second: u32, times: Times) -> Observation {
    let edge =
        if node < 2 { sent(node, node + 2, 200_000) } else { received(node - 2, node, 200_000) };
    let mut edges = vec![noisy(edge, second, times(node % 2))];
    edges.iter_mut().for_each(all_late);
    Observation { edges, waits: vec![in_stage(node, second, 300_000)], ..Observation::default() }
}

fn noisy(mut edge: EdgeWindow, second: u32, times: f64) -> EdgeWindow {
    let noise = 1.0 + f64::from((edge.key.rank.0 + 5 * second) % 7) / 100.0;
    edge.window.median_ns = (edge.window.median_ns as f64 * noise * times) as u64;
    edge
}

/// A node's time in the collectives of its stage.
fn in_stage(node: u32, second: u32, mean_ns: u64) -> WaitWindow {
    let noise_ns = u64::from((node * 3 + second) % 5) * 2_000;
    let mut waited = waited(node, mean_ns + noise_ns);
    waited.key.group = GroupId::new(u64::from(1 + node / 2));
    waited
}

/// The same, with what b sends to d slow, so that c waits for d.
fn d_is_late(node: u32, second: u32) -> Observation {
    let mut observation = stages(node, second, |from| if from == 1 { 50.0 } else { 1.0 });
    if node == 2 {
        observation.waits = vec![in_stage(node, second, 5_000_000)];
    }
    observation
}

#[test]
fn one_who_is_late_is_not_named_while_its_transfers_are_held_up() {
    let mut job = Job::of(4);
    (0..45).for_each(|second| {
        let verdicts = job.second(|node| Some(stages(node, second, as_usual)));
        assert_eq!(said(&verdicts), [], "{second} s");
    });
    let names = ["node b", "node d"].map(str::to_owned).to_vec();
    let held_up = [(VerdictKind::SlowLink, false, names)];
    let mut reported = 0;
    for second in 45..120 {
        let verdicts = said(&job.second(|node| Some(d_is_late(node, second))));
        assert!(verdicts.is_empty() || verdicts == held_up, "{second} s: {verdicts:?}");
        reported += verdicts.len();
    }
    assert!(reported > 60, "{reported}");
}

#[test]
fn one_who_is_late_is_not_named_though_something_else_is_slow_for_certain() {
    // Beside them e sends to f, which no rank delays.
    let report = |node, second, is_slow: bool| {
        let times = if is_slow { 3.0 } else { 1.0 };
        Some(match node {
            0..4 if is_slow => d_is_late(node, second),
            0..4 => stages(node, second, as_usual),
            4 => Observation::default(),
            _ => {
                let edges = vec![noisy(received(4, 5, 200_000), second, times)];
                Observation { edges, ..Observation::default() }
            }
        })
    };
    let mut job = Job::of(6);
    (0..45).for_each(|second| drop(job.second(|node| report(node, second, false))));
    let verdicts = (45..90).map(|second| said(&job.second(|node| report(node, second, true))));
    let verdicts: Vec<_> = verdicts.filter(|said| !said.is_empty()).collect();
    assert!(verdicts.len() > 30);
    let names = verdicts.iter().flatten().flat_map(|(_, _, names)| names);
    assert!(names.clone().any(|name| name.contains('f')), "{verdicts:?}");
    assert!(verdicts.iter().flatten().all(|(_, _, names)| *names != ["node d"]), "{verdicts:?}");
}

#[test]
fn one_who_is_late_before_its_transfers_are_known_is_not_named() {
    let mut job = Job::of(4);
    for second in 0..150 {
        let verdicts = job.second(|node| {
            let is_slow = second >= 45;
            let mut report =
                if is_slow { d_is_late(node, second) } else { stages(node, second, as_usual) };
            // What is usual for them is learned with the fault in it.
            if second < 35 {
                report.edges.clear();
            }
            Some(report)
        });
        assert_eq!(said(&verdicts), [], "{second} s");
    }
}

#[test]
fn one_who_is_late_because_of_a_slow_node_is_not_named_beside_it() {
    // Each to each but within a stage, and no rank delays another.
    let report = |node: u32, second: u32, is_slow: bool| {
        let times = |peer: u32| if is_slow && [node, peer].contains(&1) { 3.0 } else { 1.0 };
        let peers = (0..4).filter(|peer| peer / 2 != node / 2);
        let edges = peers.flat_map(|peer| {
            let edges = [sent(node, peer, 200_000), received(peer, node, 200_000)];
            edges.map(|edge| noisy(edge, second, times(peer)))
        });
        let late_ns = if is_slow && node == 2 { 5_000_000 } else { 0 };
        let waits = vec![in_stage(node, second, 300_000 + late_ns)];
        Some(Observation { edges: edges.collect(), waits, ..Observation::default() })
    };
    let mut job = Job::of(4);
    (0..45).for_each(|second| {
        assert_eq!(said(&job.second(|node| report(node, second, false))), [], "{second} s");
    });
    let verdicts = (45..90).map(|second| said(&job.second(|node| report(node, second, true))));
    let verdicts: Vec<_> = verdicts.skip_while(Vec::is_empty).collect();
    assert!(verdicts.len() > 30);
    let slow = [certain(VerdictKind::SlowNode, "node b")];
    assert!(verdicts.iter().all(|said| *said == slow), "{verdicts:?}");
}

/// What two nodes have two of.
#[derive(Debug, Clone, Copy)]
enum Two {
    Ranks,
    Sizes,
}

/// The same ring with two ranks a node, or two sizes: those of one part begin late, those of the other do not.
fn two_parts(two: Two, node: u32, second: u32, parts: [(Mark, Times); 2]) -> Observation {
    let mut edges = Vec::new();
    for (part, (mark, times)) in (0..).zip(parts) {
        let one = report(node, second + part, [times; 2], mark).expect("each node reports");
        edges.extend(one.edges.into_iter().map(|mut edge| {
            match two {
                Two::Ranks => {
                    edge.key.rank = Rank(edge.key.rank.0 * 2 + part);
                    edge.key.peer = Rank(edge.key.peer.0 * 2 + part);
                }
                Two::Sizes => edge.key.bucket = SizeBucket::of(4096 << part),
            }
            edge
        }));
    }
    // In the order in which agents report them.
    edges.sort_by_key(|edge| edge.key);
    Observation { edges, ..Observation::default() }
}

/// What is said last of such a job after one part or the other has become slow.
fn said_of_two_parts(two: Two, marks: [Mark; 2], slow: [Times; 2]) -> Vec<Said> {
    let mut job = Job::of(4);
    if let Two::Ranks = two {
        job.begin_epoch_of(2);
    }
    let parts = |times: [Times; 2]| [(marks[0], times[0]), (marks[1], times[1])];
    for second in 0..45 {
        let verdicts = job.second(|node| Some(two_parts(two, node, second, parts([as_usual; 2]))));
        assert_eq!(said(&verdicts), [], "{second} s");
    }
    let verdicts =
        (45..75).map(|second| job.second(|node| Some(two_parts(two, node, second, parts(slow)))));
    said(&verdicts.last().expect("there are seconds"))
}

const fn alone(_: &mut EdgeWindow) {}

#[test]
fn what_one_rank_or_size_measured_alone_counts_though_another_of_its_node_begins_late() {
    for two in [Two::Ranks, Two::Sizes] {
        for (marks, slow) in [
            ([alone as Mark, all_late as Mark], [one_slow as Times, all_slow as Times]),
            ([all_late, alone], [all_slow, one_slow]),
        ] {
            let found = said_of_two_parts(two, marks, slow);
            let expected = certain(VerdictKind::SlowLink, "link from b to c");
            assert_eq!(found, [expected], "{two:?}");
        }
    }
}

#[test]
fn what_was_held_up_names_nobody_though_another_rank_or_size_of_its_node_is_alone() {
    for two in [Two::Ranks, Two::Sizes] {
        for (marks, slow) in [
            ([alone as Mark, all_late as Mark], [as_usual as Times, one_slow as Times]),
            ([all_late, alone], [one_slow, as_usual]),
        ] {
            let found = said_of_two_parts(two, marks, slow);
            let names = ["node a", "node b", "node c", "node d"].map(str::to_owned).to_vec();
            assert_eq!(found, [(VerdictKind::SlowLink, false, names)], "{two:?}");
        }
    }
}

/// A chain from a to d whose last edge says nothing in some seconds.
fn chain(node: u32, second: u32, is_quiet: bool, times: Times) -> Option<Observation> {
    let mut observation = report(node, second, [times; 2], all_late)?;
    observation.edges.retain(|edge| {
        let ends = [edge.key.rank.0, edge.key.peer.0];
        let is_end = |end| ends.contains(&end);
        !(is_end(0) && is_end(3) || is_quiet && is_end(2) && is_end(3))
    });
    Some(observation)
}

#[test]
fn ranks_that_hold_each_other_up_are_reported_together_though_one_edge_is_quiet_for_a_while() {
    let mut job = Job::of(4);
    for second in 0..45 {
        let verdicts = job.second(|node| chain(node, second, false, as_usual));
        assert_eq!(said(&verdicts), [], "{second} s");
    }
    let mut reported = 0;
    for second in 45..85 {
        // Each pause is longer than those before it let one expect.
        let is_quiet = (51..57).contains(&second) || second > 60;
        let verdicts = job.second(|node| chain(node, second, is_quiet, all_slow));
        reported += verdicts.len();
        for verdict in &verdicts {
            assert_eq!(verdict.suspects.all().len(), 4, "{second} s: {verdict:?}");
        }
    }
    assert!(reported > 10, "{reported}");
}
