//! The life of a worker: how it is asked to stop, and when nothing of it is left.
//!
//! `SIGTERM` goes to the worker itself. What it has started gets it when the worker has ended, each process when
//! its parent has ([`super::shutdown`]), and is killed when its time is over: the processes that a script loads its
//! data with are needed until it has saved. No process gets `SIGTERM` twice, as a second one may end a script that
//! saves.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group, waitid,
};
use tokio::signal::unix::Signal as ChildEnds;
use tokio::time::sleep;

use super::leftovers::LeftoverRecord;
use super::process::{Key, Origin, ProcessStat, ProcessTable};
use super::shutdown::Shutdown;

/// How long what a worker has left may take to end by `SIGTERM`, if the worker was not asked to stop
/// or its own time is over.
const LEFTOVER_TIMEOUT: Duration = Duration::from_millis(500);
/// The first and the longest pause between two checks of what is left.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// How old a check of the processes may be that says what has lost its parent: one is for all workers that are asked
/// together.
const ORPHANS_AGE: Duration = Duration::from_millis(100);

/// One worker, as the supervisor and the task that watches it both see it.
#[derive(Debug)]
pub(super) struct Lifetime {
    pub(super) origin: Origin,
    /// Whether it has a rank; one that was started ahead has none yet.
    has_rank: AtomicBool,
    /// Set when it is asked to end: what had fallen to this process by then.
    orphans: OnceLock<HashSet<Key>>,
    is_overdue: AtomicBool,
    /// Set once its number may be given to another process.
    is_gone: AtomicBool,
}

/// All workers of an agent that are not gone.
#[derive(Debug, Default)]
pub(super) struct Lifetimes {
    workers: Mutex<Vec<Arc<Lifetime>>>,
    /// The latest table that was read, and since when it holds: one poll is for all workers that have ended.
    table: Mutex<Option<(Instant, Arc<ProcessTable>)>>,
}

impl Lifetimes {
    /// Takes note of a worker, at once when it was started.
    pub(super) fn begin(&self, origin: Origin, has_rank: bool) -> Arc<Lifetime> {
        let lifetime = Arc::new(Lifetime {
            origin,
            has_rank: has_rank.into(),
            orphans: OnceLock::new(),
            is_overdue: false.into(),
            is_gone: false.into(),
        });
        self.with(|all| all.push(Arc::clone(&lifetime)));
        lifetime
    }

    /// The processes at a moment that is not before `since`.
    fn table(&self, since: Instant) -> Arc<ProcessTable> {
        let mut latest = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((read, table)) = &*latest
            && *read >= since
        {
            return Arc::clone(table);
        }
        let read = Instant::now();
        let table = Arc::new(ProcessTable::read());
        *latest = Some((read, Arc::clone(&table)));
        table
    }

    /// What `one`, which has ended, has left, at a moment that is not before `since`. When nothing of another worker
    /// with a rank is left, that is also every orphan that fell to this process: no other can have started it.
    fn left_by(&self, one: &Lifetime, since: Instant, record: &LeftoverRecord) -> Vec<ProcessStat> {
        let origin = std::slice::from_ref(&one.origin);
        let table = self.table(since);
        let mut left = table.followers(origin);
        // Without the note only what can be seen now is known.
        let mut noted = record.strays().unwrap_or_default();
        noted.retain(|stray| stray.mark == one.origin.mark);
        left.extend(table.still(&noted));
        let (leaders, is_last) = self.with(|all| {
            let mut others = all.iter().filter(|other| !std::ptr::eq(Arc::as_ptr(other), one));
            let is_last = !others.any(|other| other.has_rank.load(Ordering::Relaxed));
            (all.iter().map(|other| other.origin.leader).collect::<HashSet<Pid>>(), is_last)
        });
        if is_last {
            left.extend(table.strays(getpid(), |pid| leaders.contains(&pid)));
        }
        left
    }

    /// The children of this process: all that has fallen to it is among them.
    fn orphans(&self) -> HashSet<Key> {
        let now = Instant::now();
        let table = self.table(now.checked_sub(ORPHANS_AGE).unwrap_or(now));
        table.children(getpid()).map(ProcessStat::key).collect()
    }

    fn end(&self, one: &Lifetime) {
        one.is_gone.store(true, Ordering::Relaxed);
        self.with(|all| all.retain(|other| !std::ptr::eq(Arc::as_ptr(other), one)));
    }

