//! The rules that tie records together, kept once for reader and writer.
//!
//! It knows which ids are live and what everything adds up to. It must not know bytes or files.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::Violation;
use crate::limits::{MAX_ALLOCATION_BYTES, MAX_DURATION_NS, MAX_LIVE_ALLOCATIONS, MAX_RECORDS};
use crate::summary::TraceSummary;

/// State of a trace after some of its records. A refused record leaves it as it was.
#[derive(Default)]
pub(crate) struct Accounting {
    /// Bytes of the allocation with this id; 0 while the id is free (no allocation has 0 bytes).
    sizes: Vec<u64>,
    /// Ids below `sizes.len()` that are not live, lowest first.
    reusable: BinaryHeap<Reverse<u32>>,
    totals: TraceSummary,
}

impl Accounting {
    /// Accounts an allocation and returns the id it gets.
    pub(crate) fn allocate(
        &mut self,
        since_previous_ns: u64,
        thread: u16,
        size_bytes: u64,
    ) -> Result<u32, Violation> {
        self.check(since_previous_ns, thread)?;
        if size_bytes == 0 || size_bytes > MAX_ALLOCATION_BYTES {
            return Err(Violation::Size { size_bytes });
        }
        if self.totals.live_allocations_at_end == MAX_LIVE_ALLOCATIONS {
            return Err(Violation::TooManyLive);
        }
        let id = self.take_id(size_bytes);
        self.advance(since_previous_ns, thread);
        let totals = &mut self.totals;
        totals.allocations += 1;
        totals.allocated_bytes = totals.allocated_bytes.saturating_add(size_bytes);
        totals.live_bytes_at_end += size_bytes;
        totals.live_allocations_at_end += 1;
        totals.peak_live_bytes = totals.peak_live_bytes.max(totals.live_bytes_at_end);
        totals.peak_live_allocations =
            totals.peak_live_allocations.max(totals.live_allocations_at_end);
        Ok(id)
    }

    /// Accounts a free.
    pub(crate) fn free(
        &mut self,
        since_previous_ns: u64,
        thread: u16,
        id: u32,
    ) -> Result<(), Violation> {
        self.check(since_previous_ns, thread)?;
        let size = usize::try_from(id).ok().and_then(|index| self.sizes.get_mut(index));
        let size_bytes = match size {
            Some(size) if *size != 0 => std::mem::take(size),
            _ => return Err(Violation::NotLive { id }),
        };
        self.reusable.push(Reverse(id));
        self.advance(since_previous_ns, thread);
        self.totals.frees += 1;
        self.totals.live_bytes_at_end -= size_bytes;
        self.totals.live_allocations_at_end -= 1;
        Ok(())
    }

    /// What the records so far add up to.
    pub(crate) fn totals(&self) -> &TraceSummary {
        &self.totals
    }

    fn check(&self, since_previous_ns: u64, thread: u16) -> Result<(), Violation> {
        let totals = &self.totals;
        if totals.records == MAX_RECORDS {
            return Err(Violation::TooManyRecords);
        }
        if totals.records == 0 && since_previous_ns != 0 {
            return Err(Violation::LateStart { since_previous_ns });
        }
        if since_previous_ns > MAX_DURATION_NS - totals.duration_ns {
            return Err(Violation::TooLong);
        }
        if u32::from(thread) > totals.threads {
            return Err(Violation::ThreadSkipped { thread, known: totals.threads });
        }
        Ok(())
    }

    fn advance(&mut self, since_previous_ns: u64, thread: u16) {
        self.totals.records += 1;
        self.totals.duration_ns += since_previous_ns;
        self.totals.threads = self.totals.threads.max(u32::from(thread) + 1);
    }

    fn take_id(&mut self, size_bytes: u64) -> u32 {
        if let Some(Reverse(id)) = self.reusable.pop() {
            let index = usize::try_from(id).expect("ids index a Vec, so they fit usize");
            assert_eq!(self.sizes[index], 0, "a reusable id is not live");
            self.sizes[index] = size_bytes;
            return id;
        }
        let id = u32::try_from(self.sizes.len()).expect("live allocations are bounded below 2^32");
        self.sizes.push(size_bytes);
        id
    }
}
