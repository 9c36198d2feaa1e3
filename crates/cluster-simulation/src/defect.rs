//! Mistakes that can be put into a simulated cluster, to see that the checkers find them.
//!
//! Defects 2 and 4 are detection's (`tests/simulation/defects.rs`); 3, 11, 12 and a part of 7 concern what
//! no simulation has, units, JSON, strangers and late latencies, and are found by tests of
//! `telltale-cluster`. docs/cluster-design.md lists all fourteen.
//!
//! The shipped machines stay as they are: a defect changes what goes in or comes out of them.

/// One mistake. Those with a number are defects of the system that this design comes from, by their
/// number in the list of fourteen; the others are mistakes that this design could have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Defect {
    /// 1: the coordinator locks itself up at the first failure.
    LockedUp,
    /// 5: a node that is silent or does not answer is noted, and nothing follows.
    SilenceIgnored,
    /// 5: what detection finds is stored, but never read.
    VerdictsUnread,
    /// 6: every report of a failure evicts the node that sent it.
    EveryReportEvicts,
    /// 7: nodes are ordered to run without being waited for, and start it without regard to what they
    /// still run.
    Unfenced,
    /// 7: the coordinator takes an order for carried out once it has been sent, though agents are as
    /// careful as ever.
    AcknowledgementAssumed,
    /// 8: rank 0's address stays what it first was.
    MasterKept,
    /// 9: all ranks are re-sorted at each replacement.
    RanksSorted,
    /// 10: a node that comes back is ordered to run, though it has no slot.
    ReturnedIsActive,
    /// 7: a node that has lost its slot is not notified, and goes on with what it runs.
    StragglersLeft,
    /// 10: without a spare the job silently gets smaller.
    SilentlyShrunk,
    /// 13: a new leader knows nothing of what was decided before.
    Forgetful,
    /// 14: a rank that has ended with exit code 0 counts as failed.
    FinishedIsFailed,
    /// Decisions are commanded before they are stored.
    CommandedUnstored,
    /// A leader that has lost its lease does not notice.
    LeaseIgnored,
    /// Of an ambiguity set, the first is taken for the culprit.
    AmbiguityIgnored,
    /// Who is only to observe acts as before.
    ObserveIgnored,
    /// The budget of evictions has no bound.
    BudgetIgnored,
    /// The port is the same in each epoch.
    PortKept,
    /// A node whose agent restarts while an epoch is prepared is charged for it, also where an operator ordered
    /// the epoch on a job that was over.
    RerunsCharged,
    /// Crowds that fall silent at once are evicted like single nodes.
    CrowdsEvicted,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::LockedUp,
        Self::SilenceIgnored,
        Self::VerdictsUnread,
        Self::EveryReportEvicts,
        Self::Unfenced,
        Self::AcknowledgementAssumed,
        Self::MasterKept,
        Self::RanksSorted,
        Self::ReturnedIsActive,
        Self::StragglersLeft,
        Self::SilentlyShrunk,
        Self::Forgetful,
        Self::FinishedIsFailed,
        Self::CommandedUnstored,
        Self::LeaseIgnored,
        Self::AmbiguityIgnored,
        Self::ObserveIgnored,
        Self::BudgetIgnored,
        Self::PortKept,
        Self::RerunsCharged,
        Self::CrowdsEvicted,
    ];
}
