//! One event's place in a segment: a header of one cache line, then the data, the dimensions and the
//! name. Large data has a segment of its own, whose address is in the header.
//!
//! A header's state is set to [`EMPTY`] before the event ahead of it is committed, so the consumer,
//! who follows committed events, never checks a state that an earlier use of the memory left.
//! Everything else in a header is written at once, outside of the producers' lock: the consumer may
//! be looking at the state, and each poll takes the line away from the producer.

use std::ptr::NonNull;
use std::slice;

use rustix::time::{ClockId, clock_gettime};

use super::Losses;
use crate::sync::{AtomicU32, Ordering, store_and_fence};

/// Bytes of a header, and what every event is aligned to, so that two producers do not write to one
/// cache line.
pub(super) const HEADER_BYTES: usize = 64;
/// Data above this has a segment of its own, so that no more than a quarter of one is wasted.
const INLINE_BYTES: usize = 64 << 10;
/// How much of an event is fetched ahead; the processor goes on by itself with what follows.
const MOST_FETCHED_BYTES: usize = 2 << 10;

const EMPTY: u32 = 0;
const COMMITTED: u32 = 1;
/// The chain goes on in another segment.
const JUMP: u32 = 2;
/// No event, but what was lost before the next one.
const LOST: u32 = 3;

/// The part of an event that is the same size for all. Only the queue's users know what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub(crate) struct Facts {
    pub(crate) numbers: [u32; 3],
    pub(crate) text: [u8; 16],
}

#[repr(C, align(64))]
struct RecordHeader {
    state: AtomicU32,
    name_bytes: u16,
    dimensions: u16,
    data_bytes: usize,
    time_ns: u64,
    /// The segment with the data, or the one to jump to.
    elsewhere: Option<NonNull<u8>>,
    facts: Facts,
}

/// What was lost, in the place of a header.
#[repr(C, align(64))]
struct LossHeader {
    state: AtomicU32,
    lost: Losses,
}

const _: () =
    assert!(size_of::<RecordHeader>() == HEADER_BYTES && size_of::<LossHeader>() == HEADER_BYTES);

/// An event to be queued.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draft<'event> {
    pub(crate) facts: Facts,
    pub(crate) dimensions: &'event [u64],
    pub(crate) name: &'event [u8],
    pub(crate) data: &'event [u8],
}

/// An event as it lies in the queue, but for its place among the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Body<'queue> {
    /// When it was copied.
    pub(crate) time_ns: u64,
    pub(crate) facts: &'queue Facts,
    pub(crate) dimensions: &'queue [u64],
    pub(crate) name: &'queue [u8],
    /// Aligned to [`HEADER_BYTES`].
    pub(crate) data: &'queue [u8],
}

/// How large an event is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    name_bytes: u16,
    dimensions: u16,
    data_bytes: usize,
}

/// Where a header is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeaderPosition(NonNull<RecordHeader>);

// SAFETY: an address; every use of it is an unsafe call that says what must hold.
unsafe impl Send for HeaderPosition {}

/// What the consumer finds at a place.
pub(super) enum RecordState {
    /// Nothing yet.
    Nothing,
    /// A whole event.
    Event,
    /// The chain goes on at the start of this segment, which the finder owns from now on.
    Jump(NonNull<u8>),
    /// What had been lost before the next event, in all.
    Lost(Losses),
}

// === impl Size ===

impl Size {
    /// The size of an event; none where it has a longer name or more dimensions than can be recorded.
    #[inline(always)]
    pub(super) fn of(draft: &Draft<'_>) -> Option<Self> {
        let name_bytes = u16::try_from(draft.name.len()).ok()?;
        let dimensions = u16::try_from(draft.dimensions.len()).ok()?;
        Some(Self { name_bytes, dimensions, data_bytes: draft.data.len() })
    }

    /// Bytes of data.
    pub(super) fn data_bytes(self) -> usize {
        self.data_bytes
    }

    /// Whether the data has a segment of its own.
    #[inline(always)]
    pub(super) fn is_outside(self) -> bool {
        self.data_bytes > INLINE_BYTES
    }

    /// How far the next header is from this event's.
    #[inline(always)]
    pub(super) fn distance(self) -> usize {
        self.bytes_with(if self.is_outside() { 0 } else { self.data_bytes })
    }

