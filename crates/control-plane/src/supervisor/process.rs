//! Processes as `/proc` shows them: which belong to a worker, and a signal for one of them.
//!
//! A process belongs to a worker by its session, by the mark in its environment, by its parents, or,
//! when those have gone, as an orphan that fell to the agent.
//!
//! A number is never trusted alone: it goes with the time at which its process began, and a signal
//! goes through a descriptor that was compared with both.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, pidfd_open, pidfd_send_signal,
    waitid, waitpid,
};

/// The variable by which a worker's descendants are known, wherever they have gone.
pub(super) const MARK: &str = "TELLTALE_WORKER";

/// Bytes of a process's environment that are scanned; the mark is not always first, but
/// the kernel gives a new program 128 KiB for one variable and rarely sees that much in all.
const MAX_ENVIRONMENT_BYTES: u64 = 1 << 20;

/// Dead orphans that are taken off the system's table at once.
const MAX_REAPED_AT_ONCE: usize = 64;

/// What no other process has as well, as long as the machine runs: a number and when its process began.
pub(super) type Key = (Pid, u64);

/// One process, as `/proc/<pid>/stat` reports it (proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessStat {
    pub(super) pid: Pid,
    /// `R`, `S`, `D`, `Z`, `T`, `t` and so on.
    pub(super) state: u8,
    pub(super) parent: i32,
    session: i32,
    /// When it began, in clock ticks since the machine did.
    pub(super) started_ticks: u64,
}

/// What distinguishes a worker's processes from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// The worker itself, which leads a session of its own.
    pub(super) leader: Pid,
    /// When it began.
    pub(super) started_ticks: u64,
    /// The value of [`MARK`] in its environment.
    pub(super) mark: String,
}

impl ProcessStat {
    /// What `/proc` reports about this process, if it is there.
    pub(super) fn read(pid: Pid) -> Option<Self> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &text)
    }

    fn parse(pid: Pid, text: &[u8]) -> Option<Self> {
        let stat = telltale_schema::process::ProcessStat::parse(text)?;
        Some(Self {
            pid,
            state: stat.state,
            parent: stat.parent,
            session: stat.session,
            started_ticks: stat.start_time_ticks,
        })
    }

    /// One that is not there.
    #[cfg(test)]
    pub(super) const fn made_up(pid: Pid, parent: i32) -> Self {
        Self { pid, state: b'S', parent, session: 0, started_ticks: 1 }
    }

    const fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// The marks in its environment: one at most, unless another was added.
    fn marks(&self) -> Marks {
        let mut environment = Vec::new();
        if let Ok(file) = fs::File::open(format!("/proc/{}/environ", self.pid)) {
            // What cannot be read belongs to another user, so not to the worker.
            let _ = file.take(MAX_ENVIRONMENT_BYTES).read_to_end(&mut environment);
        }
        let variables = environment.split(|byte| *byte == 0);
        let values = variables.filter_map(|variable| {
            variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec)
        });
        values.collect()
    }

    /// The same in words of the record, as the worker's with this mark.
    pub(super) fn as_origin(&self, mark: &str) -> Origin {
        let (leader, started_ticks) = self.key();
        Origin { leader, started_ticks, mark: mark.to_owned() }
    }

    /// Its key.
    pub(super) const fn key(&self) -> Key {
        (self.pid, self.started_ticks)
    }

    /// Sends `signal`, unless the process has gone or its number has been given to another. False if
    /// it belongs to another user, whom this one may not signal.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        let Ok(descriptor) = pidfd_open(self.pid, PidfdFlags::empty()) else { return true };
        let is_there = Self::read(self.pid).is_some_and(|now| now.key() == self.key());
        !is_there || pidfd_send_signal(&descriptor, signal) != Err(Errno::PERM)
    }
}

type Marks = Arc<[Vec<u8>]>;

/// The processes of this machine at one moment.
#[derive(Debug)]
pub(super) struct ProcessTable {
    processes: Vec<ProcessStat>,
    /// The marks of those that were asked for theirs: an environment is read once, for all workers.
    marks: Mutex<HashMap<Pid, Marks>>,
}

impl ProcessTable {
    pub(super) fn read() -> Self {
        Self { processes: all(), marks: Mutex::default() }
    }

    fn marks(&self, process: &ProcessStat) -> Marks {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(marks.entry(process.pid).or_insert_with(|| process.marks()))
    }

    /// All living processes of these workers and what descends from them, but for the leaders
    /// themselves.
    pub(super) fn followers(&self, origins: &[Origin]) -> Vec<ProcessStat> {
        let leaders: HashMap<i32, &Origin> = origins
            .iter()
            .filter(|origin| self.has_leader(origin))
            .map(|origin| (origin.leader.as_raw_nonzero().get(), origin))
            .collect();
        let mut began: HashMap<&[u8], u64> = HashMap::new();
        for origin in origins {
            let ticks = began.entry(origin.mark.as_bytes()).or_insert(origin.started_ticks);
            *ticks = origin.started_ticks.min(*ticks);
        }
        let Some(first) = began.values().min().copied() else { return Vec::new() };
        let is_after = |process: &ProcessStat, ticks: u64| process.started_ticks >= ticks;
        let belongs = |process: &ProcessStat| {
            let leader = leaders.get(&process.session);
            leader.is_some_and(|origin| is_after(process, origin.started_ticks))
                || (!process.is_dead()
                    && is_after(process, first)
                    && self.marks(process).iter().any(|mark| {
                        began.get(&mark[..]).is_some_and(|ticks| is_after(process, *ticks))
                    }))
        };
        let is_leader =
            |process: &ProcessStat| leaders.contains_key(&process.pid.as_raw_nonzero().get());
        let mut followers = self.with_descendants(|process| belongs(process) || is_leader(process));
        followers.retain(|process| !is_leader(process));
        followers
    }

