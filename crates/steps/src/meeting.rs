//! Which operations of different ranks are one transfer or one collective.

use std::collections::HashMap;

use crate::lists::{Lists, at};
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
    pub(crate) places: Lists,
    /// Communications whose other ends are missing; they stand alone.
    pub(crate) unmatched: usize,
}

/// Puts operations together, which are in the order of their ranks and then of their beginnings. The k-th
/// transfer between two ranks in a group at one end is the k-th at the other, and so for a group's collectives.
pub(crate) fn units(operations: &[Placed]) -> Units {
    let mut numbers: HashMap<(u32, Partners), u32> = HashMap::new();
    let mut meetings: HashMap<Meeting, u32> = HashMap::new();
    let mut unit_of: Vec<u32> = Vec::with_capacity(operations.len());
    // How many operations each unit lacks.
    let mut lacks: Vec<i64> = Vec::with_capacity(operations.len());
    for one in operations {
        let next = u32::try_from(lacks.len()).expect("at most MAX_OPERATIONS");
        let mut number = || {
            let next = numbers.entry((one.rank, one.partners)).or_default();
            *next += 1;
            *next
        };
        let (meeting, members) = match one.partners {
            Partners::None => (None, 1),
            Partners::To { rank: to, group } => {
                let number = number();
                (Some(Meeting::Transfer { from: one.rank, to, group, number }), 2)
            }
            Partners::From { rank: from, group } => {
                let number = number();
                (Some(Meeting::Transfer { from, to: one.rank, group, number }), 2)
            }
            Partners::All { group, members } => {
                let number = number();
                (Some(Meeting::Collective { group, members, number }), members)
            }
        };
        let unit = meeting.map_or(next, |meeting| *meetings.entry(meeting).or_insert(next));
        if unit == next {
            lacks.push(i64::from(members));
        }
        lacks[at(unit)] -= 1;
        unit_of.push(unit);
    }
    let mut unmatched = 0;
    let mut count = lacks.len();
    let mut is_begun = vec![false; lacks.len()];
    for unit in &mut unit_of {
        if lacks[at(*unit)] != 0 {
            unmatched += 1;
            // The first keeps its number.
            if std::mem::replace(&mut is_begun[at(*unit)], true) {
                *unit = u32::try_from(count).expect("at most MAX_OPERATIONS");
                count += 1;
            }
        }
    }
    let pairs = unit_of.iter().copied().zip(0_u32..);
    Units { places: Lists::of_pairs(count, pairs), unmatched }
}
