//! The rows that a query wants, of what its asker may see: what is withheld is taken away first, so
//! that no query can be asked about it.

use std::sync::Arc;
use std::time::Duration;

use telltale_query::Query;
use telltale_schema::snapshot::Snapshot;

use super::{AccessPolicy, Visibility};
use telltale_collector::clock::thread_cpu;

/// CPU time that a query of a client that does not see everything may take for one snapshot. Its
/// patterns, and the command lines that they are searched for in, may both be theirs.
const TIMEOUT: Duration = Duration::from_millis(10);

/// How many steps of a search take a nanosecond where every part of the pattern is alive all along; the
/// usual search takes far less. On a slower processor the time may be overrun by a few milliseconds.
const STEPS_IN_A_NANOSECOND: u64 = 4;

/// A query takes more time than its asker is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the filter takes more than {TIMEOUT:?}; use fewer or shorter patterns")]
pub struct TooSlow;

/// The rows that `query` wants, of a snapshot that was cut to `visibility` before.
///
/// # Errors
/// When that takes more time than a client of this visibility gets.
pub fn chosen(
    visible: &Snapshot,
    visibility: Visibility,
    query: &Query,
) -> Result<Snapshot, TooSlow> {
    if visibility == Visibility::Everything {
        return Ok(query.select(visible));
    }
    let began = thread_cpu();
    let goes_on = |steps| is_in_time(thread_cpu().saturating_sub(began), steps);
    query.select_while(visible, goes_on).ok_or(TooSlow)
}

/// Whether so many more steps can be over in time, so that a search that could not is not begun.
fn is_in_time(spent: Duration, steps: u64) -> bool {
    spent.saturating_add(Duration::from_nanos(steps / STEPS_IN_A_NANOSECOND)) <= TIMEOUT
}

impl AccessPolicy {
    /// The rows that `query` wants of what `visibility` covers.
    ///
    /// # Errors
    /// When that takes more time than a client of this visibility gets.
    pub fn chosen(
        &self,
        snapshot: &Arc<Snapshot>,
        visibility: Visibility,
        query: &Query,
    ) -> Result<Snapshot, TooSlow> {
        chosen(&self.visible(snapshot, visibility), visibility, query)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::is_in_time;

    #[test]
    fn a_search_that_could_not_end_in_time_is_not_begun() {
        let long = 8192 * 4097;
        for (spent_ms, steps, expected) in [
            (0, 0, true),
            (10, 0, true),
            (11, 0, false),
            // The longest pattern in the longest command line, before all else and late.
            (0, long, true),
            (2, long, false),
            (9, 512 * 4097, true),
            (10, 512 * 4097, false),
            (0, u64::MAX, false),
        ] {
            let spent = Duration::from_millis(spent_ms);
            assert_eq!(is_in_time(spent, steps), expected, "{spent_ms} ms, {steps} steps");
        }
    }
}