    fn with<T>(&self, act: impl FnOnce(&mut Vec<Arc<Lifetime>>) -> T) -> T {
        act(&mut self.workers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Lifetime {
    /// From now on it has a rank.
    pub(super) fn give_rank(&self) {
        self.has_rank.store(true, Ordering::Relaxed);
    }

    /// Asks the worker itself to end, once. All of its group goes on, should it be stopped.
    pub(super) fn ask(&self, signal: Signal, all: &Lifetimes) {
        let is_first = self.orphans.get().is_none();
        if is_first {
            let _ = self.orphans.set(all.orphans());
        }
        if self.is_gone.load(Ordering::Relaxed) {
            return;
        }
        if is_first {
            // What has ended is reported elsewhere.
            let _ = kill_process(self.origin.leader, signal);
        }
        self.signal_group(Signal::CONT);
    }

    /// Kills the worker itself; what it has started as well if that did not end it. Says whether that is the first time.
    pub(super) fn kill(&self) -> bool {
        let is_first = !self.is_overdue.swap(true, Ordering::Relaxed);
        if !self.is_gone.load(Ordering::Relaxed) {
            let _ = kill_process(self.origin.leader, Signal::KILL);
            if !is_first {
                self.signal_group(Signal::KILL);
            }
        }
        is_first
    }

    fn signal_group(&self, signal: Signal) {
        // Before it leads a group it is alone.
        if kill_process_group(self.origin.leader, signal).is_err() {
            let _ = kill_process(self.origin.leader, signal);
        }
    }

    /// Waits until the worker has ended and nothing that it has left is there, and has `reap` take it
    /// off the system's table.
    pub(super) async fn ended<T>(
        &self,
        ends: &mut ChildEnds,
        all: &Lifetimes,
        record: &LeftoverRecord,
        reap: impl FnOnce() -> T,
    ) -> T {
        self.leader_ended(ends).await;
        self.clear(all, record).await;
        let status = reap();
        all.end(self);
        status
    }

    async fn leader_ended(&self, ends: &mut ChildEnds) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that it is no child of this process, so certainly none that runs.
        while waitid(WaitId::Pid(self.origin.leader), options).is_ok_and(|end| end.is_none()) {
            if ends.recv().await.is_none() {
                return;
            }
        }
    }

    /// Asks what the worker has left to end, and kills it when its time is over, until nothing is left.
    async fn clear(&self, all: &Lifetimes, record: &LeftoverRecord) {
        let orphans = self.orphans.get();
        let mut shutdown = Shutdown::new(orphans.cloned().unwrap_or_default());
        let ended = Instant::now();
        let mut others = HashSet::new();
        let mut pause = PAUSES.0;
        let mut since = ended;
        loop {
            let mut left = all.left_by(self, since, record);
            // What belongs to another user cannot be ended by this one.
            left.retain(|process| !others.contains(&process.key()));
            if left.is_empty() {
                // That look misses what was started during it by a process that ended during it.
                self.signal_group(Signal::KILL);
                return;
            }
            let has_time = orphans.is_some() && !self.is_overdue.load(Ordering::Relaxed);
            let is_over = !has_time && ended.elapsed() >= LEFTOVER_TIMEOUT;
            let (due, signals): (_, &[Signal]) = if is_over {
                // A process that starts the next one and ends may be gone before a signal of its own.
                self.signal_group(Signal::KILL);
                (left, &[Signal::KILL])
            } else {
                (shutdown.due(&left, Instant::now()), &[Signal::TERM, Signal::CONT])
            };
            for process in due {
                if signals.iter().any(|signal| !process.signal(*signal)) {
                    others.insert(process.key());
                }
            }
            since = Instant::now();
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::process::reads_of;

    #[test]
    fn workers_that_end_together_look_at_the_processes_once() {
        let scratch = telltale_harness::Scratch::new();
        let record = LeftoverRecord::at(&scratch.join("workers"));
        let lifetimes = Lifetimes::default();
        // They are older than all processes, so every environment is scanned.
        let begin = |number| {
            let mark = format!("one-look-{number}");
            lifetimes.begin(Origin { leader: getpid(), started_ticks: 0, mark }, true)
        };
        let ended: Vec<_> = (0..8).map(begin).collect();
        let since = Instant::now();
        let reads_left =
            |one: &Lifetime, since| reads_of(|| lifetimes.left_by(one, since, &record));
        let first = reads_left(&ended[0], since);
        let others: u64 = ended[1..].iter().map(|one| reads_left(one, since)).sum();
        assert!(first > 0 && others < first, "{first} reads for one, {others} for seven more");
        let again = reads_left(&ended[0], Instant::now());
        assert!(again > first / 2, "what follows is seen: {again} reads, {first} before");
    }
}
