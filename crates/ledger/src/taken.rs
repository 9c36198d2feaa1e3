//! How high a process's own memory went between two moments: it takes its peaks out of its ledger, and leaves them to
//! readers in another word. See docs/ledger.md.

use std::io;

use rustix::fs::{Mode, OFlags, fstat, openat};
use telltale_schema::memory::MemoryKind;

use crate::cell::{Cell, CellType, OWN_PEAK, PEAK, POSTED_LIVE, TAG, TAKEN_PEAK, Tag};
use crate::device::DeviceSlot;
use crate::directory::{RuntimeDirectory, checked};
use crate::layout::{
    CELL_BYTES, CELLS_CAPACITY, CELLS_OFFSET, FILE_BYTES, LAYOUT_VERSION, READY, header,
};
use crate::mapping::Mapping;
use crate::owner::identity_of_this_process;
use crate::posting::take_peak;
use crate::reader::LedgerReader;
use crate::sync::Ordering;

/// A ledger of this process, whichever library of it records there.
///
/// A child of `fork` must not use it: what is in it is the parent's.
#[derive(Debug)]
pub struct OwnPeaks {
    mapping: Mapping,
}

/// A peak since it was taken before.
pub type TakenPeak = (DeviceSlot, MemoryKind, u64);

impl OwnPeaks {
    /// Opens the ledger `name` of this process.
    ///
    /// # Errors
    /// When the name leads out of the directory, or the ledger cannot be opened or mapped, is another process's, or
    /// has another version's layout.
    pub fn open_at(directory: &RuntimeDirectory, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let writable = openat(directory, checked(name)?, flags, Mode::empty())?;
        let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
        let size = usize::try_from(fstat(&writable)?.st_size).unwrap_or(0);
        if size < FILE_BYTES {
            return Err(refused("the file is shorter than a ledger"));
        }
        let again = writable.try_clone()?;
        let reader = LedgerReader::from_descriptor(again).map_err(io::Error::other)?;
        let own = identity_of_this_process().map_err(io::Error::other)?;
        if *reader.owner() != own || reader.uid() != rustix::process::geteuid().as_raw() {
            return Err(refused("it is the ledger of another process"));
        }
        let mapping = Mapping::writable(std::os::fd::AsFd::as_fd(&writable), FILE_BYTES)?;
        // SYNC: header
        let ready = mapping.word(header::READY).load(Ordering::Acquire);
        let is_same_layout = [
            (header::LAYOUT_VERSION, u64::from(LAYOUT_VERSION)),
            (header::CELLS_OFFSET, CELLS_OFFSET as u64),
            (header::CELL_BYTES, CELL_BYTES as u64),
        ]
        .iter()
        .all(|(at, value)| u64::from(mapping.half_word(*at).load(Ordering::Relaxed)) == *value);
        if ready != READY || !is_same_layout {
            return Err(refused("another version's library writes it"));
        }
        Ok(Self { mapping })
    }

    /// Takes the peaks: each is the most bytes in use at a time since the last call, or 0 where nothing was allocated
    /// since. It is exact while one thread records, as a peak is (see `docs/ledger.md`).
    pub fn take(&self) -> Vec<TakenPeak> {
        // SYNC: cell count
        let used = self.mapping.word(header::CELLS_USED).load(Ordering::Acquire);
        let used = usize::try_from(used).unwrap_or(usize::MAX).min(CELLS_CAPACITY);
        let cells: Vec<_> = (0..used).filter_map(|at| known(self.mapping.cell(at))).collect();
        let of_thread = |(tag, _): &&(Known, &Cell)| tag.cell_type == CellType::Thread;
        let mut taken: Vec<TakenPeak> = Vec::new();
        for (known, cell) in &cells {
            let same = |(other, _): &&(Known, &Cell)| other.place() == known.place();
            let peak = match known.cell_type {
                CellType::Thread => take_peak(cell.word(OWN_PEAK), cell.word(TAKEN_PEAK)),
                CellType::Shared => match cells.iter().filter(of_thread).find(same) {
                    Some((_, kept)) => take_peak(cell.word(PEAK), kept.word(TAKEN_PEAK)),
                    // A ledger without threads' cells posts nothing.
                    None if !cells.iter().any(|one| of_thread(&one)) => {
                        take_peak(cell.word(PEAK), cell.word(POSTED_LIVE))
                    }
                    // Threads without cells of their own alone allocate there: nowhere to keep it.
                    None => cell.word(PEAK).load(Ordering::Relaxed),
                },
            };
            let (slot, kind) = known.place();
            match taken.iter_mut().find(|(at, of, _)| (*at, *of) == (slot, kind)) {
                Some((_, _, most)) => *most = peak.max(*most),
                None => taken.push((slot, kind, peak)),
            }
        }
        taken
    }
}

/// What a published cell counts.
#[derive(Debug, Clone, Copy)]
struct Known {
    slot: DeviceSlot,
    kind: MemoryKind,
    cell_type: CellType,
}

impl Known {
    fn place(&self) -> (DeviceSlot, MemoryKind) {
        (self.slot, self.kind)
    }
}

fn known(cell: &Cell) -> Option<(Known, &Cell)> {
    // SYNC: cell publication
    let tag = Tag::from_word(cell.word(TAG).load(Ordering::Acquire));
    let cell_type = CellType::from_code(tag.cell_type)?;
    let kind = MemoryKind::from_code(tag.kind)?;
    Some((Known { slot: DeviceSlot(tag.device), kind, cell_type }, cell))
}
