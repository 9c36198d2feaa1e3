//! A tt-metal region kept up to date beside the ledger, when the environment asks for it.

use std::path::Path;
use std::time::Duration;

use spin::mutex::SpinMutex;
use spin::relax::Yield;
use telltale_ledger::RegionMirror;
use telltale_ledger::region::RegionKind;
use telltale_ledger::region::writer::{PidNamespace, RegionLayout, RegionOptions, RegionWriter};
use telltale_schema::chip::CompositeId;
use telltale_schema::memory::MemoryKind;

use crate::device::DeviceDescription;
use crate::options::Regions;
use crate::problem::Step;
use crate::runtime::{Inner, Trouble};
use crate::session::Session;

/// The inode of the first PID namespace (the kernel's `PROC_PID_INIT_INO`).
const INITIAL_PID_NAMESPACE: u64 = 0xEFFF_FFFC;
const LOCATION_BITS: u32 = 8;

/// How long opening or closing a device waits for a region's lock, which others hold for
/// microseconds. Whoever may read the file can hold it for ever, and must not hold up a workload.
const LOCK_WAIT: Duration = Duration::from_millis(20);

/// One device's region, if it is kept.
pub(crate) struct Mirror {
    kept: SpinMutex<Option<Box<Kept>>, Yield>,
}

struct Kept {
    writer: RegionWriter,
    chip_id: u32,
    per_pid: bool,
}

/// Why a device has no region.
#[derive(Debug, thiserror::Error)]
#[error("the region of device {logical_id} is named after the board, whose id is not known")]
struct NoBoardId {
    logical_id: u32,
}

impl Mirror {
    pub(crate) const fn none() -> Self {
        Self { kept: SpinMutex::new(None) }
    }

    /// Attaches unless it is attached already, and says what a reader has to know.
    pub(crate) fn attach(
        &self,
        regions: Regions,
        description: &DeviceDescription,
        session: &Session,
        inner: &Inner,
        troubles: &mut Vec<Trouble>,
    ) -> RegionMirror {
        if let Some(kept) = self.kept.lock().as_ref() {
            return kept.mirror();
        }
        let remedy = "the ledger records it nevertheless; correct the region or unset \
                      TT_METAL_SHM_STATS_ENABLED";
        let Some(composite) = description.identity.composite_id() else {
            let error = NoBoardId { logical_id: description.logical_id };
            troubles.push(Trouble::new(Step::Region, error, remedy));
            return RegionMirror::None;
        };
        if inner.options.log_regions {
            log(description, composite);
        }
        let directory = match &inner.options.root {
            Some(root) => root.join("dev/shm"),
            None => Path::new("/dev/shm").to_path_buf(),
        };
        let options = options(regions, description, composite, session);
        match RegionWriter::attach(&directory, &options) {
            Ok(writer) => {
                let kept =
                    Kept { writer, chip_id: description.logical_id, per_pid: regions.per_pid };
                let mirror = kept.mirror();
                *self.kept.lock() = Some(Box::new(kept));
                mirror
            }
            Err(error) => {
                troubles.push(Trouble::new(Step::Region, error, remedy));
                RegionMirror::None
            }
        }
    }

    pub(crate) fn allocated(&self, kind: MemoryKind, bytes: u64) {
        if let (Some(kept), Some(kind)) = (self.kept.lock().as_ref(), region_kind(kind)) {
            kept.writer.record_allocation(kind, bytes, kept.chip_id);
        }
    }

    pub(crate) fn freed(&self, kind: MemoryKind, bytes: u64) {
        if let (Some(kept), Some(kind)) = (self.kept.lock().as_ref(), region_kind(kind)) {
            kept.writer.record_deallocation(kind, bytes, kept.chip_id);
        }
    }

    /// Leaves the region. Waits for its lock a bounded time.
    pub(crate) fn detach(&self) -> Result<(), Trouble> {
        let kept = self.kept.lock().take();
        let Some(kept) = kept else { return Ok(()) };
        kept.writer.detach().map_err(|error| {
            let remedy = "the row stays until another process finds this one dead";
            Trouble::new(Step::Region, error, remedy)
        })
    }
}

impl Kept {
    fn mirror(&self) -> RegionMirror {
        match self.per_pid {
            true => RegionMirror::TotalsAndRow,
            false => RegionMirror::Totals,
        }
    }
}

fn options(
    regions: Regions,
    description: &DeviceDescription,
    composite: CompositeId,
    session: &Session,
) -> RegionOptions {
    let id = composite.value;
    let (board_serial, asic_id) = match regions.layout {
        RegionLayout::V1 => (id >> LOCATION_BITS, id & ((1 << LOCATION_BITS) - 1)),
        RegionLayout::V3 => (0, id),
    };
    let identity = &session.owner.identity;
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
        process_name: session.owner.name.clone(),
        pid_namespace,
        lock_wait: LOCK_WAIT,
    }
}

/// The line that tt-metal's first tracker prints.
fn log(description: &DeviceDescription, composite: CompositeId) {
    use std::io::Write;
    let DeviceDescription { identity, logical_id, .. } = description;
    let Some(board) = identity.board_id else { return };
    let line = format!(
        "Device {logical_id}: board_id={:#x}, asic_location={} -> asic_id={:#x} for SHM tracking\n",
        board.0, identity.location, composite.value
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
