//! A thread's place in a session: its recorder, kept in thread-local storage and given back when
//! the thread ends.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use telltale_ledger::{DeviceSlot, Recorder};
use telltale_schema::memory::MemoryKind;

use crate::description::MAX_DEVICES;
use crate::index::{AddressAccess, Buffer, BufferLocation, Inserted, Removed};
use crate::opening::{Opened, Start};
use crate::process_hooks;
use crate::session::Session;

/// Sessions that one thread keeps a recorder for: more than one runtime in a process is for
/// tests. A further one takes the place of the oldest.
const MAX_THREAD_SLOTS: usize = 4;

/// A thread's place in a session.
pub(crate) struct ThreadSlot {
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
    /// The slot used last, borrowed for as long as an event uses it or searches for another. It has
    /// no destructor, which would cost each event a check of whether it has run: [`LEAVING`] empties it.
    static THREAD_SLOT: ManuallyDrop<RefCell<Option<Box<ThreadSlot>>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };
    /// Whether a slot must not outlast its event, because it would never be dropped.
    static IS_LEAVING: Cell<bool> = const { Cell::new(false) };
    /// Gives the slots back when the thread ends.
    static LEAVING: Leaving = const { Leaving };
    /// Seats in other sessions.
    static OTHERS: Cell<Vec<ThreadSlot>> = const { Cell::new(Vec::new()) };
}

struct Leaving;

/// Runs `record` with this thread's slot, and finds it one first if need be. An event that
/// interrupts another one of its thread, as one in a signal handler can, only counts as unrecorded.
#[inline(always)]
pub(crate) fn with(opened: &Opened, start: Start, record: impl FnOnce(&ThreadSlot)) {
    let epoch = process_hooks::epoch();
    THREAD_SLOT.with(|place| {
        let Ok(mut place) = place.try_borrow_mut() else { return unrecorded(opened) };
        // A signal handler must find the slot borrowed from here until the event is over.
        compiler_fence(Ordering::SeqCst);
        let thread_slot = match place.as_deref() {
            Some(thread_slot) if thread_slot.is_for(opened.session_id, epoch) => thread_slot,
            _ => match another(opened, epoch, start, &mut place) {
                Some(thread_slot) => thread_slot,
                None => return,
            },
        };
        record(thread_slot);
        compiler_fence(Ordering::SeqCst);
        if IS_LEAVING.get() {
            *place = None;
        }
    });
}

#[cold]
#[inline(never)]
fn unrecorded(opened: &Opened) {
    opened.session.faults().unrecorded();
}

/// Puts a slot for an event into `place`, because the one that is there will not do for it.
#[cold]
#[inline(never)]
fn another<'a>(
    opened: &Opened,
    epoch: u64,
    start: Start,
    place: &'a mut Option<Box<ThreadSlot>>,
) -> Option<&'a ThreadSlot> {
    // From here on the thread's end empties the place, unless that has begun.
    let is_leaving = LEAVING.try_with(|_| ()).is_err();
    IS_LEAVING.set(is_leaving);
    let last = place.take();
    *place = find(opened, epoch, start, last).map(Box::new);
    place.as_deref()
}

/// A slot for `opened`: one kept from before, or a new one. `last` is kept for later.
fn find(
    opened: &Opened,
    epoch: u64,
    start: Start,
    last: Option<Box<ThreadSlot>>,
) -> Option<ThreadSlot> {
    let mut thread_slots = OTHERS.try_with(Cell::take).unwrap_or_default();
    thread_slots.extend(last.map(|thread_slot| *thread_slot));
    thread_slots
        .retain(|thread_slot| thread_slot.epoch == epoch && !thread_slot.session.is_closed());
    let kept =
        thread_slots.iter().position(|thread_slot| thread_slot.is_for(opened.session_id, epoch));
    let found = match kept {
        Some(place) => Some(thread_slots.remove(place)),
        None => opened
            .session_here(start)
            .map(|session| ThreadSlot::new(opened.session_id, epoch, session)),
    };
    // The oldest ones go first.
    thread_slots.drain(..thread_slots.len().saturating_sub(MAX_THREAD_SLOTS - 1));
    let _ = OTHERS.try_with(|place| place.set(thread_slots));
    found
}

impl ThreadSlot {
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
    pub(crate) fn insert_quickly(&self, place: BufferLocation, buffer: Buffer) -> bool {
        self.addresses.as_ref().is_some_and(|addresses| addresses.insert_quickly(place, buffer))
    }

    #[inline(always)]
    pub(crate) fn remove_quickly(&self, place: BufferLocation, kind: MemoryKind) -> Option<u64> {
        self.addresses.as_ref()?.remove_quickly(place, kind)
    }

    pub(crate) fn insert(&self, place: BufferLocation, buffer: Buffer) -> Inserted {
        match &self.addresses {
            Some(addresses) => addresses.insert(place, buffer),
            None => Inserted::Refused,
        }
    }

    pub(crate) fn remove(&self, place: BufferLocation) -> Removed {
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

    /// The device slot of a device that was opened after this thread slot was taken, or that has none.
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

impl Drop for Leaving {
    fn drop(&mut self) {
        // Taken out before it is dropped, so that an event meanwhile finds no slot and gets one to
        // itself. In use is the place only if the thread ends inside an event; then the slot stays.
        let thread_slot = THREAD_SLOT
            .with(|place| place.try_borrow_mut().ok().and_then(|mut place| place.take()));
        drop(thread_slot);
    }
}
