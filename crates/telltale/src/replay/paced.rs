//! A replay in the time of the recording, or a multiple of it.

use std::time::{Duration, Instant};

use telltale_runtime::Device;
use telltale_trace::Trace;

use super::chip::ReplayedChip;
use super::steps::{self, ReplayStep};
use crate::exit::Failure;
use crate::interrupt::Interrupt;

/// Waits shorter than this are left to the next record: a timer is no finer.
const SHORTEST_WAIT: Duration = Duration::from_micros(500);

/// How a trace is played.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Times as fast as recorded.
    pub(super) times: f64,
    /// Periodically, until interrupted.
    pub(super) repeat: bool,
}

/// Plays the trace and says what happened.
pub(super) fn run(
    trace: &Trace,
    pace: Pace,
    l1_up_to: u64,
    chip: &mut ReplayedChip,
    device: &Device,
    interrupt: &Interrupt,
) -> Result<String, Failure> {
    let mut live = steps::no_blocks(trace);
    let (mut recorded, mut refused) = (0u64, 0u64);
    'rounds: loop {
        let started = Instant::now();
        let mut due_ns = 0u64;
        for record in trace.records() {
            due_ns = due_ns.saturating_add(record.since_previous_ns);
            let due = Duration::from_secs_f64(due_ns as f64 / 1e9 / pace.times);
            let early = due.saturating_sub(started.elapsed());
            if early >= SHORTEST_WAIT && interrupt.sleep(early) || interrupt.asked() {
                break 'rounds;
            }
            if let Some(step) = steps::take(record.event, l1_up_to, chip, &mut live)? {
                refused += u64::from(matches!(step, ReplayStep::Refused { .. }));
                record_step(step, device);
                recorded += 1;
            }
        }
        for step in steps::release(chip, &mut live)? {
            record_step(step, device);
        }
        if !pace.repeat {
            break;
        }
    }
    Ok(format!("{recorded} records replayed, {refused} allocations refused by the chip\n"))
}

/// One call to the tracker.
#[inline]
pub(super) fn record_step(step: ReplayStep, device: &Device) {
    match step {
        ReplayStep::Allocate { kind, address, bytes } => device.allocate(kind, address, bytes),
        ReplayStep::Free { kind, address } => device.free(kind, address),
        ReplayStep::Refused { kind } => device.allocation_failed(kind),
    }
}
