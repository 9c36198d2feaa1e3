//! The rows that a query wants, of what its asker may see: what is withheld is taken away first, so
//! that no query can be asked about it.

use std::sync::Arc;
use std::time::Duration;

use telltale_query::Query;
use telltale_schema::snapshot::Snapshot;

use super::{AccessPolicy, Sight};
use crate::clock::thread_cpu;

/// CPU time that a query of somebody who does not see everything may take for one snapshot. Its
/// patterns, and the command lines that they are looked for in, may both be theirs.
const PATIENCE: Duration = Duration::from_millis(10);

/// A query takes more time than its asker is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the filter takes more than {PATIENCE:?}; use fewer or shorter patterns")]
pub struct TooSlow;

/// The rows that `query` wants, of a snapshot that was cut to `sight` before.
///
/// # Errors
/// When that takes more time than an asker of this sight is given.
pub fn chosen(visible: &Snapshot, sight: Sight, query: &Query) -> Result<Snapshot, TooSlow> {
    if sight == Sight::Everything {
        return Ok(query.select(visible));
    }
    let began = thread_cpu();
    let goes_on = || thread_cpu().saturating_sub(began) <= PATIENCE;
    query.select_while(visible, goes_on).ok_or(TooSlow)
}

impl AccessPolicy {
    /// The rows that `query` wants of what `sight` covers.
    ///
    /// # Errors
    /// When that takes more time than an asker of this sight is given.
    pub fn chosen(
        &self,
        snapshot: &Arc<Snapshot>,
        sight: Sight,
        query: &Query,
    ) -> Result<Snapshot, TooSlow> {
        chosen(&self.visible(snapshot, sight), sight, query)
    }
}