    /// The bytes that the event is charged with.
    #[inline(always)]
    pub(super) fn charged(self) -> u64 {
        u64::try_from(self.bytes_with(self.data_bytes)).unwrap_or(u64::MAX)
    }

    /// No slice is long enough for this to overflow.
    #[inline(always)]
    fn bytes_with(self, data_bytes: usize) -> usize {
        let name = padded(data_bytes) + usize::from(self.dimensions) * size_of::<u64>();
        HEADER_BYTES + (name + usize::from(self.name_bytes)).next_multiple_of(HEADER_BYTES)
    }
}

/// How many bytes behind the start of such data its dimensions are.
#[inline(always)]
fn padded(data_bytes: usize) -> usize {
    data_bytes.next_multiple_of(size_of::<u64>())
}

/// Monotonic time as of the last tick of the kernel, which costs a few nanoseconds to know.
pub(super) fn coarse_time_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let [seconds, nanoseconds] =
        [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + nanoseconds
}

/// Copies what mostly is a few bytes, which a call would take longer for.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`] of all of `from`.
#[inline(always)]
unsafe fn copy_short(from: &[u8], to: *mut u8) {
    type Half = [u8; 16];
    // SAFETY: both pieces lie inside what the caller vouches for; together they cover it.
    unsafe {
        match (from.first_chunk::<16>(), from.last_chunk::<16>()) {
            (Some(first), Some(last)) if from.len() <= 2 * size_of::<Half>() => {
                to.cast::<Half>().write_unaligned(*first);
                to.add(from.len() - size_of::<Half>()).cast::<Half>().write_unaligned(*last);
            }
            _ => to.copy_from_nonoverlapping(from.as_ptr(), from.len()),
        }
    }
}

/// Has a cache line fetched, where the processor supports it.
#[inline(always)]
fn fetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: fetching ahead touches nothing, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

// === impl HeaderPosition ===

impl HeaderPosition {
    /// The place so far into a segment.
    ///
    /// # Safety
    /// `offset` is a multiple of [`HEADER_BYTES`] and leaves a header's room in the segment.
    #[inline(always)]
    pub(super) unsafe fn at(base: NonNull<u8>, offset: usize) -> Self {
        // SAFETY: inside one mapping, by the caller's promise.
        Self(unsafe { base.add(offset) }.cast())
    }

    fn header(self) -> *mut RecordHeader {
        self.0.as_ptr()
    }

    /// Marks a place as one where nothing is yet.
    ///
    /// # Safety
    /// The segment is mapped, and no event of this turn is at this place.
    #[inline(always)]
    pub(super) unsafe fn empty(self) {
        // SAFETY: mapped and aligned by the promises of `at` and the caller. A plain write: that
        // the consumer sees it first is up to the commit of the event ahead, or the jump.
        unsafe { (*self.header()).state = AtomicU32::new(EMPTY) };
    }

    /// Writes an event and makes it visible to the consumer.
    ///
    /// # Safety
    /// The place was reserved for this thread with [`Size::distance`] of `size`, which is the
    /// draft's; `outside` is a segment that holds the data, where [`Size::is_outside`] says so, else
    /// none.
    #[inline(always)]
    pub(super) unsafe fn write(self, draft: &Draft<'_>, size: Size, outside: Option<NonNull<u8>>) {
        let header = self.header();
        let (data, dimensions) = self.parts(size, outside);
        // SAFETY: the place is this thread's alone until the state is stored, so plain writes to
        // all but the state are unseen; data, dimensions and name fit, by the caller's promise, and
        // cannot overlap memory that nobody else has a reference to. What is left between the parts
        // was written before or is the kernel's zeros.
        unsafe {
            // In the order of the addresses: lines that no cache holds come quicker so.
            (&raw mut (*header).name_bytes).write(size.name_bytes);
            (&raw mut (*header).dimensions).write(size.dimensions);
            (&raw mut (*header).data_bytes).write(size.data_bytes);
            (&raw mut (*header).time_ns).write(coarse_time_ns());
            (&raw mut (*header).elsewhere).write(outside);
            (&raw mut (*header).facts).write(draft.facts);
            data.copy_from_nonoverlapping(draft.data.as_ptr(), draft.data.len());
            for (index, dimension) in draft.dimensions.iter().enumerate() {
                dimensions.add(index).write(*dimension);
            }
            copy_short(draft.name, dimensions.add(draft.dimensions.len()).cast());
            // SYNC: committed
            store_and_fence(&(*header).state, COMMITTED);
        }
    }

