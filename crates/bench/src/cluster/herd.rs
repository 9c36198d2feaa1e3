//! Nodes that do what agents do, without processes: they register, report each second, and follow
//! each order at once. Each connection is a task with as many nodes as it must carry.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use telltale_cluster::epoch::Epoch;
use telltale_cluster::group::GroupId;
use telltale_cluster::latency::{Direction, EdgeKey, EdgeWindow, SizeBucket, Window};
use telltale_cluster::message::{
    Acknowledgement, AgentActivity, FromNode, FromNodeBody, Order, OrderStep, Registration, Report,
};
use telltale_cluster::node::{HostAddress, Incarnation, NodeName};
use telltale_cluster::observation::{GroupProgress, Observation, WorkerObservation, WorkerState};
use telltale_cluster::rank::{Rank, WorkersPerNode};
use telltale_control_plane::protocol::decode::{DecodedOrder, coordinator_message};
use telltale_control_plane::protocol::encode;
use telltale_wire::cluster::message::NodeMessage;
use telltale_wire::cluster::{Client, Orders};
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{interval, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};

/// Workers of each node.
const WORKERS: u32 = 8;
/// Edges to other nodes that each node reports.
const EDGES: u32 = 9;
/// How long anything may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// From one probe to the next.
const PACE: Duration = Duration::from_millis(20);

/// All nodes.
pub(super) struct Herd {
    client: Client,
    shared: Arc<HerdState>,
}

struct HerdState {
    nodes: u32,
    /// Nodes that have sent that they started, by epoch, up to this one.
    started: AtomicU64,
}

struct Node {
    name: NodeName,
    sequence: u64,
    activity: AgentActivity,
    first_rank: u32,
}

impl Herd {
    /// Registers all nodes.
    pub(super) async fn register(
        address: SocketAddr,
        nodes: u32,
        connections: u32,
    ) -> io::Result<Self> {
        let shared = Arc::new(HerdState { nodes, started: AtomicU64::new(0) });
        for number in 0..connections {
            let names = (number..nodes).step_by(connections as usize);
            let names: Vec<NodeName> = names.map(|node| name(&format!("node-{node:05}"))).collect();
            let client = Client::new(reached(address).await?);
            tokio::spawn(attend(client, names, Arc::clone(&shared), offset(number, connections)));
        }
        Ok(Self { client: Client::new(reached(address).await?), shared })
    }

