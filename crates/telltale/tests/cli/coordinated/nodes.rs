//! Nodes of a job, as a coordinator hears them: they follow orders and confirm them.

use std::collections::BTreeMap;
use std::time::Duration;

use telltale_wire::cluster::Client;
use telltale_wire::cluster::message::{
    AcknowledgedStep, Acknowledgement, Activity, ActivityKind, DeviceHealth, EdgeWindow,
    NodeMessage, OperationKind, Operations, Registration, Report, TransferDirection, Vitals,
    Window, Worker, WorkerEnd, WorkerState, coordinator_message::Order, node_message::Body,
    worker_end::Kind,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// How long the rank that is slow computes in each step, how long others do, and what they do together then.
const SLOW_US: u64 = 50_000;
const QUICK_US: u64 = 20_000;
const TOGETHER_US: u64 = 1_000;
/// The rank that is slow, where ranks train.
pub(super) const SLOW_RANK: u32 = 1;

/// The nodes, on threads of their own.
pub(super) struct Nodes {
    kills: BTreeMap<String, mpsc::Sender<()>>,
    _runtime: Runtime,
}

impl Nodes {
    /// They train if `trains`: each reports a training step at a time.
    pub(super) fn attend(coordinator: &str, token: &str, names: &[&str], trains: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let mut kills = BTreeMap::new();
        for name in names {
            let (kill, killed) = mpsc::channel(1);
            kills.insert((*name).to_owned(), kill);
            runtime.spawn(attend(
                format!("http://{coordinator}"),
                token.to_owned(),
                (*name).to_owned(),
                killed,
                trains,
            ));
        }
        Self { kills, _runtime: runtime }
    }

    /// Has a node's worker be killed.
    pub(super) fn kill(&self, node: &str) {
        self.kills[node].try_send(()).unwrap();
    }
}

/// One node.
struct Node {
    name: String,
    sequence: u64,
    epoch: u64,
    /// Its rank while it runs one, and how many there are.
    runs: Option<(u32, u32)>,
    killed: bool,
    trains: bool,
    step: u64,
    to: mpsc::Sender<NodeMessage>,
}

async fn attend(
    address: String,
    token: String,
    name: String,
    mut kill: mpsc::Receiver<()>,
    trains: bool,
) {
    let channel = tonic_channel(address).await;
    let mut client = Client::new(channel).with_token(&token).unwrap();
    let (to, from) = mpsc::channel(64);
    let (sequence, epoch, step) = (0, 0, 0);
    let mut node = Node { name, sequence, epoch, runs: None, killed: false, trains, step, to };
    let address = "127.0.0.1".to_owned();
    let activity = Some(node.activity());
    let registration = Registration { address, workers: 1, activity, ..Registration::default() };
    node.tell(Body::Registration(registration)).await;
    let mut orders = client.attend(ReceiverStream::new(from)).await.unwrap();
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    loop {
        tokio::select! {
            order = orders.next() => match order {
                Ok(Some(message)) => node.obey(message.epoch, message.order.unwrap()).await,
                _ => return,
            },
            Some(()) = kill.recv() => {
                node.killed = true;
                node.report().await;
            }
            _ = ticks.tick() => node.report().await,
        }
    }
}

async fn tonic_channel(address: String) -> tonic::transport::Channel {
    tonic::transport::Endpoint::from_shared(address).unwrap().connect().await.unwrap()
}

impl Node {
    async fn tell(&mut self, body: Body) {
        self.sequence += 1;
        let (node, sequence) = (self.name.clone(), self.sequence);
        let _ =
            self.to.send(NodeMessage { node, incarnation: 1, sequence, body: Some(body) }).await;
    }

    fn activity(&self) -> Activity {
        let kind = match (self.runs, self.epoch) {
            (Some(_), _) => ActivityKind::Committed,
            (None, 0) => ActivityKind::Idle,
            (None, _) => ActivityKind::Preparing,
        };
        Activity { kind: kind.into(), epoch: self.epoch }
    }

    async fn obey(&mut self, epoch: u64, order: Order) {
        let (step, port) = match order {
            Order::Prepare(prepare) => {
                (self.epoch, self.runs, self.killed) = (epoch, None, false);
                (AcknowledgedStep::Prepared, prepare.ports.map(|ports| ports.first))
            }
            Order::Commit(assignment) => {
                self.epoch = epoch;
                self.runs = Some((assignment.first_rank, assignment.world_size));
                (AcknowledgedStep::Started, None)
            }
            Order::Standby(_) | Order::Stop(_) | Order::Evict(_) => {
                (self.epoch, self.runs) = (0, None);
                return;
            }
            _ => return,
        };
        self.tell(Body::Acknowledgement(Acknowledgement { epoch, step: step.into(), port })).await;
    }

    async fn report(&mut self) {
        let activity = Some(self.activity());
        let device = |device: &str, reason: &str| {
            let healthy = reason.is_empty();
            DeviceHealth {
                device: device.to_owned(),
                healthy,
                reason: reason.to_owned(),
                ..DeviceHealth::default()
            }
        };
        let devices = vec![device("0", ""), device("1", "does not answer")];
        let vitals = Some(Vitals { devices, ..Vitals::default() });
        let mut report = Report { activity, vitals, ..Report::default() };
        if let Some((rank, world)) = self.runs {
            let end = WorkerEnd { kind: Some(Kind::Signal(9)) };
            let state = if self.killed { WorkerState::Failed } else { WorkerState::Running };
            let end = self.killed.then_some(end);
            report.workers.push(Worker { rank, state: state.into(), end, ..Default::default() });
            report.edges =
                (0..world).filter(|peer| *peer != rank).map(|peer| edge(rank, peer)).collect();
            if self.trains {
                report.operations = Some(one_step(rank, world, self.step));
                self.step += 1;
            }
        }
        self.tell(Body::Report(report)).await;
    }
}

/// What a rank does in a step: it computes, then all meet.
fn one_step(rank: u32, world: u32, step: u64) -> Operations {
    let own_us = if rank == SLOW_RANK { SLOW_US } else { QUICK_US };
    let start_us = i64::try_from(step * (SLOW_US + TOGETHER_US)).unwrap();
    let kinds = [OperationKind::Compute, OperationKind::AllReduce, OperationKind::StepEnd];
    Operations {
        names: vec!["forward".to_owned()],
        groups: vec![7],
        ranks: vec![rank; 3],
        steps: vec![i64::try_from(step).unwrap(), 0, 0],
        kinds: kinds.map(i32::from).to_vec(),
        subjects: vec![0, world, 0],
        group_places: vec![0; 3],
        size_buckets: vec![0, 20, 0],
        starts_us: vec![start_us, i64::try_from(own_us).unwrap(), 0],
        durations_us: vec![own_us, SLOW_US + TOGETHER_US - own_us, 0],
        before: Some(3 * step),
    }
}

fn edge(rank: u32, peer: u32) -> EdgeWindow {
    let window = Window {
        count: 10,
        mean_ns: 1_000_000,
        median_ns: 1_000_000,
        deviation_ns: 10_000,
        high_ns: 1_100_000,
        last_sequence: 10,
        late: 0,
        overlapped: 0,
    };
    EdgeWindow {
        group: 0,
        rank,
        peer,
        direction: TransferDirection::Send.into(),
        size_bucket: 20,
        window: Some(window),
    }
}
