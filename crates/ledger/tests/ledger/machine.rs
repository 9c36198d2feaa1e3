//! A place for ledgers, for this package's tests.

use telltale_harness::Scratch;
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_ledger::{DeviceEntry, Ledger, LedgerOwner};
use telltale_schema::chip::{AsicId, ChipIdentity};
use telltale_schema::clock::Timestamp;

/// A scratch directory, open as a runtime directory.
pub(crate) struct Place {
    pub(crate) directory: RuntimeDirectory,
    pub(crate) scratch: Scratch,
}

impl Place {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        let directory = RuntimeDirectory::open(scratch.path(), Purpose::Writing).unwrap();
        Self { directory, scratch }
    }

    pub(crate) fn owner(&self) -> LedgerOwner {
        let mut owner = LedgerOwner::of_this_process("test 1", Timestamp(1_000)).unwrap();
        owner.name = "workload".to_owned();
        owner
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::create(&self.directory, self.owner()).unwrap()
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
