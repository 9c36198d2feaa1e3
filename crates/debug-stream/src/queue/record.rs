//! One event's place in a segment: a header of one cache line, then the body, or the address of a
//! segment of the body's own.
//!
//! A header's state is set to [`EMPTY`] before the event ahead of it is committed, so the consumer,
//! who follows committed events, never looks at a state that an earlier use of the memory left.

use std::ptr::NonNull;
use std::slice;

use super::Losses;
use crate::sync::{AtomicU32, Ordering, store_and_fence};

/// Bytes of a header, and what every event is aligned to, so that two producers do not write to one
/// cache line.
pub(super) const HEADER_BYTES: usize = 64;
/// Bodies above this have a segment of their own, so that no more than a quarter of one is wasted.
const INLINE_BYTES: usize = 64 << 10;

/// Bytes of an event's facts.
pub(crate) const FIXED_BYTES: usize = 96;
/// What an event's data is aligned to.
pub(crate) const DATA_ALIGNMENT: usize = 16;

const EMPTY: u32 = 0;
const COMMITTED: u32 = 1;
/// The chain goes on in another segment.
const JUMP: u32 = 2;

/// What is known of an event before its body.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Stamp {
    pub(super) sequence: u64,
    pub(super) time_ns: u64,
    /// What was lost on the stream before this event, in all.
    pub(super) lost: Losses,
}

#[repr(C, align(64))]
struct Header {
    state: AtomicU32,
    kind: u32,
    stamp: Stamp,
    body_bytes: usize,
    /// The segment with the body, or the one to jump to.
    elsewhere: Option<NonNull<u8>>,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES);

/// What an event consists of: facts of a fixed size, a name, and data at an aligned place.
pub(crate) struct Body<'event> {
    pub(crate) fixed: &'event [u8; FIXED_BYTES],
    pub(crate) name: &'event [u8],
    pub(crate) data: &'event [u8],
}

impl Body<'_> {
    /// All its bytes, with those between name and data.
    #[inline(always)]
    pub(super) fn bytes(&self) -> usize {
        FIXED_BYTES + self.name_room() + self.data.len()
    }

    #[inline(always)]
    fn name_room(&self) -> usize {
        self.name.len().next_multiple_of(DATA_ALIGNMENT)
    }
}

/// Where a header is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(NonNull<Header>);

// SAFETY: an address; every use of it is an unsafe call that says what must hold.
unsafe impl Send for Place {}

/// What the consumer finds at a place.
pub(super) enum Found {
    /// Nothing yet.
    Nothing,
    /// A whole event.
    Event,
    /// The chain goes on at the start of this segment, which the finder owns from now on.
    Jump(NonNull<u8>),
}

/// Whether a body has a segment of its own.
pub(super) fn is_outside(body_bytes: usize) -> bool {
    body_bytes > INLINE_BYTES
}

/// How far the next header is from the header of an event with such a body.
pub(super) fn distance(body_bytes: usize) -> usize {
    if is_outside(body_bytes) {
        HEADER_BYTES
    } else {
        HEADER_BYTES + body_bytes.next_multiple_of(HEADER_BYTES)
    }
}

impl Place {
    /// The place so far into a segment.
    ///
    /// # Safety
    /// `offset` is a multiple of [`HEADER_BYTES`] and leaves a header's room in the segment.
    pub(super) unsafe fn at(base: NonNull<u8>, offset: usize) -> Self {
        // SAFETY: inside one mapping, by the caller's promise.
        Self(unsafe { base.add(offset) }.cast())
    }

    fn header(self) -> *mut Header {
        self.0.as_ptr()
    }

    fn body(self) -> *mut u8 {
        self.header().wrapping_add(1).cast()
    }

    /// Marks a place as one where nothing is yet.
    ///
    /// # Safety
    /// The segment is mapped, and no event of this turn is at this place.
    pub(super) unsafe fn empty(self) {
        // SAFETY: mapped and aligned by the promises of `at` and the caller. A plain write: that
        // the consumer sees it first is up to the commit of the event ahead, or the jump.
        unsafe { (*self.header()).state = AtomicU32::new(EMPTY) };
    }

