//! Whose posts and files are evidence: those of root and of the agent's own user, who may end the workers anyway,
//! and of the users that processes run as which the agent started, or those in turn.
//!
//! Nothing here opens a socket or a file: the kernel has said whose it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::warn;

/// The time from one check of the agent's processes to the next: strangers can cause one each time.
const RESCAN: Duration = Duration::from_secs(1);
/// How long a user is verified after a process of it was seen: one poll can miss what moves from one parent to
/// another meanwhile.
const KEPT: Duration = Duration::from_secs(5);
/// Processes of the agent that are checked.
const MAX_PROCESSES: usize = 4096;
/// Users who are logged as strangers.
const MAX_LOGGED: usize = 16;

/// The users whose posts, or files, are evidence.
#[derive(Debug)]
pub(crate) struct Senders {
    /// What they send, and what to do where another user should, for the log.
    what: &'static str,
    remedy: &'static str,
    own: u32,
    pid: u32,
    known: Mutex<KnownSender>,
}

#[derive(Debug, Default)]
struct KnownSender {
    /// Users of the agent's processes, and when one of each was seen last.
    users: BTreeMap<u32, Instant>,
    scanned: Option<Instant>,
    /// Users who have been verified: that their processes have ended is no news.
    former: BTreeSet<u32>,
    logged: BTreeSet<u32>,
    has_logged_unknown: bool,
}

// === impl Senders ===

impl Senders {
    /// Those of this process's agent.
    pub(crate) fn new(what: &'static str, remedy: &'static str) -> Self {
        Self {
            what,
            remedy,
            own: rustix::process::geteuid().as_raw(),
            pid: std::process::id(),
            known: Mutex::default(),
        }
    }

    /// Whether this user is root or the agent's own.
    pub(crate) const fn is_own(&self, user: u32) -> bool {
        user == 0 || user == self.own
    }

    /// Whether what this user sent was evidence before.
    pub(crate) fn had(&self, user: u32) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).former.contains(&user)
    }

    /// Logs once that what comes over connections whose user is unknown is no evidence.
    pub(crate) fn log_unknown(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut known.has_logged_unknown, true) {
            warn!(
                "{} of unknown users are shown as unverified: their clients closed the \
                    connection too early; let clients wait for the answer, or send the agent's \
                    token",
                self.what
            );
        }
    }

    /// Whether what this user sends is evidence.
    pub(crate) fn has(&self, user: u32) -> bool {
        if self.is_own(user) {
            return true;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if known.scanned.is_none_or(|scanned| now.duration_since(scanned) >= RESCAN) {
            known.update(users_below(self.pid), now);
        }
        let is_known = known.users.contains_key(&user);
        let is_news = !is_known && !known.former.contains(&user);
        if is_news && known.logged.len() < MAX_LOGGED && known.logged.insert(user) {
            let Self { what, remedy, .. } = self;
            warn!(
                user = %user, "{what} of user {user} are shown as unverified: no worker of this node runs as \
                    that user; {remedy}"
            );
        }
        is_known
    }
}

// === impl KnownSender ===

impl KnownSender {
    /// Takes in the users of all processes at one moment.
    fn update(&mut self, users: BTreeSet<u32>, now: Instant) {
        self.scanned = Some(now);
        let room = MAX_PROCESSES.saturating_sub(self.former.len());
        let new: Vec<u32> = users.difference(&self.former).copied().take(room).collect();
        self.former.extend(new);
        self.users.extend(users.into_iter().map(|user| (user, now)));
        self.users.retain(|_, seen| now.duration_since(*seen) < KEPT);
    }
}

/// The users of all processes that this one has started, and those in turn.
fn users_below(pid: u32) -> BTreeSet<u32> {
    let processes = below(pid).into_iter();
    processes.filter_map(|child| Some(fs::metadata(format!("/proc/{child}")).ok()?.uid())).collect()
}

/// All processes that one has started, and those in turn.
pub(super) fn below(pid: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut left = vec![pid];
    while let Some(parent) = left.pop() {
        for child in children(parent) {
            if found.len() < MAX_PROCESSES && child != pid && found.insert(child) {
                left.push(child);
            }
        }
    }
    found
}

/// The processes that one's threads have started (proc(5), `/proc/<pid>/task/<tid>/children`).
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().flat_map(str::parse).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use telltale_harness::{ChildGuard, as_user, needs_root};

    use super::*;

    #[test]
    fn users_of_processes_that_were_started_here_are_known_and_others_not() {
        if !needs_root("intake::users_of_processes_that_were_started_here_are_known") {
            return;
        }
        let senders = Senders { own: 61_004, ..Senders::new("posts", "send the token") };
        assert!(senders.has(0) && senders.has(61_004));
        assert!(!senders.has(61_005), "nobody's here");
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped());
        let mut child = ChildGuard::spawn(&mut as_user(61_005, 61_005, command));
        telltale_harness::wait_until("it to be known", std::time::Duration::from_secs(20), || {
            senders.has(61_005)
        });
        assert!(users_below(std::process::id()).contains(&61_005));
        child.kill();
        telltale_harness::wait_until(
            "it to be forgotten",
            std::time::Duration::from_secs(60),
            || !senders.has(61_005),
        );
        assert!(senders.had(61_005) && !senders.had(61_006));
    }

    #[test]
    fn a_user_is_verified_for_a_while_after_its_last_process_was_seen() {
        let mut known = KnownSender::default();
        let start = Instant::now();
        known.update(BTreeSet::from([7, 8]), start);
        known.update(BTreeSet::from([8]), start + RESCAN);
        assert!(known.users.contains_key(&7), "one look may miss a process");
        known.update(BTreeSet::from([8]), start + KEPT);
        assert_eq!(known.users.keys().copied().collect::<Vec<_>>(), [8]);
        assert_eq!(known.former, BTreeSet::from([7, 8]));
    }
}
