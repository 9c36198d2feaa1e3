//! The queue between the thread that finds alerts and their sender. It never waits: where
//! it is full, the oldest notice goes and is counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use telltale_schema::clock::Timestamp;
use tokio::sync::Notify;

use super::{Alert, NotificationMetrics};

/// Notices that may wait.
pub const MAX_NOTICES: usize = 1024;

/// What is sent of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeEvent {
    /// It fires from now on.
    Fired,
    /// It still fires.
    Repeated,
    /// It no longer does.
    Resolved,
}

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Notice {
    /// Grows by one with each notice of this service; one that is sent again has the same.
    pub sequence: u64,
    /// What happened.
    pub event: NoticeEvent,
    /// When, in nanoseconds since 1970.
    pub at: Timestamp,
    /// The alert as it was then.
    pub alert: Alert,
}

/// What waits to be sent, and what became of the rest.
#[derive(Debug, Default)]
pub struct Notices {
    waiting: Mutex<PendingNotices>,
    added: Notify,
    sent: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct PendingNotices {
    queue: VecDeque<Notice>,
    sequence: u64,
}

// === impl Notices ===

impl Notices {
    /// Adds a notice.
    pub(crate) fn push(&self, event: NoticeEvent, at: Timestamp, alert: Alert) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.sequence += 1;
        let sequence = waiting.sequence;
        if waiting.queue.len() >= MAX_NOTICES {
            waiting.queue.pop_front();
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        waiting.queue.push_back(Notice { sequence, event, at, alert });
        drop(waiting);
        self.added.notify_one();
    }

    /// Takes up to `most` notices, the oldest first; waits until there is one.
    pub(crate) async fn take(&self, most: usize) -> Vec<Notice> {
        loop {
            let added = self.added.notified();
            let taken = self.take_waiting(most);
            if !taken.is_empty() {
                return taken;
            }
            added.await;
        }
    }

    fn take_waiting(&self, most: usize) -> Vec<Notice> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.queue.len().min(most);
        waiting.queue.drain(..count).collect()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).queue.is_empty()
    }

    /// Counts notices that the webhook took.
    pub(crate) fn count_sent(&self, notices: &[Notice]) {
        self.sent.fetch_add(count(notices), Ordering::Relaxed);
    }

    /// Counts notices that were given up.
    pub(crate) fn count_failed(&self, notices: &[Notice]) {
        self.failed.fetch_add(count(notices), Ordering::Relaxed);
    }

    /// What became of all of them so far.
    pub(crate) fn metrics(&self) -> NotificationMetrics {
        NotificationMetrics {
            sent: self.sent.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

fn count(notices: &[Notice]) -> u64 {
    u64::try_from(notices.len()).unwrap_or(u64::MAX)
}
