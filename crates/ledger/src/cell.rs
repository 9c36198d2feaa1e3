//! One 64-byte cell of the ledger: its words, how its single writer updates it, and how a copy of
//! whole is distinguished from torn.
//!
//! A thread cell has exactly one writer, so that an update needs no locked instruction. Its last
//! word is a weighted sum of the counters. A copy taken word by word in any order, by a kernel
//! that promises none, is whole exactly when the sum agrees: that is why there is a check word
//! here and no pair of sequence numbers (docs/decisions/0010-ledger-cells.md). Only `crate::sync` may be
//! used here, because the loom models compile this file too.

use crate::sync::{AtomicU64, Ordering};

/// Words in a cell.
pub(crate) const CELL_WORDS: usize = 8;

/// Tag of the cell, in both types; zero until the cell is published.
pub(crate) const TAG: usize = 0;
/// Thread cell: allocations recorded.
pub(crate) const ALLOCATIONS: usize = 1;
/// Thread cell: bytes of these allocations.
pub(crate) const ALLOCATED_BYTES: usize = 2;
/// Thread cell: frees recorded.
pub(crate) const FREES: usize = 3;
/// Thread cell: bytes of these frees.
pub(crate) const FREED_BYTES: usize = 4;
/// Thread cell: highest net bytes while this was the only shard, since it was last taken.
pub(crate) const OWN_PEAK: usize = 5;
/// Thread cell: the weighted sum of the four counters.
pub(crate) const CHECK: usize = 6;
/// Thread cell: the highest peak of its device and kind that was taken.
pub(crate) const TAKEN_PEAK: usize = 7;

/// Shared cell: sum of what threads have posted, a signed number. Where nothing is posted, the highest peak that was
/// taken.
pub(crate) const POSTED_LIVE: usize = 1;
/// Shared cell: the highest `POSTED_LIVE` seen, since it was last taken.
pub(crate) const PEAK: usize = 2;
/// Shared cell: allocations that the runtime's allocator refused.
pub(crate) const FAILED: usize = 3;
/// Shared cell: allocations by threads without a cell of their own.
pub(crate) const OVERFLOW_ALLOCATIONS: usize = 4;
/// Shared cell: bytes of these allocations.
pub(crate) const OVERFLOW_ALLOCATED_BYTES: usize = 5;
/// Shared cell: frees by threads without a cell of their own.
pub(crate) const OVERFLOW_FREES: usize = 6;
/// Shared cell: bytes of these frees.
pub(crate) const OVERFLOW_FREED_BYTES: usize = 7;

/// Weights of the counters in the check word: odd, and without a short linear relation, so that
/// counters of different moments do not add up to the check word of a third.
pub(crate) const ALLOCATIONS_WEIGHT: u64 = 0x9E37_79B9_7F4A_7C15;
/// See [`ALLOCATIONS_WEIGHT`].
pub(crate) const ALLOCATED_BYTES_WEIGHT: u64 = 0xC2B2_AE3D_27D4_EB4F;
/// See [`ALLOCATIONS_WEIGHT`].
pub(crate) const FREES_WEIGHT: u64 = 0xD6E8_FEB8_6659_FD93;
/// See [`ALLOCATIONS_WEIGHT`].
pub(crate) const FREED_BYTES_WEIGHT: u64 = 0xA076_1D64_78BD_642F;

/// What a cell is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellType {
    /// Counters of one thread at a time.
    Thread,
    /// What belongs to no thread: posted sums, the peak, failures, overflow.
    Shared,
}

impl CellType {
    pub(crate) const fn code(self) -> u16 {
        match self {
            Self::Thread => 1,
            Self::Shared => 2,
        }
    }

    pub(crate) const fn from_code(code: u16) -> Option<Self> {
        match code {
            1 => Some(Self::Thread),
            2 => Some(Self::Shared),
            _ => None,
        }
    }
}

/// The first word of a cell: what the rest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) device: u16,
    pub(crate) kind: u16,
    pub(crate) shard: u16,
    pub(crate) cell_type: u16,
}

impl Tag {
    /// Never zero for a cell type we write, because their codes are not.
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.device)
            | u64::from(self.kind) << 16
            | u64::from(self.shard) << 32
            | u64::from(self.cell_type) << 48
    }

    pub(crate) fn from_word(word: u64) -> Self {
        let [d0, d1, k0, k1, s0, s1, t0, t1] = word.to_le_bytes();
        Self {
            device: u16::from_le_bytes([d0, d1]),
            kind: u16::from_le_bytes([k0, k1]),
            shard: u16::from_le_bytes([s0, s1]),
            cell_type: u16::from_le_bytes([t0, t1]),
        }
    }
}

/// A cell in shared memory.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Cell {
    words: [AtomicU64; CELL_WORDS],
}

