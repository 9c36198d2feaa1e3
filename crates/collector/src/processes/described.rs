//! What a person wants to know of a process: name, command, user, container.

use std::collections::HashMap;

use telltale_schema::clock::Timestamp;
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Container, Process, ProcessState, RecordingFaults};

use super::booted::Booted;
use super::identity::{Seen, Standpoint, namespace_of};
use super::roots::{Outlook, mount_namespace_of};
use super::status::{ProcessStatus, Procfs, StatusLookup};
use super::users::Users;
use super::{command, container};
use crate::timeout::{CallLimits, TaskName, Timeout};
use crate::tree::Directory;

/// How long a description is believed: a process may execute another program.
const BELIEVED_NS: u64 = 10_000_000_000;

/// The most of a cgroup file that is read: version 1 has a line for each of a dozen controllers.
const MAX_CGROUP_BYTES: usize = 16 * 1024;

/// A process, described.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) start_time_ticks: u64,
    pub(crate) namespace_pids: Vec<u32>,
    /// The inode of its PID namespace where that is another than ours, if we may know it.
    inner_namespace: Option<u64>,
    pub(crate) uid: u32,
    started_at: Timestamp,
    user: Reading<String>,
    command: Reading<String>,
    container: Option<Container>,
    outlook: Option<Outlook>,
    read_ns: u64,
}

/// Descriptions by pid, read again now and then.
#[derive(Debug)]
pub(crate) struct Descriptions {
    by_pid: HashMap<u32, Description>,
    /// Processes that were checked a moment ago.
    seen: Seen,
    users: Users,
    booted: Booted,
    timeout: Timeout,
    limits: CallLimits,
}

impl Descriptions {
    /// No descriptions yet. Reading command lines may take this long.
    pub(crate) fn new(limits: CallLimits) -> Self {
        let (by_pid, seen, users) = (HashMap::new(), Seen::new(), Users::default());
        let (booted, timeout) = (Booted::default(), Timeout::default());
        Self { by_pid, seen, users, booted, timeout, limits }
    }

    /// What starts of processes are counted from.
    pub(crate) fn booted(&self) -> Booted {
        self.booted
    }

    /// Takes processes that were just checked, until [`Self::keep`].
    pub(crate) fn take_seen(&mut self, seen: Seen) {
        self.seen = seen;
    }

    /// Describes these processes, as far as they live, can be seen, and are not described yet.
    ///
    /// A command line lies in the memory of its process, and reading it waits for a lock that a
    /// process which is stuck in a driver may hold. So it is read by a thread that can be given
    /// up; everything else here comes from the kernel's own memory.
    pub(crate) fn prepare(
        &mut self,
        pids: impl IntoIterator<Item = u32>,
        procfs: &Procfs,
        now: (Timestamp, u64),
    ) {
        let booted = self.booted.at(now.0);
        if booted != self.booted {
            self.booted = booted;
            self.by_pid.clear();
        }
        let mut reads = Vec::new();
        for pid in pids {
            let recent = |known: &Description| now.1.saturating_sub(known.read_ns) < BELIEVED_NS;
            if self.by_pid.get(&pid).is_some_and(recent) {
                continue;
            }
            let seen = self.seen.remove(&pid);
            let found = seen.map(|(directory, status)| StatusLookup::Process(directory, status));
            match found.unwrap_or_else(|| procfs.find(pid)) {
                StatusLookup::Process(directory, status) if !status.ended => {
                    let description = self.describe(pid, &directory, status, procfs, now);
                    self.by_pid.insert(pid, description);
                    reads.push((TaskName { group: pid, item: 0 }, directory));
                }
                _ => {
                    self.by_pid.remove(&pid);
                }
            }
        }
        let pids: Vec<u32> = reads.iter().map(|(name, _)| name.group).collect();
        let commands = self.timeout.run(reads, command::read, self.limits);
        for (pid, bytes) in pids.into_iter().zip(commands) {
            if let Some(description) = self.by_pid.get_mut(&pid) {
                description.command = command::shown(bytes, now.0);
            }
        }
    }

