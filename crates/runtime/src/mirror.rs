//! A tt-metal region kept up to date beside the ledger, when the environment asks for it.

use std::path::Path;
use std::time::Duration;

use spin::mutex::{SpinMutex, SpinMutexGuard};
use telltale_ledger::region::RegionKind;
use telltale_ledger::region::writer::{PidNamespace, RegionLayout, RegionOptions, RegionWriter};
use telltale_ledger::{LedgerOwner, RegionMirror};
use telltale_schema::chip::unique_id;
use telltale_schema::memory::MemoryKind;

use crate::description::DeviceDescription;
use crate::options::{Options, Regions};
use crate::problem::{DeferredProblem, ProblemStep};
use crate::waiting;

/// The inode of the first PID namespace (the kernel's `PROC_PID_INIT_INO`).
const INITIAL_PID_NAMESPACE: u64 = 0xEFFF_FFFC;
const LOCATION_BITS: u32 = 8;

/// How long opening or closing a device waits for a region's lock, which others hold for
/// microseconds. A reader of the file can hold it for ever, and must not hold up a workload.
const LOCK_WAIT: Duration = Duration::from_millis(20);

/// One device's region, if it is kept. Whether it is, is decided once in a session, because the
/// device's entry in the ledger says so to readers and cannot change.
pub(crate) struct Mirror {
    state: SpinMutex<MirrorState>,
}

enum MirrorState {
    /// No handle was opened in this session.
    Undecided,
    Kept(Box<MirroredRegion>),
    /// It could not be kept.
    Refused,
    /// The last handle was closed; with the next one the same region is kept again.
    Left,
}

struct MirroredRegion {
    writer: RegionWriter,
    chip_id: u32,
    per_pid: bool,
}

/// Why a device has no region.
#[derive(Debug, thiserror::Error)]
enum NoName {
    #[error("the region of device {logical_id} is named after the board, whose id is not known")]
    BoardId { logical_id: u32 },
    #[error(
        "the region of device {logical_id} is named after UMD's chip id, which is not known; \
         TELLTALE_SHM_LAYOUT=1 names it after its board"
    )]
    UniqueId { logical_id: u32 },
}

impl Mirror {
    pub(crate) const fn none() -> Self {
        Self { state: SpinMutex::new(MirrorState::Undecided) }
    }

    /// Attaches unless that was done or has failed in this session, and says what a reader has to
    /// know.
    pub(crate) fn attach(
        &self,
        regions: Regions,
        description: &DeviceDescription,
        owner: &LedgerOwner,
        options: &Options,
        troubles: &mut Vec<DeferredProblem>,
    ) -> RegionMirror {
        match &*self.lock() {
            MirrorState::Kept(kept) => return kept.mirror(),
            MirrorState::Refused => return RegionMirror::None,
            MirrorState::Undecided | MirrorState::Left => {}
        }
        let kept = keep(regions, description, owner, options, troubles);
        let mirror = kept.as_ref().map_or(RegionMirror::None, MirroredRegion::mirror);
        *self.lock() = kept.map_or(MirrorState::Refused, |kept| MirrorState::Kept(Box::new(kept)));
        mirror
    }

    pub(crate) fn allocated(&self, kind: MemoryKind, bytes: u64) {
        if let (MirrorState::Kept(kept), Some(kind)) = (&*self.lock(), region_kind(kind)) {
            kept.writer.record_allocation(kind, bytes, kept.chip_id);
        }
    }

    pub(crate) fn freed(&self, kind: MemoryKind, bytes: u64) {
        if let (MirrorState::Kept(kept), Some(kind)) = (&*self.lock(), region_kind(kind)) {
            kept.writer.record_deallocation(kind, bytes, kept.chip_id);
        }
    }

    /// Leaves the region. Waits for its lock a bounded time.
    pub(crate) fn detach(&self) -> Result<(), DeferredProblem> {
        let left = {
            let mut state = self.lock();
            match &*state {
                MirrorState::Kept(_) => std::mem::replace(&mut *state, MirrorState::Left),
                MirrorState::Undecided | MirrorState::Refused | MirrorState::Left => return Ok(()),
            }
        };
        let MirrorState::Kept(kept) = left else { return Ok(()) };
        kept.writer.detach().map_err(|error| {
            let remedy = "the row stays until another process finds this one dead";
            DeferredProblem::new(ProblemStep::Region, error, remedy)
        })
    }

