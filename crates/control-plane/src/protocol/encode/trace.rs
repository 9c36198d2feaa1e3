//! The operations of training steps, as lists of each of their fields.

use telltale_steps::{Nature, Partners, Placed, Step};
use telltale_wire::cluster::MAX_TRACE_OPERATIONS;
use telltale_wire::cluster::message::{self, OperationNature, OperationPart};

use telltale_cluster::detection::steps::StepsView;

/// The operations of the latest steps from one on, as many as an answer may have.
pub(crate) fn trace(
    from: &StepsView,
    first: message::GetTraceRequest,
) -> message::GetTraceResponse {
    let kinds = &from.kinds;
    let mut trace = message::GetTraceResponse {
        names: kinds.all().map(|kind| kinds.name(kind).to_owned()).collect(),
        natures: kinds.all().map(|kind| nature(kinds.nature(kind)).into()).collect(),
        ..message::GetTraceResponse::default()
    };
    let mut last = (0_i64, 0_i64);
    for step in from.steps.iter().filter(|step| step.number() >= first.step) {
        let skipped = if step.number() == first.step { first.place } else { 0 };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let units = units(step);
        for (place, one) in step.operations().iter().enumerate().skip(skipped) {
            if trace.ranks.len() == MAX_TRACE_OPERATIONS {
                let place = u64::try_from(place).unwrap_or(u64::MAX);
                trace.next = Some(message::GetTraceRequest { step: step.number(), place });
                return trace;
            }
            add(&mut trace, step.number(), one, units[place], &mut last);
        }
    }
    trace
}

fn add(
    trace: &mut message::GetTraceResponse,
    step: u64,
    one: &Placed,
    unit: u32,
    (last_step, last_start_ns): &mut (i64, i64),
) {
    let step = step.cast_signed();
    let part = match one.partners {
        Partners::None => OperationPart::Alone,
        Partners::To { .. } => OperationPart::Sends,
        Partners::From { .. } => OperationPart::Receives,
        Partners::All { .. } => OperationPart::Meets,
    };
    trace.ranks.push(one.rank);
    trace.steps.push(step.wrapping_sub(*last_step));
    trace.kinds.push(u32::try_from(one.kind.index()).unwrap_or(u32::MAX));
    trace.parts.push(part.into());
    trace.starts_ns.push(one.start_ns.wrapping_sub(*last_start_ns));
    trace.durations_ns.push(unsigned(one.end_ns.saturating_sub(one.start_ns)));
    trace.works_ns.push(unsigned(one.work_ns));
    trace.units.push(unit);
    (*last_step, *last_start_ns) = (step, one.start_ns);
}

/// The unit that each operation of a step is of.
fn units(step: &Step) -> Vec<u32> {
    let mut units = vec![0; step.operations().len()];
    for (unit, places) in (0..).zip(step.units()) {
        places.iter().for_each(|place| units[*place as usize] = unit);
    }
    units
}

const fn nature(from: Nature) -> OperationNature {
    match from {
        Nature::Compute => OperationNature::Compute,
        Nature::Communication => OperationNature::Communication,
        Nature::Between => OperationNature::Between,
    }
}

fn unsigned(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}
