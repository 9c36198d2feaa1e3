//! One chip's directories, kept open, and what was last read from each of its files.

use std::sync::Arc;

use rustix::io::Errno;
use telltale_schema::chip::{AsicId, BoardId, BoardType, PciAddress};
use telltale_schema::clock::Timestamp;

use super::fields::{FileLocation, Item, ReadInterval};
use super::traffic::FlitCounter;
use crate::traffic_rate::TrafficRate;
use crate::tree::{Directory, MAX_PIDS_BYTES, Tree, Unreadable};

/// How long a collector that keeps running believes a file that seldom changes, and the absence
/// of one: firmware may offer more up to two minutes after it started (tt-kmd).
const SELDOM_NS: u64 = 10_000_000_000;

/// How long the last good value stands in for one that timed out.
const STALE_NS: u64 = 60_000_000_000;

/// What reading one file gave.
#[derive(Debug, Clone)]
pub(super) enum FileOutcome {
    /// Its content and when it was read.
    Text {
        text: Vec<u8>,
        at: Timestamp,
    },
    Unreadable(Unreadable),
    TimedOut,
    NotAsked,
}

/// A file's last outcome and when to check again.
#[derive(Debug, Clone)]
pub(super) struct FileSlot {
    pub(super) outcome: FileOutcome,
    /// The last read did not come back; `outcome` may be an older one.
    pub(super) timed_out: bool,
    rescan_ns: u64,
    /// When the text of `outcome` was read.
    pub(super) read_ns: u64,
}

/// A chip that the driver shows.
#[derive(Debug)]
pub(super) struct OpenChip {
    pub(super) ordinal: u32,
    pub(super) pci: Option<PciAddress>,
    pub(super) slots: Vec<FileSlot>,
    pub(super) counters: Vec<FlitCounter>,
    /// From the host to the chip, and from the chip to the host.
    pub(super) rates: [TrafficRate; 2],
    /// Who the chip was when its files said so last. They say nothing while it resets; its address
    /// and this registration with the driver are what it is known by until they do again.
    pub(super) known: ChipFacts,
    /// Device and inode of the class directory: another one is another registration of the chip.
    registration: (u64, u64),
    class: Arc<Directory>,
    function: Option<Arc<Directory>>,
    hwmon: Option<Arc<Directory>>,
    process_list: Option<Arc<Directory>>,
}

/// What a chip's files have said of who it is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChipFacts {
    pub(super) board_id: Option<BoardId>,
    pub(super) asic_id: Option<AsicId>,
    pub(super) board_type: BoardType,
}

/// One read to be done on a thread that can be given up.
pub(super) struct FileRead {
    directory: Arc<Directory>,
    file: &'static str,
    whole: bool,
}

// === impl FileRead ===

impl FileRead {
    /// Does it.
    pub(super) fn run(&self) -> Result<Vec<u8>, Unreadable> {
        if self.whole {
            self.directory.file(self.file, MAX_PIDS_BYTES)
        } else {
            self.directory.attribute(self.file)
        }
    }
}

// === impl OpenChip ===

impl OpenChip {
    /// Opens the directories of the chip `tenstorrent!ordinal`. Only the first must be there. It
    /// has a file for each of `wanted`, which tells whether that is ever read.
    pub(super) fn open(tree: &Tree, ordinal: u32, wanted: &[bool]) -> Result<Self, Unreadable> {
        let root = tree.root();
        let class = root.directory(&format!("sys/class/tenstorrent/tenstorrent!{ordinal}"))?;
        let stat = class.own_stat()?;
        let function = class.directory("device").ok();
        let pci = class.link("device").ok().and_then(|link| {
            let name = link.file_name()?.to_str()?;
            name.parse().ok()
        });
        let hwmon = function.as_ref().and_then(hwmon_of);
        let process_list = root.directory(&format!("proc/driver/tenstorrent/{ordinal}")).ok();
        let slot = |wanted: &bool| {
            let missing = FileOutcome::Unreadable(Unreadable::Errno(Errno::NOENT));
            let outcome = if *wanted { missing } else { FileOutcome::NotAsked };
            FileSlot { outcome, timed_out: false, rescan_ns: 0, read_ns: 0 }
        };
        Ok(Self {
            ordinal,
            pci,
            slots: wanted.iter().map(slot).collect(),
            counters: vec![FlitCounter::default(); 2 * super::fields::COUNTERS.len()],
            rates: Default::default(),
            known: ChipFacts::default(),
            registration: (stat.st_dev, stat.st_ino),
            class: Arc::new(class),
            function: function.map(Arc::new),
            hwmon: hwmon.map(Arc::new),
            process_list: process_list.map(Arc::new),
        })
    }

