//! What a stream shares with its publishers and connections, beside the queue.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::event::Fields;
use crate::filter::Filter;
use crate::standby::Standby;

/// What publishers look at besides the queue.
pub(crate) struct StreamShared {
    pub(crate) core: u32,
    pub(crate) filters: AtomicBool,
    pub(crate) filter: RwLock<Option<Filter>>,
    pub(crate) filtered: AtomicU64,
    pub(crate) unsaved: AtomicU64,
    pub(crate) standby: Standby,
}

/// The end of a connection, of which the standby is notified. To be dropped after the reader.
pub(crate) struct ConnectionEnd {
    shared: Arc<StreamShared>,
    process: u32,
    is_standby: bool,
}

// === impl StreamShared ===

impl StreamShared {
    /// Whether there is a filter at all, which spares publishers the lock.
    #[inline(always)]
    pub(crate) fn filters(&self) -> bool {
        self.filters.load(Ordering::Relaxed)
    }

    /// Whether an event is wanted; counts it if not.
    pub(crate) fn wants(&self, event: &Fields<'_>) -> bool {
        // The lock is held for writing only while a filter is exchanged.
        let filter = self.filter.read().unwrap_or_else(PoisonError::into_inner);
        let wanted = filter.as_ref().is_none_or(|filter| filter.wants(event));
        if !wanted {
            self.filtered.fetch_add(1, Ordering::Relaxed);
        }
        wanted
    }
}

// === impl ConnectionEnd ===

impl ConnectionEnd {
    pub(crate) fn new(shared: Arc<StreamShared>, is_standby: bool) -> Self {
        Self { shared, process: std::process::id(), is_standby }
    }
}

impl Drop for ConnectionEnd {
    fn drop(&mut self) {
        // The lock and the eventfd are the parent's in a child.
        if self.process != std::process::id() {
            return;
        }
        if self.is_standby {
            self.shared.standby.give_up();
        } else {
            self.shared.standby.ring();
        }
    }
}
