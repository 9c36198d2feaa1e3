//! Operations, from a list of each of their fields.

use std::sync::Arc;

use telltale_wire::cluster::message::{self, OperationKind};

use super::super::ProtocolError;
use super::rank;
use super::report::bucket;
use telltale_cluster::group::GroupId;
use telltale_cluster::latency::record::MAX_DURATION_US;
use telltale_cluster::latency::{Collective, Direction};
use telltale_cluster::work::{FinishedOperation, MAX_SPAN_NAME_BYTES, Operations, Work};

pub(super) fn operations(from: message::Operations) -> Result<Operations, ProtocolError> {
    let count = from.ranks.len();
    let lengths = [
        from.steps.len(),
        from.kinds.len(),
        from.subjects.len(),
        from.group_places.len(),
        from.size_buckets.len(),
        from.starts_us.len(),
        from.durations_us.len(),
    ];
    if lengths.into_iter().any(|length| length != count) {
        let text = "the lists of a report's operations have different lengths";
        return Err(ProtocolError::Contradiction(text));
    }
    if from.names.iter().any(|name| !(1..=MAX_SPAN_NAME_BYTES).contains(&name.len())) {
        return Err(ProtocolError::Contradiction("a computation's name is empty or too long"));
    }
    let names: Vec<Arc<str>> = from.names.iter().map(|name| name.as_str().into()).collect();
    let (mut step, mut start_us) = (0_u64, 0_i64);
    let mut list = Vec::with_capacity(count);
    for place in 0..count {
        step = step.wrapping_add(from.steps[place].cast_unsigned());
        start_us = start_us.wrapping_add(from.starts_us[place]);
        let subject = from.subjects[place];
        let kind = OperationKind::try_from(from.kinds[place]).unwrap_or_default();
        let group = || named(&from.groups, from.group_places[place]).map(|one| GroupId::new(*one));
        let size = || bucket(from.size_buckets[place]);
        let transfer = |direction| -> Result<Work, ProtocolError> {
            let peer = rank(subject)?;
            Ok(Work::Transfer { direction, peer, group: group()?, bucket: size()? })
        };
        let work = match kind {
            OperationKind::Unspecified => {
                return Err(ProtocolError::Missing("the kind of an operation"));
            }
            OperationKind::StepEnd => Work::StepEnd,
            OperationKind::Compute => Work::Compute(Arc::clone(named(&names, subject)?)),
            OperationKind::Send => transfer(Direction::Send)?,
            OperationKind::Receive => transfer(Direction::Receive)?,
            of => Work::Collective {
                collective: collective(of),
                group: group()?,
                members: subject,
                bucket: size()?,
            },
        };
        let duration_us = from.durations_us[place];
        if duration_us > MAX_DURATION_US {
            let (field, range) = ("the duration of an operation", "0 to that of a day");
            return Err(ProtocolError::OutOfRange { field, value: duration_us, range });
        }
        list.push(FinishedOperation {
            rank: rank(from.ranks[place])?,
            step,
            work,
            start_us,
            duration_us,
        });
    }
    Ok(Operations { list, before: from.before })
}

/// What an operation names by its place in a list.
fn named<T>(list: &[T], place: u32) -> Result<&T, ProtocolError> {
    let found = usize::try_from(place).ok().and_then(|place| list.get(place));
    found.ok_or(ProtocolError::Contradiction("an operation has a name or group that is not listed"))
}

const fn collective(from: OperationKind) -> Collective {
    match from {
        OperationKind::AllReduce => Collective::AllReduce,
        OperationKind::Broadcast => Collective::Broadcast,
        OperationKind::AllGather => Collective::AllGather,
        OperationKind::Reduce => Collective::Reduce,
        OperationKind::ReduceScatter => Collective::ReduceScatter,
        OperationKind::Barrier => Collective::Barrier,
        _ => Collective::Other,
    }
}
