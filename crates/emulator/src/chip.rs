//! One chip: its memories, who holds what in them, and the exact sums of it.
//!
//! A buffer is spread over all banks (DRAM) or worker cores (L1) at the same bank-relative
//! address, as tt-metal's interleaved buffers are. It does no I/O and knows no processes: an
//! owner is a number that the caller chooses.

use std::collections::HashMap;

use telltale_schema::chip::{Architecture, ChipFacts};
use telltale_schema::memory::{MemoryKind, MemorySpace};

use crate::allocator::{End, FreeList};
use crate::machine::ChipDescription;

/// Pages of interleaved buffers are this large, or as large as a smaller buffer: one tile of
/// two-byte numbers.
const PAGE_BYTES: u64 = 2_048;
/// What the firmware keeps at the bottom of each DRAM bank. A round number, not a measured one; it
/// is larger than any core's L1, so that an address says which of the two memories it is in.
const DRAM_RESERVED_BYTES: u64 = 2 << 20;
/// What firmware and mailboxes keep at the bottom of each core's L1. A round number as well.
const L1_RESERVED_BYTES: u64 = 100 << 10;
/// Host memory that a chip can reach: four huge pages of a gibibyte.
const HOST_BYTES: u64 = 4 << 30;
/// The unit of host memory.
const HOST_PAGE_BYTES: u64 = 4_096;
/// Live buffers that one chip takes: far more than any runtime keeps, and few enough that a
/// client cannot use up the host's memory.
const MAX_BUFFERS: usize = 1 << 20;

const KINDS: usize = MemoryKind::ALL.len();

/// How much of one kind is allocated now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KindUsage {
    /// The sum of the sizes that were asked for: what a runtime's buffers say they are, and what
    /// a ledger is compared with.
    pub requested_bytes: u64,
    /// The sum of what these buffers take up, padding and the same place in every bank included.
    pub reserved_bytes: u64,
    /// The number of buffers.
    pub buffers: u64,
}

/// What is allocated, by kind: indexed by a [`MemoryKind`]'s code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage(pub(crate) [KindUsage; KINDS]);

/// Why nothing was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AllocateError {
    /// No free block is large enough.
    #[error(
        "out of {} memory: asked for {requested_bytes} bytes; {free_bytes} bytes are free, \
         {largest_bytes} in the largest block",
        space.name()
    )]
    OutOfMemory {
        /// Which memory.
        space: MemorySpace,
        /// What was asked for.
        requested_bytes: u64,
        /// What is free altogether.
        free_bytes: u64,
        /// What the largest free block could take.
        largest_bytes: u64,
    },
    /// The chip has as many buffers as it can distinguish.
    #[error("the chip has {MAX_BUFFERS} buffers, which is as many as it can: free some first")]
    TooManyBuffers,
    /// A buffer of no bytes.
    #[error("a buffer has at least one byte")]
    Empty,
}

/// Why nothing was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this owner has no {} buffer at {address:#x}", kind.name())]
pub struct FreeError {
    /// The kind that was named.
    pub kind: MemoryKind,
    /// The address that was named.
    pub address: u64,
}

/// A chip.
#[derive(Debug)]
pub struct Chip {
    description: ChipDescription,
    dram: Space,
    l1: Space,
    host: Space,
    owners: HashMap<u64, Owner>,
    total: Usage,
    buffers: usize,
}

/// One memory: a free list of bank-relative addresses, and how buffers are spread over banks.
#[derive(Debug)]
struct Space {
    free: FreeList,
    spread: Spread,
}

/// How the buffers of one memory are spread over its banks.
#[derive(Debug, Clone, Copy)]
struct Spread {
    banks: u64,
    alignment_bytes: u64,
    page_bytes: u64,
}

#[derive(Debug, Default)]
struct Owner {
    buffers: HashMap<(MemorySpace, u64), ChipBuffer>,
    usage: Usage,
}

#[derive(Debug, Clone, Copy)]
struct ChipBuffer {
    kind: MemoryKind,
    requested_bytes: u64,
    bank_bytes: u64,
}

impl Usage {
    /// The usage of one kind.
    pub fn of(&self, kind: MemoryKind) -> KindUsage {
        self.0[usize::from(kind.code())]
    }

    /// All kinds of which something is allocated.
    pub fn kinds(&self) -> impl Iterator<Item = (MemoryKind, KindUsage)> {
        MemoryKind::ALL
            .into_iter()
            .map(|kind| (kind, self.of(kind)))
            .filter(|(_, usage)| *usage != KindUsage::default())
    }

