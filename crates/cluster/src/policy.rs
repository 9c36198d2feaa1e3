//! The parameters by which coordinator and agent act, with their defaults.
//!
//! Where a default is the seed's, its line says so. Files and arguments are read elsewhere.

use std::fmt;
use std::num::NonZeroU16;
use std::time::Duration;

use thiserror::Error;

use crate::rank::{MAX_SLOTS, WorkersPerNode};
use crate::tracking::windows::WindowLength;

/// Epochs in a row that may fail in the same way shortly after their start, unless a policy says otherwise. With one more
/// the job is given up.
pub const MAX_FAILED_STARTS: u32 = 5;

/// The job that a cluster runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its name (PyTorch's `TORCHELASTIC_RUN_ID`).
    pub name: String,
    /// How many nodes it runs on.
    pub slots: u32,
    /// How many workers each node runs.
    pub workers: WorkersPerNode,
}

/// How much a coordinator does by itself. An operator's orders are carried out in each mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// It starts the job and reports what it sees.
    Observe,
    /// It also restarts a job that has failed, and replaces nodes that are not heard any more: there
    /// is nothing left to disturb.
    #[default]
    Recover,
    /// It also replaces a node that is only suspected, or whose health has failed, while the job still runs.
    Act,
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Observe => "observe",
            Self::Recover => "recover",
            Self::Act => "act",
        })
    }
}

/// What to do when a slot is vacant and there is no spare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoSpare {
    /// Wait for one.
    Hold,
    /// Run with fewer slots, after a time in which one may still come.
    Shrink {
        /// How few slots the job may have.
        least_slots: u32,
        /// How long to wait before.
        timeout: Duration,
    },
}

/// How a coordinator acts.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// How much it does by itself.
    pub mode: Mode,
    /// A node that is not heard for this long is silent. The seed's keep-alive.
    pub keep_alive: Duration,
    /// How long events of one incident are collected at most before it is acted on.
    pub coalescing: Duration,
    /// How long after the last event an incident is acted on, if that is sooner.
    pub settling: Duration,
    /// How long an order may go without an answer before it is sent again.
    pub command_interval: Duration,
    /// How often an order is sent again before its node counts as failed. The seed's retries.
    pub command_retries: u32,
    /// How long a node may take to stop its workers once it has answered.
    pub prepare_deadline: Duration,
    /// How long after a failed write to the store it is tried again.
    pub store_interval: Duration,
    /// Restarts within [`Policy::budget_window`] after which the job is given up. An operator's are
    /// not counted.
    pub restart_budget: u32,
    /// Epochs in a row that may fail in the same way shortly after their start before the job is given up.
    pub max_failed_starts: u32,
    /// Nodes that may be taken out of their slots within [`Policy::budget_window`], other than by an
    /// operator.
    pub eviction_budget: u32,
    /// The time that budgets and failures are counted over.
    pub budget_window: Duration,
    /// Failures of a node within [`Policy::budget_window`] after which it is quarantined.
    pub failures_to_quarantine: u32,
    /// In how many windows in a row a node must be suspected of being slow before it is replaced for that. What is
    /// slow for some seconds costs less than a restart of all; faults worth one last from half a minute to hours.
    pub continuity_windows: u32,
    /// In how many windows in a row a job must hang before it is restarted for that, without the node that alone
    /// is suspected of it.
    pub hang_windows: u32,
    /// When more than this share of the nodes with a slot, and at least three, fall silent within one
    /// keep-alive, the network or the coordinator is suspected rather than they, and no node is replaced.
    pub mass_silence_share: f64,
    /// How long such a crowd must be silent beyond the keep-alive before it is acted on.
    pub mass_silence_timeout: Duration,
    /// How long the health of a node must have failed before it is acted on. A reset by an operator takes less.
    pub health_settling: Duration,
    /// The program with its arguments that runs before a node is taken out of a job that still runs; empty for none.
    pub before_drain: Vec<String>,
    /// How long that may take. The node is taken out then all the same.
    pub before_drain_timeout: Duration,
    /// What to do without a spare.
    pub no_spare: NoSpare,
    /// Whether the first epoch too may begin with fewer slots, as [`NoSpare::Shrink`] has it.
    pub starts_short: bool,
    /// The least port that rank 0 may listen on.
    pub least_port: NonZeroU16,
    /// The greatest such port.
    pub greatest_port: NonZeroU16,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            keep_alive: Duration::from_secs(5),
            coalescing: Duration::from_secs(1),
            settling: Duration::from_millis(200),
            command_interval: Duration::from_secs(1),
            command_retries: 3,
            prepare_deadline: Duration::from_secs(30),
            store_interval: Duration::from_secs(1),
            restart_budget: 20,
            max_failed_starts: MAX_FAILED_STARTS,
            eviction_budget: 8,
            budget_window: Duration::from_secs(3600),
            failures_to_quarantine: 3,
            continuity_windows: 30,
            hang_windows: 5,
            mass_silence_share: 0.2,
            mass_silence_timeout: Duration::from_secs(60),
            health_settling: Duration::from_secs(5),
            before_drain: Vec::new(),
            before_drain_timeout: Duration::from_secs(60),
            no_spare: NoSpare::Hold,
            starts_short: false,
            // Above what is registered for services and below Linux's ephemeral ports (32768 and up,
            // ip(7)), where another program's connection could hold a port.
            least_port: NonZeroU16::new(29_500).expect("the number is not 0"),
            greatest_port: NonZeroU16::new(30_499).expect("the number is not 0"),
        }
    }
}

