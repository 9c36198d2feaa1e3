//! A shape as four sizes: the last two are a matrix's rows and columns, the others count matrices.

use telltale_program_cache::Shape;

/// More dimensions than this are refused.
pub const MAX_RANK: usize = 4;

/// The sizes of four dimensions, outermost first; those that a shape lacks are 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Extents(pub(crate) [u32; 4]);

impl Extents {
    /// The sizes of a shape of at most [`MAX_RANK`] dimensions (tensors have no more).
    pub(crate) fn of(shape: &Shape) -> Self {
        let mut sizes = [1; 4];
        let first = MAX_RANK - shape.dimensions().len().min(MAX_RANK);
        sizes[first..].copy_from_slice(&shape.dimensions()[..MAX_RANK - first]);
        Self(sizes)
    }

    pub(crate) fn matrices(self) -> u32 {
        self.0[0] * self.0[1]
    }

    pub(crate) fn rows(self) -> u32 {
        self.0[2]
    }

    pub(crate) fn columns(self) -> u32 {
        self.0[3]
    }

    pub(crate) fn element_count(self) -> u64 {
        self.0.iter().map(|size| u64::from(*size)).product()
    }
}
