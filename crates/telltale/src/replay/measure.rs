//! A replay without waiting, which shows what recording costs. The chip's part was done before.

use std::time::Instant;

use telltale_runtime::Device;

use super::paced::record_step;
use super::steps::ReplayStep;
use crate::interrupt::Interrupt;

/// Rounds over the whole trace; the median counts.
const ROUNDS: usize = 21;

/// Records all steps repeatedly and reports nanoseconds a record.
pub(super) fn run(steps: &[ReplayStep], device: &Device, interrupt: &Interrupt) -> String {
    let mut costs_ns = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for step in steps {
            record_step(*step, device);
        }
        costs_ns.push(started.elapsed().as_nanos() as f64 / steps.len().max(1) as f64);
        if interrupt.asked() {
            break;
        }
    }
    costs_ns.sort_by(f64::total_cmp);
    let (least, most) = (costs_ns[0], costs_ns[costs_ns.len() - 1]);
    format!(
        "{:.1} ns a record (median of {} rounds of {} records, with the frees that close a round; \
         {least:.1} to {most:.1})\n",
        costs_ns[costs_ns.len() / 2],
        costs_ns.len(),
        steps.len(),
    )
}
