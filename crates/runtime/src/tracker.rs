//! What happens to the address index and the ledger at each allocation and free.

use telltale_schema::memory::MemoryKind;

use crate::device::Opened;
use crate::index::{Buffer, Inserted, Place, Removed};
use crate::seat::{self, Seat, Start};

#[inline(always)]
pub(crate) fn allocate(opened: &Opened, kind: MemoryKind, place: Place, bytes: u64) {
    seat::with(opened, Start::IfNeeded, |seat| {
        match seat.insert(place, Buffer { kind, bytes }) {
            Inserted::Fresh => {}
            Inserted::Replaced(old) => reused(seat, place.device, old),
            Inserted::Refused => return seat.session.faults().unrecorded(),
        }
        seat.allocated(place.device, kind, bytes);
    });
}

#[cold]
#[inline(never)]
fn reused(seat: &Seat, device: u8, old: Buffer) {
    seat.freed(device, old.kind, old.bytes);
    seat.session.faults().reused_live_address();
}

#[inline(always)]
pub(crate) fn free(opened: &Opened, kind: MemoryKind, place: Place) {
    seat::with(opened, Start::Never, |seat| match seat.remove(place) {
        // Counting under the kind that the caller names, where it is the buffer's, lets the
        // processor find the counters while the buffer's entry is still on its way from memory.
        Removed::Live(buffer) if buffer.kind == kind => {
            seat.freed(place.device, kind, buffer.bytes);
        }
        Removed::Live(buffer) => freed_of_another_kind(seat, place.device, buffer),
        Removed::FreedBefore => seat.session.faults().double_free(),
        Removed::Unknown => seat.session.faults().unknown_free(),
        Removed::Refused => seat.session.faults().unrecorded(),
    });
}

#[cold]
#[inline(never)]
fn freed_of_another_kind(seat: &Seat, device: u8, buffer: Buffer) {
    seat.freed(device, buffer.kind, buffer.bytes);
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
