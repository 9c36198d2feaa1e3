//! Segments that wait to be used again: the last one first, because the caches have it, unless two
//! processors use segments up so quickly that just this makes them wait for each other.

use super::lock::Locked;
use super::segment::{CLASSES, SEGMENT_BYTES, Segment};

/// Idle memory that is kept however little is used.
pub(super) const KEPT_BYTES: usize = 8 * SEGMENT_BYTES;
/// How much memory goes round while it is used up quickly. Writing where the consumer's cache has
/// lines makes the producer wait for each of them, and so does reading what the producer's cache has;
/// with so much in between both have let go of them. An event takes a third of the time then
/// (`docs/benchmarks.md`).
pub(super) const ROUND_BYTES: usize = 8 * SEGMENT_BYTES;
/// Memory is used up quickly if a segment lasts no longer than this, two ticks of the coarse clock.
const QUICK_NS: u64 = 8_000_000;
/// How long memory must have been idle before some of it goes back to the kernel: taking a page
/// again costs more than a copy, so a burst that comes again soon shall find its own.
const SHRINK_EVERY_NS: u64 = 50_000_000;
/// What part of the memory that was idle all that time goes back at once.
const GIVEN_BACK: usize = 2;

pub(super) struct Pool(Locked<Idle>);

struct Idle {
    by_class: [Vec<Segment>; CLASSES],
    bytes: usize,
    /// The least that `bytes` was since the last poll.
    least_bytes: usize,
    looked_ns: u64,
    /// When the newest segment of each class was wanted.
    wanted_ns: [u64; CLASSES],
}

impl Pool {
    pub(super) fn new() -> Self {
        Self(Locked::new(Idle {
            by_class: std::array::from_fn(|_| Vec::new()),
            bytes: 0,
            least_bytes: 0,
            looked_ns: 0,
            wanted_ns: [0; CLASSES],
        }))
    }

    /// The segment to use next; none if another one should be mapped for that.
    pub(super) fn take(&self, class: usize, now_ns: u64) -> Option<Segment> {
        let mut idle = self.0.lock();
        let before_ns = std::mem::replace(idle.wanted_ns.get_mut(class)?, now_ns);
        let is_quick = now_ns.saturating_sub(before_ns) < QUICK_NS;
        let last = if is_quick { (ROUND_BYTES / SEGMENT_BYTES) >> class } else { 1 };
        idle.take_last(class, last.max(1))
    }

    /// Any segment that is idle, when there is no memory for another one.
    pub(super) fn take_any(&self, class: usize) -> Option<Segment> {
        self.0.lock().take_last(class, 1)
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
        (0..CLASSES).rev().find_map(|class| idle.take_last(class, 1))
    }
}

impl Idle {
    /// The one that came as the `last`-last, counted from 1.
    fn take_last(&mut self, class: usize, last: usize) -> Option<Segment> {
        let segments = self.by_class.get_mut(class)?;
        let segment = segments.remove(segments.len().checked_sub(last)?);
        self.bytes -= segment.bytes();
        self.least_bytes = self.least_bytes.min(self.bytes);
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: usize = ROUND_BYTES / SEGMENT_BYTES;

    #[test]
    fn segments_go_round_while_they_are_used_up_quickly_and_stay_warm_otherwise() {
        let pool = Pool::new();
        let segments: Vec<_> = (0..=ROUND).map(|_| Segment::map(0).unwrap()).collect();
        let bases: Vec<_> = segments.iter().map(Segment::base).collect();
        let mut segments = segments.into_iter();
        let mut now_ns = QUICK_NS;
        for segment in segments.by_ref().take(ROUND - 1) {
            pool.put(segment);
        }
        let warm = pool.take(0, now_ns).unwrap();
        assert_eq!(warm.base(), bases[ROUND - 2], "there was time since the last");
        pool.put(warm);
        now_ns += QUICK_NS - 1;
        assert!(pool.take(0, now_ns).is_none(), "too few to go round");
        segments.for_each(|segment| pool.put(segment));
        for base in bases.iter().skip(1).chain(&bases[1..]) {
            let segment = pool.take(0, now_ns).unwrap();
            assert_eq!(segment.base(), *base, "the one that was idle for the longest of a round");
            pool.put(segment);
        }
        assert_eq!(pool.take(0, now_ns + QUICK_NS).unwrap().base(), bases[ROUND]);
    }
}