    /// Whether nothing is allocated.
    pub fn is_empty(&self) -> bool {
        self.kinds().next().is_none()
    }

    /// Adds another owner's usage.
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, part) in self.0.iter_mut().zip(&other.0) {
            sum.requested_bytes += part.requested_bytes;
            sum.reserved_bytes += part.reserved_bytes;
            sum.buffers += part.buffers;
        }
    }

    fn count(&mut self, kind: MemoryKind, requested: u64, reserved: u64) {
        let usage = &mut self.0[usize::from(kind.code())];
        usage.requested_bytes += requested;
        usage.reserved_bytes += reserved;
        usage.buffers += 1;
    }

    fn discount(&mut self, kind: MemoryKind, requested: u64, reserved: u64) {
        let usage = &mut self.0[usize::from(kind.code())];
        usage.requested_bytes -= requested;
        usage.reserved_bytes -= reserved;
        usage.buffers -= 1;
    }
}

impl Space {
    /// The DRAM or L1 of a chip, or the host memory it can reach.
    fn of(facts: &ChipFacts, space: MemorySpace) -> Self {
        let (start, end) = match space {
            MemorySpace::Dram => {
                let bank_bytes = facts.dram_capacity_bytes / u64::from(facts.dram_channels);
                (DRAM_RESERVED_BYTES, bank_bytes)
            }
            MemorySpace::L1 => (L1_RESERVED_BYTES, facts.l1_per_core_bytes),
            MemorySpace::Host => (0, HOST_BYTES),
        };
        Self { free: FreeList::new(start, end), spread: Spread::of(facts, space) }
    }
}

impl Spread {
    fn of(facts: &ChipFacts, space: MemorySpace) -> Self {
        let (alignment_bytes, page_bytes) = match (space, facts.architecture) {
            (MemorySpace::Dram, Architecture::Blackhole) => (64, PAGE_BYTES),
            (MemorySpace::Dram, _) => (32, PAGE_BYTES),
            (MemorySpace::L1, _) => (16, PAGE_BYTES),
            (MemorySpace::Host, _) => (HOST_PAGE_BYTES, HOST_PAGE_BYTES),
        };
        Self { banks: banks(facts, space), alignment_bytes, page_bytes }
    }

    /// What a buffer takes of each bank; none if the number leaves 64 bits.
    fn bank_bytes(&self, bytes: u64) -> Option<u64> {
        let page = bytes.min(self.page_bytes).next_multiple_of(self.alignment_bytes);
        bytes.div_ceil(page).div_ceil(self.banks).checked_mul(page)
    }
}

/// Over how many banks or cores a chip's buffers are spread.
pub(crate) fn banks(facts: &ChipFacts, space: MemorySpace) -> u64 {
    match space {
        MemorySpace::Dram => facts.dram_channels.into(),
        MemorySpace::L1 => facts.worker_cores.into(),
        MemorySpace::Host => 1,
    }
}

/// What a buffer takes of each bank; none if that leaves 64 bits or nothing is asked for.
pub(crate) fn bank_bytes(facts: &ChipFacts, space: MemorySpace, bytes: u64) -> Option<u64> {
    if bytes == 0 { None } else { Spread::of(facts, space).bank_bytes(bytes) }
}

// === impl Chip ===

impl Chip {
    /// A chip in whose memories nothing is allocated.
    pub fn new(description: ChipDescription) -> Self {
        let facts: ChipFacts = description.facts;
        Self {
            description,
            dram: Space::of(&facts, MemorySpace::Dram),
            l1: Space::of(&facts, MemorySpace::L1),
            host: Space::of(&facts, MemorySpace::Host),
            owners: HashMap::new(),
            total: Usage::default(),
            buffers: 0,
        }
    }

    /// Who the chip is and what it has.
    pub fn description(&self) -> &ChipDescription {
        &self.description
    }