    /// Orphans of workers that have fallen to `agent`, known by their session and parent alone, and
    /// what descends from them. `is_known` are the agent's own children; one that bears a mark is its
    /// worker's.
    pub(super) fn strays(&self, agent: Pid, is_known: impl Fn(Pid) -> bool) -> Vec<ProcessStat> {
        let Some(session) =
            self.processes.iter().find(|one| one.pid == agent).map(|one| one.session)
        else {
            return Vec::new();
        };
        // Whatever the agent starts is in its session until it is a worker; no other can enter it.
        self.with_descendants(|process| {
            process.parent == agent.as_raw_nonzero().get()
                && process.session != session
                && !is_known(process.pid)
                && !process.is_dead()
                && self.marks(process).is_empty()
        })
    }

    /// The children of `agent`.
    pub(super) fn children(&self, agent: Pid) -> impl Iterator<Item = &ProcessStat> {
        let agent = agent.as_raw_nonzero().get();
        self.processes.iter().filter(move |process| process.parent == agent)
    }

    /// Those of `noted` that are still there, and what descends from them.
    pub(super) fn still(&self, noted: &[Origin]) -> Vec<ProcessStat> {
        self.with_descendants(|process| noted.iter().any(|one| one.key() == process.key()))
    }

    /// Followers of a worker that neither its session nor its mark gives away.
    pub(super) fn hidden_followers(&self, origin: &Origin) -> Vec<ProcessStat> {
        let mut hidden = self.followers(std::slice::from_ref(origin));
        let leader = origin.leader.as_raw_nonzero().get();
        let has_mark = |process: &ProcessStat| {
            self.marks(process).iter().any(|mark| mark == origin.mark.as_bytes())
        };
        hidden.retain(|process| process.session != leader && !has_mark(process));
        hidden
    }

    /// The living ones among the roots and all that descends from them.
    fn with_descendants(&self, is_root: impl Fn(&ProcessStat) -> bool) -> Vec<ProcessStat> {
        let mut found: HashSet<Pid> = self
            .processes
            .iter()
            .filter(|process| is_root(process))
            .map(|process| process.pid)
            .collect();
        let mut waiting: Vec<Pid> = found.iter().copied().collect();
        while let Some(parent) = waiting.pop() {
            let parent = parent.as_raw_nonzero().get();
            let children = self.processes.iter().filter(|process| process.parent == parent);
            waiting.extend(children.map(|child| child.pid).filter(|pid| found.insert(*pid)));
        }
        let living = |process: &&ProcessStat| !process.is_dead() && found.contains(&process.pid);
        self.processes.iter().filter(living).copied().collect()
    }

    fn has_leader(&self, origin: &Origin) -> bool {
        self.processes.iter().any(|process| process.key() == origin.key())
    }
}

impl Origin {
    /// As of [`ProcessStat::key`].
    const fn key(&self) -> Key {
        (self.leader, self.started_ticks)
    }
}

/// Takes dead children off the system's table that are not `ours`: what workers have left behind falls
/// to this process.
pub(super) fn reap_orphans(ours: impl Fn(Pid) -> bool) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    for _ in 0..MAX_REAPED_AT_ONCE {
        let Ok(Some(_)) = waitid(WaitId::All, options) else { return };
        let us = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
        let dead = |one: &&ProcessStat| one.is_dead() && one.parent == us && !ours(one.pid);
        let all = all();
        let Some(orphan) = all.iter().find(dead) else { return };
        let _ = waitpid(Some(orphan.pid), WaitOptions::NOHANG);
    }
}

/// The worker itself, if it is still there.
pub(super) fn leader(origin: &Origin) -> Option<ProcessStat> {
    ProcessStat::read(origin.leader)
        .filter(|process| process.key() == origin.key() && !process.is_dead())
}

fn all() -> Vec<ProcessStat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pid = |entry: fs::DirEntry| {
        entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
    };
    entries.filter_map(Result::ok).filter_map(pid).filter_map(ProcessStat::read).collect()
}

/// How often this thread reads from files while it does this (proc(5), `/proc/<pid>/io`).
#[cfg(test)]
pub(super) fn reads_of<T>(act: impl FnOnce() -> T) -> u64 {
    let reads = || {
        let text = fs::read_to_string("/proc/thread-self/io").expect("the kernel counts");
        let line = text.lines().find_map(|line| line.strip_prefix("syscr: "));
        line.and_then(|number| number.parse::<u64>().ok()).expect("a number")
    };
    let before = reads();
    act();
    reads() - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_anything() {
        let pid = Pid::from_raw(7).unwrap();
        let fields = "T 5 6 4 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 4711 1 2";
        let expected = ProcessStat { pid, state: b'T', parent: 5, session: 4, started_ticks: 4711 };
        for name in ["a", ") R 1 1 1", "\u{ff}", ""] {
            let text = format!("7 ({name}) {fields}\n");
            assert_eq!(ProcessStat::parse(pid, text.as_bytes()), Some(expected), "{name:?}");
        }
        for broken in ["", "7 (a)", "7 (a) T x", "7 a T 5 6 4"] {
            assert_eq!(ProcessStat::parse(pid, broken.as_bytes()), None, "{broken:?}");
        }
    }

    #[test]
    fn this_process_is_there() {
        let me = ProcessStat::read(rustix::process::getpid()).unwrap();
        assert!(!me.is_dead());
        assert!(all().contains(&me) || all().iter().any(|one| one.pid == me.pid));
    }
}
