//! A thread's place in a session: its recorder, kept in thread-local storage and given back when
//! the thread ends.

use std::cell::Cell;
use std::sync::Arc;

use telltale_ledger::{DeviceSlot, Recorder};
use telltale_schema::memory::MemoryKind;

use crate::device::{MAX_DEVICES, Opened};
use crate::index::{AddressAccess, Buffer, Inserted, Place, Removed};
use crate::process_hooks;
use crate::session::Session;

/// Sessions that one thread keeps a recorder for: more than one runtime in a process is for
/// tests. A further one takes the place of the oldest.
const MAX_SEATS: usize = 4;

/// Whether an event may start a forked child's own session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// It records something that the child did.
    IfNeeded,
    /// It is a free: before the child's first allocation it can only be of a buffer of its
    /// parent, which is the parent's to free.
    Never,
}

/// A thread's place in a session.
pub(crate) struct Seat {
    /// The session that the device was opened in, perhaps by a parent process.
    opened_in: u64,
    /// The process.
    epoch: u64,
    /// The session that records in this process.
    pub(crate) session: Arc<Session>,
    /// None when there can be none.
    addresses: Option<AddressAccess>,
    /// None when there is no ledger.
    recorder: Option<Recorder>,
    /// The ledger's slots of devices, copied here so that an event need not go to the session.
    slots: [Cell<Option<DeviceSlot>>; MAX_DEVICES],
    keeps_regions: bool,
}

thread_local! {
    /// The seat used last. It is taken out while it is used and then put back, which is cheaper
    /// than to keep count of borrows.
    static SEAT: Cell<Option<Box<Seat>>> = const { Cell::new(None) };
    /// Seats in other sessions.
    static OTHERS: Cell<Vec<Seat>> = const { Cell::new(Vec::new()) };
    /// Whether `SEAT` holds a seat or will again, once an event or a search is over.
    static IS_SEATED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `record` with this thread's seat, and finds it one first if need be. An event that
/// interrupts another one of its thread, as one in a signal handler can, only counts as unrecorded.
#[inline(always)]
pub(crate) fn with(opened: &Opened, start: Start, record: impl FnOnce(&Seat)) {
    let epoch = process_hooks::epoch();
    // A thread that is ending has no seats any more and gets one for this event only.
    let last = SEAT.try_with(Cell::take).ok().flatten();
    let seat = match last {
        Some(seat) if seat.is_for(opened.session_id, epoch) => seat,
        other => match another(opened, epoch, start, other) {
            Some(seat) => seat,
            None => return,
        },
    };
    record(&seat);
    let _ = SEAT.try_with(|place| place.set(Some(seat)));
}

/// A seat for an event that the seat used last, which is `last`, will not do for.
#[cold]
#[inline(never)]
fn another(
    opened: &Opened,
    epoch: u64,
    start: Start,
    last: Option<Box<Seat>>,
) -> Option<Box<Seat>> {
    if last.is_none() && IS_SEATED.get() {
        opened.session.faults().unrecorded();
        return None;
    }
    let found = find(opened, epoch, start, last);
    // What a callback of the search left would end this mark when it is dropped.
    let _ = SEAT.try_with(Cell::take);
    IS_SEATED.set(found.is_some());
    found.map(Box::new)
}

/// A seat for `opened`: one kept from before, or a new one. `last` is kept for later.
fn find(opened: &Opened, epoch: u64, start: Start, last: Option<Box<Seat>>) -> Option<Seat> {
    let mut seats = OTHERS.try_with(Cell::take).unwrap_or_default();
    seats.extend(last.map(|seat| *seat));
    seats.retain(|seat| seat.epoch == epoch && !seat.session.is_closed());
    IS_SEATED.set(true);
    let kept = seats.iter().position(|seat| seat.is_for(opened.session_id, epoch));
    let found = match kept {
        Some(place) => Some(seats.remove(place)),
        None => opened
            .inner
            .session_for(opened, start)
            .map(|session| Seat::new(opened.session_id, epoch, session)),
    };
    // The oldest ones go first.
    seats.drain(..seats.len().saturating_sub(MAX_SEATS - 1));
    let _ = OTHERS.try_with(|place| place.set(seats));
    found
}

impl Seat {
    fn new(opened_in: u64, epoch: u64, session: Arc<Session>) -> Self {
        let recorder = session.recorder();
        let slots = [const { Cell::new(None) }; MAX_DEVICES];
        let keeps_regions = session.keeps_regions;
        let addresses = session.index.access();
        Self { opened_in, epoch, session, addresses, recorder, slots, keeps_regions }
    }

    #[inline(always)]
    fn is_for(&self, session_id: u64, epoch: u64) -> bool {
        self.opened_in == session_id && self.epoch == epoch
    }

    #[inline(always)]
    pub(crate) fn insert(&self, place: Place, buffer: Buffer) -> Inserted {
        match &self.addresses {
            Some(addresses) => addresses.insert(place, buffer),
            None => Inserted::Refused,
        }
    }

    #[inline(always)]
    pub(crate) fn remove(&self, place: Place) -> Removed {
        match &self.addresses {
            Some(addresses) => addresses.remove(place),
            None => Removed::Refused,
        }
    }

    #[inline(always)]
    pub(crate) fn allocated(&self, device: u8, kind: MemoryKind, bytes: u64) {
        match (&self.recorder, self.slot(device)) {
            (Some(recorder), Some(slot)) => recorder.allocated(slot, kind, bytes),
            _ => self.session.faults().unrecorded(),
        }
        if self.keeps_regions {
            self.allocated_in_region(device, kind, bytes);
        }
    }

    #[inline(always)]
    pub(crate) fn freed(&self, device: u8, kind: MemoryKind, bytes: u64) {
        match (&self.recorder, self.slot(device)) {
            (Some(recorder), Some(slot)) => recorder.freed(slot, kind, bytes),
            _ => self.session.faults().unrecorded(),
        }
        if self.keeps_regions {
            self.freed_in_region(device, kind, bytes);
        }
    }

    pub(crate) fn failed(&self, device: u8, kind: MemoryKind) {
        match (&self.recorder, self.slot(device)) {
            (Some(recorder), Some(slot)) => recorder.failed(slot, kind),
            _ => self.session.faults().unrecorded(),
        }
    }

    #[inline(always)]
    fn slot(&self, device: u8) -> Option<DeviceSlot> {
        let known = self.slots.get(usize::from(device))?;
        known.get().or_else(|| self.look_up_slot(device))
    }

    /// The slot of a device that was opened after this seat was taken, or that has none.
    #[cold]
    fn look_up_slot(&self, device: u8) -> Option<DeviceSlot> {
        let slot = self.session.slot(device);
        self.slots[usize::from(device)].set(slot);
        slot
    }

    #[cold]
    fn allocated_in_region(&self, device: u8, kind: MemoryKind, bytes: u64) {
        self.session.mirror(device).allocated(kind, bytes);
    }

    #[cold]
    fn freed_in_region(&self, device: u8, kind: MemoryKind, bytes: u64) {
        self.session.mirror(device).freed(kind, bytes);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // The thread ends, or a panic took the seat along, or it is one of several: then whoever
        // drops it knows better and says so.
        IS_SEATED.set(false);
    }
}
