//! Nodes without agents: what they say is what the test says.

use telltale_cluster::epoch::Epoch;
use telltale_cluster::message::{
    Acknowledgement, AgentActivity, FromNode, FromNodeBody, Order, OrderStep, Ports, Registration,
    Report, ToNode,
};
use telltale_cluster::node::{HostAddress, Incarnation, NodeName};
use telltale_cluster::observation::{Observation, WorkerObservation, WorkerState};
use telltale_cluster::rank::{Rank, WorkersPerNode};
use telltale_control_plane::protocol::decode::{DecodedOrder, coordinator_message};
use telltale_control_plane::protocol::encode;
use telltale_wire::cluster::message::NodeMessage;
use telltale_wire::cluster::message::node_message::Body;
use telltale_wire::cluster::{CallError, Client, Orders};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::coordinator::running::within;

/// The life of an agent in most tests.
pub(crate) const LIFE: u64 = 1_700_000_000_000;

/// One node on a stream of its own.
pub(crate) struct Node {
    pub(crate) name: NodeName,
    pub(crate) life: u64,
    /// By what it is known again on another stream; 0 for by nothing.
    pub(crate) instance: u64,
    /// The job that it is for, if for a certain one.
    pub(crate) job: &'static str,
    pub(crate) sequence: u64,
    messages: mpsc::Sender<NodeMessage>,
    orders: Orders,
}

impl Node {
    /// A node that has said nothing.
    pub(crate) async fn attend(client: &mut Client, name: &str) -> Self {
        let (messages, stream) = mpsc::channel(64);
        let orders = within("the stream begins", client.attend(ReceiverStream::new(stream)));
        let orders = orders.await.unwrap();
        let name = NodeName::new(name).unwrap();
        Self { name, life: LIFE, instance: 0, job: "", sequence: 0, messages, orders }
    }

    /// A node that is welcomed.
    pub(crate) async fn register(client: &mut Client, name: &str) -> Self {
        let mut node = Self::attend(client, name).await;
        node.say_registration(AgentActivity::Idle).await;
        node.until_order("welcome", |order| *order == Order::Welcome).await;
        node
    }

    pub(crate) async fn say_registration(&mut self, activity: AgentActivity) {
        let address = HostAddress::new("127.0.0.1").unwrap();
        let workers = WorkersPerNode::new(1).unwrap();
        let (known, planned_since) = (None, None);
        let registration = Registration { address, workers, activity, known, planned_since };
        self.say(FromNodeBody::Register(registration)).await;
    }

    pub(crate) async fn say(&mut self, body: FromNodeBody) {
        self.sequence += 1;
        self.say_again(body).await;
    }

    /// Says something with the number of what it said last.
    pub(crate) async fn say_again(&mut self, body: FromNodeBody) {
        let (node, incarnation) = (self.name.clone(), Incarnation::new(self.life));
        let message = FromNode { node, incarnation, sequence: self.sequence, body };
        let mut message = encode::node_message(&message, None);
        if let Some(Body::Registration(registration)) = &mut message.body {
            registration.instance = self.instance;
            registration.job = self.job.to_owned();
        }
        self.send(message).await;
    }

    pub(crate) async fn send(&mut self, message: NodeMessage) {
        self.messages.send(message).await.unwrap();
    }

    pub(crate) async fn acknowledge(&mut self, epoch: Epoch, step: OrderStep) {
        self.say(FromNodeBody::Acknowledge(Acknowledgement { epoch, step })).await;
    }

    pub(crate) async fn report(&mut self, epoch: Epoch, rank: u32, state: WorkerState) {
        let workers = vec![WorkerObservation { rank: Rank(rank), state }];
        let observation = Observation { workers, ..Observation::default() };
        let report = Report { activity: AgentActivity::Committed(epoch), observation, fault: None };
        self.say(FromNodeBody::Report(report)).await;
    }

    /// The next message; the reason, when the stream ends.
    pub(crate) async fn reported(&mut self) -> Result<DecodedOrder, CallError> {
        let next = within("an order comes", self.orders.next()).await?;
        Ok(coordinator_message(next.expect("the stream goes on")).unwrap())
    }

    /// The next order that is as it should be.
    pub(crate) async fn until_order(
        &mut self,
        what: &str,
        is_it: impl Fn(&Order) -> bool,
    ) -> ToNode {
        loop {
            match self.reported().await {
                Ok(DecodedOrder::Order { node, message }) => {
                    assert_eq!(node, self.name, "told what is another's");
                    if is_it(&message.order) {
                        return message;
                    }
                }
                other => panic!("{}, while it waits for {what}: {other:?}", self.name),
            }
        }
    }

    /// The next reason why a message was not taken.
    pub(crate) async fn refusal(&mut self) -> String {
        loop {
            match self.reported().await {
                Ok(DecodedOrder::Refused { reason, .. }) => return reason,
                Ok(DecodedOrder::Order { .. }) => {}
                Err(error) => panic!("{}: {error}", self.name),
            }
        }
    }

    /// Prepares for a new epoch when ordered to.
    pub(crate) async fn prepare(&mut self) {
        let prepare = |order: &Order| matches!(order, Order::Prepare { .. });
        let message = self.until_order("prepare", prepare).await;
        let Order::Prepare { ports, .. } = message.order else { unreachable!("it was asked for") };
        let port = ports.map(|Ports { first, .. }| first);
        self.acknowledge(message.epoch, OrderStep::Prepared { port }).await;
    }

    /// Starts its worker when ordered to; returns the epoch and the worker's rank.
    pub(crate) async fn commit(&mut self) -> (Epoch, u32) {
        let commit = |order: &Order| matches!(order, Order::Commit(_));
        let message = self.until_order("commit", commit).await;
        let Order::Commit(assignment) = message.order else { unreachable!("it was asked for") };
        self.acknowledge(message.epoch, OrderStep::Started).await;
        self.report(message.epoch, assignment.first_rank.0, WorkerState::Running).await;
        (message.epoch, assignment.first_rank.0)
    }
}

/// As many nodes as there are names, all of which run.
pub(crate) async fn job(client: &mut Client, names: &[&str]) -> (Vec<Node>, Epoch) {
    let mut nodes = Vec::new();
    for name in names {
        nodes.push(Node::register(client, name).await);
    }
    let epoch = follow_all(&mut nodes).await;
    (nodes, epoch)
}

/// All follow a new epoch until their workers run.
pub(crate) async fn follow_all(nodes: &mut [Node]) -> Epoch {
    for node in nodes.iter_mut() {
        node.prepare().await;
    }
    let mut epochs = Vec::new();
    for node in nodes.iter_mut() {
        epochs.push(node.commit().await.0);
    }
    epochs[0]
}
