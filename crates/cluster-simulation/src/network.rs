//! What becomes of a message between two machines: lost, late, twice, overtaken.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::random::Random;

/// A machine of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NetworkMachine {
    /// A node, by its index.
    Host(usize),
    /// A coordinator, by its index.
    Replica(usize),
    /// The store.
    Store,
}

/// The ways between all machines.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    random: Random,
    /// Ways that are cut, in one direction each, and for which trouble.
    cut: BTreeSet<(NetworkMachine, NetworkMachine, u64)>,
    /// How likely a message is lost.
    pub(crate) loss: f64,
    /// How likely it comes twice.
    pub(crate) duplication: f64,
    /// How likely it is held up for up to [`LONGEST_DELAY`].
    pub(crate) delay: f64,
}

/// The longest that a message is on its way.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(3);

impl Network {
    /// A network in order.
    #[must_use]
    pub(crate) const fn new(random: Random) -> Self {
        Self { random, cut: BTreeSet::new(), loss: 0.0, duplication: 0.0, delay: 0.0 }
    }

    /// When the copies of one message arrive, counted from its sending; none, if it is lost.
    pub(crate) fn arrivals(&mut self, from: NetworkMachine, to: NetworkMachine) -> Vec<Duration> {
        let mut troubles = self.cut.range((from, to, 0)..=(from, to, u64::MAX));
        if troubles.next().is_some() || self.random.happens(self.loss) {
            return Vec::new();
        }
        let copies = 1 + usize::from(self.random.happens(self.duplication));
        (0..copies).map(|_| self.travel()).collect()
    }

    fn travel(&mut self) -> Duration {
        let longest =
            if self.random.happens(self.delay) { LONGEST_DELAY } else { Duration::from_millis(5) };
        self.random.duration(Duration::from_micros(50), longest)
    }

    /// Cuts the way from one machine to another, not the way back, until `trouble` is mended.
    pub(crate) fn cut(&mut self, from: NetworkMachine, to: NetworkMachine, trouble: u64) {
        self.cut.insert((from, to, trouble));
    }

    /// Mends what a trouble has cut.
    pub(crate) fn mend(&mut self, trouble: u64) {
        self.cut.retain(|(_, _, cut_by)| *cut_by != trouble);
    }

    /// Puts everything in order.
    pub(crate) fn heal(&mut self) {
        self.cut.clear();
        self.loss = 0.0;
        self.duplication = 0.0;
        self.delay = 0.0;
    }
}
