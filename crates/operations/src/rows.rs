//! What operations on whole rows have in common: rows of several matrices that follow each other
//! in memory are rows of one.

use telltale_program_cache::{Layout, OperandSpec};

use crate::extents::Extents;
use crate::memory_order::TILE;

/// The sizes of `spec` with all rows in one matrix where its layout allows that.
pub(crate) fn with_rows_joined(spec: &OperandSpec) -> Extents {
    let extents = Extents::of(&spec.shape);
    if spec.layout == Layout::RowMajor || extents.rows().is_multiple_of(TILE) {
        Extents([1, 1, extents.matrices() * extents.rows(), extents.columns()])
    } else {
        extents
    }
}

/// The same rows with a single column: the sizes of something that there is once a row, kept in
/// row-major order.
pub(crate) fn one_column(extents: Extents) -> Extents {
    let [outer, inner, rows, _] = extents.0;
    Extents([outer, inner, rows, 1])
}

pub(crate) fn tiled(spec: &OperandSpec) -> bool {
    spec.layout != Layout::RowMajor
}