/// How long a node may be unheard before it is overdue: three fifths of the keep-alive.
pub(crate) fn overdue_after(keep_alive: Duration) -> Duration {
    keep_alive * 3 / 5
}

/// Why a job and a policy cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// The job has no slots, or too many.
    #[error("the job has {slots} nodes, and must have 1 to {MAX_SLOTS}")]
    Slots {
        /// How many it has.
        slots: u32,
    },
    /// The job's name is no name.
    #[error("the job's name must have 1 to {MAX_JOB_NAME_BYTES} bytes and no control characters")]
    Name,
    /// A time is 0.
    #[error("{parameter} is 0, so that nothing could ever keep it")]
    Zero {
        /// Which.
        parameter: &'static str,
    },
    /// A share is not a share.
    #[error(
        "mass_silence_share must be from 0 to 1; 0.2 is the default, 1 lets a part of the nodes never count"
    )]
    Share,
    /// There are too few ports for each epoch to have a fresh one.
    #[error("the range of ports must have at least {LEAST_PORTS} ports")]
    Ports,
    /// The job may shrink to no slots, or to more than it has.
    #[error("the job may shrink to {least_slots} nodes, and must keep 1 to {slots}")]
    LeastSlots {
        /// How few are allowed.
        least_slots: u32,
        /// How many it has.
        slots: u32,
    },
}

/// A job's name.
///
/// # Errors
/// When it is empty or too long, or has a control character.
pub fn job_name(text: &str) -> Result<String, PolicyError> {
    if is_job_name(text) { Ok(text.to_owned()) } else { Err(PolicyError::Name) }
}

/// Bytes of a job's name.
pub const MAX_JOB_NAME_BYTES: usize = 256;

