//! What was found: the kind of fault, who is suspected, how sure that is, and the evidence.
//!
//! A verdict is reported as long as its evidence lasts. What is done about it is decided elsewhere.

use std::fmt;
use std::time::Duration;

use crate::group::GroupId;
use crate::node::NodeName;
use crate::observation::WorkerEnd;
use crate::rank::Rank;
use crate::time::Moment;

/// Values that one verdict holds; more are left out, strongest first.
pub const MAX_EVIDENCE: usize = telltale_wire::limits::cluster::MAX_EVIDENCE;
/// Suspects that one ambiguous verdict names; more are left out.
pub const MAX_SUSPECTS: usize = telltale_wire::limits::cluster::MAX_SUSPECTS;

/// The kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VerdictKind {
    /// A worker failed, and its failure is not an echo of another's.
    Crash,
    /// A node has not reported for longer than the keep-alive allows.
    NodeSilent,
    /// Everybody entered a collective, and it does not end.
    CommunicationHang,
    /// A rank does not enter a collective in which others wait.
    NonCommunicationHang,
    /// All that a node sends and receives is slow, or everybody waits for it.
    SlowNode,
    /// What passes between two nodes, or leaves or reaches one node, is slow.
    SlowLink,
}

impl VerdictKind {
    /// Whether the job stands still by it.
    #[must_use]
    pub const fn is_hang(self) -> bool {
        matches!(self, Self::CommunicationHang | Self::NonCommunicationHang)
    }
}

/// Which half of a node's connection to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// All that it sends.
    Sender,
    /// All that it receives.
    Receiver,
}

/// Who or what may be at fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suspect {
    /// A node.
    Node(NodeName),
    /// One half of a node's connection to all others.
    Side {
        /// The node.
        node: NodeName,
        /// Which half.
        side: Side,
    },
    /// What lies between two nodes.
    Link {
        /// The sender.
        from: NodeName,
        /// The receiver.
        to: NodeName,
        /// Whether the way back is meant too; `from` is then the smaller name.
        both_ways: bool,
    },
}

impl Suspect {
    /// The nodes that it touches.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeName> {
        let (first, second) = match self {
            Self::Node(node) | Self::Side { node, .. } => (node, None),
            Self::Link { from, to, .. } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }
}

impl fmt::Display for Suspect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => write!(formatter, "node {node}"),
            Self::Side { node, side: Side::Sender } => write!(formatter, "all that {node} sends"),
            Self::Side { node, side: Side::Receiver } => {
                write!(formatter, "all that {node} receives")
            }
            Self::Link { from, to, both_ways: true } => {
                write!(formatter, "link between {from} and {to}")
            }
            Self::Link { from, to, both_ways: false } => {
                write!(formatter, "link from {from} to {to}")
            }
        }
    }
}

/// Who is suspected, and whether the data can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspects {
    /// This one.
    One(Suspect),
    /// At least one of these, and the data cannot tell which. No node is evicted for this. Only one
    /// is listed when a search was cut short before it could be sure.
    Ambiguous(Vec<Suspect>),
}

impl Suspects {
    /// All that are suspected.
    #[must_use]
    pub fn all(&self) -> &[Suspect] {
        match self {
            Self::One(suspect) => std::slice::from_ref(suspect),
            Self::Ambiguous(suspects) => suspects,
        }
    }

    /// The one node that is suspected, if it is one node.
    #[must_use]
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::One(Suspect::Node(node)) => Some(node),
            _ => None,
        }
    }
}

