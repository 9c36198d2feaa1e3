//! What happens to the address index and the ledger at each allocation and free.

use telltale_schema::memory::MemoryKind;

use crate::index::{Buffer, BufferLocation, Inserted, Removed};
use crate::opening::{Opened, Start};
use crate::thread_slot::{self, ThreadSlot};

#[inline(always)]
pub(crate) fn allocate(opened: &Opened, kind: MemoryKind, place: BufferLocation, bytes: u64) {
    let buffer = Buffer { kind, bytes };
    thread_slot::with(opened, Start::IfNeeded, |thread_slot| {
        if thread_slot.insert_quickly(place, buffer) {
            thread_slot.allocated(place.device, kind, bytes);
        } else {
            allocate_with_care(thread_slot, place, buffer);
        }
    });
}

/// Everything that can become of an allocation. Apart from the usual case, so that this one need
/// not distinguish the others.
#[cold]
#[inline(never)]
fn allocate_with_care(thread_slot: &ThreadSlot, place: BufferLocation, buffer: Buffer) {
    match thread_slot.insert(place, buffer) {
        Inserted::Fresh => {}
        Inserted::Replaced(old) => {
            thread_slot.freed(place.device, old.kind, old.bytes);
            thread_slot.session.faults().reused_live_address();
        }
        Inserted::Refused => return thread_slot.session.faults().unrecorded(),
    }
    thread_slot.allocated(place.device, buffer.kind, buffer.bytes);
}

#[inline(always)]
pub(crate) fn free(opened: &Opened, kind: MemoryKind, place: BufferLocation) {
    // Counting under the kind that the caller names, where it is the buffer's, lets the processor
    // find the counters while the buffer's entry is still on its way from memory.
    thread_slot::with(opened, Start::Never, |thread_slot| {
        match thread_slot.remove_quickly(place, kind) {
            Some(bytes) => thread_slot.freed(place.device, kind, bytes),
            None => free_with_care(thread_slot, place),
        }
    });
}

/// Everything that can become of a free.
#[cold]
#[inline(never)]
fn free_with_care(thread_slot: &ThreadSlot, place: BufferLocation) {
    match thread_slot.remove(place) {
        Removed::Live(buffer) => thread_slot.freed(place.device, buffer.kind, buffer.bytes),
        Removed::FreedBefore => thread_slot.session.faults().double_free(),
        Removed::Unknown => thread_slot.session.faults().unknown_free(),
        Removed::Refused => thread_slot.session.faults().unrecorded(),
    }
}

#[inline(always)]
pub(crate) fn allocate_sized(opened: &Opened, kind: MemoryKind, bytes: u64) {
    thread_slot::with(opened, Start::IfNeeded, |thread_slot| {
        thread_slot.allocated(opened.index, kind, bytes)
    });
}

#[inline(always)]
pub(crate) fn free_sized(opened: &Opened, kind: MemoryKind, bytes: u64) {
    thread_slot::with(opened, Start::Never, |thread_slot| {
        thread_slot.freed(opened.index, kind, bytes)
    });
}

#[cold]
pub(crate) fn failed(opened: &Opened, kind: MemoryKind) {
    thread_slot::with(opened, Start::IfNeeded, |thread_slot| {
        thread_slot.failed(opened.index, kind)
    });
}
