//! What the client at one connection has on its devices, kept by its messages. Pure and bounded.
//!
//! Three things differ from the allocation server. A book is one client's, so that two processes
//! with the same address on a device are two. An allocation at an address that is still live
//! replaces what was there, as in a ledger: no allocator gives out an address twice, so the free
//! in between was lost, and counting references would keep the buffer for ever. And what is freed
//! is what was entered, so no sum goes below zero.

use std::collections::BTreeMap;

use telltale_schema::memory::{MemoryKind, MemorySpace, MemoryUsage};
use telltale_schema::snapshot::{KindUsage, RecordingFaults};

use super::message::{Request, Verb};

const KINDS: usize = MemoryKind::ALL.len();

/// Devices that one client may name, whatever the machine has.
const MAX_DEVICES: usize = 64;

/// Why a message changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BookRefusal {
    /// The machine has no device of this number.
    UnknownDevice,
    /// The number of the buffer's or kernel's type has no meaning.
    UnknownType,
    /// The device does not have that much.
    TooLarge,
    /// As many buffers as one client, one user or all may have.
    Full,
    /// A free of what was never allocated here.
    UnknownFree,
}

/// What the device of a message has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Bytes in each space that the process may have in it, in the order of
    /// [`MemorySpace::ALL`].
    pub(crate) bytes: [u64; 3],
    /// Whether another buffer may be entered.
    pub(crate) buffer: bool,
}

/// One client's buffers.
#[derive(Debug, Default)]
pub(crate) struct Book {
    buffers: BTreeMap<BufferKey, BookedBuffer>,
    usage: BTreeMap<u32, [MemoryUsage; KINDS]>,
    faults: RecordingFaults,
    /// Grows with each buffer that is entered.
    entered: u64,
}

/// Which buffer. The kind is part of it: DRAM and L1 have the same addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BufferKey {
    device: u32,
    id: u64,
    kind: MemoryKind,
}

#[derive(Debug, Clone, Copy)]
struct BookedBuffer {
    bytes: u64,
    entered: u64,
}

// === impl BookRefusal ===

impl BookRefusal {
    /// The name in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::UnknownDevice => "unknown_device",
            Self::UnknownType => "unknown_type",
            Self::TooLarge => "too_large",
            Self::Full => "full",
            Self::UnknownFree => "unknown_free",
        }
    }
}

// === impl Book ===

impl Book {
    /// Enters or strikes out what the request says; other requests change nothing. `room` is that
    /// of its device, if the machine has it.
    pub(crate) fn note(
        &mut self,
        request: &Request,
        room: Option<Room>,
    ) -> Result<(), BookRefusal> {
        let outcome = match request.verb {
            Verb::Alloc | Verb::CbAlloc | Verb::KernelLoad => self.enter(request, room),
            Verb::Free | Verb::CbFree | Verb::KernelUnload => self.strike(request),
            Verb::Query | Verb::DeviceInfo | Verb::DumpRemaining | Verb::DumpKernels => Ok(()),
        };
        match outcome {
            Err(BookRefusal::UnknownFree) => self.faults.unknown_frees += 1,
            Err(_) => self.faults.unrecorded_events += 1,
            Ok(()) => {}
        }
        outcome
    }

    fn enter(&mut self, request: &Request, room: Option<Room>) -> Result<(), BookRefusal> {
        let device = u32::try_from(request.device).map_err(|_| BookRefusal::UnknownDevice)?;
        let room = room.ok_or(BookRefusal::UnknownDevice)?;
        let kind = request.kind().ok_or(BookRefusal::UnknownType)?;
        let known = self.usage.contains_key(&device);
        if !known && self.usage.len() >= MAX_DEVICES {
            return Err(BookRefusal::UnknownDevice);
        }
        let key = BufferKey { device, id: request.buffer, kind };
        let before = self.buffers.get(&key).map_or(0, |buffer| buffer.bytes);
        let space = kind.space();
        let used = self.live_bytes(device, space).saturating_sub(before);
        if used.checked_add(request.size).is_none_or(|sum| sum > room.bytes[place(space)]) {
            return Err(BookRefusal::TooLarge);
        }
        if before > 0 || self.buffers.contains_key(&key) {
            self.take_out(key);
            self.faults.reused_live_addresses += 1;
        } else if !room.buffer {
            return Err(BookRefusal::Full);
        }
        self.entered += 1;
        self.buffers.insert(key, BookedBuffer { bytes: request.size, entered: self.entered });
        let usage = &mut self.usage.entry(device).or_default()[usize::from(kind.code())];
        usage.live_bytes += request.size;
        usage.live_buffers += 1;
        usage.peak_bytes = usage.peak_bytes.max(usage.live_bytes);
        usage.allocations += 1;
        usage.allocated_bytes = usage.allocated_bytes.saturating_add(request.size);
        Ok(())
    }

