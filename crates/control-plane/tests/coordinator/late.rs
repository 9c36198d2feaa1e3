//! Reports that come too late, or are of ranks that are another's: they never count among the latencies
//! of the present epoch.

use std::time::Duration;

use telltale_cluster::detection::DetectionSettings;
use telltale_cluster::epoch::Epoch;
use telltale_cluster::group::GroupId;
use telltale_cluster::latency::{Direction, EdgeKey, EdgeWindow, SizeBucket, Window};
use telltale_cluster::message::{AgentActivity, FromNodeBody, Report};
use telltale_cluster::observation::{Observation, WorkerObservation, WorkerState};
use telltale_cluster::rank::Rank;
use telltale_control_plane::server::Plan;
use telltale_harness::Scratch;

use crate::coordinator::node::{Node, follow_all, job};
use crate::coordinator::running::{Running, plan, run, within};

/// A window of detection, and the time between two reports.
const WINDOW: Duration = Duration::from_millis(20);
/// Reports after which what is usual is known for long.
const LEARNING: u32 = 100;
/// Reports that are enough for a suspicion, several times over.
const LATE: u32 = 50;
/// How long transfers usually take, and how long they took in the former epoch.
const USUAL_NS: u64 = 1_000_000;
const SLOW_NS: u64 = 50_000_000;

/// A report of rank `worker`, in which rank `from` sends to ranks, which takes this long.
fn transfers(epoch: Epoch, worker: u32, from: u32, to: &[(u32, u64)]) -> FromNodeBody {
    let edge = |(peer, nanoseconds): &(u32, u64)| EdgeWindow {
        key: EdgeKey {
            group: GroupId::WORLD,
            rank: Rank(from),
            peer: Rank(*peer),
            direction: Direction::Send,
            bucket: SizeBucket::of(1 << 20),
        },
        window: Window {
            count: 100,
            mean_ns: *nanoseconds,
            median_ns: *nanoseconds,
            deviation_ns: 1000,
            high_ns: *nanoseconds,
            last_sequence: 100,
            late: 0,
            overlapped: 0,
        },
    };
    let workers = vec![WorkerObservation { rank: Rank(worker), state: WorkerState::Running }];
    let edges = to.iter().map(edge).collect();
    let observation = Observation { workers, edges, ..Observation::default() };
    FromNodeBody::Report(Report {
        activity: AgentActivity::Committed(epoch),
        observation,
        fault: None,
    })
}

/// All three tell that their transfers to the other two take as long as usual, but for those from rank 0
/// to rank 1.
async fn report(nodes: &mut [Node], epoch: Epoch, first_ns: u64) {
    for (node, own) in nodes.iter_mut().zip(0..) {
        let others = (0..3).filter(|rank| *rank != own);
        let time = |rank| if (own, rank) == (0, 1) { first_ns } else { USUAL_NS };
        let to: Vec<_> = others.map(|rank| (rank, time(rank))).collect();
        node.say(transfers(epoch, own, own, &to)).await;
    }
}

/// The original keeps latencies by rank, from any reporter at any time: after a replacement those of
/// the former epoch are taken for the new node's.
#[test]
fn latencies_of_a_former_rank_map_are_nobodys() {
    run(async {
        let scratch = Scratch::new();
        let detection = DetectionSettings { window: WINDOW, ..DetectionSettings::default() };
        let running = Running::start(Plan { detection, ..plan(scratch.path(), 3) }).await;
        let mut client = running.client();
        let (mut nodes, former) = job(&mut client, &["a", "b", "c"]).await;
        let former_sequence = nodes[0].sequence;
        let spare = Node::register(&mut client, "d").await;
        client.remove("b").await.unwrap();
        let mut removed = std::mem::replace(&mut nodes[1], spare);
        let epoch = follow_all(&mut nodes).await;
        for _ in 0..LEARNING {
            report(&mut nodes, epoch, USUAL_NS).await;
            tokio::time::sleep(WINDOW).await;
        }
        for _ in 0..LATE {
            report(&mut nodes, epoch, USUAL_NS).await;
            // What the first said of rank 1 when that was another node's, on its way until now.
            let sequence = std::mem::replace(&mut nodes[0].sequence, former_sequence);
            nodes[0].say_again(transfers(former, 0, 0, &[(1, SLOW_NS)])).await;
            nodes[0].sequence = sequence;
            // The present epoch, of a rank that is another's.
            nodes[0].say(transfers(epoch, 2, 0, &[(1, SLOW_NS)])).await;
            // Who has lost rank 1 goes on telling of it.
            removed.say(transfers(former, 1, 1, &[(0, SLOW_NS), (2, SLOW_NS)])).await;
            tokio::time::sleep(WINDOW).await;
        }
        assert_eq!(
            running.metric("incidents_total").await,
            0,
            "{:?}",
            client.incidents(None).await
        );
        let dropped = running.metrics("detection_dropped_total").await;
        assert_eq!((dropped["strangers"], dropped["foreign"]), (0, 0), "{dropped:?}");
        let stale = running.metrics("stale_messages_total").await;
        assert!(stale["sequence"] >= u64::from(LATE) && stale["ranks"] >= u64::from(LATE));
        // The same latency in a report that counts is seen.
        let suspected = async {
            while running.metric("incidents_total").await == 0 {
                report(&mut nodes, epoch, SLOW_NS).await;
                tokio::time::sleep(WINDOW).await;
            }
        };
        within("the slow transfers are seen", suspected).await;
        running.end().await;
    });
}
