//! Ranks that have begun the same collective as others, by its number, with another name or size.

use std::collections::BTreeMap;

use super::sentence::{grouped, named};
use super::{HangKind, minority_of};
use crate::standing::{BegunCollective, ProcessStanding};

/// Collectives in which all ranks have as much. Lists that are gathered or scattered may be uneven, by
/// PyTorch's documentation of `torch.distributed`.
const OF_EQUAL_SIZES: [&str; 3] = ["all_reduce", "broadcast", "reduce"];

/// What differs.
pub(super) struct Different<'a> {
    pub(super) kind: HangKind,
    pub(super) culprits: Vec<&'a ProcessStanding>,
    pub(super) sentence: String,
}

type Begun<'a> = (&'a ProcessStanding, &'a BegunCollective);

/// The first collective that has not ended everywhere and is not the same for all; none where none differs.
pub(super) fn different_collectives(standings: &[ProcessStanding]) -> Option<Different<'_>> {
    let mut by_number: BTreeMap<(u64, u64), Vec<Begun<'_>>> = BTreeMap::new();
    for one in standings.iter().filter(|one| !one.is_stopped) {
        for begun in &one.collectives {
            by_number.entry((begun.group, begun.number)).or_default().push((one, begun));
        }
    }
    let open = by_number.iter().filter(|(_, all)| all.iter().any(|(_, begun)| !begun.has_ended));
    let mut open: Vec<_> = open.map(|((_, number), all)| (*number, all)).collect();
    open.sort_by_key(|(number, _)| *number);
    open.into_iter().find_map(|(number, all)| {
        differ(number, all, HangKind::DifferentCollectives, |begun| begun.name.clone())
            .or_else(|| differ(number, all, HangKind::DifferentSizes, size))
    })
}

/// Who differs from the most in this; none where all are equal, or one does not say.
fn differ<'a>(
    number: u64,
    all: &[Begun<'a>],
    kind: HangKind,
    value: impl Fn(&BegunCollective) -> String,
) -> Option<Different<'a>> {
    let values: Vec<Begun<'a>> =
        all.iter().copied().filter(|(_, begun)| !value(begun).is_empty()).collect();
    let odd = minority_of(&values, |(_, begun)| value(begun), |(one, _)| one.rank)?;
    // Processes of different nodes may have the same id.
    let is_odd = |one: &&Begun<'_>| odd.iter().any(|other| std::ptr::eq(other.0, one.0));
    let usual = values.iter().find(|one| !is_odd(one))?;
    let [of_most, of_odd] = [usual.1, odd.first()?.1].map(&value);
    let culprits: Vec<&ProcessStanding> = odd.iter().map(|(one, _)| *one).collect();
    // Odd ones may differ from one another too; the first and its like are described.
    let alike = odd.iter().filter(|(_, begun)| value(begun) == of_odd);
    let alike: Vec<&ProcessStanding> = alike.map(|(one, _)| *one).collect();
    let (who, number) = (named(&alike), grouped(number));
    let begun = if alike.len() == 1 { "has begun" } else { "have begun" };
    let sentence = match kind {
        HangKind::DifferentSizes => {
            let name = &usual.1.name;
            format!(
                "{who} {begun} {name} {number} with a size of {of_odd}, and others of {of_most}"
            )
        }
        _ => format!("{who} {begun} {of_odd} as collective {number}, and others {of_most}"),
    };
    Some(Different { kind, culprits, sentence })
}

fn size(begun: &BegunCollective) -> String {
    if begun.size == 0 || !OF_EQUAL_SIZES.contains(&begun.name.as_str()) {
        return String::new();
    }
    grouped(begun.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::Activity;

    fn standing(rank: u32, collectives: Vec<BegunCollective>) -> ProcessStanding {
        ProcessStanding {
            // As in containers, each with processes of its own.
            pid: 7,
            rank: Some(rank),
            activity: Activity::Collective,
            operation: Some("all_reduce".to_owned()),
            place: None,
            detail: None,
            is_stopped: false,
            has_moved: false,
            is_busy: false,
            collectives,
            stack: Vec::new(),
        }
    }

    fn begun(number: u64, name: &str, size: u64, has_ended: bool) -> BegunCollective {
        BegunCollective { group: 0, number, name: name.to_owned(), size, has_ended }
    }

    #[test]
    fn who_has_another_size_or_collective_than_most_is_named() {
        let job = |odd: BegunCollective, usual: BegunCollective| -> Vec<ProcessStanding> {
            let of = |rank| if rank == 2 { vec![odd.clone()] } else { vec![usual.clone()] };
            (0..4).map(|rank| standing(rank, of(rank))).collect()
        };
        // The shorter one is done with its part.
        let shorter =
            job(begun(11, "all_reduce", 2048, true), begun(11, "all_reduce", 4096, false));
        let found = different_collectives(&shorter).unwrap();
        assert_eq!(
            (found.kind, found.sentence.as_str(), found.culprits.len()),
            (
                HangKind::DifferentSizes,
                "rank 2 has begun all_reduce 11 with a size of 2,048, and others of 4,096",
                1
            )
        );
        let other = job(begun(11, "broadcast", 4096, false), begun(11, "all_reduce", 4096, false));
        assert_eq!(
            different_collectives(&other).unwrap().sentence,
            "rank 2 has begun broadcast as collective 11, and others all_reduce"
        );
        for same in [
            job(begun(11, "all_reduce", 2048, true), begun(11, "all_reduce", 4096, true)),
            job(begun(11, "all_reduce", 0, false), begun(11, "all_reduce", 4096, false)),
            job(begun(11, "barrier", 1, false), begun(11, "barrier", 4, false)),
            job(begun(11, "all_reduce", 4096, false), begun(11, "all_reduce", 4096, false)),
        ] {
            assert!(different_collectives(&same).is_none());
        }
    }
}