    /// Writes what is known of an event before its body.
    ///
    /// # Safety
    /// The segment is mapped and the place reserved for this event by this thread, which still is
    /// inside the producers' lock.
    #[inline(always)]
    pub(super) unsafe fn stamp(self, stamp: Stamp) {
        // SAFETY: mapped by the promises of `at` and the caller; the consumer reads this after the
        // commit, or inside the same lock.
        unsafe { (&raw mut (*self.header()).stamp).write(stamp) };
    }

    /// What was lost before the event here, which may not be committed.
    ///
    /// # Safety
    /// The place is reserved and the thread inside the producers' lock.
    pub(super) unsafe fn lost_before(self) -> Losses {
        // SAFETY: `stamp` was called before the lock was last released.
        unsafe { (&raw const (*self.header()).stamp.lost).read() }
    }

    /// Writes an event's body and makes the event visible to the consumer.
    ///
    /// # Safety
    /// The place was reserved for this thread with [`distance`] for the body's size, and
    /// stamped; `outside` is a segment that holds the body, where [`is_outside`] says so, else none.
    #[inline(always)]
    pub(super) unsafe fn write(self, kind: u32, body: &Body<'_>, outside: Option<NonNull<u8>>) {
        let header = self.header();
        let to = outside.map_or(self.body(), NonNull::as_ptr);
        // SAFETY: the place is this thread's alone until the state is stored, so plain writes to
        // all but state and stamp are unseen; the body's bytes fit, by the caller's promise, and
        // cannot overlap memory that nobody else has a reference to. What is left between the
        // parts was written by somebody before or is the kernel's zeros.
        unsafe {
            (&raw mut (*header).kind).write(kind);
            (&raw mut (*header).body_bytes).write(body.bytes());
            (&raw mut (*header).elsewhere).write(outside);
            to.cast::<[u8; FIXED_BYTES]>().write(*body.fixed);
            let [name, data] = [FIXED_BYTES, FIXED_BYTES + body.name_room()].map(|at| to.add(at));
            name.copy_from_nonoverlapping(body.name.as_ptr(), body.name.len());
            data.copy_from_nonoverlapping(body.data.as_ptr(), body.data.len());
            // SYNC: committed
            store_and_fence(&(*header).state, COMMITTED);
        }
    }

    /// Sends the consumer to the start of another segment, which it then owns.
    ///
    /// # Safety
    /// The place is the next one in the chain and this thread's alone; the segment there has been
    /// made ready with [`Place::empty`].
    pub(super) unsafe fn jump(self, base: NonNull<u8>) {
        // SAFETY: as for `write`.
        unsafe {
            (&raw mut (*self.header()).elsewhere).write(Some(base));
            // SYNC: committed
            (*self.header()).state.store(JUMP, Ordering::Release);
        }
    }

    /// Looks what is here.
    ///
    /// # Safety
    /// The place is the consumer's next one, in a segment that it owns.
    #[inline(always)]
    pub(super) unsafe fn look(self) -> Found {
        // SAFETY: the state was initialised by `empty` before the consumer could get here, and what
        // stands beside a state other than EMPTY is not written again until the consumer goes on.
        unsafe {
            // SYNC: committed
            match (*self.header()).state.load(Ordering::Acquire) {
                COMMITTED => Found::Event,
                JUMP => (*self.header()).elsewhere.map_or(Found::Nothing, Found::Jump),
                _ => Found::Nothing,
            }
        }
    }

    /// The event here: its kind, its stamp and its body.
    ///
    /// # Safety
    /// [`Place::look`] found an event, and the consumer does not go on while the body is in use.
    #[inline(always)]
    pub(super) unsafe fn event<'segment>(self) -> (u32, Stamp, &'segment [u8]) {
        // SAFETY: a committed event is whole and is not written to again.
        unsafe {
            let header = &*self.header();
            let body = header.elsewhere.map_or(self.body(), NonNull::as_ptr);
            (header.kind, header.stamp, slice::from_raw_parts(body, header.body_bytes))
        }
    }

    /// The segment with the body of the event here, if it has one of its own.
    ///
    /// # Safety
    /// As for [`Place::event`].
    pub(super) unsafe fn outside(self) -> Option<NonNull<u8>> {
        // SAFETY: as for `event`.
        unsafe { (*self.header()).elsewhere }
    }
}
