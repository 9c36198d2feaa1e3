//! Which operations of different ranks are one transfer or one collective.

use std::collections::HashMap;

use crate::operation::Partners;
use crate::step::Placed;

/// What the same communication is known by at all of its ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Meeting {
    Transfer { from: u32, to: u32, group: u64, number: u32 },
    Collective { group: u64, members: u32, number: u32 },
}

/// Operations by what they end with.
#[derive(Debug)]
pub(crate) struct Units {
    /// Places of operations: one that computes alone, and all that are one communication together.
    pub(crate) places: Vec<Vec<u32>>,
    /// Communications whose other ends are missing; they stand alone.
    pub(crate) unmatched: usize,
}

/// Puts operations together, which are in the order of their ranks and then of their beginnings. The k-th
/// transfer between two ranks in a group at one end is the k-th at the other, and so for a group's collectives.
pub(crate) fn units(operations: &[Placed]) -> Units {
    let mut numbers: HashMap<(u32, Partners), u32> = HashMap::new();
    let mut meetings: HashMap<Meeting, usize> = HashMap::new();
    let mut places: Vec<Vec<u32>> = Vec::with_capacity(operations.len());
    let mut needed: Vec<u32> = Vec::with_capacity(operations.len());
    for (place, one) in (0_u32..).zip(operations) {
        let number =
            *numbers.entry((one.rank, one.partners)).and_modify(|number| *number += 1).or_insert(0);
        let (meeting, members) = match one.partners {
            Partners::None => (None, 1),
            Partners::To { rank: to, group } => {
                (Some(Meeting::Transfer { from: one.rank, to, group, number }), 2)
            }
            Partners::From { rank: from, group } => {
                (Some(Meeting::Transfer { from, to: one.rank, group, number }), 2)
            }
            Partners::All { group, members } => {
                (Some(Meeting::Collective { group, members, number }), members)
            }
        };
        let next = places.len();
        let unit = meeting.map_or(next, |meeting| *meetings.entry(meeting).or_insert(next));
        if unit == next {
            places.push(vec![place]);
            needed.push(members);
        } else {
            places[unit].push(place);
        }
    }
    let mut unmatched = 0;
    for unit in 0..places.len() {
        let found = u32::try_from(places[unit].len()).unwrap_or(u32::MAX);
        if found != needed[unit] {
            unmatched += places[unit].len();
            let others = places[unit].split_off(1);
            places.extend(others.into_iter().map(|place| vec![place]));
        }
    }
    Units { places, unmatched }
}
