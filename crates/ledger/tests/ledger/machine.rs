//! A place for ledgers, for this package's tests.

use std::path::PathBuf;

use telltale_harness::Scratch;
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_ledger::{DeviceEntry, Ledger, LedgerOwner, LedgerReader};
use telltale_schema::chip::{AsicId, ChipIdentity};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemoryKind;

/// A scratch directory, open as a runtime directory.
pub(crate) struct Place {
    pub(crate) directory: RuntimeDirectory,
    scratch: Scratch,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::within(Scratch::new())
    }

    pub(crate) fn within(scratch: Scratch) -> Self {
        let directory = RuntimeDirectory::open(scratch.path(), Purpose::Writing)
            .expect("a scratch directory is a fit runtime directory");
        Self { directory, scratch }
    }

    pub(crate) fn owner(&self) -> LedgerOwner {
        let mut owner = LedgerOwner::of_this_process("test 1", Timestamp(1_000))
            .expect("a process knows itself");
        owner.name = "workload".to_owned();
        owner
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::create(&self.directory, self.owner()).expect("a ledger can be made")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    pub(crate) fn reader(&self, name: &str) -> LedgerReader {
        LedgerReader::open_at(&self.directory, name).expect("a ledger of ours can be opened")
    }

    /// The bytes of a ledger with two devices, two kinds and two threads in it.
    pub(crate) fn sample(&self) -> Vec<u8> {
        let ledger = self.ledger();
        let first = ledger.add_device(&device(0)).expect("there is room");
        let second = ledger.add_device(&device(1)).expect("there is room");
        let recorders = [ledger.recorder(), ledger.recorder()];
        for (recorder, bytes) in recorders.iter().zip([4096, 1 << 20]) {
            recorder.allocated(first, MemoryKind::Dram, bytes);
            recorder.allocated(second, MemoryKind::L1, bytes / 2);
            recorder.freed(second, MemoryKind::L1, bytes / 2);
        }
        recorders[0].failed(second, MemoryKind::L1);
        ledger.faults().unknown_free();
        std::fs::read(self.path(ledger.file_name())).expect("the file is there")
    }
}

/// A device that differs from others by its number.
pub(crate) fn device(number: u32) -> DeviceEntry {
    DeviceEntry {
        identity: ChipIdentity {
            asic_id: Some(AsicId(u64::from(number) + 1)),
            ..ChipIdentity::default()
        },
        logical_id: number,
        dram_capacity_bytes: Some(12 << 30),
        ..DeviceEntry::default()
    }
}
