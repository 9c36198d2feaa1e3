//! The stacks of workers that seem to hang: taken by each agent, folded by the coordinator.

use telltale_autopsy::standing::ProcessStanding;
use telltale_cluster::epoch::Epoch;

/// Where the workers of a node stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStandings {
    /// The epoch that they are of.
    pub epoch: Epoch,
    /// Those whose stacks could be taken.
    pub ranks: Vec<ProcessStanding>,
    /// Why others' could not, and what to do.
    pub missing: Vec<String>,
}