/// One value that a person can check.
#[derive(Debug, Clone, PartialEq)]
pub enum Evidence {
    /// No report for this long.
    Silence {
        /// How long.
        silent: Duration,
        /// How long is allowed.
        allowed: Duration,
    },
    /// A worker ended.
    Exit {
        /// Which.
        rank: Rank,
        /// How.
        end: WorkerEnd,
        /// How long after the first failure of the incident.
        after: Duration,
    },
    /// Workers elsewhere failed because of it.
    Echoes {
        /// How many.
        workers: u32,
    },
    /// A worker has not entered a collective in which others wait.
    Behind {
        /// The group.
        group: GroupId,
        /// The worker.
        rank: Rank,
        /// The last collective that it entered.
        entered: u64,
        /// The collective in which others wait.
        awaited: u64,
        /// How long nothing has moved.
        stalled: Duration,
    },
    /// A worker is in a collective that does not end.
    Inside {
        /// The group.
        group: GroupId,
        /// The worker.
        rank: Rank,
        /// The collective.
        sequence: u64,
        /// How long nothing has moved.
        stalled: Duration,
    },
    /// What one rank sends to another does not arrive, though both have begun the transfer.
    Stuck {
        /// The group.
        group: GroupId,
        /// The sender.
        from: Rank,
        /// The receiver.
        to: Rank,
        /// How long nothing has moved.
        stalled: Duration,
    },
    /// The system says that the worker's process is stopped.
    ProcessStopped {
        /// The worker.
        rank: Rank,
    },
    /// What passes from one node to another takes longer than it used to.
    Slower {
        /// The sender.
        from: NodeName,
        /// The receiver.
        to: NodeName,
        /// The usual latency, in nanoseconds.
        usual_ns: u64,
        /// The latency now, in nanoseconds.
        now_ns: u64,
    },
    /// How many of the suspect's edges agree.
    Agreement {
        /// Edges that are slow.
        slow: u32,
        /// Edges that report.
        observed: u32,
    },
    /// So many slow edges were measured while their ranks waited for others too, so that each may be
    /// slow by another one's fault.
    HeldUp {
        /// How many.
        connections: u32,
    },
    /// How many explanations are equally small.
    Explanations {
        /// How many; at least this many where the search was cut short.
        count: u32,
        /// Whether the search was cut short.
        cut_short: bool,
    },
    /// Everybody waits longer in collectives than usual, except the suspect.
    WaitsLeast {
        /// The group.
        group: GroupId,
        /// How long the suspect is in a collective, in nanoseconds.
        suspect_ns: u64,
        /// The median of the others.
        others_ns: u64,
        /// The median of the others as it used to be.
        usual_ns: u64,
    },
    /// A rank computes, or a link transfers, longer than others that do the same work.
    SlowSteps(SlowSteps),
    /// A link carries less than like ones.
    Bandwidth(Bandwidth),
    /// The average of a node's latencies against all nodes' (the rule mean + 2σ).
    Outlier {
        /// The node's average, in nanoseconds.
        average_ns: u64,
        /// The bound, in nanoseconds.
        bound_ns: u64,
    },
}

/// A rank computes, or a link transfers, longer than others that do the same work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowSteps {
    /// The rank; of a link, the one that sends.
    pub rank: Rank,
    /// Of a link, the rank that receives.
    pub peer: Option<Rank>,
    /// How many times as long as the others.
    pub ratio: f64,
    /// What a step would take less without that, in nanoseconds.
    pub cost_ns: u64,
    /// What a step takes, in nanoseconds; of a rank, once those that cost more take what is usual.
    pub step_ns: u64,
    /// In how many of the latest steps it was slow.
    pub slow: u32,
    /// Of how many.
    pub observed: u32,
    /// Of a rank, which part of the time it wanted a processor and had none.
    pub withheld: f64,
}

/// A link carries less than like ones while there is something to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Bandwidth {
    /// The node that sends.
    pub from: NodeName,
    /// The node that receives.
    pub to: NodeName,
    /// Bytes a second while there was something to send and the receiver had room for it.
    pub bytes_per_second: f64,
    /// The same of links that carry about as much in all: the one in the middle.
    pub usual_bytes_per_second: f64,
    /// Which part of the time it was busy for longer than such a link would have been.
    pub lost: f64,
    /// In how many of the latest reports it was slow.
    pub slow: u32,
    /// Of how many.
    pub observed: u32,
}

impl Bandwidth {
    /// Laplace's rule of succession: how probable it is that it is slow in the next report too.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        (f64::from(self.slow) + 1.0) / (f64::from(self.observed) + 2.0)
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The kind of fault. Where suspects are of several kinds, [`VerdictKind::SlowNode`] if one is a
    /// node.
    pub kind: VerdictKind,
    /// Who is suspected.
    pub suspects: Suspects,
    /// From 0 to 1: the share of what was observed about the suspects that agrees, divided by the
    /// number of equally good explanations. A crash that is distinguished from its echoes only by time has
    /// 0.7. It orders verdicts; it is no probability of being right.
    pub confidence: f64,
    /// The evidence, strongest first; at most [`MAX_EVIDENCE`].
    pub evidence: Vec<Evidence>,
    /// When it was first seen.
    pub first_seen: Moment,
    /// In how many windows in a row it was seen.
    pub windows: u32,
}