    /// Allocates a buffer of `bytes` and gives its bank-relative address, which is unique among
    /// the live buffers of the kind's memory space and may be one that was freed before. DRAM
    /// and program memory in L1 fill from the bottom, L1 buffers and traces from the top.
    ///
    /// # Errors
    /// When no block is large enough, there are too many buffers, or nothing is asked for.
    pub fn allocate(
        &mut self,
        owner: u64,
        kind: MemoryKind,
        bytes: u64,
    ) -> Result<u64, AllocateError> {
        if bytes == 0 {
            return Err(AllocateError::Empty);
        }
        if self.buffers >= MAX_BUFFERS {
            return Err(AllocateError::TooManyBuffers);
        }
        let end = match kind {
            MemoryKind::L1 | MemoryKind::L1Small | MemoryKind::Trace => End::High,
            _ => End::Low,
        };
        let space = self.space(kind.space());
        let placed = space
            .spread
            .bank_bytes(bytes)
            .and_then(|size| space.free.take(size, end).map(|address| (size, address)));
        let Some((bank_bytes, address)) = placed else {
            return Err(AllocateError::OutOfMemory {
                space: kind.space(),
                requested_bytes: bytes,
                free_bytes: space.free.free() * space.spread.banks,
                largest_bytes: space.free.largest() * space.spread.banks,
            });
        };
        let reserved = bank_bytes * space.spread.banks;
        let owner = self.owners.entry(owner).or_default();
        let buffer = ChipBuffer { kind, requested_bytes: bytes, bank_bytes };
        let before = owner.buffers.insert((kind.space(), address), buffer);
        assert!(before.is_none(), "the free list gives no address twice");
        owner.usage.count(kind, bytes, reserved);
        self.total.count(kind, bytes, reserved);
        self.buffers += 1;
        Ok(address)
    }

    /// Frees a buffer and reports how many bytes had been asked for.
    ///
    /// # Errors
    /// When this owner has no buffer of this kind there.
    pub fn free(&mut self, owner: u64, kind: MemoryKind, address: u64) -> Result<u64, FreeError> {
        let key = (kind.space(), address);
        let unknown = FreeError { kind, address };
        let held = self.owners.get_mut(&owner).ok_or(unknown)?;
        if held.buffers.get(&key).is_none_or(|buffer| buffer.kind != kind) {
            return Err(unknown);
        }
        let buffer = held.buffers.remove(&key).ok_or(unknown)?;
        let emptied = held.buffers.is_empty();
        self.forget(owner, key, buffer);
        if emptied {
            self.owners.remove(&owner);
        }
        Ok(buffer.requested_bytes)
    }

    /// Frees everything that an owner has, and reports how many buffers that were.
    pub fn release(&mut self, owner: u64) -> u64 {
        let Some(held) = self.owners.get_mut(&owner) else {
            return 0;
        };
        let buffers = std::mem::take(&mut held.buffers);
        let mut released = 0;
        for (key, buffer) in buffers {
            self.forget(owner, key, buffer);
            released += 1;
        }
        self.owners.remove(&owner);
        released
    }

    /// What all owners have.
    pub fn usage(&self) -> Usage {
        self.total
    }

    /// What one owner has.
    pub fn usage_of(&self, owner: u64) -> Usage {
        self.owners.get(&owner).map_or_else(Usage::default, |held| held.usage)
    }

    /// Bytes that can be allocated when nothing is: less than the capacity, because firmware has
    /// a part.
    pub fn allocatable_bytes(&self, space: MemorySpace) -> u64 {
        let facts = &self.description.facts;
        match space {
            MemorySpace::Dram => {
                facts.dram_capacity_bytes - DRAM_RESERVED_BYTES * u64::from(facts.dram_channels)
            }
            MemorySpace::L1 => {
                facts.l1_capacity_bytes() - L1_RESERVED_BYTES * u64::from(facts.worker_cores)
            }
            MemorySpace::Host => HOST_BYTES,
        }
    }

    /// Gives a buffer's place back and takes it out of the sums.
    fn forget(&mut self, owner: u64, (space, address): (MemorySpace, u64), buffer: ChipBuffer) {
        let space = self.space(space);
        space.free.give_back(address, buffer.bank_bytes);
        let reserved = buffer.bank_bytes * space.spread.banks;
        self.total.discount(buffer.kind, buffer.requested_bytes, reserved);
        if let Some(held) = self.owners.get_mut(&owner) {
            held.usage.discount(buffer.kind, buffer.requested_bytes, reserved);
        }
        self.buffers -= 1;
    }

    fn space(&mut self, space: MemorySpace) -> &mut Space {
        match space {
            MemorySpace::Dram => &mut self.dram,
            MemorySpace::L1 => &mut self.l1,
            MemorySpace::Host => &mut self.host,
        }
    }
}
