//! What was reported and what was not, since the library was loaded.

use crate::state_value::FormattedNumber;

/// The counters, beside those of the pools.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Records that the agent took.
    pub(crate) reported: FormattedNumber,
    /// Records that it refused.
    pub(crate) refused: FormattedNumber,
    /// Records that had no place while the agent was not to be reached.
    pub(crate) unsent: FormattedNumber,
    /// Transfers that were left out because there were many alike.
    pub(crate) left_out: FormattedNumber,
    /// Operations that belong to another process, and events of communicators that are gone.
    pub(crate) foreign: FormattedNumber,
    /// Tasks of which nothing was heard after they were put into the queue.
    pub(crate) unheard: FormattedNumber,
    /// Communicators that are not followed.
    pub(crate) communicators: FormattedNumber,
}