    /// The state, held for the microsecond of a record. The thread is never parked.
    fn lock(&self) -> SpinMutexGuard<'_, MirrorState> {
        waiting::lock(&self.state)
    }
}

/// Attaches to the device's region.
fn keep(
    regions: Regions,
    description: &DeviceDescription,
    owner: &LedgerOwner,
    options: &Options,
    troubles: &mut Vec<DeferredProblem>,
) -> Option<MirroredRegion> {
    let remedy = "the ledger records it nevertheless; correct the region or unset \
                  TT_METAL_SHM_STATS_ENABLED";
    let name_id = name_id(regions.layout, description)
        .map_err(|error| troubles.push(DeferredProblem::new(ProblemStep::Region, error, remedy)))
        .ok()?;
    if options.log_regions {
        log(description, name_id);
    }
    let directory = match &options.root {
        Some(root) => root.join("dev/shm"),
        None => Path::new("/dev/shm").to_path_buf(),
    };
    let region = region_options(regions, description, name_id, owner);
    let writer = RegionWriter::attach(&directory, &region)
        .map_err(|error| troubles.push(DeferredProblem::new(ProblemStep::Region, error, remedy)))
        .ok()?;
    Some(MirroredRegion { writer, chip_id: description.logical_id, per_pid: regions.per_pid })
}

impl MirroredRegion {
    fn mirror(&self) -> RegionMirror {
        match self.per_pid {
            true => RegionMirror::TotalsAndRow,
            false => RegionMirror::Totals,
        }
    }
}

/// The number in the name of the device's region.
fn name_id(layout: RegionLayout, description: &DeviceDescription) -> Result<u64, NoName> {
    let DeviceDescription { identity, logical_id, .. } = description;
    let logical_id = *logical_id;
    match layout {
        RegionLayout::V1 => {
            let composite = identity.composite_id().ok_or(NoName::BoardId { logical_id })?;
            Ok(composite.value)
        }
        RegionLayout::V3 | RegionLayout::V4 => {
            unique_id(identity).ok_or(NoName::UniqueId { logical_id })
        }
    }
}

fn region_options(
    regions: Regions,
    description: &DeviceDescription,
    id: u64,
    owner: &LedgerOwner,
) -> RegionOptions {
    let (board_serial, asic_id) = match regions.layout {
        RegionLayout::V1 => (id >> LOCATION_BITS, id & ((1 << LOCATION_BITS) - 1)),
        RegionLayout::V3 | RegionLayout::V4 => (0, id),
    };
    let identity = &owner.identity;
    let pid_namespace = match identity.pid_namespace {
        // From here the processes of every namespace can be seen.
        INITIAL_PID_NAMESPACE => PidNamespace::Shared,
        _ => PidNamespace::Private,
    };
    RegionOptions {
        layout: regions.layout,
        per_pid: regions.per_pid,
        name_id: id,
        board_serial,
        asic_id,
        device_id: description.logical_id,
        pid: identity.pid,
        process_name: owner.name.clone(),
        pid_namespace,
        lock_wait: LOCK_WAIT,
    }
}

/// The line that tt-metal's first tracker prints.
fn log(description: &DeviceDescription, name_id: u64) {
    use std::io::Write;
    let DeviceDescription { identity, logical_id, .. } = description;
    let Some(board) = identity.board_id else { return };
    let line = format!(
        "Device {logical_id}: board_id={:#x}, asic_location={} -> asic_id={name_id:#x} for SHM tracking\n",
        board.0, identity.location
    );
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// None for host memory, which regions do not count.
fn region_kind(kind: MemoryKind) -> Option<RegionKind> {
    Some(match kind {
        MemoryKind::Dram => RegionKind::Dram,
        MemoryKind::L1 => RegionKind::L1,
        MemoryKind::L1Small => RegionKind::L1Small,
        MemoryKind::Trace => RegionKind::Trace,
        MemoryKind::Cb => RegionKind::Cb,
        MemoryKind::KernelApplication | MemoryKind::KernelFabric | MemoryKind::KernelDispatch => {
            RegionKind::Kernel
        }
        MemoryKind::SystemMemory => return None,
    })
}
