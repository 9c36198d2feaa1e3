//! How threads agree on a peak, and what goes to the shared cell of a device and kind.
//!
//! While one shard has ever been used, its writer keeps the peak itself and it is exact. From the
//! second shard on, each writer posts its net change to the shared cell once it exceeds
//! [`THRESHOLD_BYTES`] either way, and the highest posted sum is the peak: within that
//! threshold for each shard. Only `crate::sync` may be used here, because the loom models
//! compile this file too.

use crate::cell::{
    Cell, FAILED, OVERFLOW_ALLOCATED_BYTES, OVERFLOW_ALLOCATIONS, OVERFLOW_FREED_BYTES,
    OVERFLOW_FREES, OWN_PEAK, PEAK, POSTED_LIVE,
};
use crate::sync::{AtomicI64, AtomicU32, AtomicU64, Ordering, heavy_barrier, light_barrier};

/// What a writer may keep to itself, either way, before it posts.
pub(crate) const THRESHOLD_BYTES: u64 = 64 * 1024;

const SINGLE: u32 = 0;
const CHANGING: u32 = 1;
const SEVERAL: u32 = 2;

/// Whether one shard or several have been used so far. It only goes forward.
pub(crate) struct PostingMode(AtomicU32);

impl PostingMode {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(SINGLE))
    }

    /// Whether no second shard has appeared.
    #[inline(always)]
    pub(crate) fn is_single(&self) -> bool {
        // SYNC: several shards
        self.0.load(Ordering::Acquire) == SINGLE
    }

    /// Whether the first shard's net may still be in the hands of the thread that leaves
    /// [`Self::is_single`]; its registry lock is held until this is over.
    pub(crate) fn is_changing(&self) -> bool {
        // SYNC: several shards
        self.0.load(Ordering::Acquire) == CHANGING
    }

    /// Starts the step from one shard to several. After this, an update of the first writer is
    /// either visible here or will find that the mode is not single any more.
    pub(crate) fn begin_several(&self) -> bool {
        self.0.store(CHANGING, Ordering::Relaxed);
        heavy_barrier()
    }

    /// Ends the step: the first shard's net has been taken over by [`take_over`].
    pub(crate) fn finish_several(&self) {
        // SYNC: several shards
        self.0.store(SEVERAL, Ordering::Release);
    }
}

/// What the writer has to do after an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// Post, after waiting while the mode is changing.
    Posting,
}

/// Ends an allocation: keeps the peak, or says that a posting is due.
#[inline(always)]
pub(crate) fn after_allocation(
    mode: &PostingMode,
    cell: &Cell,
    posted: &AtomicI64,
    net: i64,
) -> Due {
    light_barrier();
    if mode.is_single() {
        cell.raise_own_peak(net);
        return Due::Nothing;
    }
    unposted(posted, net)
}

/// Ends a free: says whether a posting is due.
#[inline(always)]
pub(crate) fn after_free(mode: &PostingMode, posted: &AtomicI64, net: i64) -> Due {
    light_barrier();
    if mode.is_single() { Due::Nothing } else { unposted(posted, net) }
}

#[inline(always)]
fn unposted(posted: &AtomicI64, net: i64) -> Due {
    let change = net.wrapping_sub(posted.load(Ordering::Relaxed));
    if change.unsigned_abs() >= THRESHOLD_BYTES { Due::Posting } else { Due::Nothing }
}

/// Posts what the writer has not posted yet. Only the shard's one writer may call this, and only
/// when the mode is neither single nor changing.
pub(crate) fn post(shared: &Cell, cell: &Cell, posted: &AtomicI64) {
    let net = cell.net_bytes();
    let change = net.wrapping_sub(posted.load(Ordering::Relaxed));
    posted.store(net, Ordering::Relaxed);
    add_to_posted(shared, change);
}

