//! Who has which pid, in whatever PID namespace: one scan of `/proc`.

use std::collections::HashMap;

use super::status::{Procfs, StatusLookup};

/// Processes by each of their pids, from our PID namespace to their own.
#[derive(Debug)]
pub(super) struct Namesakes {
    by_pid: HashMap<u32, Vec<Namesake>>,
    /// All processes that `/proc` shows were checked.
    pub(super) complete: bool,
}

#[derive(Debug, Clone, Copy)]
struct Namesake {
    /// Our pid of it.
    pid: u32,
    uids: [u32; 4],
}

impl Namesakes {
    /// Checks all processes. One that we may not see counts under our own pid of it.
    pub(super) fn scan(procfs: &Procfs) -> Self {
        let (pids, complete) = procfs.pids();
        let mut by_pid: HashMap<u32, Vec<Namesake>> = HashMap::new();
        for pid in pids {
            let (uids, pids) = match procfs.find(pid) {
                StatusLookup::Process(_, status) => (status.uids, status.namespace_pids),
                StatusLookup::Unseen => ([0; 4], Vec::new()),
                StatusLookup::NoProcess => continue,
            };
            let one = Namesake { pid, uids };
            by_pid.entry(pid).or_default().push(one);
            for name in pids.into_iter().filter(|name| *name != pid) {
                by_pid.entry(name).or_default().push(one);
            }
        }
        Self { by_pid, complete }
    }

    /// Our pids of those that have `pid` in some namespace.
    pub(super) fn of(&self, pid: u32) -> impl Iterator<Item = u32> {
        self.by_pid.get(&pid).into_iter().flatten().map(|one| one.pid)
    }

    /// Whether a process of user `owner` has `pid` in some namespace.
    pub(super) fn has(&self, pid: u32, owner: u32) -> bool {
        self.by_pid.get(&pid).into_iter().flatten().any(|one| one.uids.contains(&owner))
    }
}