    /// Waits until all run in this epoch.
    pub(super) async fn running(&self, epoch: u64) -> io::Result<()> {
        let (mut client, wanted) = (self.client.clone(), u64::from(self.shared.nodes) * epoch);
        let runs = async {
            while self.shared.started.load(Ordering::Relaxed) < wanted {
                sleep(Duration::from_millis(2)).await;
            }
            loop {
                let status = client.status().await.map_err(io::Error::other)?;
                if status.epoch > epoch {
                    return Err(io::Error::other("the job was restarted without an order"));
                }
                if status.runs && status.epoch == epoch {
                    return Ok(());
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let outcome = timeout(TIMEOUT, runs).await;
        let started = self.shared.started.load(Ordering::Relaxed);
        let late = |_| {
            let text =
                format!("epoch {epoch} does not run: of {wanted} starts there were {started}");
            io::Error::other(text)
        };
        outcome.map_err(late)?
    }

    /// How long it takes from ordering a restart until the coordinator has all acknowledgements.
    pub(super) async fn restart(&self, epoch: u64) -> io::Result<Duration> {
        let began = Instant::now();
        self.client.clone().restart().await.map_err(io::Error::other)?;
        self.running(epoch).await?;
        Ok(began.elapsed())
    }

    /// Registers one more node periodically, which is answered each time, and says how long each
    /// answer took: its messages wait in the same queue as reports do.
    pub(super) async fn probe(&self, watched: Duration) -> io::Result<Vec<Duration>> {
        let (messages, stream) = channel(4);
        let attended = self.client.clone().attend(ReceiverStream::new(stream)).await;
        let mut orders = attended.map_err(io::Error::other)?;
        let mut node = Node::new(name("probe"));
        let mut taken = Vec::new();
        let began = Instant::now();
        while began.elapsed() < watched {
            let sent = Instant::now();
            messages.send(node.registration()).await.map_err(io::Error::other)?;
            timeout(TIMEOUT, orders.next()).await?.map_err(io::Error::other)?;
            taken.push(sent.elapsed());
            sleep(PACE).await;
        }
        Ok(taken)
    }
}

async fn reached(address: SocketAddr) -> io::Result<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(io::Error::other)?;
    endpoint.tcp_nodelay(true).connect().await.map_err(io::Error::other)
}

/// When within a second a connection's nodes report.
fn offset(number: u32, connections: u32) -> Duration {
    Duration::from_secs(1) * number / connections
}

/// Serves the nodes of one connection for as long as the coordinator does.
async fn attend(
    mut client: Client,
    names: Vec<NodeName>,
    shared: Arc<HerdState>,
    offset: Duration,
) {
    let mut nodes: BTreeMap<NodeName, Node> =
        names.into_iter().map(|name| (name.clone(), Node::new(name))).collect();
    let (messages, stream) = channel(2 * nodes.len() + 4);
    let Ok(mut orders) = client.attend(ReceiverStream::new(stream)).await else { return };
    for node in nodes.values_mut() {
        if messages.send(node.registration()).await.is_err() {
            return;
        }
    }
    sleep(offset).await;
    let mut second = interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            reported = next(&mut orders) => {
                let Some((name, epoch, order)) = reported else { return };
                let Some(node) = nodes.get_mut(&name) else { continue };
                if !node.follow(epoch, order, &messages, &shared).await {
                    return;
                }
            }
            _ = second.tick() => {
                for node in nodes.values_mut() {
                    let report = node.report(shared.nodes);
                    if messages.send(report).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

async fn next(orders: &mut Orders) -> Option<(NodeName, Epoch, Order)> {
    match coordinator_message(orders.next().await.ok()??).ok()? {
        DecodedOrder::Order { node, message } => Some((node, message.epoch, message.order)),
        DecodedOrder::Refused { .. } => None,
    }
}

impl Node {
    fn new(name: NodeName) -> Self {
        Self { name, sequence: 0, activity: AgentActivity::Idle, first_rank: 0 }
    }

    fn message(&mut self, body: FromNodeBody) -> NodeMessage {
        self.sequence += 1;
        let (node, incarnation) = (self.name.clone(), Incarnation::new(1));
        let message = FromNode { node, incarnation, sequence: self.sequence, body };
        encode::node_message(&message, None)
    }

    fn registration(&mut self) -> NodeMessage {
        self.message(FromNodeBody::Register(Registration {
            address: HostAddress::new("127.0.0.1").expect("it has the form of one"),
            workers: WorkersPerNode::new(WORKERS).expect("it is one of those allowed"),
            activity: AgentActivity::Idle,
            known: None,
            planned_since: None,
        }))
    }

    /// Follows commands; returns whether the stream goes on.
    async fn follow(
        &mut self,
        epoch: Epoch,
        order: Order,
        messages: &Sender<NodeMessage>,
        shared: &HerdState,
    ) -> bool {
        let step = match order {
            Order::Prepare { ports, .. } => {
                self.activity = AgentActivity::Preparing(epoch);
                OrderStep::Prepared { port: ports.map(|ports| ports.first) }
            }
            Order::Commit(assignment) => {
                self.activity = AgentActivity::Committed(epoch);
                self.first_rank = assignment.first_rank.0;
                OrderStep::Started
            }
            _ => return true,
        };
        let acknowledgement = Acknowledgement { epoch, step };
        let message = self.message(FromNodeBody::Acknowledge(acknowledgement));
        let sent = messages.send(message).await.is_ok();
        if step == OrderStep::Started {
            shared.started.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    /// How it is: its workers, the progress of each, and some edges to the nodes that follow it.
    fn report(&mut self, nodes: u32) -> NodeMessage {
        let (activity, first) = (self.activity, self.first_rank);
        if activity.running().is_none() {
            let observation = Observation::default();
            return self.message(FromNodeBody::Report(Report {
                activity,
                observation,
                fault: None,
            }));
        }
        let ranks = (first..first + WORKERS).map(Rank);
        let workers = ranks
            .clone()
            .map(|rank| WorkerObservation { rank, state: WorkerState::Running })
            .collect();
        let done = self.sequence;
        let progress = ranks
            .map(|rank| GroupProgress {
                group: GroupId::WORLD,
                rank,
                entered: done,
                finished: done,
                sends_to: Vec::new(),
                receives_from: Vec::new(),
                transferred: done,
            })
            .collect();
        let edges = (1..=EDGES).map(|far| edge(first, far, nodes, done)).collect();
        let observation = Observation { workers, progress, edges, ..Observation::default() };
        self.message(FromNodeBody::Report(Report { activity, observation, fault: None }))
    }
}

/// What a node's worker sends to one of the nodes behind it, with a little noise.
fn edge(first: u32, far: u32, nodes: u32, done: u64) -> EdgeWindow {
    let peer = (first + far * WORKERS) % (nodes * WORKERS);
    let key = EdgeKey {
        group: GroupId::WORLD,
        rank: Rank(first + far % WORKERS),
        peer: Rank(peer),
        direction: Direction::Send,
        bucket: SizeBucket::of(1 << 20),
    };
    let median_ns = 1_000_000 + (u64::from(first) * 31 + done * 7919) % 20_000;
    let window = Window {
        count: 50,
        mean_ns: median_ns,
        median_ns,
        deviation_ns: 10_000,
        high_ns: median_ns + 50_000,
        last_sequence: done * 50,
        late: 0,
        overlapped: 0,
    };
    EdgeWindow { key, window }
}

fn name(text: &str) -> NodeName {
    NodeName::new(text).expect("it has letters, digits and hyphens alone")
}
