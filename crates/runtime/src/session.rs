//! One process's recording between the first open of a device and the last close: its ledger, its
//! address index and the regions it keeps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use telltale_ledger::directory::RuntimeDirectory;
use telltale_ledger::{
    DeviceSlot, Faults, Ledger, LedgerOwner, LedgerReading, Recorder, RegionMirror,
};
use telltale_schema::clock::Timestamp;
use telltale_schema::snapshot::RecordingFaults;

use crate::description::{DeviceDescription, MAX_DEVICES};
use crate::index::AddressIndex;
use crate::mirror::Mirror;
use crate::options::Options;
use crate::problem::{DeferredProblem, ProblemStep};

/// Everything that recording needs.
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) owner: LedgerOwner,
    pub(crate) index: AddressIndex,
    /// Whether any region is kept, so that the usual case looks no further.
    pub(crate) keeps_regions: bool,
    started: Instant,
    ledger: Option<Ledger>,
    /// The ledger's slot of each device; none where the ledger has no room for it.
    slots: [OnceLock<Option<DeviceSlot>>; MAX_DEVICES],
    mirrors: [Mirror; MAX_DEVICES],
    closed: AtomicBool,
    /// Counts what went wrong where there is no ledger to count it in.
    without_ledger: AtomicU64,
}

/// Counts what goes wrong in recording.
#[derive(Clone, Copy)]
pub(crate) enum SessionFaults<'session> {
    Counted(Faults<'session>),
    /// There is no ledger, so that whatever happens is not recorded.
    Unrecorded(&'session AtomicU64),
}

impl Session {
    /// Starts recording. What cannot be had is added to `troubles`, and recording degrades.
    pub(crate) fn start(
        id: u64,
        options: &Options,
        directory: Option<&RuntimeDirectory>,
        owner: LedgerOwner,
        troubles: &mut Vec<DeferredProblem>,
    ) -> Arc<Self> {
        let ledger = directory.and_then(|directory| {
            Ledger::create(directory, owner.clone())
                .map_err(|error| {
                    let remedy = "the workload runs on; start it again once that is mended";
                    troubles.push(DeferredProblem::new(ProblemStep::Ledger, error, remedy));
                })
                .ok()
        });
        Arc::new(Self {
            id,
            owner,
            index: AddressIndex::new(),
            keeps_regions: options.regions.is_some(),
            started: Instant::now(),
            ledger,
            slots: [const { OnceLock::new() }; MAX_DEVICES],
            mirrors: [const { Mirror::none() }; MAX_DEVICES],
            closed: AtomicBool::new(false),
            without_ledger: AtomicU64::new(0),
        })
    }

    /// Makes the device known to the ledger, and attaches to its region if asked to. To be called
    /// with the cold lock held, and harmless when repeated.
    pub(crate) fn add_device(
        &self,
        index: u8,
        description: &DeviceDescription,
        options: &Options,
        troubles: &mut Vec<DeferredProblem>,
    ) {
        let attached = match options.regions {
            Some(regions) => {
                let owner = &self.owner;
                self.mirror(index).attach(regions, description, owner, options, troubles)
            }
            None => RegionMirror::None,
        };
        let Some(place) = self.slots.get(usize::from(index)) else { return };
        if place.get().is_some() {
            return;
        }
        let added = self.ledger.as_ref().map(|ledger| {
            ledger.add_device(&description.entry(attached)).map_err(|error| {
                let remedy = "its memory is not recorded; the workload runs on";
                troubles.push(DeferredProblem::new(ProblemStep::Device, error, remedy));
            })
        });
        let _ = place.set(added.and_then(Result::ok));
    }

    /// The ledger's slot of a device.
    pub(crate) fn slot(&self, device: u8) -> Option<DeviceSlot> {
        *self.slots.get(usize::from(device))?.get()?
    }

    /// Whether the device was added, with or without success.
    pub(crate) fn knows(&self, device: u8) -> bool {
        self.slots.get(usize::from(device)).is_some_and(|slot| slot.get().is_some())
    }

    pub(crate) fn mirror(&self, device: u8) -> &Mirror {
        &self.mirrors[usize::from(device) % MAX_DEVICES]
    }

    pub(crate) fn recorder(&self) -> Option<Recorder> {
        self.ledger.as_ref().map(Ledger::recorder)
    }

    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// What was recorded, if there is a ledger.
    pub(crate) fn usage(&self) -> Option<LedgerReading> {
        self.ledger.as_ref().map(Ledger::usage)
    }

    pub(crate) fn faults(&self) -> SessionFaults<'_> {
        match &self.ledger {
            Some(ledger) => SessionFaults::Counted(ledger.faults()),
            None => SessionFaults::Unrecorded(&self.without_ledger),
        }
    }

    pub(crate) fn fault_counts(&self) -> RecordingFaults {
        match self.faults() {
            SessionFaults::Counted(faults) => faults.counts(),
            SessionFaults::Unrecorded(count) => RecordingFaults {
                unrecorded_events: count.load(Ordering::Relaxed),
                ..RecordingFaults::default()
            },
        }
    }

    pub(crate) fn uptime_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Counts what a device still holds as freed: its allocator is gone.
    pub(crate) fn release_device(&self, device: u8) {
        self.index.forget_device(device);
        let (Some(slot), Some(ledger)) = (self.slot(device), self.ledger()) else { return };
        for (_, kind, usage) in ledger.usage().usage.iter().filter(|(found, ..)| *found == slot) {
            if (usage.live_buffers, usage.live_bytes) != (0, 0) {
                ledger.release(slot, *kind, usage.live_buffers, usage.live_bytes);
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Ends recording; what threads still record is not counted.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.remove_file();
    }

    pub(crate) fn remove_file(&self) {
        if let Some(ledger) = &self.ledger {
            ledger.remove();
        }
    }

    /// Leaves the ledger to the parent process whose it is.
    pub(crate) fn abandon(&self) {
        if let Some(ledger) = &self.ledger {
            // No thread of this process records there any more, so that a map that could not be
            // replaced does no harm.
            let _ = ledger.abandon();
        }
    }
}

impl<'session> SessionFaults<'session> {
    pub(crate) fn double_free(self) {
        self.count(Faults::double_free);
    }

    pub(crate) fn unknown_free(self) {
        self.count(Faults::unknown_free);
    }

    pub(crate) fn reused_live_address(self) {
        self.count(Faults::reused_live_address);
    }

    pub(crate) fn unrecorded(self) {
        self.count(Faults::unrecorded);
    }

    #[cold]
    fn count(self, fault: impl FnOnce(Faults<'session>)) {
        match self {
            Self::Counted(faults) => fault(faults),
            Self::Unrecorded(count) => {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// The wall-clock time.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
