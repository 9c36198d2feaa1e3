//! Which processes a job has, where no agent says so.

use std::collections::BTreeMap;

use crate::children;
use crate::context::{rank, slurm_job};

/// Processes that are listed at most; a node has some tens of ranks.
const MAX_LISTED: usize = 65_536;

/// The ranks below a process: the nearest descendants that have a rank, as a launcher sets it for each; or
/// its children where none has one; or the process itself where it has no children.
#[must_use]
pub fn below(pid: u32) -> Vec<u32> {
    let own = rank(pid);
    let descendants = children::all(pid, MAX_LISTED);
    let ranks = ranks_of(&descendants, own);
    if !ranks.is_empty() {
        return ranks;
    }
    let children = children::started_by(pid);
    if children.is_empty() { vec![pid] } else { children }
}

/// The ranks of a Slurm job on this machine, by the environment of its processes.
#[must_use]
pub fn of_slurm_job(job: u32) -> Vec<u32> {
    let processes = procfs::process::all_processes().into_iter().flatten().take(MAX_LISTED);
    let pids = processes.filter_map(|process| Some(process.ok()?.pid().unsigned_abs()));
    let of_job: Vec<u32> = pids.filter(|pid| slurm_job(*pid) == Some(job)).collect();
    ranks_of(&of_job, None)
}

/// The first process of each rank: what it starts inherits its variables. `inherited` is what all of them
/// would have from a common ancestor.
fn ranks_of(pids: &[u32], inherited: Option<u32>) -> Vec<u32> {
    let mut by_rank: BTreeMap<u32, u32> = BTreeMap::new();
    for pid in pids {
        if let Some(rank) = rank(*pid).filter(|rank| Some(*rank) != inherited) {
            by_rank.entry(rank).or_insert(*pid);
        }
    }
    by_rank.into_values().collect()
}
