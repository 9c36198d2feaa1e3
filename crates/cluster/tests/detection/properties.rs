//! What holds whatever is reported.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use telltale_cluster::group::GroupId;
use telltale_cluster::latency::{Direction, EdgeKey, EdgeWindow, SizeBucket, Window};
use telltale_cluster::node::NodeName;
use telltale_cluster::observation::{
    GroupProgress, Observation, WorkerEnd, WorkerObservation, WorkerState,
};
use telltale_cluster::rank::Rank;
use telltale_cluster::verdict::{Suspects, Verdict, VerdictKind};

use crate::detection::job::{Job, received};

/// Numbers at and between the edges of what is sensible.
fn wild() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..20_u64, any::<u64>()]
}

fn rank() -> impl Strategy<Value = Rank> {
    prop_oneof![4 => 0..5_u32, 1 => any::<u32>()].prop_map(Rank)
}

fn edge() -> impl Strategy<Value = EdgeWindow> {
    (rank(), rank(), any::<bool>(), 0..4_u8, wild()).prop_map(|(rank, peer, sends, size, value)| {
        let direction = if sends { Direction::Send } else { Direction::Receive };
        let bucket = SizeBucket::new(size).unwrap();
        let key = EdgeKey { group: GroupId::new(1), rank, peer, direction, bucket };
        let window = Window {
            count: u32::MAX,
            mean_ns: value,
            median_ns: value,
            deviation_ns: value,
            high_ns: value,
            last_sequence: value,
            late: 0,
            overlapped: 0,
        };
        EdgeWindow { key, window }
    })
}

fn progress() -> impl Strategy<Value = GroupProgress> {
    let ranks = || vec(rank(), 0..3);
    (0..3_u64, rank(), wild(), wild(), ranks(), ranks(), wild()).prop_map(
        |(group, rank, entered, finished, sends_to, receives_from, transferred)| GroupProgress {
            group: GroupId::new(group),
            rank,
            entered,
            finished,
            sends_to,
            receives_from,
            transferred,
        },
    )
}

fn worker() -> impl Strategy<Value = WorkerObservation> {
    let state = prop_oneof![
        6 => Just(WorkerState::Running),
        1 => Just(WorkerState::Stopped),
        1 => Just(WorkerState::Finished),
        1 => any::<(i32, u64)>().prop_map(|(code, age)| WorkerState::Failed {
            end: WorkerEnd::Code(code),
            age: Duration::from_secs(age),
        }),
    ];
    (rank(), state).prop_map(|(rank, state)| WorkerObservation { rank, state })
}

fn observation() -> impl Strategy<Value = Option<Observation>> {
    let parts = (vec(worker(), 0..2), vec(progress(), 0..3), vec(edge(), 0..8), any::<bool>());
    let observation = parts.prop_map(|(workers, progress, edges, excused)| {
        Some(Observation { workers, progress, edges, excused, ..Observation::default() })
    });
    prop_oneof![1 => Just(None), 5 => observation]
}

/// Noise of some per cent that differs from edge to edge.
fn noisy(from: u32, to: u32, second: u32) -> f64 {
    1.0 + f64::from((from * 11 + to * 17 + second * 13) % 9) / 100.0
}

/// The verdicts about a mesh of `nodes` after its slow edges were slow for 15 seconds, when the node
/// with the number `i` in the plan has the name `names[i]`.
fn verdicts_of(names: &[String], slow: &BTreeSet<(u32, u32)>, ratio: f64) -> Vec<Verdict> {
    let nodes = u32::try_from(names.len()).unwrap();
    let mut job = Job::named(names.to_vec());
    let mut last = Vec::new();
    for second in 0..50 {
        last = job.second(|node| {
            let peers = (0..nodes).filter(|peer| *peer != node);
            let latency = |from| {
                let is_slow = second >= 35 && slow.contains(&(from, node));
                let ratio = if is_slow { ratio } else { 1.0 };
                (200_000.0 * noisy(from, node, second) * ratio) as u64
            };
            let edges = peers.map(|from| received(from, node, latency(from))).collect();
            Some(Observation { edges, ..Observation::default() })
        });
    }
    last
}