    /// Whether the class directory is still the one that was opened.
    pub(super) fn is_current(&self, tree: &Tree) -> bool {
        let path = format!("sys/class/tenstorrent/tenstorrent!{}", self.ordinal);
        let stat = tree.root().stat(&path);
        stat.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.registration)
    }

    /// Opens what was not there at the first scan: hwmon and the list of openers may come late.
    pub(super) fn open_the_rest(&mut self, tree: &Tree) {
        if self.hwmon.is_none() {
            self.hwmon = self.function.as_deref().and_then(hwmon_of).map(Arc::new);
        }
        if self.process_list.is_none() {
            let path = format!("proc/driver/tenstorrent/{}", self.ordinal);
            self.process_list = tree.root().directory(&path).ok().map(Arc::new);
        }
    }

    /// The read of `item`, unless what is known of it still holds.
    pub(super) fn due(&self, index: usize, item: Item, now_ns: u64) -> Option<FileRead> {
        let slot = &self.slots[index];
        if now_ns < slot.rescan_ns || matches!(slot.outcome, FileOutcome::NotAsked) {
            return None;
        }
        let directory = match item.place {
            FileLocation::Class => Some(&self.class),
            FileLocation::Pci => self.function.as_ref(),
            FileLocation::Hwmon => self.hwmon.as_ref(),
            FileLocation::Proc => self.process_list.as_ref(),
        }?;
        let (directory, whole) = (Arc::clone(directory), item.place == FileLocation::Proc);
        Some(FileRead { directory, file: item.file, whole })
    }

    /// Takes note of what a read gave; nothing means that it did not come back in time.
    pub(super) fn note(
        &mut self,
        index: usize,
        item: Item,
        result: Option<Result<Vec<u8>, Unreadable>>,
        (at, now_ns): (Timestamp, u64),
    ) {
        let slot = &mut self.slots[index];
        slot.timed_out = result.is_none();
        let seldom = match &result {
            Some(Ok(_)) => item.pace == ReadInterval::Seldom,
            Some(Err(unreadable)) => unreadable.is_missing(),
            None => false,
        };
        slot.rescan_ns = if seldom { now_ns.saturating_add(SELDOM_NS) } else { 0 };
        match result {
            Some(Ok(text)) => {
                slot.outcome = FileOutcome::Text { text, at };
                slot.read_ns = now_ns;
            }
            Some(Err(unreadable)) => slot.outcome = FileOutcome::Unreadable(unreadable),
            None => {
                let fresh = now_ns.saturating_sub(slot.read_ns) <= STALE_NS;
                if !(fresh && matches!(slot.outcome, FileOutcome::Text { .. })) {
                    slot.outcome = FileOutcome::TimedOut;
                }
            }
        }
    }
}

/// The hwmon directory of a PCI function, which is the only one it has.
fn hwmon_of(function: &Directory) -> Option<Directory> {
    let parent = function.directory("hwmon").ok()?;
    let mut names = parent.names().ok()?;
    names.retain(|name| name.starts_with("hwmon"));
    names.sort();
    parent.directory(names.first()?).ok()
}