    /// Takes out the buffer with that address. A free does not say of which kind it is; where
    /// several have the address, it is the one that came last, as buffers are used.
    fn strike(&mut self, request: &Request) -> Result<(), BookRefusal> {
        let device = u32::try_from(request.device).map_err(|_| BookRefusal::UnknownFree)?;
        let of_kind = |kind: &MemoryKind| {
            let key = BufferKey { device, id: request.buffer, kind: *kind };
            self.buffers.get(&key).map(|buffer| (buffer.entered, key))
        };
        let last = request.freed_kinds().iter().filter_map(of_kind).max_by_key(|(at, _)| *at);
        let (_, key) = last.ok_or(BookRefusal::UnknownFree)?;
        self.take_out(key);
        Ok(())
    }

    fn take_out(&mut self, key: BufferKey) {
        let Some(buffer) = self.buffers.remove(&key) else { return };
        if let Some(usage) = self.usage.get_mut(&key.device) {
            let usage = &mut usage[usize::from(key.kind.code())];
            debug_assert!(usage.live_bytes >= buffer.bytes && usage.live_buffers > 0);
            usage.live_bytes = usage.live_bytes.saturating_sub(buffer.bytes);
            usage.live_buffers = usage.live_buffers.saturating_sub(1);
        }
    }

    /// Bytes that are live in one space of one device.
    pub(crate) fn live_bytes(&self, device: u32, space: MemorySpace) -> u64 {
        let Some(usage) = self.usage.get(&device) else { return 0 };
        let kinds = MemoryKind::ALL.into_iter().zip(usage);
        kinds.filter(|(kind, _)| kind.space() == space).map(|(_, usage)| usage.live_bytes).sum()
    }

    /// How many buffers are in it.
    pub(crate) fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// Device by device, what was ever entered.
    pub(crate) fn devices(&self) -> impl Iterator<Item = (u32, Vec<KindUsage>)> {
        self.usage.iter().map(|(device, usage)| {
            let kinds = MemoryKind::ALL.into_iter().zip(usage);
            let used = kinds.filter(|(_, usage)| usage.allocations > 0);
            (*device, used.map(|(kind, usage)| KindUsage { kind, usage: *usage }).collect())
        })
    }

    /// What went wrong.
    pub(crate) fn faults(&self) -> RecordingFaults {
        self.faults
    }
}

/// The place of a space in [`Room::bytes`].
pub(crate) fn place(space: MemorySpace) -> usize {
    MemorySpace::ALL.iter().position(|one| *one == space).expect("all spaces are in it")
}

#[cfg(test)]
mod tests {
    use super::{Book, BookRefusal, KINDS, Room};
    use crate::legacy::message::{Request, Verb};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use telltale_schema::memory::MemorySpace;

    const ROOM: Room = Room { bytes: [1000, 100, 1000], buffer: true };

    fn request(verb: Verb, buffer: u64, size: u64, buffer_type: u8) -> Request {
        Request { verb, device: 0, size, buffer_type, process: 1, buffer }
    }

    fn live(book: &Book) -> [u64; 3] {
        MemorySpace::ALL.map(|space| book.live_bytes(0, space))
    }