/// Whether this can be a job's name.
pub fn is_job_name(text: &str) -> bool {
    (1..=MAX_JOB_NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Ports that the range must have, so that an epoch finds one beside the last epoch's and other jobs'.
pub const LEAST_PORTS: u16 = 17;

impl Policy {
    /// Checks that `job` can be run by this policy.
    ///
    /// # Errors
    /// With the first thing that is wrong.
    pub fn check(&self, job: &Job) -> Result<(), PolicyError> {
        if job.slots == 0 || job.slots > MAX_SLOTS {
            return Err(PolicyError::Slots { slots: job.slots });
        }
        if !is_job_name(&job.name) {
            return Err(PolicyError::Name);
        }
        let times = [
            ("the keep-alive", self.keep_alive),
            ("the interval of commands", self.command_interval),
            ("the deadline for preparing", self.prepare_deadline),
            ("the interval of the store", self.store_interval),
            ("the budgets' window", self.budget_window),
        ];
        if let Some((parameter, _)) = times.into_iter().find(|(_, time)| time.is_zero()) {
            return Err(PolicyError::Zero { parameter });
        }
        if !(0.0..=1.0).contains(&self.mass_silence_share) {
            return Err(PolicyError::Share);
        }
        if self.greatest_port.get().saturating_sub(self.least_port.get()) < LEAST_PORTS - 1 {
            return Err(PolicyError::Ports);
        }
        match self.no_spare {
            NoSpare::Shrink { least_slots, .. } if least_slots == 0 || least_slots > job.slots => {
                Err(PolicyError::LeastSlots { least_slots, slots: job.slots })
            }
            _ => Ok(()),
        }
    }
}

/// How an agent acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPolicy {
    /// How often it reports. The seed's metrics interval.
    pub report_interval: Duration,
    /// How many of the latest latencies of one kind a report's values summarize. The seed's window.
    pub window: WindowLength,
    /// How often it registers until a coordinator answers.
    pub register_interval: Duration,
    /// How long a worker that was asked to stop may take before it is killed.
    pub stop_grace: Duration,
    /// How often workers are started without an epoch that lasted, before it refuses.
    pub restart_budget: u32,
    /// How long an epoch must last for that count to restart.
    pub lasting: Duration,
}

impl Default for AgentPolicy {
    fn default() -> Self {
        Self {
            report_interval: Duration::from_secs(1),
            window: WindowLength::default(),
            register_interval: Duration::from_secs(1),
            stop_grace: Duration::from_secs(15),
            restart_budget: 100,
            lasting: Duration::from_secs(600),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(slots: u32) -> Job {
        Job { name: "job".to_owned(), slots, workers: WorkersPerNode::new(1).unwrap() }
    }

    #[test]
    fn what_the_seed_gave_a_number_has_that_number() {
        let (policy, agent) = (Policy::default(), AgentPolicy::default());
        let seconds = [policy.keep_alive, agent.report_interval].map(|time| time.as_secs_f64());
        assert_eq!(seconds, [5.0, 1.0]);
        assert_eq!((policy.command_retries, agent.window.get()), (3, 100));
    }

    #[test]
    fn a_policy_that_cannot_work_is_refused() {
        let policy = Policy::default();
        assert_eq!(policy.check(&job(4)), Ok(()));
        assert_eq!(policy.check(&job(0)), Err(PolicyError::Slots { slots: 0 }));
        let nameless = Job { name: "a\nb".to_owned(), ..job(1) };
        assert_eq!(policy.check(&nameless), Err(PolicyError::Name));
        let shrink = NoSpare::Shrink { least_slots: 5, timeout: Duration::ZERO };
        let port = |number| NonZeroU16::new(number).unwrap();
        let cases = [
            (
                Policy { keep_alive: Duration::ZERO, ..policy.clone() },
                PolicyError::Zero { parameter: "the keep-alive" },
            ),
            (Policy { mass_silence_share: f64::NAN, ..policy.clone() }, PolicyError::Share),
            (
                Policy { least_port: port(9), greatest_port: port(24), ..policy.clone() },
                PolicyError::Ports,
            ),
            (
                Policy { no_spare: shrink, ..policy },
                PolicyError::LeastSlots { least_slots: 5, slots: 4 },
            ),
        ];
        for (policy, expected) in cases {
            assert_eq!(policy.check(&job(4)), Err(expected));
        }
    }
}
