//! The variables by which an unchanged PyTorch script finds its place.
//!
//! Names and meanings are those that torchrun's agent sets
//! (`torch/distributed/elastic/agent/server/local_elastic_agent.py`), for one role.

use super::LocalRank;
use crate::epoch::{Epoch, JobIdentity};
use crate::message::Assignment;

/// The variable that distinguishes a job from another of the same name.
const JOB_IDENTITY: &str = "TELLTALE_JOB_IDENTITY";

/// The variables of one worker, on a node that restarts its workers `own_restarts` times at most.
#[must_use]
pub fn environment(
    (job, epoch): (Option<JobIdentity>, Epoch),
    assignment: &Assignment,
    local: LocalRank,
    own_restarts: u32,
) -> Vec<(&'static str, String)> {
    let rank = assignment.first_rank.0 + local.0;
    // An earlier coordinator does not say.
    let most_restarts = match assignment.max_restarts {
        0 => own_restarts,
        most => most.min(own_restarts),
    };
    let mut variables = vec![
        ("RANK", rank.to_string()),
        ("WORLD_SIZE", assignment.world_size.to_string()),
        ("LOCAL_RANK", local.0.to_string()),
        ("LOCAL_WORLD_SIZE", assignment.workers.get().to_string()),
        ("GROUP_RANK", assignment.slot.to_string()),
        ("GROUP_WORLD_SIZE", assignment.slots.to_string()),
        ("ROLE_NAME", "default".to_owned()),
        ("ROLE_RANK", rank.to_string()),
        ("ROLE_WORLD_SIZE", assignment.world_size.to_string()),
        ("MASTER_ADDR", assignment.master.address.as_str().to_owned()),
        ("MASTER_PORT", assignment.master.port.to_string()),
        ("TORCHELASTIC_RESTART_COUNT", assignment.restarts.to_string()),
        ("TORCHELASTIC_MAX_RESTARTS", most_restarts.to_string()),
        ("TORCHELASTIC_RUN_ID", assignment.job.clone()),
        // Rank 0 opens the store itself: there is none of the agent's to join.
        ("TORCHELASTIC_USE_AGENT_STORE", "False".to_owned()),
        ("TELLTALE_EPOCH", epoch.to_string()),
    ];
    variables.extend(job.map(|job| (JOB_IDENTITY, job.to_string())));
    variables
}
