//! A thread's place in a session: its recorder, kept in thread-local storage and given back when
//! the thread ends.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use telltale_ledger::{DeviceSlot, Recorder};
use telltale_schema::memory::MemoryKind;

use crate::device::{MAX_DEVICES, Opened};
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
    /// None when there is no ledger.
    recorder: Option<Recorder>,
    /// The ledger's slots of devices, copied here so that an event need not go to the session.
    slots: [Cell<Option<DeviceSlot>>; MAX_DEVICES],
    keeps_regions: bool,
}

thread_local! {
    static SEATS: RefCell<Vec<Seat>> = const { RefCell::new(Vec::new()) };
}

/// Runs `record` with this thread's seat, and finds it one first if need be.
#[inline(always)]
pub(crate) fn with(opened: &Opened, start: Start, record: impl FnOnce(&Seat)) {
    let epoch = process_hooks::epoch();
    let mut waiting = Some(record);
    // Neither failure is one: a thread that is ending has no seats any more, and a borrow is only
    // held while another seat is being looked for.
    let _ = SEATS.try_with(|seats| {
        let Ok(seats) = seats.try_borrow() else { return };
        if let Some(seat) = seats.first().filter(|seat| seat.is_for(opened.session_id, epoch))
            && let Some(record) = waiting.take()
        {
            record(seat);
        }
    });
    if let Some(record) = waiting {
        with_another(opened, epoch, start, record);
    }
}

#[cold]
#[inline(never)]
fn with_another(opened: &Opened, epoch: u64, start: Start, record: impl FnOnce(&Seat)) {
    let kept = SEATS.try_with(|seats| {
        let mut seats = seats.try_borrow_mut().ok()?;
        let place = seats.iter().position(|seat| seat.is_for(opened.session_id, epoch))?;
        Some(seats.remove(place))
    });
    let seat = match kept {
        Ok(Some(seat)) => seat,
        _ => match opened.inner.session_for(opened, start) {
            Some(session) => Seat::new(opened.session_id, epoch, session),
            None => return,
        },
    };
    record(&seat);
    // Seats are dropped outside the borrow, because giving a recorder back takes a lock.
    let dropped = SEATS.try_with(|seats| {
        let mut seats = seats.try_borrow_mut().ok()?;
        let mut all = std::mem::take(&mut *seats);
        let (mut kept, mut stale): (Vec<_>, Vec<_>) =
            all.drain(..).partition(|seat| seat.epoch == epoch && !seat.session.is_closed());
        kept.insert(0, seat);
        stale.extend(kept.drain(MAX_SEATS.min(kept.len())..));
        *seats = kept;
        Some(stale)
    });
    drop(dropped);
}

impl Seat {
    fn new(opened_in: u64, epoch: u64, session: Arc<Session>) -> Self {
        let recorder = session.recorder();
        let slots = [const { Cell::new(None) }; MAX_DEVICES];
        let keeps_regions = session.keeps_regions;
        Self { opened_in, epoch, session, recorder, slots, keeps_regions }
    }

    #[inline(always)]
    fn is_for(&self, session_id: u64, epoch: u64) -> bool {
        self.opened_in == session_id && self.epoch == epoch
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
