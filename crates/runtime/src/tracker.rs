//! What happens to the address index and the ledger at each allocation and free.

use telltale_schema::memory::MemoryKind;

use crate::device::Opened;
use crate::index::{Buffer, Inserted, Place, Removed};
use crate::seat::{self, Start};

#[inline(always)]
pub(crate) fn allocate(opened: &Opened, kind: MemoryKind, place: Place, bytes: u64) {
    seat::with(opened, Start::IfNeeded, |seat| {
        match seat.insert(place, Buffer { kind, bytes }) {
            Inserted::Fresh => {}
            Inserted::Replaced(old) => {
                seat.freed(place.device, old.kind, old.bytes);
                seat.session.faults().reused_live_address();
            }
            Inserted::Refused => return seat.session.faults().unrecorded(),
        }
        seat.allocated(place.device, kind, bytes);
    });
}

#[inline(always)]
pub(crate) fn free(opened: &Opened, place: Place) {
    seat::with(opened, Start::Never, |seat| match seat.remove(place) {
        Removed::Live(buffer) => seat.freed(place.device, buffer.kind, buffer.bytes),
        Removed::FreedBefore => seat.session.faults().double_free(),
        Removed::Unknown => seat.session.faults().unknown_free(),
        Removed::Refused => seat.session.faults().unrecorded(),
    });
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
