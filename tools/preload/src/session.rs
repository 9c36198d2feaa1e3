//! One process's ledger and its accounts: made at the first event, and never given back.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use telltale_ledger::directory::{DirectoryEnvironment, RuntimeDirectory};
use telltale_ledger::{Account, DeviceEntry, LedgerOwner, SealedLedger};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemoryKind;
use telltale_schema::text::with_causes;

use crate::cuda::{Blocks, DeviceAccounts, MAX_DEVICES};
use crate::settings::Settings;

/// What the ledger says of who records.
const RUNTIME: &str = concat!("telltale run ", env!("CARGO_PKG_VERSION"));

/// Where this process's events are counted.
#[derive(Debug)]
pub(crate) struct Session {
    ledger: &'static SealedLedger,
    host: Account<'static>,
    /// Of CUDA's devices, by number; none where one cannot be recorded.
    devices: [OnceLock<Option<DeviceAccounts>>; MAX_DEVICES],
    /// What the process has of the driver. A child has a session of its own, so that a lock which
    /// another thread holds at a fork has no holder there.
    blocks: Mutex<Blocks>,
}

impl Session {
    /// Makes the ledger, or says why there is none.
    pub(crate) fn start(settings: &Settings) -> Result<Self, String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let now = Timestamp(u64::try_from(now).unwrap_or(u64::MAX));
        let owner =
            LedgerOwner::of_this_process(RUNTIME, now).map_err(|error| with_causes(&error))?;
        let uid = owner.uid;
        let environment = DirectoryEnvironment { uid, ..settings.environment.clone() };
        let directory = RuntimeDirectory::for_writing(None, &environment)
            .map_err(|error| with_causes(&error))?;
        let ledger =
            SealedLedger::create(&directory, &owner).map_err(|error| with_causes(&error))?;
        let ledger: &'static SealedLedger = Box::leak(Box::new(ledger));
        let host = DeviceEntry { is_host: true, ..DeviceEntry::default() };
        let host = ledger.add_device(&host).expect("a new ledger has room for a device");
        let host = ledger.account(host, MemoryKind::SystemMemory);
        Ok(Self {
            ledger,
            host: host.expect("a new ledger has room for an account"),
            devices: [const { OnceLock::new() }; MAX_DEVICES],
            blocks: Mutex::default(),
        })
    }

    /// The host's memory.
    #[inline(always)]
    pub(crate) fn host(&self) -> Account<'static> {
        self.host
    }

    /// The accounts of CUDA's device with this number; none if it cannot be recorded.
    pub(crate) fn device(&self, number: usize) -> Option<&DeviceAccounts> {
        let place = self.devices.get(number)?;
        place.get_or_init(|| DeviceAccounts::open(self.ledger, number)).as_ref()
    }

    /// What the process has of the driver.
    pub(crate) fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an event that could not be recorded.
    pub(crate) fn unrecorded(&self) {
        self.ledger.faults().unrecorded();
    }

    /// Removes the ledger's file, as the process is about to end.
    pub(crate) fn remove(&self) {
        self.ledger.remove();
    }
}
