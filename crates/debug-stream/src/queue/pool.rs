//! Segments that wait to be used again, the last one first because it is warm.

use super::lock::Locked;
use super::segment::{CLASSES, SEGMENT_BYTES, Segment};

/// Idle memory that is kept however little is used.
pub(super) const KEPT_BYTES: usize = 8 * SEGMENT_BYTES;
/// How long memory must have been idle before some of it goes back to the kernel: taking a page
/// anew costs more than a copy, so a burst that comes again soon shall find its own.
const SHRINK_EVERY_NS: u64 = 50_000_000;
/// What part of the memory that was idle all that time goes back at once.
const GIVEN_BACK: usize = 2;

pub(super) struct Pool(Locked<Idle>);

struct Idle {
    by_class: [Vec<Segment>; CLASSES],
    bytes: usize,
    /// The least that `bytes` was since the last look.
    least_bytes: usize,
    looked_ns: u64,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self(Locked::new(Idle {
            by_class: std::array::from_fn(|_| Vec::new()),
            bytes: 0,
            least_bytes: 0,
            looked_ns: 0,
        }))
    }

    pub(super) fn take(&self, class: usize) -> Option<Segment> {
        self.0.lock().take(class)
    }

    pub(super) fn put(&self, segment: Segment) {
        let mut idle = self.0.lock();
        idle.bytes += segment.bytes();
        idle.by_class[segment.class()].push(segment);
    }

    pub(super) fn idle_bytes(&self) -> usize {
        self.0.lock().bytes
    }

    /// Gives back to the kernel a part of what was idle for some time. For the consumer's thread,
    /// when the queue is empty.
    pub(super) fn shrink(&self, now_ns: u64) {
        let excess = {
            let mut idle = self.0.lock();
            if now_ns.saturating_sub(idle.looked_ns) < SHRINK_EVERY_NS {
                return;
            }
            idle.looked_ns = now_ns;
            let bytes = idle.bytes;
            std::mem::replace(&mut idle.least_bytes, bytes).saturating_sub(KEPT_BYTES)
        };
        if excess > 0 {
            self.give_back(excess.div_ceil(GIVEN_BACK));
        }
    }

    /// Gives all that is idle back to the kernel.
    pub(super) fn clear(&self) {
        self.give_back(usize::MAX);
    }

    fn give_back(&self, bytes: usize) {
        let mut given = 0;
        while given < bytes {
            // The lock is released before the segment is, whose unmapping takes microseconds.
            let Some(segment) = self.take_largest() else { return };
            given += segment.bytes();
        }
    }

    fn take_largest(&self) -> Option<Segment> {
        let mut idle = self.0.lock();
        (0..CLASSES).rev().find_map(|class| idle.take(class))
    }
}

impl Idle {
    fn take(&mut self, class: usize) -> Option<Segment> {
        let segment = self.by_class.get_mut(class)?.pop()?;
        self.bytes -= segment.bytes();
        self.least_bytes = self.least_bytes.min(self.bytes);
        Some(segment)
    }
}
