//! Counting: what a thread does for each allocation and free.
//!
//! The path of an event is a table look-up, a few plain loads and stores, and one check of whether
//! other threads record too. It makes no system call, takes no lock, reads no clock and allocates
//! nothing; what does is in functions marked cold.

use std::marker::PhantomData;

use telltale_schema::memory::MemoryKind;

use super::Inner;
use super::registry::{Claimed, Shard, ShardEntry};
use crate::cell::Cell;
use crate::device::DeviceSlot;
use crate::layout::KINDS_CAPACITY;
use crate::posting::{
    Due, after_allocation, after_free, count_failure, overflow_allocation, overflow_frees, post,
};
use crate::sync::Arc;

/// One thread's way to count into its process's ledger. It may move to another thread, but never
/// be used by two at once. Dropping it leaves its values in place for the next thread's recorder.
pub struct Recorder {
    inner: Arc<Inner>,
    /// None when more threads record than there are shards: everything goes to shared cells.
    shard: Option<Arc<Shard>>,
    not_sync: PhantomData<std::cell::Cell<()>>,
}

/// What is counted, for the paths that are the same for both.
#[derive(Clone, Copy)]
enum CountedEvent {
    Allocation,
    Free,
}

// === impl Recorder ===

impl Recorder {
    pub(super) fn new(inner: Arc<Inner>, shard: Option<Arc<Shard>>) -> Self {
        Self { inner, shard, not_sync: PhantomData }
    }

    /// Counts an allocation of `bytes`.
    #[inline]
    pub fn allocated(&self, slot: DeviceSlot, kind: MemoryKind, bytes: u64) {
        let Some((entry, cell)) = self.own_cell(slot, kind) else {
            return self.first_or_overflow(slot, kind, bytes, CountedEvent::Allocation);
        };
        let net = cell.count_allocation(bytes);
        if after_allocation(&self.inner.mode, cell, entry.posted(), net) == Due::Posting {
            self.post(entry);
        }
    }

    /// Counts the free of an allocation of `bytes`, whichever thread counted that one.
    #[inline]
    pub fn freed(&self, slot: DeviceSlot, kind: MemoryKind, bytes: u64) {
        let Some((entry, cell)) = self.own_cell(slot, kind) else {
            return self.first_or_overflow(slot, kind, bytes, CountedEvent::Free);
        };
        let net = cell.count_free(bytes);
        if after_free(&self.inner.mode, entry.posted(), net) == Due::Posting {
            self.post(entry);
        }
    }

    /// Counts an allocation that the runtime's allocator refused. Unlike the other two, this takes
    /// the registry's lock: what follows a refusal is not in a hurry.
    #[cold]
    pub fn failed(&self, slot: DeviceSlot, kind: MemoryKind) {
        let inner = &*self.inner;
        let index = slot.index() * KINDS_CAPACITY + usize::from(kind.code());
        let shared = inner.registry().shared_cell_growing(&inner.mapping, &inner.file, index);
        match shared {
            Some(shared) => count_failure(shared),
            None => self.unrecorded(),
        }
    }

    #[inline(always)]
    fn own_cell(&self, slot: DeviceSlot, kind: MemoryKind) -> Option<(&ShardEntry, &Cell)> {
        let entry = self.shard.as_ref()?.entry(slot, kind.code())?;
        // SAFETY: the pointer is null or was set, under the registry's lock, from a cell of the
        // map that `self.inner` keeps alive for as long as `self` is borrowed. Only this
        // recorder has the shard, so that no other thread changes the pointer meanwhile.
        let cell = unsafe { entry.cell().as_ref()? };
        Some((entry, cell))
    }

    #[cold]
    #[inline(never)]
    fn post(&self, entry: &ShardEntry) {
        if self.inner.mode.is_changing() {
            // The thread that brings the second shard is just taking our values over.
            drop(self.inner.registry());
        }
        // SAFETY: as in `own_cell`; the shared cell is in the same map.
        let cells = unsafe { (entry.shared().as_ref(), entry.cell().as_ref()) };
        if let (Some(shared), Some(own)) = cells {
            post(shared, own, entry.posted());
        }
    }

    /// The first record of a device and kind, or each one if there is no cell of our own.
    #[cold]
    #[inline(never)]
    fn first_or_overflow(
        &self,
        slot: DeviceSlot,
        kind: MemoryKind,
        bytes: u64,
        event: CountedEvent,
    ) {
        let Some(shard) = &self.shard else {
            return self.without_shard(slot, kind, bytes, event);
        };
        let Some(entry) = shard.entry(slot, kind.code()).filter(|entry| !entry.is_refused()) else {
            return self.unrecorded();
        };
        // SAFETY: as in `own_cell`; the shared cell is in the same map.
        if let Some(shared) = unsafe { entry.shared().as_ref() } {
            return overflow(shared, bytes, event);
        }
        let inner = &*self.inner;
        let claimed = {
            let mut registry = inner.registry();
            // The mode changes only under the lock that is held here.
            let several = !inner.mode.is_single();
            registry.claim(&inner.mapping, &inner.file, shard, slot, kind.code(), several)
        };
        match (claimed, event) {
            (Claimed::Own, CountedEvent::Allocation) => self.allocated(slot, kind, bytes),
            (Claimed::Own, CountedEvent::Free) => self.freed(slot, kind, bytes),
            (Claimed::SharedOnly, _) => self.first_or_overflow(slot, kind, bytes, event),
            (Claimed::Nothing, _) => self.unrecorded(),
        }
    }

    fn without_shard(&self, slot: DeviceSlot, kind: MemoryKind, bytes: u64, event: CountedEvent) {
        let inner = &*self.inner;
        let index = slot.index() * KINDS_CAPACITY + usize::from(kind.code());
        let shared = inner.registry().shared_cell_growing(&inner.mapping, &inner.file, index);
        match shared {
            Some(shared) => overflow(shared, bytes, event),
            None => self.unrecorded(),
        }
    }

    fn unrecorded(&self) {
        super::Faults::new(&self.inner.mapping).unrecorded();
    }
}

fn overflow(shared: &Cell, bytes: u64, event: CountedEvent) {
    match event {
        CountedEvent::Allocation => overflow_allocation(shared, bytes),
        CountedEvent::Free => overflow_frees(shared, 1, bytes),
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // In a forked child the lock may be held by a thread that does not exist there.
        let Some(shard) = self.shard.take().filter(|_| self.inner.is_ours()) else { return };
        if !self.inner.mode.is_single() {
            // What a thread leaves unposted would stay unposted while its shard is unused.
            let known = self.inner.registry().pairs();
            shard.entries().iter().take(known).filter(|entry| !entry.cell().is_null()).for_each(
                |entry| {
                    self.post(entry);
                },
            );
        }
        self.inner.registry().give_back(&shard);
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Recorder").finish_non_exhaustive()
    }
}