    /// Where data and dimensions are; the name follows these.
    #[inline(always)]
    fn parts(self, size: Size, outside: Option<NonNull<u8>>) -> (*mut u8, *mut u64) {
        let behind: *mut u8 = self.header().wrapping_add(1).cast();
        match outside {
            Some(segment) => (segment.as_ptr(), behind.cast()),
            None => (behind, behind.wrapping_add(padded(size.data_bytes)).cast()),
        }
    }

    /// Tells the consumer what was lost before the next event, which is [`HEADER_BYTES`] further.
    ///
    /// # Safety
    /// The place is the next one in the chain and this thread's alone; the one behind it has been
    /// made ready with [`HeaderPosition::empty`].
    pub(super) unsafe fn tell(self, lost: Losses) {
        let header: *mut LossHeader = self.header().cast();
        // SAFETY: as for `write`.
        unsafe {
            (&raw mut (*header).lost).write(lost);
            // SYNC: committed
            (*header).state.store(LOST, Ordering::Release);
        }
    }

    /// Sends the consumer to the start of another segment, which it then owns.
    ///
    /// # Safety
    /// The place is the next one in the chain and this thread's alone; the segment there has been
    /// made ready with [`HeaderPosition::empty`].
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
    pub(super) unsafe fn state(self) -> RecordState {
        // SAFETY: the state was initialised by `empty` before the consumer could get here, and what
        // stands beside a state other than EMPTY is not written again until the consumer goes on.
        unsafe {
            // SYNC: committed
            match (*self.header()).state.load(Ordering::Acquire) {
                COMMITTED => RecordState::Event,
                JUMP => (*self.header()).elsewhere.map_or(RecordState::Nothing, RecordState::Jump),
                LOST => RecordState::Lost((*self.header().cast::<LossHeader>()).lost),
                _ => RecordState::Nothing,
            }
        }
    }

    /// The event here.
    ///
    /// # Safety
    /// [`HeaderPosition::state`] found an event, and the consumer does not go on while the parts are in use.
    #[inline(always)]
    pub(super) unsafe fn event<'segment>(self) -> Body<'segment> {
        // SAFETY: a committed event is whole and is not written to again.
        unsafe {
            let RecordHeader { time_ns, elsewhere, ref facts, .. } = *self.header();
            let (size, _) = self.size();
            let (data, dimensions) = self.parts(size, elsewhere);
            let dimensions = slice::from_raw_parts(dimensions, size.dimensions.into());
            let name = dimensions.as_ptr_range().end.cast();
            let name = slice::from_raw_parts(name, size.name_bytes.into());
            let data = slice::from_raw_parts(data, size.data_bytes);
            Body { time_ns, facts, dimensions, name, data }
        }
    }

    /// Has the event here fetched into the cache, or as much of it as is likely to stay there.
    ///
    /// # Safety
    /// As for [`HeaderPosition::event`].
    #[inline(always)]
    pub(super) unsafe fn fetch(self) {
        // SAFETY: as for `event`.
        let (size, _) = unsafe { self.size() };
        let lines = size.distance().min(MOST_FETCHED_BYTES) / HEADER_BYTES;
        // The first line was fetched to check it.
        for line in 1..lines {
            fetch_line(self.header().wrapping_add(line).cast());
        }
    }

    /// The size of the event here, and the segment with its data, if it has one of its own.
    ///
    /// # Safety
    /// As for [`HeaderPosition::event`].
    #[inline(always)]
    pub(super) unsafe fn size(self) -> (Size, Option<NonNull<u8>>) {
        // SAFETY: as for `event`.
        let RecordHeader { name_bytes, dimensions, data_bytes, elsewhere, .. } =
            unsafe { &*self.header() };
        let [name_bytes, dimensions] = [*name_bytes, *dimensions];
        (Size { name_bytes, dimensions, data_bytes: *data_bytes }, *elsewhere)
    }
}
