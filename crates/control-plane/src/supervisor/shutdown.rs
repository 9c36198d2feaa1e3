//! In which order the processes that a worker has left get `SIGTERM`.
//!
//! A process gets it after what may need it has ended: its parent, what writes into the pipe that it reads, and,
//! for a daemon, everything else. So a script that saves behind a shell that has ended keeps its DataLoader's
//! processes, the `tee` that logs it and its daemons. Here it is only decided: nothing is signalled.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::process::{Key, ProcessStat};

/// How long what reads a pipe may take to end by itself when nothing writes into it any more.
const EOF_TIMEOUT: Duration = Duration::from_millis(250);
/// Descriptors of one process that are checked: an output that is a pipe has one of the lowest.
const MAX_DESCRIPTORS: usize = 4096;

/// How far the processes of one worker have been asked to end.
#[derive(Debug)]
pub(super) struct Shutdown {
    /// What had lost its parent before the worker was asked to end.
    daemons: HashSet<Key>,
    asked: HashSet<Key>,
    /// Since when nothing writes into the pipe that a process reads.
    unwritten: HashMap<Key, Instant>,
}

/// What a process's standard input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    /// Nothing that tells when it is needed no more.
    Any,
    /// A pipe into which others may write.
    Written,
    /// A pipe of which it has just come to the end.
    Ending,
}

impl Shutdown {
    pub(super) fn new(daemons: HashSet<Key>) -> Self {
        Self { daemons, asked: HashSet::new(), unwritten: HashMap::new() }
    }

    /// Which of `left` get `SIGTERM` now. None is named twice.
    pub(super) fn due(&mut self, left: &[ProcessStat], now: Instant) -> Vec<ProcessStat> {
        let numbers: HashSet<i32> = left.iter().map(|one| number(one.pid)).collect();
        let has_parent = |one: &ProcessStat| numbers.contains(&one.parent);
        let (asked, waiting): (Vec<ProcessStat>, Vec<ProcessStat>) = left
            .iter()
            .filter(|one| !has_parent(one))
            .partition(|one| self.asked.contains(&one.key()));
        let waiting: Vec<(ProcessStat, Input)> =
            waiting.into_iter().map(|one| (one, self.input(&one, left, now))).collect();
        let read_on = waiting.iter().filter(|(_, input)| *input != Input::Written);
        let is_daemon = |one: &ProcessStat| self.daemons.contains(&one.key());
        let is_busy = read_on.map(|(one, _)| one).chain(&asked).any(|one| !is_daemon(one));
        let is_due = |(one, input): &&(ProcessStat, Input)| {
            *input == Input::Any && (!is_busy || !is_daemon(one))
        };
        let mut due: Vec<ProcessStat> =
            waiting.iter().filter(is_due).map(|(one, _)| *one).collect();
        let is_ending = |(_, input): &(ProcessStat, Input)| *input == Input::Ending;
        if due.is_empty() && asked.is_empty() && !waiting.iter().any(is_ending) {
            // They read from each other.
            due = waiting.iter().map(|(one, _)| *one).collect();
        }
        self.asked.extend(due.iter().map(ProcessStat::key));
        due
    }

    fn input(&mut self, one: &ProcessStat, left: &[ProcessStat], now: Instant) -> Input {
        let Some(pipe) = input_pipe(one.pid) else { return Input::Any };
        if left.iter().any(|other| other.pid != one.pid && writes_into(other.pid, &pipe)) {
            return Input::Written;
        }
        let since = *self.unwritten.entry(one.key()).or_insert(now);
        if now.duration_since(since) < EOF_TIMEOUT { Input::Ending } else { Input::Any }
    }
}

fn number(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

/// The pipe that is a process's standard input, as `/proc` names it (`pipe:[12345]`).
fn input_pipe(pid: Pid) -> Option<PathBuf> {
    pipe_at(&Path::new("/proc").join(number(pid).to_string()).join("fd/0"))
}

fn pipe_at(descriptor: &Path) -> Option<PathBuf> {
    let target = fs::read_link(descriptor).ok()?;
    target.to_str().is_some_and(|name| name.starts_with("pipe:[")).then_some(target)
}

/// Whether a process could write into a pipe. One whose descriptors this user may not see does not count.
fn writes_into(pid: Pid, pipe: &Path) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let mut descriptors = entries.filter_map(Result::ok).take(MAX_DESCRIPTORS);
    descriptors.any(|entry| {
        // The link's own mode says for what it is open (proc(5)).
        let is_writable = |link: fs::Metadata| link.permissions().mode() & 0o200 != 0;
        pipe_at(&entry.path()).is_some_and(|other| other == pipe)
            && entry.metadata().is_ok_and(is_writable)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers above the kernel's highest, so that no descriptors are found.
    const FIRST: i32 = 5_000_000;
    const AGENT: i32 = 1;

    /// Each line has the processes that are left, as `number<parent`, and those that are due.
    #[track_caller]
    fn check(daemons: &[i32], scans: &[(&str, &[i32])]) {
        let process = |word: &str| {
            let (pid, parent) = word.split_once('<').expect("a number and its parent");
            let [pid, parent]: [i32; 2] = [pid, parent].map(|text| text.parse().expect("a number"));
            let parent = if parent == 0 { AGENT } else { FIRST + parent };
            ProcessStat::made_up(Pid::from_raw(FIRST + pid).expect("more than 0"), parent)
        };
        let daemon = |daemon: &i32| process(&format!("{daemon}<0")).key();
        let mut shutdown = Shutdown::new(daemons.iter().map(daemon).collect());
        for (left, expected) in scans {
            let left: Vec<ProcessStat> = left.split_whitespace().map(process).collect();
            let due = shutdown.due(&left, Instant::now());
            let due: Vec<i32> = due.iter().map(|one| number(one.pid) - FIRST).collect();
            assert_eq!(due, *expected, "{left:?}");
        }
    }

    #[test]
    fn a_process_is_asked_once_when_its_parent_has_ended() {
        check(&[], &[("1<0 2<1 3<1 4<0", &[1, 4]), ("1<0 2<1 3<1", &[]), ("2<0 3<0", &[2, 3])]);
        check(&[], &[("1<0 2<1 3<2", &[1]), ("2<0 3<2", &[2]), ("3<0", &[3]), ("3<0", &[])]);
    }

    #[test]
    fn daemons_are_asked_when_nothing_else_is_left() {
        let scans: [(&str, &[i32]); 4] =
            [("1<0 2<1 5<0 6<5", &[1]), ("2<0 5<0 6<5", &[2]), ("5<0 6<5", &[5]), ("6<0", &[6])];
        check(&[5], &scans);
        check(&[5], &[("5<0", &[5])]);
    }
}
