//! What the coordinator says when it is asked, as far as the demo shows it.

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use telltale_control_plane::operator::{Operator, OperatorError};
use telltale_control_plane::reach::{CoordinatorAddress, Credentials};
use telltale_wire::cluster::message::{
    DecisionSummary, JobPhase, Node, NodeState, SlotHolder, sign,
};

use crate::exit::Failure;

/// How long the coordinator may take for an answer: it is on this machine, which the demo keeps busy.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How the cluster is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ClusterView {
    pub(super) epoch: u64,
    /// Every worker of the epoch has started.
    pub(super) runs: bool,
    /// The job is over.
    pub(super) over: bool,
    pub(super) nodes: Vec<NodeView>,
    /// By slot, with one worker each, so by rank.
    pub(super) holders: Vec<String>,
    /// Oldest first.
    pub(super) decisions: Vec<DecisionView>,
    /// Who failed, and when.
    pub(super) failures: Vec<FailureView>,
}

/// How a node is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeView {
    pub(super) name: String,
    pub(super) state: NodeState,
    pub(super) heard_ago: Option<Duration>,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DecisionView {
    pub(super) number: u64,
    pub(super) epoch: u64,
    pub(super) why: String,
    pub(super) evicted: Vec<String>,
    pub(super) stored: SystemTime,
}

/// A worker that failed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FailureView {
    pub(super) incident: String,
    pub(super) rank: u32,
    pub(super) at: SystemTime,
}

/// Asks the coordinator on a thread of its own, so that a slow answer delays nothing else. The thread
/// ends after the poller is dropped.
pub(super) struct CoordinatorPoller {
    views: Receiver<Result<ClusterView, OperatorError>>,
}

/// The thread's part.
struct CoordinatorClient {
    runtime: tokio::runtime::Runtime,
    operator: Operator,
}

// === impl CoordinatorPoller ===

impl CoordinatorPoller {
    /// Asks the coordinator at a socket file.
    pub(super) fn at(socket: &Path) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::because(&error))?;
        let address = CoordinatorAddress::Unix(socket.to_owned());
        let operator = Operator::new(vec![address], Credentials::default(), TIMEOUT);
        let client = CoordinatorClient { runtime, operator };
        // One waits at most: it is taken before the next one is asked for.
        let (sender, views) = sync_channel(0);
        let poll = move || while sender.send(client.view()).is_ok() {};
        thread::Builder::new()
            .name("poller".into())
            .spawn(poll)
            .map_err(|error| Failure::because(&error))?;
        Ok(Self { views })
    }

    /// How the cluster is, if an answer has come since the last call.
    pub(super) fn view(&self) -> Option<Result<ClusterView, OperatorError>> {
        self.views.try_recv().ok()
    }
}

// === impl CoordinatorClient ===

impl CoordinatorClient {
    /// How the cluster is now.
    fn view(&self) -> Result<ClusterView, OperatorError> {
        self.runtime.block_on(async {
            let status = self.operator.ask(async |client| client.status().await);
            let status = status.await?;
            let nodes = self.operator.ask(async |client| client.nodes().await).await?;
            let map = self.operator.ask(async |client| client.rank_map().await).await?;
            let decisions = self.operator.ask(async |client| client.decisions(None).await).await?;
            let incidents = self.operator.ask(async |client| client.incidents(None).await).await?;
            let is_failure = |kind: Option<sign::Kind>| match kind {
                Some(sign::Kind::WorkerFailed(failed)) => Some(failed),
                _ => None,
            };
            let failures = incidents.incidents.into_iter().rev().flat_map(|incident| {
                let id = incident.id;
                let events =
                    incident.signs.into_iter().filter_map(move |event| is_failure(event.kind));
                events.map(move |failed| FailureView {
                    incident: id.clone(),
                    rank: failed.rank,
                    at: moment(failed.at_unix_ms),
                })
            });
            Ok(ClusterView {
                epoch: status.epoch,
                runs: status.runs,
                over: status.phase() == JobPhase::Over,
                nodes: nodes.nodes.iter().map(NodeView::of).collect(),
                holders: map.holders.into_iter().map(|SlotHolder { node, .. }| node).collect(),
                decisions: decisions.decisions.into_iter().rev().map(DecisionView::of).collect(),
                failures: failures.collect(),
            })
        })
    }
}

impl NodeView {
    fn of(node: &Node) -> Self {
        let heard_ago = node.heard_ago_ns.map(Duration::from_nanos);
        Self { name: node.name.clone(), state: node.state(), heard_ago }
    }
}

impl DecisionView {
    fn of(decision: DecisionSummary) -> Self {
        let DecisionSummary { number, epoch, why, evicted, stored_unix_ms, .. } = decision;
        Self { number, epoch, why, evicted, stored: moment(stored_unix_ms) }
    }
}

fn moment(unix_ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(unix_ms)
}
