//! A trace turned into what a runtime's allocator saw: addresses from the chip, kinds by size.

use telltale_schema::memory::MemoryKind;
use telltale_trace::{Trace, TraceEvent};

use super::chip::ReplayedChip;
use crate::exit::Failure;

/// The kind that an allocation of this size gets. Recorded programs ran on a CPU, which has one
/// kind of memory; runtimes put what is small into L1.
pub(super) fn kind_of(bytes: u64, l1_up_to: u64) -> MemoryKind {
    if bytes <= l1_up_to { MemoryKind::L1 } else { MemoryKind::Dram }
}

/// One call to the tracker.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReplayStep {
    /// An allocation that the chip granted.
    Allocate { kind: MemoryKind, address: u64, bytes: u64 },
    /// A free of it.
    Free { kind: MemoryKind, address: u64 },
    /// An allocation that the chip refused.
    Refused { kind: MemoryKind },
}

/// What stands behind each id of a trace at one moment.
pub(super) type Live = Vec<Option<(MemoryKind, u64)>>;

/// Room for every id that a trace uses.
pub(super) fn no_blocks(trace: &Trace) -> Live {
    let ids = usize::try_from(trace.summary().peak_live_allocations).expect("32 bits fit");
    vec![None; ids]
}

/// Takes one event to the chip. None for the free of an allocation that was refused.
pub(super) fn take(
    event: TraceEvent,
    l1_up_to: u64,
    chip: &mut ReplayedChip,
    live: &mut Live,
) -> Result<Option<ReplayStep>, Failure> {
    let place = |id: u32| usize::try_from(id).expect("32 bits fit");
    match event {
        TraceEvent::Allocate { id, size_bytes: bytes } => {
            let kind = kind_of(bytes, l1_up_to);
            let granted = chip.allocate(kind, bytes)?;
            live[place(id)] = granted.map(|address| (kind, address));
            Ok(Some(match granted {
                Some(address) => ReplayStep::Allocate { kind, address, bytes },
                None => ReplayStep::Refused { kind },
            }))
        }
        TraceEvent::Free { id } => {
            let Some((kind, address)) = live[place(id)].take() else { return Ok(None) };
            chip.free(kind, address)?;
            Ok(Some(ReplayStep::Free { kind, address }))
        }
    }
}

/// All steps of a trace, and the frees that leave nothing behind.
pub(super) fn resolve(
    trace: &Trace,
    l1_up_to: u64,
    chip: &mut ReplayedChip,
) -> Result<Vec<ReplayStep>, Failure> {
    let mut live = no_blocks(trace);
    let mut steps = Vec::with_capacity(trace.records().len());
    for record in trace.records() {
        steps.extend(take(record.event, l1_up_to, chip, &mut live)?);
    }
    steps.extend(release(chip, &mut live)?);
    Ok(steps)
}

/// Frees whatever is live.
pub(super) fn release(
    chip: &mut ReplayedChip,
    live: &mut Live,
) -> Result<Vec<ReplayStep>, Failure> {
    let mut steps = Vec::new();
    for (kind, address) in live.iter_mut().filter_map(Option::take) {
        chip.free(kind, address)?;
        steps.push(ReplayStep::Free { kind, address });
    }
    Ok(steps)
}