    #[test]
    fn what_is_entered_can_be_struck_out_once() {
        let mut book = Book::default();
        let mut note = |verb, buffer, size, buffer_type| {
            let outcome = book.note(&request(verb, buffer, size, buffer_type), Some(ROOM));
            (outcome, live(&book))
        };
        assert_eq!(note(Verb::Alloc, 64, 10, 0), (Ok(()), [10, 0, 0]));
        assert_eq!(note(Verb::Alloc, 64, 5, 1), (Ok(()), [10, 5, 0]), "the same address in L1");
        assert_eq!(note(Verb::CbAlloc, 64, 7, 0), (Ok(()), [10, 12, 0]));
        assert_eq!(note(Verb::KernelLoad, 64, 9, 2), (Ok(()), [10, 21, 0]));
        assert_eq!(
            note(Verb::Alloc, 1, 3, 2),
            (Ok(()), [10, 21, 3]),
            "system memory is the host's"
        );
        assert_eq!(note(Verb::Alloc, 64, 40, 0), (Ok(()), [40, 21, 3]), "again, its free was lost");
        assert_eq!(note(Verb::KernelUnload, 64, 0, 0), (Ok(()), [40, 12, 3]));
        assert_eq!(note(Verb::Free, 64, 0, 0), (Ok(()), [0, 12, 3]), "what came last");
        assert_eq!(note(Verb::Free, 64, 0, 0), (Ok(()), [0, 7, 3]));
        assert_eq!(note(Verb::Free, 64, 0, 0), (Err(BookRefusal::UnknownFree), [0, 7, 3]));
        assert_eq!(note(Verb::CbFree, 64, 0, 0), (Ok(()), [0, 0, 3]));
        let faults = book.faults();
        assert_eq!((faults.unknown_frees, faults.reused_live_addresses), (1, 1));
        let (_, kinds) = book.devices().next().unwrap();
        assert_eq!((kinds[0].usage.peak_bytes, kinds[0].usage.allocated_bytes), (40, 50));
    }

    #[test]
    fn poison_changes_nothing() {
        let mut book = Book::default();
        book.note(&request(Verb::Alloc, 1, 90, 1), Some(ROOM)).unwrap();
        let full = Room { buffer: false, ..ROOM };
        for (request, room, refusal) in [
            (request(Verb::Alloc, 2, u64::MAX, 0), Some(ROOM), BookRefusal::TooLarge),
            (request(Verb::Alloc, 2, 1001, 0), Some(ROOM), BookRefusal::TooLarge),
            (request(Verb::CbAlloc, 2, 11, 0), Some(ROOM), BookRefusal::TooLarge),
            (request(Verb::Alloc, 1, 101, 1), Some(ROOM), BookRefusal::TooLarge),
            (request(Verb::Alloc, 2, 1, 5), Some(ROOM), BookRefusal::UnknownType),
            (request(Verb::KernelLoad, 2, 1, 3), Some(ROOM), BookRefusal::UnknownType),
            (request(Verb::Alloc, 2, 1, 0), None, BookRefusal::UnknownDevice),
            (request(Verb::Alloc, 2, 1, 0), Some(full), BookRefusal::Full),
            (request(Verb::Free, 2, 1, 0), Some(ROOM), BookRefusal::UnknownFree),
            (
                Request { device: -1, ..request(Verb::Alloc, 2, 1, 0) },
                Some(ROOM),
                BookRefusal::UnknownDevice,
            ),
            (
                Request { device: i32::MIN, ..request(Verb::Free, 1, 1, 0) },
                Some(ROOM),
                BookRefusal::UnknownFree,
            ),
        ] {
            assert_eq!(book.note(&request, room), Err(refusal), "{request:?}");
            assert_eq!((live(&book), book.buffers()), ([0, 90, 0], 1), "{request:?}");
        }
        assert_eq!(book.faults().unrecorded_events, 9);
        book.note(&request(Verb::Alloc, 1, 100, 1), Some(full)).unwrap();
        assert_eq!(live(&book), [0, 100, 0], "what it replaces makes room");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(telltale_harness::rounds(256, 20_000)))]
        #[test]
        fn sums_are_those_of_the_buffers(steps in prop::collection::vec(
            (prop::sample::select(&Verb::ALL), 0_u64..4, 0_u64..200, 0_u8..6), 0..200,
        )) {
            let mut book = Book::default();
            for (verb, buffer, size, buffer_type) in steps {
                let _ = book.note(&request(verb, buffer, size, buffer_type), Some(ROOM));
                let mut sums = BTreeMap::new();
                for (key, buffer) in &book.buffers {
                    let (bytes, count) = sums.entry(key.kind).or_insert((0, 0));
                    (*bytes, *count) = (*bytes + buffer.bytes, *count + 1);
                }
                for (_, kinds) in book.devices() {
                    prop_assert!(kinds.len() <= KINDS);
                    for one in kinds {
                        let (bytes, count) = sums.get(&one.kind).copied().unwrap_or_default();
                        prop_assert_eq!((one.usage.live_bytes, one.usage.live_buffers), (bytes, count));
                        prop_assert!(one.usage.peak_bytes >= bytes);
                    }
                }
                let live = live(&book);
                prop_assert!(live.iter().zip(ROOM.bytes).all(|(live, most)| *live <= most));
            }
        }
    }
}
