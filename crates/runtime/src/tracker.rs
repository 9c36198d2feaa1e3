//! What happens to the address index and the ledger at each allocation and free.

use telltale_schema::memory::MemoryKind;

use crate::index::{Buffer, BufferLocation, Inserted, Removed};
use crate::opening::{Opened, Start};
use crate::seat::{self, ThreadSlot};

#[inline(always)]
pub(crate) fn allocate(opened: &Opened, kind: MemoryKind, place: BufferLocation, bytes: u64) {
    let buffer = Buffer { kind, bytes };
    seat::with(opened, Start::IfNeeded, |seat| {
        if seat.insert_quickly(place, buffer) {
            seat.allocated(place.device, kind, bytes);
        } else {
            allocate_with_care(seat, place, buffer);
        }
    });
}

/// Everything that can become of an allocation. Apart from the usual case, so that this one need
/// not tell the others apart.
#[cold]
#[inline(never)]
fn allocate_with_care(seat: &ThreadSlot, place: BufferLocation, buffer: Buffer) {
    match seat.insert(place, buffer) {
        Inserted::Fresh => {}
        Inserted::Replaced(old) => {
            seat.freed(place.device, old.kind, old.bytes);
            seat.session.faults().reused_live_address();
        }
        Inserted::Refused => return seat.session.faults().unrecorded(),
    }
    seat.allocated(place.device, buffer.kind, buffer.bytes);
}

#[inline(always)]
pub(crate) fn free(opened: &Opened, kind: MemoryKind, place: BufferLocation) {
    // Counting under the kind that the caller names, where it is the buffer's, lets the processor
    // find the counters while the buffer's entry is still on its way from memory.
    seat::with(opened, Start::Never, |seat| match seat.remove_quickly(place, kind) {
        Some(bytes) => seat.freed(place.device, kind, bytes),
        None => free_with_care(seat, place),
    });
}

/// Everything that can become of a free.
#[cold]
#[inline(never)]
fn free_with_care(seat: &ThreadSlot, place: BufferLocation) {
    match seat.remove(place) {
        Removed::Live(buffer) => seat.freed(place.device, buffer.kind, buffer.bytes),
        Removed::FreedBefore => seat.session.faults().double_free(),
        Removed::Unknown => seat.session.faults().unknown_free(),
        Removed::Refused => seat.session.faults().unrecorded(),
    }
}

#[inline(always)]
pub(crate) fn allocate_sized(opened: &Opened, kind: MemoryKind, bytes: u64) {
    seat::with(opened, Start::IfNeeded, |seat| seat.allocated(opened.index, kind, bytes));
}

#[inline(always)]
pub(crate) fn free_sized(opened: &Opened, kind: MemoryKind, bytes: u64) {
    seat::with(opened, Start::Never, |seat| seat.freed(opened.index, kind, bytes));
}

#[cold]
pub(crate) fn failed(opened: &Opened, kind: MemoryKind) {
    seat::with(opened, Start::IfNeeded, |seat| seat.failed(opened.index, kind));
}
