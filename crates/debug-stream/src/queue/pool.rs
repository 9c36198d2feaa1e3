//! Segments that wait to be used again, the last one first because it is warm.

use super::lock::Locked;
use super::segment::{CLASSES, SEGMENT_BYTES, Segment};

/// Idle memory that is kept however little is used.
pub(super) const KEPT_BYTES: usize = 8 * SEGMENT_BYTES;
/// What part of the idle memory above that goes back to the kernel each time the queue runs empty:
/// a burst that comes again finds nearly all of it, because taking a page anew costs more than a
/// copy; a stream that went quiet has none after some hundred reads.
const GIVEN_BACK: usize = 64;

pub(super) struct Pool(Locked<Idle>);

struct Idle {
    by_class: [Vec<Segment>; CLASSES],
    bytes: usize,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self(Locked::new(Idle { by_class: std::array::from_fn(|_| Vec::new()), bytes: 0 }))
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

    /// Gives a part of what is idle back to the kernel. For the consumer's thread.
    pub(super) fn shrink(&self) {
        let excess = self.idle_bytes().saturating_sub(KEPT_BYTES);
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
        Some(segment)
    }
}
