//! One circular buffer of a program: its size, its formats, and whose memory it uses.

use smallvec::SmallVec;

use crate::cores::CoreRanges;
use crate::operand::{DataFormat, Tile};

/// How many circular buffers a core has; an index is smaller.
pub const CIRCULAR_BUFFERS_PER_CORE: u8 = 32;

/// A circular buffer. The order of its formats does not matter: their buffer index names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircularBufferDescriptor<A = u32> {
    /// Its size on each core.
    pub total_bytes: u32,
    /// Where it is.
    pub core_ranges: CoreRanges,
    /// What the kernels of the core see: one entry for each buffer index that shares the memory.
    pub formats: SmallVec<[CircularBufferFormat; 1]>,
    /// The same for the far end of a remote buffer; empty for all others.
    pub remote_formats: SmallVec<[CircularBufferFormat; 1]>,
    /// Whose memory it uses.
    pub placement: Placement<A>,
    /// Where in that memory it begins, in bytes.
    pub address_offset_bytes: u32,
}

/// One buffer index of a circular buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CircularBufferFormat {
    /// What kernels call it; below [`CIRCULAR_BUFFERS_PER_CORE`].
    pub buffer_index: u8,
    /// What is in it.
    pub data_format: DataFormat,
    /// How much is pushed and popped at once.
    pub page_bytes: u32,
    /// The tile, for a buffer whose pages are tiles.
    pub tile: Option<Tile>,
}

/// Whose memory a circular buffer uses. Which of the three is structure, the address is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Placement<A = u32> {
    /// The program's own.
    #[default]
    Own,
    /// An operand's buffer.
    OnBuffer {
        /// Its address on each core.
        address: A,
    },
    /// A global circular buffer, which spans cores.
    Remote {
        /// Its address on each core.
        global_circular_buffer: A,
    },
}

impl<A> CircularBufferDescriptor<A> {
    /// A circular buffer in the program's own memory with one format and room for `pages`.
    #[must_use]
    pub fn own(
        core_ranges: impl Into<CoreRanges>,
        pages: u32,
        format: CircularBufferFormat,
    ) -> Self {
        Self {
            total_bytes: format.page_bytes.saturating_mul(pages),
            core_ranges: core_ranges.into(),
            formats: SmallVec::from_elem(format, 1),
            remote_formats: SmallVec::new(),
            placement: Placement::Own,
            address_offset_bytes: 0,
        }
    }

    /// The same buffer with another value in the place of its address.
    pub fn map<B>(&self, value_of: impl FnMut(&A) -> B) -> CircularBufferDescriptor<B> {
        CircularBufferDescriptor {
            total_bytes: self.total_bytes,
            core_ranges: self.core_ranges.clone(),
            formats: self.formats.clone(),
            remote_formats: self.remote_formats.clone(),
            placement: self.placement.map(value_of),
            address_offset_bytes: self.address_offset_bytes,
        }
    }
}

impl<A> Placement<A> {
    /// What stands for the address; none for the program's own memory.
    #[must_use]
    pub const fn address(&self) -> Option<&A> {
        match self {
            Self::Own => None,
            Self::OnBuffer { address } => Some(address),
            Self::Remote { global_circular_buffer } => Some(global_circular_buffer),
        }
    }

    /// The same placement with another value in the place of the address.
    pub fn map<B>(&self, mut value_of: impl FnMut(&A) -> B) -> Placement<B> {
        match self {
            Self::Own => Placement::Own,
            Self::OnBuffer { address } => Placement::OnBuffer { address: value_of(address) },
            Self::Remote { global_circular_buffer } => {
                Placement::Remote { global_circular_buffer: value_of(global_circular_buffer) }
            }
        }
    }
}
