//! In which order one rank does its operations: which of them wait for which.
//!
//! A rank's operations are taken from several threads or streams and may overlap. One waits for another if it
//! began when the other had ended. That is all that times say, and it is enough: replayed in this order, three
//! production jobs take as long as published replays of them that know each stream (tests/published.rs).

/// An operation may begin this much before the end of one that it waits for: profilers end an operation
/// a little late. Never more than a quarter of the shorter of both.
const MOST_OVERLAP_NS: i64 = 500_000;

/// For each of a rank's operations, given as (start, end) in the order of their starts, the ones that
/// it waits for: those that had ended, less those that others of these waited for. `found` gets each
/// pair (operation, one it waits for), in the order of the first.
pub(crate) fn waits(times: &[(i64, i64)], mut found: impl FnMut(usize, usize)) {
    // The latest end of all operations up to each.
    let mut latest_ends: Vec<i64> = Vec::with_capacity(times.len());
    for (place, (start, end)) in times.iter().enumerate() {
        // The latest start of those that had ended: what had ended before that is waited for by it.
        let mut latest_start = i64::MIN;
        for before in (0..place).rev() {
            if latest_ends[before] <= latest_start {
                break;
            }
            let one = times[before];
            if one.1 <= latest_start || one.1 > start.saturating_add(overlap(one, (*start, *end))) {
                continue;
            }
            found(place, before);
            latest_start = latest_start.max(one.0);
        }
        let latest = latest_ends.last().map_or(*end, |latest| (*latest).max(*end));
        latest_ends.push(latest);
    }
}

/// By how much two operations may overlap and yet be one after the other.
fn overlap(one: (i64, i64), other: (i64, i64)) -> i64 {
    let shorter = one.1.saturating_sub(one.0).min(other.1.saturating_sub(other.0));
    (shorter / 4).min(MOST_OVERLAP_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(times: &[(i64, i64)], expected: &[(usize, usize)]) {
        let mut pairs = Vec::new();
        waits(times, |place, before| pairs.push((place, before)));
        assert_eq!(pairs, expected, "{times:?}");
    }

    #[test]
    fn an_operation_waits_for_those_that_ended_just_before_it() {
        // One after the other.
        check(&[(0, 10), (10, 20), (25, 30)], &[(1, 0), (2, 1)]);
        // Two at once, and one after both.
        check(&[(0, 10), (10, 20), (10, 30), (30, 40)], &[(1, 0), (2, 0), (3, 2), (3, 1)]);
        // A long one beside several short ones holds up only what begins after it.
        check(&[(0, 100), (1, 10), (10, 20), (100, 110)], &[(2, 1), (3, 2), (3, 0)]);
        // What overlaps by less than a quarter of the shorter is one after the other.
        check(&[(0, 1000), (990, 2000)], &[(1, 0)]);
        check(&[(0, 1000), (700, 2000)], &[]);
    }
}
