//! The sentence that says who waits for whom.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Awaited;
use crate::activity::Activity;
use crate::standing::{CodePlace, ProcessStanding};

/// Ranks that a sentence names one by one.
const MAX_NAMED: usize = 8;
/// Different waits that it names.
const MAX_GROUPS: usize = 3;

/// `1,023 ranks wait in all_reduce 288,686 (train.py:214); rank 37 has not entered it for 42 s: loads data at …`.
pub(super) fn sentence(
    culprits: &[&ProcessStanding],
    others: &[&ProcessStanding],
    awaited: Awaited,
) -> String {
    let time = awaited.stalled_s.map(|seconds| format!(" for {seconds} s")).unwrap_or_default();
    let groups = groups(others);
    let waiting: Vec<String> =
        groups.iter().take(MAX_GROUPS).map(|group| waiting(group, awaited)).collect();
    let waiting = waiting.join(", ");
    let Some(first) = culprits.first() else {
        return format!("{waiting}{time}, all of them: nothing arrives between them");
    };
    let name = named(culprits);
    let it = if groups.len() > 1 { "any of it" } else { "it" };
    let culprit = match (groups.len(), first.takes_part(), culprits.len()) {
        (0, ..) | (_, true, _) => format!("{name} {}", first.words()),
        (_, _, 1) => format!("{name} has not entered {it}{time}: {}", first.words()),
        _ => format!("{name} have not entered {it}{time}; the first {}", first.words()),
    };
    if groups.is_empty() { culprit } else { format!("{waiting}; {culprit}") }
}

/// Those who wait for the same at the same line, the most first.
fn groups<'a>(others: &[&'a ProcessStanding]) -> Vec<Vec<&'a ProcessStanding>> {
    let mut groups: BTreeMap<_, Vec<&ProcessStanding>> = BTreeMap::new();
    for one in others {
        groups.entry((&one.operation, one.activity, &one.place)).or_default().push(one);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| Reverse(group.len()));
    groups
}

fn waiting(group: &[&ProcessStanding], awaited: Awaited) -> String {
    let Some(first) = group.first() else { return String::new() };
    let verb = match &first.operation {
        Some(operation) => {
            let number = awaited.sequence.filter(|_| first.activity == Activity::Collective);
            let number = number.map(|number| format!(" {}", grouped(number)));
            format!("waits in {operation}{}", number.unwrap_or_default())
        }
        None => first.activity.words().to_owned(),
    };
    let verb = if group.len() == 1 { verb } else { plural(&verb) };
    let place = first.place.as_ref().map(|place| format!(" ({})", place.words()));
    format!("{} {verb}{}", named(group), place.unwrap_or_default())
}

impl ProcessStanding {
    /// `loads data at train.py:88, read of /data/x (D state)`.
    fn words(&self) -> String {
        let mut words = match (self.is_stopped, &self.operation) {
            (true, _) => "is stopped (SIGSTOP, or a job control signal)".to_owned(),
            (false, Some(operation)) if self.takes_part() => format!("waits in {operation}"),
            (false, _) if self.is_busy && self.has_moved => "is busy and moves".to_owned(),
            (false, _) if self.is_busy => "runs without pause".to_owned(),
            (false, _) => self.activity.words().to_owned(),
        };
        if let Some(place) = &self.place {
            let _ = write!(words, " at {}", place.words());
        }
        if let Some(detail) = &self.detail {
            let _ = write!(words, ", {detail}");
        }
        words
    }
}

impl CodePlace {
    fn words(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// `wait in` of `waits in`, for several ranks.
pub(crate) fn plural(verb: &str) -> String {
    let (first, rest) = verb.split_once(' ').unwrap_or((verb, ""));
    let first = match first {
        "is" => "are",
        "has" => "have",
        first => first.strip_suffix('s').unwrap_or(first),
    };
    let rest = rest.replace("or writes", "or write").replace("and waits", "and wait");
    format!("{first} {rest}").trim_end().to_owned()
}

/// `rank 3`, `ranks 0, 1, 3`, `1,023 ranks`.
pub(super) fn named(standings: &[&ProcessStanding]) -> String {
    let (one, several) = match standings.first() {
        Some(first) if first.rank.is_some() => ("rank", "ranks"),
        _ => ("process", "processes"),
    };
    let mut numbers: Vec<u32> = standings.iter().map(|one| one.rank.unwrap_or(one.pid)).collect();
    numbers.sort_unstable();
    match numbers.len() {
        1 => format!("{one} {}", numbers[0]),
        2..=MAX_NAMED => {
            let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
            format!("{several} {}", numbers.join(", "))
        }
        many => format!("{} {several}", grouped(u64::try_from(many).unwrap_or(u64::MAX))),
    }
}

/// `1,023`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(rank: u32, activity: Activity, line: u32) -> ProcessStanding {
        let takes_part = activity == Activity::Collective;
        ProcessStanding {
            pid: 1000 + rank,
            rank: Some(rank),
            activity,
            operation: takes_part.then(|| "all_reduce".to_owned()),
            place: Some(CodePlace {
                file: "train.py".to_owned(),
                line,
                function: "step".to_owned(),
            }),
            detail: (!takes_part).then(|| "read of /data/x (D state)".to_owned()),
            is_stopped: false,
            has_moved: false,
            is_busy: false,
            collectives: Vec::new(),
            stack: Vec::new(),
        }
    }

    #[test]
    fn every_activity_has_a_plural() {
        let verbs = [
            ("is in a debugger", "are in a debugger"),
            ("has ended", "have ended"),
            ("holds the lock and waits", "hold the lock and wait"),
            ("reads or writes a checkpoint", "read or write a checkpoint"),
            ("sleeps", "sleep"),
        ];
        for (one, several) in verbs {
            assert_eq!(plural(one), several);
        }
    }

    #[test]
    fn a_thousand_ranks_are_one_sentence() {
        let all: Vec<ProcessStanding> = (0..1024)
            .map(|rank| match rank {
                37 => standing(rank, Activity::LoadsData, 88),
                rank => standing(rank, Activity::Collective, 214),
            })
            .collect();
        let (culprits, others): (Vec<_>, Vec<_>) = all.iter().partition(|one| !one.takes_part());
        let awaited = Awaited { sequence: Some(288_686), stalled_s: Some(42) };
        assert_eq!(
            sentence(&culprits, &others, awaited),
            "1,023 ranks wait in all_reduce 288,686 (train.py:214); rank 37 has not entered it for 42 s: loads \
             data at train.py:88, read of /data/x (D state)"
        );
    }
}