/// Verdicts with the numbers of the plan instead of names.
fn without_names(
    verdicts: &[Verdict],
    names: &[String],
) -> BTreeSet<(VerdictKind, bool, Vec<String>)> {
    let number = |name: &NodeName| names.iter().position(|one| one == name.as_str()).unwrap();
    let suspect = |one: &telltale_cluster::verdict::Suspect| {
        use telltale_cluster::verdict::Suspect::{Link, Node, Side};
        match one {
            Node(node) => format!("node {}", number(node)),
            Side { node, side } => format!("{side:?} {}", number(node)),
            Link { from, to, both_ways: true } => {
                let (from, to) = (number(from), number(to));
                format!("link {} {}", from.min(to), from.max(to))
            }
            Link { from, to, both_ways: false } => format!("way {} {}", number(from), number(to)),
        }
    };
    let short = |verdict: &Verdict| {
        let mut suspects: Vec<String> = verdict.suspects.all().iter().map(suspect).collect();
        suspects.sort_unstable();
        (verdict.kind, matches!(verdict.suspects, Suspects::One(_)), suspects)
    };
    verdicts.iter().map(short).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Whatever comes in, detection goes on, and a verdict has evidence and a sensible confidence.
    #[test]
    fn nothing_that_is_reported_stops_detection(
        seconds in vec((vec(observation(), 4), 1..40_u32), 1..8),
    ) {
        let mut job = Job::of(4);
        for (reports, repeats) in &seconds {
            for _ in 0..*repeats {
                let report = |node| reports[usize::try_from(node).unwrap()].clone();
                for verdict in job.second(report) {
                    assert!(!verdict.evidence.is_empty(), "{verdict:?}");
                    assert!((0.0..=1.0).contains(&verdict.confidence), "{verdict:?}");
                    assert!(!verdict.suspects.all().is_empty());
                }
            }
        }
    }

    /// Who is named does not depend on what the nodes are called.
    #[test]
    fn names_do_not_matter(
        slow in vec((0..5_u32, 0..5_u32), 1..8),
        order in Just(vec![0_u8, 1, 2, 3, 4]).prop_shuffle(),
        ratio in 1.6..4.0_f64,
    ) {
        let slow: BTreeSet<(u32, u32)> = slow.into_iter().filter(|one| one.0 != one.1).collect();
        let plain: Vec<String> = (0..5).map(|node| format!("n{node}")).collect();
        let shuffled: Vec<String> = order.iter().map(|node| format!("n{node}")).collect();
        let one = without_names(&verdicts_of(&plain, &slow, ratio), &plain);
        let other = without_names(&verdicts_of(&shuffled, &slow, ratio), &shuffled);
        assert_eq!(one, other);
    }

    /// A verdict about slowness names only nodes at an end of an edge that is slow.
    #[test]
    fn nobody_is_named_without_evidence(
        slow in vec((0..6_u32, 0..6_u32), 0..10),
        ratio in 1.6..4.0_f64,
    ) {
        let slow: BTreeSet<(u32, u32)> = slow.into_iter().filter(|one| one.0 != one.1).collect();
        let names: Vec<String> = (0..6).map(|node| format!("n{node}")).collect();
        let at_an_end: BTreeSet<String> =
            slow.iter().flat_map(|(from, to)| [format!("n{from}"), format!("n{to}")]).collect();
        for verdict in verdicts_of(&names, &slow, ratio) {
            for node in verdict.suspects.all().iter().flat_map(|suspect| suspect.nodes()) {
                assert!(at_an_end.contains(node.as_str()), "{node} in {verdict:?}");
            }
        }
    }
}
