//! A job as a detector gets it, in lines of JSON: `docs/straggler-suite.md` has the form.

use std::io::{self, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use telltale_cluster::observation::Traffic;
use telltale_cluster::verdict::{Side, Suspect};

use super::case::Case;
use super::job::Steps;
use super::judging::NamedSuspects;
use super::second::{Second, address, node_at};
use crate::faults::machine::{SimulatedFault, name};
use crate::faults::week::Workload as _;

/// The first line: what job it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct JobLine {
    pub(super) job: String,
    /// Its nodes in the order of their ranks.
    pub(super) nodes: Vec<String>,
    pub(super) workers_per_node: u32,
}

/// Every other line: what one node hears and sees in a second.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Heard {
    /// When, in seconds of the job.
    pub(super) at: f64,
    pub(super) node: String,
    pub(super) sent_us: Option<i64>,
    pub(super) withheld: Option<f64>,
    pub(super) records: Vec<Box<RawValue>>,
    #[serde(default)]
    pub(super) tcp: Vec<Carried>,
}

/// What connections to one other node carried.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Carried {
    to: String,
    bytes: u64,
    busy_us: u64,
    elapsed_us: u64,
    delivery_rate: u64,
}

/// What a detector answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DetectorVerdict {
    /// When, in seconds of the job.
    pub(super) at: f64,
    /// Who is slow; several where it is not known which of them.
    suspects: Vec<Suspected>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
}

/// A suspect.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Suspected {
    Node { node: String },
    OneWay { from: String, to: String },
    BothWays { between: [String; 2] },
    Sender { sends: String },
    Receiver { receives: String },
}

/// A fault of a job, and whether it must be named.
#[derive(Debug, Serialize)]
struct Truth {
    #[serde(flatten)]
    fault: Suspected,
    times_as_slow: f64,
    from_second: u64,
    comes_and_goes: bool,
    /// Which part of a step it costs.
    cost: f64,
    must_be_named: bool,
}

/// Writes a case as a detector gets it.
///
/// # Errors
/// When it cannot be written.
pub fn write(case: &Case, to: &mut impl Write) -> io::Result<()> {
    let ranks = case.traits.shape.ranks();
    let nodes = (0..ranks).map(|rank| name(rank).to_string()).collect();
    line(to, &JobLine { job: case.to_string(), nodes, workers_per_node: 1 })?;
    let mut job = Steps::new(case.traits, false, case.seed);
    for second in 0..case.time().as_secs() {
        let slow = case.slow.iter().filter(|one| one.is_now(Duration::from_secs(second)));
        job.break_down(&slow.map(|one| (one.fault, one.ratio)).collect::<Vec<_>>());
        job.go_on(10 * (second + 1));
        for rank in 0..ranks {
            let heard = Heard::new((second + 1) as f64, name(rank).to_string(), job.second(rank));
            line(to, &heard)?;
        }
    }
    Ok(())
}

/// Writes what is wrong with a case, a fault in a line.
///
/// # Errors
/// When it cannot be written.
pub fn write_truth(case: &Case, to: &mut impl Write) -> io::Result<()> {
    case.faults().iter().try_for_each(|one| {
        let fault = Suspected::of(&one.slow.fault.suspect());
        line(
            to,
            &Truth {
                fault,
                times_as_slow: one.slow.ratio,
                from_second: one.slow.from.as_secs(),
                comes_and_goes: one.slow.turns.is_some(),
                cost: one.cost,
                must_be_named: one.is_due,
            },
        )
    })
}

/// Writes one line.
pub(super) fn line(to: &mut impl Write, one: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, one)?;
    to.write_all(b"\n")
}

// === impl Heard ===

impl Heard {
    pub(super) fn new(at: f64, node: String, second: Second) -> Self {
        let Second { records, sent_us, withheld, traffic } = second;
        let raw = |record| RawValue::from_string(record).expect("records are JSON");
        let records = records.into_iter().map(raw).collect();
        let tcp = traffic.iter().filter_map(Carried::of).collect();
        Self { at, node, sent_us, withheld, records, tcp }
    }

    /// What the node of this number hears, with the numbers of the others.
    pub(super) fn second(&self, node: u32, number: impl Fn(&str) -> Option<u32>) -> Second {
        let traffic = self.tcp.iter().filter_map(|one| one.traffic(node, number(&one.to)?));
        Second {
            records: self.records.iter().map(|record| record.get().to_owned()).collect(),
            sent_us: self.sent_us,
            withheld: self.withheld,
            traffic: traffic.collect(),
        }
    }
}

impl Carried {
    fn of(traffic: &Traffic) -> Option<Self> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Some(Self {
            to: name(node_at(traffic.remote)?).to_string(),
            bytes: traffic.bytes,
            busy_us: micros(traffic.busy),
            elapsed_us: micros(traffic.elapsed),
            delivery_rate: traffic.delivery_rate,
        })
    }

    fn traffic(&self, from: u32, to: u32) -> Option<Traffic> {
        Some(Traffic {
            local: address(from),
            remote: address(to),
            bytes: self.bytes,
            busy: Duration::from_micros(self.busy_us),
            delivery_rate: self.delivery_rate,
            elapsed: Duration::from_micros(self.elapsed_us),
        })
    }
}

// === impl DetectorVerdict ===

impl DetectorVerdict {
    pub(super) fn new(at: f64, suspects: &[Suspect], confidence: f64) -> Self {
        let suspects = suspects.iter().map(Suspected::of).collect();
        Self { at, suspects, confidence: Some(confidence) }
    }

    /// What it says of a job of so many nodes; nothing where it names one that is not there.
    pub(super) fn named(&self, nodes: u32) -> Option<NamedSuspects> {
        let suspects: Option<Vec<Suspect>> =
            self.suspects.iter().map(|one| one.suspect(nodes)).collect();
        let suspects = suspects.filter(|all| !all.is_empty())?;
        Some(NamedSuspects { at_seconds: self.at, suspects, confidence: self.confidence })
    }
}

// === impl Suspected ===

impl Suspected {
    fn of(suspect: &Suspect) -> Self {
        match suspect {
            Suspect::Node(node) => Self::Node { node: node.to_string() },
            Suspect::Side { node, side: Side::Sender } => Self::Sender { sends: node.to_string() },
            Suspect::Side { node, side: Side::Receiver } => {
                Self::Receiver { receives: node.to_string() }
            }
            Suspect::Link { from, to, both_ways } => {
                let (from, to) = (from.to_string(), to.to_string());
                match both_ways {
                    true => Self::BothWays { between: [from, to] },
                    false => Self::OneWay { from, to },
                }
            }
        }
    }

    fn suspect(&self, nodes: u32) -> Option<Suspect> {
        let number = |node: &str| (0..nodes).find(|number| name(*number).as_str() == node);
        let fault = match self {
            Self::Node { node } => SimulatedFault::Node(number(node)?),
            Self::OneWay { from, to } => SimulatedFault::OneWay(number(from)?, number(to)?),
            Self::BothWays { between: [one, other] } => {
                let (one, other) = (number(one)?, number(other)?);
                SimulatedFault::BothWays(one.min(other), one.max(other))
            }
            Self::Sender { sends } => SimulatedFault::Sender(number(sends)?),
            Self::Receiver { receives } => SimulatedFault::Receiver(number(receives)?),
        };
        Some(fault.suspect())
    }
}
