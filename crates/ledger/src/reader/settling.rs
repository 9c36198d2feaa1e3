//! Cells that were being written while they were copied: which copy of each is kept, and when
//! another copy of the ledger is of no use.

use super::LedgerHeader;
use super::accounts::words;
use crate::cell::{CellType, TAG, Tag, is_whole};

/// Replaces each torn thread cell of `copy` by its whole twin in `previous`, the copy that was taken
/// and settled before. Gives whether another copy could be better: a torn cell has no whole twin,
/// and is not as it was before either. One that is exactly as before has a writer that is
/// stopped or dead in the middle of a record, and stays so.
pub(crate) fn settle(header: &LedgerHeader, previous: &[u8], copy: &mut [u8]) -> bool {
    let start = header.cells_offset();
    let width = header.cell_bytes();
    let Some(cells) = copy.get_mut(start..) else { return false };
    let before = previous.get(start..).unwrap_or_default();
    let mut twins = before.chunks_exact(width);
    let mut moving = false;
    for cell in cells.chunks_exact_mut(width) {
        let twin = twins.next();
        let now = words(cell);
        let is_counted = Tag::from_word(now[TAG]).cell_type == CellType::Thread.code();
        if !is_counted || is_whole(&now) {
            continue;
        }
        match twin {
            Some(twin) if words(twin)[TAG] == now[TAG] && is_whole(&words(twin)) => {
                cell.copy_from_slice(twin);
            }
            Some(twin) if twin == &*cell => {}
            _ => moving = true,
        }
    }
    moving
}
