//! Processes that a process started, with those that they started.

use std::collections::BTreeSet;
use std::fs;

use crate::bounds::MAX_CHILDREN;

/// The descendants of a process that are taken with it, nearest first; `apart` are taken for themselves.
pub(crate) fn of(pid: u32, apart: &[u32]) -> Vec<u32> {
    descendants(pid, apart, MAX_CHILDREN)
}

/// The descendants of a process, nearest first.
pub(crate) fn all(pid: u32, limit: usize) -> Vec<u32> {
    descendants(pid, &[], limit)
}

fn descendants(pid: u32, apart: &[u32], limit: usize) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut seen: BTreeSet<u32> = apart.iter().copied().chain([pid]).collect();
    let mut next = 0;
    let mut parent = Some(pid);
    while let Some(current) = parent {
        for child in started_by(current) {
            if found.len() >= limit {
                return found;
            }
            if seen.insert(child) {
                found.push(child);
            }
        }
        parent = found.get(next).copied();
        next += 1;
    }
    found
}

/// The children of all threads of a process, as the kernel lists them (`CONFIG_PROC_CHILDREN`).
pub(crate) fn started_by(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let lists = threads
        .flatten()
        .take(4096)
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let mut children: Vec<u32> = lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect();
    children.sort_unstable();
    children
}
