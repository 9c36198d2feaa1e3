//! The parts of each kind on one device, and sums over its regions.

use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::{HeldUsage, KindMemory};

const KINDS: usize = MemoryKind::ALL.len();

/// What is in use on one device, kind by kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemoryParts {
    kinds: [MemoryPart; KINDS],
}

#[derive(Debug, Clone, Copy, Default)]
struct MemoryPart {
    processes: u64,
    ghost: u64,
    buffers: u64,
    /// A source does not report how many buffers the bytes are in.
    buffers_unknown: bool,
    /// A source mentioned this kind.
    mentioned: bool,
}

/// Sums over all regions of one device. Regions do not distinguish kernels, so all kernel kinds
/// share the place of the first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RegionSums {
    totals: [u64; KINDS],
    rows: [u64; KINDS],
    /// What processes without a row say is in the totals.
    mirrored: [u64; KINDS],
}

/// The kind under which a region has this one; none for what no region counts.
fn region_kind(kind: MemoryKind) -> Option<usize> {
    match kind {
        MemoryKind::KernelApplication | MemoryKind::KernelFabric | MemoryKind::KernelDispatch => {
            Some(usize::from(MemoryKind::KernelApplication.code()))
        }
        MemoryKind::SystemMemory => None,
        other => Some(usize::from(other.code())),
    }
}

// === impl RegionSums ===

impl RegionSums {
    pub(super) fn add_total(&mut self, kind: MemoryKind, bytes: u64) {
        add(&mut self.totals, kind, bytes);
    }

    pub(super) fn add_row(&mut self, kind: MemoryKind, bytes: u64) {
        add(&mut self.rows, kind, bytes);
    }

    pub(super) fn add_mirrored(&mut self, kind: MemoryKind, bytes: u64) {
        add(&mut self.mirrored, kind, bytes);
    }

    /// What the totals have beyond everything that is accounted for. Never negative: rows may
    /// exceed a total that was stored by one of them (circular buffers before version 4).
    fn unattributed(&self, kind: MemoryKind) -> u64 {
        let place = usize::from(kind.code());
        if region_kind(kind) != Some(place) {
            return 0;
        }
        self.totals[place].saturating_sub(self.rows[place]).saturating_sub(self.mirrored[place])
    }
}

fn add(sums: &mut [u64; KINDS], kind: MemoryKind, bytes: u64) {
    if let Some(place) = region_kind(kind) {
        sums[place] = sums[place].saturating_add(bytes);
    }
}

// === impl MemoryParts ===

impl MemoryParts {
    /// Adds what a living process has.
    pub(super) fn add_process(&mut self, kind: MemoryKind, usage: &HeldUsage) {
        let part = &mut self.kinds[usize::from(kind.code())];
        part.mentioned = true;
        part.processes = part.processes.saturating_add(usage.live_bytes());
        match usage.recorded() {
            Some(usage) => part.buffers = part.buffers.saturating_add(usage.live_buffers),
            None => part.buffers_unknown |= usage.live_bytes() > 0,
        }
    }

    /// Adds what a row of a dead process still has.
    pub(super) fn add_ghost(&mut self, kinds: &[(MemoryKind, u64)]) {
        for (kind, bytes) in kinds.iter().filter(|(_, bytes)| *bytes > 0) {
            let part = &mut self.kinds[usize::from(kind.code())];
            part.mentioned = true;
            part.ghost = part.ghost.saturating_add(*bytes);
        }
    }

    /// The parts of each kind that has any. They add up even at the end of the number range,
    /// where first the ghosts and then the unattributed rest are cut. What a driver counts in DRAM
    /// beyond everything that is accounted for there is unattributed, too.
    pub(super) fn kinds(&self, regions: &RegionSums, counted_dram: Option<u64>) -> Vec<KindMemory> {
        let mut kinds = Vec::new();
        for (kind, part) in MemoryKind::ALL.into_iter().zip(&self.kinds) {
            let mut unattributed = regions.unattributed(kind);
            if let (MemoryKind::Dram, Some(counted)) = (kind, counted_dram) {
                let trace = &self.kinds[usize::from(MemoryKind::Trace.code())];
                let rest = counted.saturating_sub(part.processes).saturating_sub(trace.processes);
                unattributed = unattributed.max(rest);
            }
            let unattributed = unattributed.min(u64::MAX - part.processes);
            let ghost = part.ghost.min(u64::MAX - part.processes - unattributed);
            let total_bytes = part.processes + unattributed + ghost;
            if part.mentioned || total_bytes > 0 {
                kinds.push(KindMemory {
                    kind,
                    total_bytes,
                    processes_bytes: part.processes,
                    unattributed_bytes: unattributed,
                    ghost_bytes: ghost,
                    live_buffers: (!part.buffers_unknown).then_some(part.buffers),
                });
            }
        }
        kinds
    }
}
