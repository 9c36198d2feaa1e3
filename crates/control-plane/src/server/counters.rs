//! What the coordinator's program has counted since it began: what came, what was refused and why,
//! what was sent and what was dropped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use telltale_wire::cluster::decode::MessageError;

use crate::protocol::ProtocolError;

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a connection, a call or a message was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalReason {
    /// Too many connections.
    Crowded,
    /// The TLS handshake failed: no certificate, an expired one, one of another authority.
    Handshake,
    /// What came on a connection is not what its port speaks: no HTTP/2 for gRPC, no HTTP/1.1 else.
    Garbage,
    /// Frames that ask for nothing, and no end of them.
    Flood,
    /// Another user of this machine, where no token proves who may call.
    Stranger,
    /// A call without the token, or with another.
    Token,
    /// This coordinator does not lead.
    NotLeading,
    /// A message with too many bytes, or too many parts.
    TooLarge,
    /// Bytes that are no message.
    Malformed,
    /// A message with a value that cannot be.
    Value,
    /// A message of a node that there was no place for.
    NoPlace,
    /// A message of a node that the caller's certificate does not name.
    Name,
    /// A message of a node that is heard on another connection.
    Claimed,
    /// A message of a node whose agent was started for another job.
    Job,
}

impl RefusalReason {
    /// All of them, with their names in the metrics.
    pub(super) const ALL: [(Self, &'static str); 14] = [
        (Self::Crowded, "crowded"),
        (Self::Handshake, "handshake"),
        (Self::Garbage, "garbage"),
        (Self::Flood, "flood"),
        (Self::Stranger, "stranger"),
        (Self::Token, "token"),
        (Self::NotLeading, "not_leading"),
        (Self::TooLarge, "too_large"),
        (Self::Malformed, "malformed"),
        (Self::Value, "value"),
        (Self::NoPlace, "no_place"),
        (Self::Name, "name"),
        (Self::Claimed, "claimed"),
        (Self::Job, "job"),
    ];

    /// The reason of a message that is not taken.
    pub(super) const fn of(error: &ProtocolError) -> Self {
        match error {
            ProtocolError::Message(MessageError::TooLong { .. } | MessageError::Limit(_)) => {
                Self::TooLarge
            }
            ProtocolError::Message(MessageError::Malformed(_) | MessageError::Cut) => {
                Self::Malformed
            }
            _ => Self::Value,
        }
    }
}

/// Upper bounds of the buckets of waiting times.
pub(super) const WAIT_BOUNDS_MS: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/// How long reports waited between the socket and the coordinator's decision.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// One more than there are bounds: the last is of those beyond.
    buckets: [Counter; WAIT_BOUNDS_MS.len() + 1],
    total_ns: Counter,
}

impl Waits {
    pub(super) fn note(&self, wait: Duration) {
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        let place = WAIT_BOUNDS_MS.iter().position(|bound| wait_ns <= bound * 1_000_000);
        self.buckets[place.unwrap_or(WAIT_BOUNDS_MS.len())].add(1);
        self.total_ns.add(wait_ns);
    }

    /// How many there are in each bucket, and the sum of all waits.
    pub(super) fn get(&self) -> ([u64; WAIT_BOUNDS_MS.len() + 1], Duration) {
        let counts = std::array::from_fn(|place: usize| self.buckets[place].get());
        (counts, Duration::from_nanos(self.total_ns.get()))
    }
}

/// Everything that is counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections: Counter,
    pub(super) streams: Counter,
    pub(super) messages: Counter,
    pub(super) calls: Counter,
    pub(super) orders: Counter,
    /// Orders that found no way: the stream is gone or full. They are sent again.
    pub(super) lost_orders: Counter,
    /// Reports that detection was too busy for.
    pub(super) unobserved: Counter,
    /// Looks of detection that were left out because the one before was not done.
    pub(super) late_evaluations: Counter,
    pub(super) waits: Waits,
    refused: [Counter; RefusalReason::ALL.len()],
}

impl Counters {
    pub(super) fn refuse(&self, reason: RefusalReason) {
        self.refused(reason).add(1);
    }

    pub(super) fn refused(&self, reason: RefusalReason) -> &Counter {
        let place = RefusalReason::ALL.iter().position(|(one, _)| *one == reason);
        &self.refused[place.expect("every reason is in the list")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_up_to_their_bounds() {
        let waits = Waits::default();
        [0, 1, 2, 3, 5000].into_iter().for_each(|ms| waits.note(Duration::from_millis(ms)));
        let (counts, sum) = waits.get();
        assert_eq!(counts[..4], [2, 1, 1, 0]);
        assert_eq!((counts[9], counts[10], sum), (0, 1, Duration::from_millis(5006)));
    }
}