impl Cell {
    /// A word, for the code that builds on cells.
    #[inline(always)]
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        &self.words[index]
    }

    /// Makes the cell known to readers. The caller has written all words that must not be zero.
    pub(crate) fn publish(&self, tag: Tag) {
        // SYNC: cell publication
        self.words[TAG].store(tag.to_word(), Ordering::Release);
    }

    /// Counts an allocation. Only the cell's one writer may call this.
    /// Returns the writer's net bytes after it.
    #[inline(always)]
    pub(crate) fn count_allocation(&self, bytes: u64) -> i64 {
        let added = ALLOCATIONS_WEIGHT.wrapping_add(bytes.wrapping_mul(ALLOCATED_BYTES_WEIGHT));
        self.bump(ALLOCATIONS, 1);
        let allocated = self.bump(ALLOCATED_BYTES, bytes);
        self.bump(CHECK, added);
        net(allocated, self.words[FREED_BYTES].load(Ordering::Relaxed))
    }

    /// Counts a free. Only the cell's one writer may call this.
    /// Returns the writer's net bytes after it.
    #[inline(always)]
    pub(crate) fn count_free(&self, bytes: u64) -> i64 {
        self.count_frees(1, bytes)
    }

    /// Counts the frees of `buffers` allocations of `bytes` together. Only the cell's one writer
    /// may call this, or a caller that knows that it is not at work.
    /// Returns the writer's net bytes after it.
    #[inline(always)]
    pub(crate) fn count_frees(&self, buffers: u64, bytes: u64) -> i64 {
        let counted = buffers.wrapping_mul(FREES_WEIGHT);
        let added = counted.wrapping_add(bytes.wrapping_mul(FREED_BYTES_WEIGHT));
        self.bump(FREES, buffers);
        let freed = self.bump(FREED_BYTES, bytes);
        self.bump(CHECK, added);
        net(self.words[ALLOCATED_BYTES].load(Ordering::Relaxed), freed)
    }

    /// Raises the peak of the only shard there is. Only the cell's one writer may call this.
    #[inline(always)]
    pub(crate) fn raise_own_peak(&self, net: i64) {
        let peak = &self.words[OWN_PEAK];
        // A net below zero is a fault of the caller and no peak.
        let net = u64::try_from(net).unwrap_or(0);
        if net > peak.load(Ordering::Relaxed) {
            peak.store(net, Ordering::Relaxed);
        }
    }

    /// The writer's net bytes, as far as they can be seen from here.
    pub(crate) fn net_bytes(&self) -> i64 {
        let freed = self.words[FREED_BYTES].load(Ordering::Relaxed);
        net(self.words[ALLOCATED_BYTES].load(Ordering::Relaxed), freed)
    }

    #[inline(always)]
    fn bump(&self, index: usize, by: u64) -> u64 {
        let value = self.words[index].load(Ordering::Relaxed).wrapping_add(by);
        self.words[index].store(value, Ordering::Relaxed);
        value
    }
}

/// Whether a copy of a thread cell holds counters of one moment.
pub(crate) fn is_whole(copy: &[u64; CELL_WORDS]) -> bool {
    let sum = copy[ALLOCATIONS]
        .wrapping_mul(ALLOCATIONS_WEIGHT)
        .wrapping_add(copy[ALLOCATED_BYTES].wrapping_mul(ALLOCATED_BYTES_WEIGHT))
        .wrapping_add(copy[FREES].wrapping_mul(FREES_WEIGHT))
        .wrapping_add(copy[FREED_BYTES].wrapping_mul(FREED_BYTES_WEIGHT));
    sum == copy[CHECK]
}

/// The difference of two cumulative byte counts, right even if they have wrapped.
#[inline(always)]
pub(crate) fn net(allocated: u64, freed: u64) -> i64 {
    allocated.wrapping_sub(freed).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::{ALLOCATED_BYTES_WEIGHT, ALLOCATIONS_WEIGHT, FREED_BYTES_WEIGHT, FREES_WEIGHT};

    #[test]
    fn small_differences_never_cancel_out_in_the_check_word() {
        let counts: Vec<u64> = (0..=4).flat_map(|n: u64| [n, n.wrapping_neg()]).collect();
        let bytes: Vec<u64> = (0..46u32)
            .flat_map(|shift| [1 << shift, (1u64 << shift).wrapping_neg()])
            .chain([0])
            .collect();
        let pairs = |count_weight: u64, bytes_weight: u64| -> Vec<u64> {
            let sum = |count: &u64, bytes: &u64| {
                count.wrapping_mul(count_weight).wrapping_add(bytes.wrapping_mul(bytes_weight))
            };
            counts.iter().flat_map(|count| bytes.iter().map(move |b| sum(count, b))).collect()
        };
        let allocated = pairs(ALLOCATIONS_WEIGHT, ALLOCATED_BYTES_WEIGHT);
        let freed = pairs(FREES_WEIGHT, FREED_BYTES_WEIGHT);
        let mut zeroes = 0;
        for first in &allocated {
            zeroes += freed.iter().filter(|second| first.wrapping_add(**second) == 0).count();
        }
        // No difference at all is one way to zero; 0 and -0 count as two numbers in each factor.
        assert_eq!(zeroes, 4);
    }
}
