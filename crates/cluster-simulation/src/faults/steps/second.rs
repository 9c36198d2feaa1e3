//! What a node hears and sees in a second, and what its agent makes of it.

use std::net::IpAddr;
use std::ops::Range;
use std::time::Instant;

use telltale_cluster::epoch::Epoch;
use telltale_cluster::intake::{Intake, Observed};
use telltale_cluster::observation::{Observation, Traffic, Withheld};
use telltale_cluster::rank::Rank;

/// The epoch of every job.
pub(super) const EPOCH: Epoch = Epoch::new(1);

/// What one node hears and sees in a second.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Second {
    /// The records that its ranks post.
    pub(super) records: Vec<String>,
    /// When it is reported, by the node's clock, in microseconds.
    pub(super) sent_us: Option<i64>,
    /// Which part of the time its ranks wanted a processor and had none.
    pub(super) withheld: Option<f64>,
    /// What its connections carried, where it knows.
    pub(super) traffic: Vec<Traffic>,
}

impl Second {
    /// The agent's report of it, by the shipped intake, of a node with these ranks.
    ///
    /// # Panics
    /// When the intake refuses a record.
    pub(super) fn observe(self, ranks: Range<u32>, intake: &mut Intake) -> Observation {
        assert_eq!(self.post(intake), 0, "a record is refused");
        self.seen(ranks, intake)
    }

    /// Posts the records, and says how many are refused: all where the first is none.
    pub(super) fn post(&self, intake: &mut Intake) -> usize {
        if self.records.is_empty() {
            return 0;
        }
        let body = self.records.join("\n");
        let taken = intake.post(body.as_bytes());
        taken.map_or(self.records.len(), |taken| taken.refused + taken.dropped)
    }

    /// The agent's report, of what was posted before.
    pub(super) fn seen(self, ranks: Range<u32>, intake: &mut Intake) -> Observation {
        let mut observation =
            intake.observe(EPOCH, &Observed::default(), Instant::now()).unwrap_or_default();
        observation.sent_us = self.sent_us;
        let withheld = |part| ranks.map(|rank| Withheld::of(Rank(rank), part)).collect();
        observation.withheld = self.withheld.map(withheld).unwrap_or_default();
        observation.traffic = self.traffic;
        observation
    }
}

/// The address of a node.
pub(super) fn address(node: u32) -> IpAddr {
    IpAddr::from([10, 0, (node >> 8) as u8, node as u8])
}

/// Whose address it is.
pub(super) fn node_at(address: IpAddr) -> Option<u32> {
    match address {
        IpAddr::V4(address) => {
            let [_, _, high, low] = address.octets();
            Some(u32::from(high) << 8 | u32::from(low))
        }
        IpAddr::V6(_) => None,
    }
}
