//! The streams that agents hold open, which node is reached on which, and what nodes said last of
//! themselves, for people.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use prost::bytes::Bytes;
use telltale_wire::cluster::Payload;
use telltale_wire::cluster::message::CoordinatorMessage;
use tokio::sync::mpsc;
use tonic::Status;

use super::counters::Counters;
use crate::protocol::decode::{AgentMessage, Instance};
use telltale_cluster::coordinator::MAX_NODES;
use telltale_cluster::message::{AgentActivity, FromNode, FromNodeBody};
use telltale_cluster::node::{HostAddress, Incarnation, NodeName};
use telltale_cluster::observation::WorkerObservation;
use telltale_cluster::rank::WorkersPerNode;
use telltale_cluster::time::Moment;
use telltale_cluster::vitals::Vitals;

/// Messages that may wait on a stream whatever it carries.
const LEAST_WAITING: usize = 16;
/// Messages that may wait for each node that a stream carries: more than one restart takes.
const WAITING_PER_NODE: usize = 4;
/// Messages that may wait on one stream in all.
pub(super) const MAX_WAITING: usize = WAITING_PER_NODE * MAX_NODES;

/// Distinguishes streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StreamId(pub(super) u64);

/// The coordinator's end of a stream.
pub(super) type Orders = mpsc::Sender<Result<Payload, Status>>;

/// What a node said last.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    stream: StreamId,
    /// How it registered last: in which life, and by what that is known again.
    introduced: Option<(Incarnation, Option<Instance>)>,
    pub(super) heard: Moment,
    pub(super) activity: AgentActivity,
    pub(super) registered: Option<(HostAddress, WorkersPerNode)>,
    pub(super) states: Vec<WorkerObservation>,
    pub(super) vitals: Option<Vitals>,
}

#[derive(Debug)]
struct AgentStream {
    orders: Orders,
    nodes: usize,
    /// The node that came last.
    speaker: Option<NodeName>,
}

/// All streams and nodes.
#[derive(Debug)]
pub(super) struct Roster {
    streams: HashMap<StreamId, AgentStream>,
    nodes: HashMap<NodeName, Facts>,
    counters: Arc<Counters>,
}

