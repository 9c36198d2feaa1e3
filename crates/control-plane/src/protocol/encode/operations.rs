//! Operations, a list of each of their fields.

use std::collections::BTreeMap;
use std::sync::Arc;

use telltale_wire::cluster::message::{self, OperationKind};

use telltale_cluster::group::GroupId;
use telltale_cluster::latency::{Collective, Direction};
use telltale_cluster::work::{Operations, Work};

/// Nothing where there is nothing to send.
pub(super) fn operations(from: &Operations) -> Option<message::Operations> {
    if from.list.is_empty() {
        return None;
    }
    let mut to = message::Operations { before: from.before, ..message::Operations::default() };
    let mut names: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    let mut groups: BTreeMap<GroupId, u32> = BTreeMap::new();
    let (mut step, mut start_us) = (0_u64, 0_i64);
    for one in &from.list {
        let mut place_of_group = |group: GroupId| {
            *groups.entry(group).or_insert_with(|| {
                to.groups.push(group.number());
                place(to.groups.len() - 1)
            })
        };
        let (kind, subject, group, bucket) = match &one.work {
            Work::StepEnd => (OperationKind::StepEnd, 0, 0, 0),
            Work::Compute(name) => {
                let place = names.entry(Arc::clone(name)).or_insert_with(|| {
                    to.names.push(name.to_string());
                    place(to.names.len() - 1)
                });
                (OperationKind::Compute, *place, 0, 0)
            }
            Work::Transfer { direction, peer, group, bucket } => {
                let kind = match direction {
                    Direction::Send => OperationKind::Send,
                    Direction::Receive => OperationKind::Receive,
                };
                (kind, peer.0, place_of_group(*group), bucket.number().into())
            }
            Work::Collective { collective: of, group, members, bucket } => {
                (collective(*of), *members, place_of_group(*group), bucket.number().into())
            }
        };
        to.ranks.push(one.rank.0);
        to.steps.push(difference(one.step, step));
        to.kinds.push(kind.into());
        to.subjects.push(subject);
        to.group_places.push(group);
        to.size_buckets.push(bucket);
        to.starts_us.push(one.start_us.wrapping_sub(start_us));
        to.durations_us.push(one.duration_us);
        (step, start_us) = (one.step, one.start_us);
    }
    Some(to)
}

/// What to add to `before`, as numbers of 64 bits are added.
const fn difference(now: u64, before: u64) -> i64 {
    now.wrapping_sub(before).cast_signed()
}

fn place(place: usize) -> u32 {
    u32::try_from(place).expect("a report has few names and groups")
}

const fn collective(from: Collective) -> OperationKind {
    match from {
        Collective::AllReduce => OperationKind::AllReduce,
        Collective::Broadcast => OperationKind::Broadcast,
        Collective::AllGather => OperationKind::AllGather,
        Collective::Reduce => OperationKind::Reduce,
        Collective::ReduceScatter => OperationKind::ReduceScatter,
        Collective::Barrier => OperationKind::Barrier,
        Collective::Other => OperationKind::OtherCollective,
    }
}
