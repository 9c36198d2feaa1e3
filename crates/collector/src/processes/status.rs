//! What `/proc/<pid>` says of a process: who it is and whose it is.
//!
//! Text under `/proc` is written by the kernel but holds what processes choose (names, arguments),
//! and in an emulated tree it may hold anything. Parsing is pure and bounded.

use std::sync::Arc;

use rustix::process::{Pid, test_kill_process};
use telltale_schema::process::ProcessStat;

use crate::tree::{Directory, Tree, Unreadable};

/// The most that `status` may have: its longest line lists a process's groups.
const MAX_STATUS_BYTES: usize = 1 << 20;

/// Names in `/proc` that one scan checks.
const MAX_LISTED: usize = 1 << 17;

/// PID namespaces within each other (the kernel allows 32).
const MAX_NAMESPACE_DEPTH: usize = 33;

/// `/proc`, of the tree and, where that has no entry, of the machine we run on: an emulated
/// machine's processes are real ones.
#[derive(Debug)]
pub(crate) struct Procfs {
    tree: Arc<Tree>,
    real: Option<Tree>,
}

/// Who a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessStatus {
    /// Its short name.
    pub(crate) name: String,
    /// When it started, in clock ticks after boot.
    pub(crate) start_time_ticks: u64,
    /// Real, effective, saved and file-system user id.
    pub(crate) uids: [u32; 4],
    /// It has ended and waits for its parent to take note.
    pub(crate) ended: bool,
    /// Its pids, from our PID namespace to its own.
    pub(crate) namespace_pids: Vec<u32>,
}

/// What searching for a pid gave.
#[derive(Debug)]
pub(crate) enum StatusLookup {
    /// The process's directory and status.
    Process(Directory, ProcessStatus),
    /// No process has that pid.
    NoProcess,
    /// A process has it, but it is hidden (`hidepid`, permissions).
    Unseen,
}

// === impl ProcessStatus ===

impl ProcessStatus {
    /// Its pid in its own PID namespace; `pid` is ours of it. Kernels before 4.1 do not tell.
    pub(crate) fn own_pid(&self, pid: u32) -> u32 {
        self.namespace_pids.last().copied().unwrap_or(pid)
    }
}

// === impl Procfs ===

impl Procfs {
    pub(crate) fn new(tree: Arc<Tree>) -> Self {
        let real = if tree.is_emulated() { Tree::open("/".as_ref()).ok() } else { None };
        Self { tree, real }
    }

    /// The process's directory. It stays that of this process, even when the pid is reused.
    pub(crate) fn directory(&self, pid: u32) -> Result<Directory, Unreadable> {
        let path = format!("proc/{pid}");
        match (self.tree.root().directory(&path), &self.real) {
            (Err(error), Some(real)) if error.is_missing() => real.root().directory(&path),
            (result, _) => result,
        }
    }

    /// The process that has `pid` now.
    pub(crate) fn find(&self, pid: u32) -> StatusLookup {
        let found = self.directory(pid).and_then(|directory| {
            let status = read_status(&directory)?;
            Ok((directory, status))
        });
        match found {
            Ok((directory, Some(status))) => StatusLookup::Process(directory, status),
            Ok((_, None)) => StatusLookup::Unseen,
            Err(_) if exists(pid) => StatusLookup::Unseen,
            Err(_) => StatusLookup::NoProcess,
        }
    }

    /// When the process that has `pid` started and its effective user, who owns its directory;
    /// the quicker search for what needs no more. None when it has ended or cannot be seen.
    pub(crate) fn glance(&self, pid: u32) -> Option<(u64, u32)> {
        let directory = self.directory(pid).ok()?;
        let line = directory.attribute("stat").ok()?;
        let stat = ProcessStat::parse(&line).filter(|stat| !stat.has_ended())?;
        Some((stat.start_time_ticks, directory.own_stat().ok()?.st_uid))
    }

    /// When the process that has `pid` started, for a quick look at many.
    pub(crate) fn start_time(&self, pid: u32) -> Option<u64> {
        let stat = self.directory(pid).ok()?.attribute("stat").ok()?;
        ProcessStat::parse(&stat).map(|stat| stat.start_time_ticks)
    }

    /// Every pid that can be seen from here, and whether these are all.
    pub(crate) fn pids(&self) -> (Vec<u32>, bool) {
        let root = self.real.as_ref().unwrap_or(&self.tree).root();
        let names = root.directory("proc").and_then(|proc| proc.names_up_to(MAX_LISTED));
        let complete = names.as_ref().is_ok_and(|names| names.len() < MAX_LISTED);
        (names.iter().flatten().filter_map(|name| name.parse().ok()).collect(), complete)
    }