/// Takes the first shard's net over into the shared cell, between [`PostingMode::begin_several`] and
/// [`PostingMode::finish_several`].
pub(crate) fn take_over(shared: &Cell, first: &Cell, posted: &AtomicI64) {
    raise_peak(shared, first.word(OWN_PEAK).load(Ordering::Relaxed));
    let net = first.net_bytes();
    posted.store(net, Ordering::Relaxed);
    add_to_posted(shared, net);
}

/// Counts an allocation of a thread that has no cell of its own.
pub(crate) fn overflow_allocation(shared: &Cell, bytes: u64) {
    shared.word(OVERFLOW_ALLOCATIONS).fetch_add(1, Ordering::Relaxed);
    shared.word(OVERFLOW_ALLOCATED_BYTES).fetch_add(bytes, Ordering::Relaxed);
    add_to_posted(shared, bytes.cast_signed());
}

/// Counts frees of `buffers` allocations of `bytes` together, by a thread that has no cell of its
/// own.
pub(crate) fn overflow_frees(shared: &Cell, buffers: u64, bytes: u64) {
    shared.word(OVERFLOW_FREES).fetch_add(buffers, Ordering::Relaxed);
    shared.word(OVERFLOW_FREED_BYTES).fetch_add(bytes, Ordering::Relaxed);
    add_to_posted(shared, bytes.cast_signed().wrapping_neg());
}

/// Counts an allocation in a ledger that has shared cells only and posts nothing. The peak is never
/// above the truth, and is exact where no two threads allocate at the same instant: what was freed
/// is checked after what was allocated.
#[inline]
pub(crate) fn sealed_allocation(shared: &Cell, bytes: u64) {
    shared.word(OVERFLOW_ALLOCATIONS).fetch_add(1, Ordering::Relaxed);
    let before = shared.word(OVERFLOW_ALLOCATED_BYTES).fetch_add(bytes, Ordering::Relaxed);
    let freed = shared.word(OVERFLOW_FREED_BYTES).load(Ordering::Relaxed);
    let live = before.wrapping_add(bytes).wrapping_sub(freed).cast_signed();
    raise_peak(shared, u64::try_from(live).unwrap_or(0));
}

/// Counts a free in such a ledger.
#[inline]
pub(crate) fn sealed_free(shared: &Cell, bytes: u64) {
    shared.word(OVERFLOW_FREES).fetch_add(1, Ordering::Relaxed);
    shared.word(OVERFLOW_FREED_BYTES).fetch_add(bytes, Ordering::Relaxed);
}

/// Counts an allocation that failed.
pub(crate) fn count_failure(shared: &Cell) {
    shared.word(FAILED).fetch_add(1, Ordering::Relaxed);
}

fn add_to_posted(shared: &Cell, change: i64) {
    let change = change.cast_unsigned();
    let before = shared.word(POSTED_LIVE).fetch_add(change, Ordering::Relaxed);
    let live = before.wrapping_add(change).cast_signed();
    raise_peak(shared, u64::try_from(live).unwrap_or(0));
}

/// Takes the peak since it was last taken out of its word, and keeps the highest in `kept` for readers. Any thread may
/// call this at any time. Threads test it (`crates/ledger/tests/ledger/taken.rs`): loom does not order a plain store
/// and an exchange of one word, as the language does.
pub(crate) fn take_peak(peak: &AtomicU64, kept: &AtomicU64) -> u64 {
    // Kept before it is taken: a reader in between misses none that was there for a while.
    kept.fetch_max(peak.load(Ordering::Relaxed), Ordering::Relaxed);
    // The writer may store a higher one at this instant: before, and it is taken; or after, and it stays.
    let taken = peak.swap(0, Ordering::Relaxed);
    kept.fetch_max(taken, Ordering::Relaxed);
    taken
}

fn raise_peak(shared: &Cell, candidate: u64) {
    let peak: &AtomicU64 = shared.word(PEAK);
    // The look beforehand spares a second locked instruction wherever there is no new peak.
    if candidate > peak.load(Ordering::Relaxed) {
        peak.fetch_max(candidate, Ordering::Relaxed);
    }
}