impl Roster {
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self { streams: HashMap::new(), nodes: HashMap::new(), counters }
    }

    pub(super) fn open(&mut self, stream: StreamId, orders: Orders) {
        self.streams.insert(stream, AgentStream { orders, nodes: 0, speaker: None });
    }

    /// Ends a stream. Returns the node whose it was, where it was of one alone and that has no other.
    pub(super) fn close(&mut self, stream: StreamId) -> Option<NodeName> {
        let closed = self.streams.remove(&stream)?;
        let speaker = closed.speaker.filter(|_| closed.nodes == 1)?;
        let is_its = self.nodes.get(&speaker).is_some_and(|facts| facts.stream == stream);
        is_its.then_some(speaker)
    }

    /// How many streams are open.
    pub(super) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Ends all streams with this refusal, and forgets all nodes.
    pub(super) fn end(&mut self, refusal: &Status) {
        for (_, stream) in self.streams.drain() {
            // A stream that is full ends without a reason.
            let _ = stream.orders.try_send(Err(refusal.clone()));
        }
        self.nodes.clear();
    }

    /// Whether a message is taken as the node's that it names: not, while that node is heard on
    /// another stream, unless it registers with the number by which it registered there. An agent that was
    /// restarted has lost its former stream by then.
    pub(super) fn is_own(
        &self,
        now: Moment,
        stream: StreamId,
        word: &AgentMessage,
        keep_alive: Duration,
    ) -> bool {
        let Some(facts) = self.nodes.get(&word.message.node) else { return true };
        let Some(introduced) = facts.introduced else { return true };
        let attended = facts.stream != stream
            && self.streams.contains_key(&facts.stream)
            && now.since(facts.heard) < keep_alive;
        let registers = matches!(word.message.body, FromNodeBody::Register(_));
        !attended || (registers && introduced == (word.message.incarnation, word.instance))
    }

    /// Notes what a node says, and that this stream reaches it from now on. Returns whether there was
    /// a place for it.
    pub(super) fn note(&mut self, now: Moment, stream: StreamId, word: &mut AgentMessage) -> bool {
        let AgentMessage { message, vitals, instance, .. } = word;
        let instance = *instance;
        if let Some(facts) = self.nodes.get_mut(&message.node) {
            if facts.stream != stream {
                let former = std::mem::replace(&mut facts.stream, stream);
                moved(&mut self.streams, Some(former), stream, &message.node);
            }
            facts.take(now, message, vitals, instance);
            return true;
        }
        if self.nodes.len() >= MAX_NODES {
            return false;
        }
        let mut facts = Facts {
            stream,
            introduced: None,
            heard: now,
            activity: AgentActivity::Idle,
            registered: None,
            states: Vec::new(),
            vitals: None,
        };
        facts.take(now, message, vitals, instance);
        moved(&mut self.streams, None, stream, &message.node);
        self.nodes.insert(message.node.clone(), facts);
        true
    }

    /// Tells a stream why a message that came on it is not taken.
    pub(super) fn refuse(&self, stream: StreamId, refusal: &CoordinatorMessage) {
        if let Some(stream) = self.streams.get(&stream) {
            // In a full queue the agent misses the reason, and the count is there all the same.
            stream.send(refusal);
        }
    }

    /// Tells a node why its latest message is not taken, on the stream that it came on.
    pub(super) fn refuse_node(&self, node: &NodeName, refusal: &CoordinatorMessage) {
        if let Some(facts) = self.nodes.get(node) {
            self.refuse(facts.stream, refusal);
        }
    }

    /// What a node said last.
    pub(super) fn facts(&self, node: &NodeName) -> Option<&Facts> {
        self.nodes.get(node)
    }

    /// Sends a message to a node, if there is a way to it. What finds none is counted, and sent again
    /// by its sender.
    pub(super) fn send(&self, node: &NodeName, message: &CoordinatorMessage) {
        let facts = self.nodes.get(node);
        let stream = facts.and_then(|facts| self.streams.get(&facts.stream));
        let sent = stream.is_some_and(|stream| stream.send(message));
        let counted = if sent { &self.counters.orders } else { &self.counters.lost_orders };
        counted.add(1);
    }

    /// Forgets nodes that are unknown and that have no stream any more.
    pub(super) fn prune(&mut self, known: &BTreeSet<&NodeName>) {
        let streams = &self.streams;
        self.nodes
            .retain(|node, facts| streams.contains_key(&facts.stream) || known.contains(node));
    }

    /// The addresses of nodes that have registered.
    pub(super) fn addresses(&self) -> BTreeMap<&NodeName, &HostAddress> {
        let registered = self.nodes.iter();
        registered.filter_map(|(node, facts)| Some((node, &facts.registered.as_ref()?.0))).collect()
    }
}

fn moved(
    streams: &mut HashMap<StreamId, AgentStream>,
    former: Option<StreamId>,
    stream: StreamId,
    node: &NodeName,
) {
    if let Some(left) = former.and_then(|former| streams.get_mut(&former)) {
        left.nodes -= 1;
    }
    if let Some(taken) = streams.get_mut(&stream) {
        taken.nodes += 1;
        taken.speaker = Some(node.clone());
    }
}

impl AgentStream {
    fn send(&self, message: &CoordinatorMessage) -> bool {
        let waiting = self.orders.max_capacity() - self.orders.capacity();
        if waiting >= LEAST_WAITING + WAITING_PER_NODE * self.nodes {
            return false;
        }
        self.orders.try_send(Ok(payload(message))).is_ok()
    }
}

impl Facts {
    fn take(
        &mut self,
        now: Moment,
        message: &FromNode,
        vitals: &mut Option<Vitals>,
        instance: Option<Instance>,
    ) {
        self.heard = now;
        match &message.body {
            FromNodeBody::Register(one) => {
                self.introduced = Some((message.incarnation, instance));
                self.registered = Some((one.address.clone(), one.workers));
                self.activity = one.activity;
            }
            FromNodeBody::Report(report) => {
                self.activity = report.activity;
                self.states.clone_from(&report.observation.workers);
                if let Some(vitals) = vitals.take() {
                    self.vitals = Some(vitals);
                }
            }
            FromNodeBody::Acknowledge(_) | FromNodeBody::Examined | FromNodeBody::Leave => {}
        }
    }
}

/// A message as the transport takes it.
pub(super) fn payload(message: &CoordinatorMessage) -> Payload {
    Payload { shared: Bytes::new(), own: message.encode_to_vec() }
}
