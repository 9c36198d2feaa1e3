//! Which processes have device nodes open, by the links of `/proc/<pid>/fd` (proc_pid_fd(5)).

use std::sync::Arc;

use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::reading::Absence;

use crate::report::SourceReport;
use crate::tree::{Directory, Tree};

/// Descriptors of one process that are checked.
const MAX_DESCRIPTORS: usize = 4096;

/// A check of the descriptors of all processes.
pub(super) struct Walk {
    tree: Arc<Tree>,
    clock: Arc<dyn Clock>,
    /// How long it may go on before it leaves the rest out.
    most_ns: u64,
    /// The node's name, where a descriptor's target is one that is searched for.
    node_of: fn(&str) -> Option<&str>,
}

/// An open node.
pub(super) struct Opened<'a> {
    pub(super) pid: u32,
    pub(super) process: &'a Directory,
    /// The descriptor's number, as the kernel writes it.
    pub(super) descriptor: &'a str,
    pub(super) node: &'a str,
}

/// How a scan went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walked {
    pub(super) at: Timestamp,
    /// Some processes could not be checked.
    pub(super) closed: bool,
    /// Processes that were left out because the scan took too long.
    unseen: usize,
}

// === impl Walk ===

impl Walk {
    pub(super) fn new(
        tree: Arc<Tree>,
        clock: Arc<dyn Clock>,
        most_ns: u64,
        node_of: fn(&str) -> Option<&str>,
    ) -> Self {
        Self { tree, clock, most_ns, node_of }
    }

    /// Hands `take` each open node, by pid.
    pub(super) fn run(&self, mut take: impl FnMut(&Opened<'_>)) -> Walked {
        let mut walked = Walked { at: self.clock.now(), closed: false, unseen: 0 };
        let Ok(proc) = self.tree.root().directory("proc") else { return walked };
        let names = proc.names().unwrap_or_default();
        let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        pids.sort_unstable();
        let ends_ns = self.clock.monotonic_ns().saturating_add(self.most_ns);
        for (place, pid) in pids.iter().enumerate() {
            if self.clock.monotonic_ns() > ends_ns {
                walked.unseen = pids.len() - place;
                break;
            }
            walked.closed |= self.scan(&proc, *pid, &mut take);
        }
        walked
    }

    /// Checks one process, and says whether it is closed to us. Those that end meanwhile are passed
    /// over.
    fn scan(&self, proc: &Directory, pid: u32, take: &mut impl FnMut(&Opened<'_>)) -> bool {
        let Ok(process) = proc.directory(&pid.to_string()) else { return false };
        let (names, descriptors) =
            match process.directory("fd").and_then(|fd| Ok((fd.names()?, fd))) {
                Ok(found) => found,
                Err(error) => return error.absence() == Absence::Permission,
            };
        for descriptor in names.iter().take(MAX_DESCRIPTORS) {
            let Ok(target) = descriptors.link(descriptor) else { continue };
            let Some(node) = target.to_str().and_then(self.node_of) else { continue };
            take(&Opened { pid, process: &process, descriptor, node });
        }
        false
    }
}

// === impl Walked ===

impl Walked {
    /// Says what the scan left out.
    pub(super) fn complain(&self, subject: &str, report: &mut SourceReport) {
        if self.unseen > 0 {
            let detail =
                format!("{} processes were left out, as looking took too long", self.unseen);
            report.error(subject, Absence::TimedOut, detail);
        }
    }
}
