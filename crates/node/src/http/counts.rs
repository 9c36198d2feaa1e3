//! What the server counts of itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::samples::{Dropped, HttpMetrics};

/// Counters of all connections and requests.
#[derive(Debug, Default)]
pub(super) struct HttpCounts {
    pub(super) scrapes: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) refused: [AtomicU64; CloseReason::ALL.len()],
    rest: Mutex<Rest>,
}

#[derive(Debug, Default)]
struct Rest {
    /// Status codes are literals of this crate, of which there are few.
    requests: BTreeMap<u16, u64>,
    text: Option<Duration>,
    dropped: Dropped,
}

/// Why a connection was closed before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// There were too many, and none that did nothing.
    TooMany,
    /// It did nothing, and another one needed its place.
    MadeRoom,
    /// Its client sent or took nothing for too long.
    Slow,
    /// What came was not HTTP, or too long.
    Malformed,
}

impl CloseReason {
    const ALL: [(Self, &'static str); 4] = [
        (Self::TooMany, "too_many"),
        (Self::MadeRoom, "made_room"),
        (Self::Slow, "slow"),
        (Self::Malformed, "malformed"),
    ];
}

impl HttpCounts {
    pub(super) fn refuse(&self, why: CloseReason) {
        if let Some(place) = CloseReason::ALL.iter().position(|(other, _)| *other == why) {
            self.refused[place].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn answered(&self, status: u16) {
        *self.rest().requests.entry(status).or_default() += 1;
    }

    pub(super) fn made_text(&self, took: Duration, dropped: Dropped) {
        let mut rest = self.rest();
        rest.text = Some(took);
        rest.dropped.add(dropped);
    }

    pub(super) fn metrics(&self) -> HttpMetrics {
        let rest = self.rest();
        let refused = CloseReason::ALL.iter().zip(&self.refused);
        HttpMetrics {
            scrapes: self.scrapes.load(Ordering::Relaxed),
            text_seconds: rest.text.map(|took| took.as_secs_f64()),
            dropped: rest.dropped,
            requests: rest.requests.iter().map(|(code, count)| (*code, *count)).collect(),
            connections: self.connections.load(Ordering::Relaxed),
            refused: refused
                .map(|((_, name), count)| (*name, count.load(Ordering::Relaxed)))
                .collect(),
        }
    }

    fn rest(&self) -> std::sync::MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
