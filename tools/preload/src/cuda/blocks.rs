//! What a process has of its driver: blocks by address, physical memory by handle, and where the
//! latter is mapped. The driver's calls take microseconds, so that a lock and a tree do here.

use std::collections::BTreeMap;

use telltale_ledger::Account;

use super::driver::{Handle, Pointer};

/// Blocks, pieces of physical memory and maps that are kept, of each. Further ones are unrecorded.
const MOST: usize = 1 << 20;

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    blocks: BTreeMap<Pointer, Block>,
    /// By a number of our own: the driver may reuse a handle while what it was is still mapped.
    pieces: BTreeMap<u64, Piece>,
    handles: BTreeMap<Handle, u64>,
    maps: BTreeMap<Pointer, u64>,
    next_piece: u64,
}

/// One block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) account: Account<'static>,
    pub(crate) bytes: u64,
    /// The device's number.
    pub(crate) device: usize,
    /// The context it was allocated in.
    pub(crate) context: usize,
}

/// A piece of physical memory: it is there as long as anybody holds it or it is mapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) account: Account<'static>,
    pub(crate) bytes: u64,
    references: u64,
    maps: u64,
}

impl Blocks {
    /// Notes a block, and counts it. False if there is no room for it.
    pub(crate) fn add(&mut self, address: Pointer, block: Block) -> bool {
        if self.blocks.len() >= MOST {
            return false;
        }
        if let Some(old) = self.blocks.insert(address, block) {
            // Its end was hidden from us.
            old.account.freed(old.bytes);
        }
        block.account.allocated(block.bytes);
        true
    }

    /// Takes a block out that is about to be freed; it is not counted as that yet.
    pub(crate) fn take(&mut self, address: Pointer) -> Option<Block> {
        self.blocks.remove(&address)
    }

    /// Puts a block back that could not be freed.
    pub(crate) fn put_back(&mut self, address: Pointer, block: Block) {
        self.blocks.insert(address, block);
    }

    /// Counts the blocks that `are_gone` as freed, all together.
    pub(crate) fn forget(&mut self, are_gone: impl Fn(&Block) -> bool) {
        self.blocks.retain(|_, block| {
            let is_gone = are_gone(block);
            if is_gone {
                block.account.freed(block.bytes);
            }
            !is_gone
        });
    }

    /// Notes a piece of physical memory, and counts it. False if there is no room for it.
    pub(crate) fn add_piece(
        &mut self,
        handle: Handle,
        account: Account<'static>,
        bytes: u64,
    ) -> bool {
        if self.pieces.len() >= MOST {
            return false;
        }
        self.next_piece += 1;
        self.pieces.insert(self.next_piece, Piece { account, bytes, references: 1, maps: 0 });
        self.handles.insert(handle, self.next_piece);
        account.allocated(bytes);
        true
    }

    /// One more holds a piece.
    pub(crate) fn retain(&mut self, handle: Handle) {
        if let Some(piece) = self.handles.get(&handle).and_then(|one| self.pieces.get_mut(one)) {
            piece.references += 1;
        }
    }

    /// One less holds a piece. Gives its number, for [`Self::settle`] or [`Self::unrelease`].
    pub(crate) fn release(&mut self, handle: Handle) -> Option<u64> {
        let number = *self.handles.get(&handle)?;
        let piece = self.pieces.get_mut(&number)?;
        piece.references = piece.references.saturating_sub(1);
        if piece.references == 0 {
            self.handles.remove(&handle);
        }
        Some(number)
    }

    /// Takes a release back that failed.
    pub(crate) fn unrelease(&mut self, handle: Handle, number: u64) {
        if let Some(piece) = self.pieces.get_mut(&number) {
            piece.references += 1;
            self.handles.insert(handle, number);
        }
    }

    /// Notes where a piece is mapped.
    pub(crate) fn map(&mut self, address: Pointer, handle: Handle) {
        let Some(number) = self.handles.get(&handle).copied() else { return };
        if self.maps.len() >= MOST {
            return;
        }
        if let Some(piece) = self.pieces.get_mut(&number) {
            piece.maps += 1;
            self.maps.insert(address, number);
        }
    }

    /// Takes out all maps that begin in a range that is about to be unmapped.
    pub(crate) fn unmap(&mut self, address: Pointer, bytes: u64) -> Vec<(Pointer, u64)> {
        let range = address..address.saturating_add(bytes);
        let maps: Vec<_> = self.maps.range(range).map(|(at, number)| (*at, *number)).collect();
        for (at, number) in &maps {
            self.maps.remove(at);
            if let Some(piece) = self.pieces.get_mut(number) {
                piece.maps = piece.maps.saturating_sub(1);
            }
        }
        maps
    }

    /// Puts maps back that could not be unmapped.
    pub(crate) fn remap(&mut self, maps: Vec<(Pointer, u64)>) {
        for (at, number) in maps {
            if let Some(piece) = self.pieces.get_mut(&number) {
                piece.maps += 1;
                self.maps.insert(at, number);
            }
        }
    }

    /// Counts a piece as freed if unheld and it is mapped nowhere.
    pub(crate) fn settle(&mut self, number: u64) {
        let is_over = |piece: &Piece| piece.references == 0 && piece.maps == 0;
        if let Some(piece) = self.pieces.get(&number).copied().filter(is_over) {
            self.pieces.remove(&number);
            piece.account.freed(piece.bytes);
        }
    }
}