    fn describe(
        &mut self,
        pid: u32,
        directory: &Directory,
        status: ProcessStatus,
        procfs: &Procfs,
        now: (Timestamp, u64),
    ) -> Description {
        let cgroup = directory.beginning("cgroup", MAX_CGROUP_BYTES).unwrap_or_default();
        // A set-user-id program runs for the user who called it.
        let uid = status.uids[0];
        let is_inside = status.namespace_pids.len() > 1;
        let inner_namespace = is_inside.then(|| namespace_of(directory)).flatten();
        Description {
            name: status.name,
            start_time_ticks: status.start_time_ticks,
            namespace_pids: status.namespace_pids,
            inner_namespace,
            uid,
            started_at: self.booted.start(status.start_time_ticks),
            user: self.users.name(uid, procfs, now),
            command: Reading::absent(Absence::NotYet, ""),
            container: container::container(&String::from_utf8_lossy(&cgroup)),
            outlook: mount_namespace_of(pid).map(|namespace| (namespace, status.uids)),
            read_ns: now.1,
        }
    }

    /// The process that has `pid`; none when it has ended or cannot be seen.
    pub(crate) fn of(
        &mut self,
        pid: u32,
        procfs: &Procfs,
        now: (Timestamp, u64),
    ) -> Option<&Description> {
        self.prepare([pid], procfs, now);
        self.by_pid.get(&pid)
    }

    /// From where a process sees that was described a moment ago. To enter another namespace
    /// is noticed when the description is recreated.
    pub(crate) fn outlook(&self, pid: u32, now_ns: u64) -> Option<Outlook> {
        let known = self.by_pid.get(&pid)?;
        known.outlook.filter(|_| now_ns.saturating_sub(known.read_ns) < BELIEVED_NS)
    }

    /// The name of a user.
    pub(crate) fn user(
        &mut self,
        uid: u32,
        procfs: &Procfs,
        now: (Timestamp, u64),
    ) -> Reading<String> {
        self.users.name(uid, procfs, now)
    }

    /// The processes that are described, with their start times.
    pub(crate) fn started(&self) -> impl Iterator<Item = (u32, u64)> {
        self.by_pid.iter().map(|(pid, description)| (*pid, description.start_time_ticks))
    }

    /// Lets go of all but these.
    pub(crate) fn keep(&mut self, pids: &std::collections::BTreeSet<u32>) {
        self.seen.clear();
        self.by_pid.retain(|pid, _| pids.contains(pid));
    }

    /// Lets go of one, whose process has ended.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.by_pid.remove(&pid);
    }
}

impl Description {
    /// Who the process is that has `pid`, as the kernel shows it; none where its PID namespace may not
    /// be known.
    pub(crate) fn identity(&self, pid: u32, standpoint: &Standpoint) -> Option<ProcessIdentity> {
        let (namespace, own_pid) = match self.namespace_pids[..] {
            [_, .., own_pid] => (self.inner_namespace, own_pid),
            _ => (standpoint.namespace, pid),
        };
        Some(ProcessIdentity {
            boot_id: standpoint.boot_id?,
            pid_namespace: namespace?,
            pid: own_pid,
            start_time_ticks: self.start_time_ticks,
        })
    }

    /// The process as a snapshot has it.
    pub(crate) fn process(
        &self,
        pid: u32,
        identity: Option<ProcessIdentity>,
        at: Timestamp,
    ) -> Process {
        let inner = self.namespace_pids.get(1..).and_then(<[u32]>::last).copied();
        Process {
            identity,
            pid: Some(pid),
            namespace_pid: inner,
            name: self.name.clone(),
            command: self.command.clone(),
            uid: Reading::new(self.uid, at),
            user: self.user.clone(),
            container: self.container.clone(),
            state: ProcessState::Alive,
            known_by: None,
            started_at: Some(self.started_at),
            uptime_seconds: Reading::absent(Absence::Unknown, "it reports no start"),
            usage: None,
            devices: Vec::new(),
            faults: RecordingFaults::default(),
            metrics: [].into(),
        }
    }
}

/// A process that cannot be read: it has ended, or is hidden. Its user is the owner of
/// the file that speaks for it.
pub(crate) fn unseen(
    identity: ProcessIdentity,
    name: &str,
    (uid, user): (u32, Reading<String>),
    state: ProcessState,
    own_namespace: Option<u64>,
    at: Timestamp,
) -> Process {
    let reason = if state == ProcessState::Dead { Absence::Ended } else { Absence::Hidden };
    let here = own_namespace == Some(identity.pid_namespace);
    Process {
        identity: Some(identity),
        pid: here.then_some(identity.pid),
        namespace_pid: (!here).then_some(identity.pid),
        name: command::printable(name.as_bytes()),
        command: Reading::absent(reason, ""),
        uid: Reading::new(uid, at),
        user,
        container: None,
        state,
        known_by: None,
        started_at: None,
        uptime_seconds: Reading::absent(reason, ""),
        usage: None,
        devices: Vec::new(),
        faults: RecordingFaults::default(),
        metrics: [].into(),
    }
}