    /// Whether `/proc` numbers processes as the kernel does for us: it may have been mounted in
    /// another PID namespace.
    pub(crate) fn is_ours(&self) -> bool {
        let root = self.real.as_ref().unwrap_or(&self.tree).root();
        let own = root.link("proc/self").ok();
        own.is_some_and(|own| own.as_os_str() == std::process::id().to_string().as_str())
    }

    /// The text of a file that is the same for all processes, such as the boot id.
    pub(crate) fn common(&self, path: &str) -> Result<Vec<u8>, Unreadable> {
        match (self.tree.root().beginning(path, MAX_STATUS_BYTES), &self.real) {
            (Err(error), Some(real)) if error.is_missing() => {
                real.root().beginning(path, MAX_STATUS_BYTES)
            }
            (result, _) => result,
        }
    }

    /// The inode of our own PID namespace.
    pub(crate) fn own_namespace(&self) -> Option<u64> {
        let root = self.real.as_ref().unwrap_or(&self.tree).root();
        root.stat("proc/self/ns/pid").ok().map(|stat| stat.st_ino)
    }
}

/// Whether someone has that pid, asked without `/proc`.
fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| {
        !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL))
    })
}

/// Reads a process's status from its directory; none when the text makes no sense.
pub(crate) fn read_status(directory: &Directory) -> Result<Option<ProcessStatus>, Unreadable> {
    let stat = directory.attribute("stat")?;
    let status = directory.beginning("status", MAX_STATUS_BYTES)?;
    Ok(parse(&stat, &status))
}

fn parse(stat: &[u8], status: &[u8]) -> Option<ProcessStatus> {
    let stat = ProcessStat::parse(stat)?;
    let name = super::command::printable(stat.name);
    let uids = numbers(line(status, b"Uid:")?);
    // Kernels before 4.1 have no such line; there we must take the pid as it is.
    let namespace_pids = line(status, b"NSpid:").map(numbers).unwrap_or_default();
    let uids = <[u32; 4]>::try_from(uids).ok()?;
    Some(ProcessStatus {
        name,
        start_time_ticks: stat.start_time_ticks,
        uids,
        ended: stat.has_ended(),
        namespace_pids,
    })
}

/// The rest of the line that begins with `key`.
fn line<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(key))
}

fn numbers(text: &[u8]) -> Vec<u32> {
    let text = String::from_utf8_lossy(text);
    let words = text.split_ascii_whitespace().take(MAX_NAMESPACE_DEPTH);
    words.map_while(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{ProcessStatus, Procfs, StatusLookup, parse};
    use crate::tree::Tree;
    use proptest::prelude::*;
    use std::sync::Arc;

    #[test]
    fn a_hostile_name_moves_no_field() {
        let stat = b"7 (a) R 1 (\n) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4242 1 2";
        let status = b"Name:\tUid:\t0\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t77\t1\n";
        let expected = ProcessStatus {
            name: "a) R 1 (\\n".to_owned(),
            start_time_ticks: 4242,
            uids: [1000, 1001, 1002, 1003],
            ended: false,
            namespace_pids: vec![77, 1],
        };
        assert_eq!(parse(stat, status), Some(expected));
        for (stat, status) in [
            (&b""[..], &status[..]),
            (b"7 (a", status),
            (b")(", status),
            (b"7 (a) R 1", status),
            (stat, b"Uid:\t1\t2\t3\n"),
            (stat, b"Uid:\tx\t2\t3\t4\n"),
        ] {
            assert_eq!(parse(stat, status), None);
        }
    }

    #[test]
    fn this_process_is_found_and_nobody_is_not() {
        let procfs = Procfs::new(Arc::new(Tree::open("/".as_ref()).unwrap()));
        let pid = std::process::id();
        let StatusLookup::Process(_, status) = procfs.find(pid) else { panic!("we live") };
        assert_eq!(status.namespace_pids.first(), Some(&pid));
        assert_eq!(procfs.start_time(pid), Some(status.start_time_ticks));
        assert!(procfs.pids().0.contains(&pid) && procfs.is_ours());
        assert!(procfs.own_namespace().is_some());
        assert!(matches!(procfs.find(u32::MAX), StatusLookup::NoProcess));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(telltale_harness::rounds(256, 50_000)))]
        #[test]
        fn no_text_does_harm(
            stat in prop::collection::vec(any::<u8>(), 0..200),
            status in prop::collection::vec(any::<u8>(), 0..200),
            text in "[0-9 ()\\nUidNSp:\t-]{0,200}",
        ) {
            let _ = parse(&stat, &status);
            let _ = parse(text.as_bytes(), text.as_bytes());
        }
    }
}
