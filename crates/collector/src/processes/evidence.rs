//! What shows that a process is the one that a claim names.
//!
//! Its start time alone does not: `/proc` gives it as the reader's time namespace counts, and a
//! process that was checkpointed and restored (CRIU) has another one. So a start is compared in the
//! process's own time namespace, and a file with what the process maps. Parsing is pure and bounded.

use std::collections::{HashMap, HashSet};

use rustix::io::Errno;
use telltale_ledger::FileNumber;

use super::identity::NANOSECONDS_PER_TICK;
use super::status::Procfs;
use crate::tree::{Directory, Unreadable};

/// The most that is read of what a process maps; one that maps more is not read to the end.
const MAX_MAPS_BYTES: usize = 32 << 20;

/// What follows a name in `/proc/<pid>/maps` once the file was removed.
const REMOVED: &[u8] = b" (deleted)";

/// What a file is by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FileKind {
    Ledger,
    Region,
}

/// How far the clocks of a time namespace are ahead of the machine's, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ClockOffsets {
    /// The clock that start times in `/proc` are of.
    pub(super) boot_ns: i128,
    /// The monotonic clock.
    pub(super) monotonic_ns: i128,
}

/// The offsets of a process's time namespace. None where the kernel has no time namespaces, or does
/// not tell.
pub(super) fn clock_offsets(process: &Directory) -> Option<ClockOffsets> {
    let text = process.attribute("timens_offsets").ok()?;
    let (boot_ns, monotonic_ns) = (offset_ns(&text, b"boottime")?, offset_ns(&text, b"monotonic")?);
    Some(ClockOffsets { boot_ns, monotonic_ns })
}

/// The offset of one clock in `/proc/<pid>/timens_offsets`, see time_namespaces(7).
fn offset_ns(text: &[u8], clock: &[u8]) -> Option<i128> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(clock))?;
    let mut numbers = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let mut next = || numbers.next()?.parse::<i64>().ok();
    let (seconds, nanoseconds) = (next()?, next()?);
    Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds))
}

/// Whether a process that started at `seen` ticks by our clock started at `claimed` by its own,
/// which is `ahead_ns` ahead of ours.
pub(super) fn started_then(seen: u64, claimed: u64, ahead_ns: i128) -> bool {
    let by_its_clock = i128::from(seen) + ahead_ns.div_euclid(i128::from(NANOSECONDS_PER_TICK));
    // Both clocks are rounded down to a tick.
    seen == claimed || (ahead_ns != 0 && by_its_clock.abs_diff(i128::from(claimed)) <= 1)
}

/// Whether the process maps this ledger; none where we may not know.
pub(super) fn maps(process: &Directory, ledger: FileNumber) -> Option<bool> {
    Some(lists(&process.file("maps", MAX_MAPS_BYTES).ok()?, ledger))
}

/// What all processes map: one scan of `/proc`, whatever number of files is searched for.
#[derive(Debug)]
pub(super) struct Mappings {
    users: HashMap<Mapped, u32>,
    /// Living processes whose maps could not be read.
    unread: HashSet<u32>,
}

impl Mappings {
    /// Checks all processes that may be checked.
    pub(super) fn scan(procfs: &Procfs) -> Self {
        let (mut users, mut unread) = (HashMap::new(), HashSet::new());
        for pid in procfs.pids().0 {
            let maps = procfs.directory(pid).and_then(|one| one.file("maps", MAX_MAPS_BYTES));
            // What has ended, and a thread of the kernel, maps nothing.
            let gone = Unreadable::Errno(Errno::SRCH);
            if maps.as_ref().is_err_and(|error| *error != gone && !error.is_missing()) {
                unread.insert(pid);
            }
            for mapped in mapped_files(&maps.unwrap_or_default()) {
                users.entry(mapped).or_insert(pid);
            }
        }
        Self { users, unread }
    }

    /// A process that maps the file, if one was seen.
    pub(super) fn user_of(&self, file: FileNumber, named: FileKind) -> Option<u32> {
        self.users.iter().find_map(|(mapped, pid)| mapped.is(file, named).then_some(*pid))
    }

    /// A process that maps the file of a file system that has one device (tmpfs), where an inode of
    /// another device is that of another file, whatever its name.
    pub(super) fn user_of_exactly(&self, file: FileNumber) -> Option<u32> {
        self.users.iter().find_map(|(mapped, pid)| mapped.is_exactly(file).then_some(*pid))
    }

    /// Whether this process lives, and what it maps could not be read.
    pub(super) fn is_unread(&self, pid: u32) -> bool {
        self.unread.contains(&pid)
    }

    /// Whether what every process maps was read.
    pub(super) fn is_whole(&self) -> bool {
        self.unread.is_empty()
    }
}

/// A file that a process maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Mapped {
    inode: u64,
    device: (u32, u32),
    named: Option<FileKind>,
}

impl Mapped {
    /// Whether it is this file. A file system of several devices may give another device in
    /// `/proc/<pid>/maps` than `stat` does: then the name counts instead.
    fn is(&self, file: FileNumber, named: FileKind) -> bool {
        self.is_exactly(file) || (self.inode == file.inode && self.named == Some(named))
    }

    fn is_exactly(&self, file: FileNumber) -> bool {
        let device = (rustix::fs::major(file.device), rustix::fs::minor(file.device));
        (self.inode, self.device) == (file.inode, device)
    }

    /// From a line: `from-to rights offset major:minor inode path`.
    fn of(line: &[u8]) -> Option<Self> {
        let (inode, device, path) = fields(line)?;
        Some(Self { inode, device, named: FileKind::of(path, inode) })
    }
}

impl FileKind {
    /// What a path names. A file that got its name by a link after it was made (`O_TMPFILE`), as a ledger
    /// does, keeps the path `/#<inode>` here.
    fn of(path: &[u8], inode: u64) -> Option<Self> {
        let path = path.strip_suffix(REMOVED).unwrap_or(path);
        let is_linked_later = || {
            let name = path.rsplit(|byte| *byte == b'/').next()?.strip_prefix(b"#")?;
            Some(std::str::from_utf8(name).ok()?.parse() == Ok(inode))
        };
        match path {
            _ if path.ends_with(b".tt") => Some(Self::Ledger),
            _ if is_linked_later() == Some(true) => Some(Self::Ledger),
            _ if path.ends_with(b"_memory") => Some(Self::Region),
            _ => None,
        }
    }
}

/// The files that `/proc/<pid>/maps` lists.
fn mapped_files(maps: &[u8]) -> impl Iterator<Item = Mapped> {
    let mapped = maps.split(|byte| *byte == b'\n').filter_map(Mapped::of);
    mapped.filter(|mapped| mapped.inode != 0)
}

/// Whether `/proc/<pid>/maps` lists this ledger.
fn lists(maps: &[u8], ledger: FileNumber) -> bool {
    mapped_files(maps).any(|mapped| mapped.is(ledger, FileKind::Ledger))
}

/// Inode, device and path of a line.
fn fields(line: &[u8]) -> Option<(u64, (u32, u32), &[u8])> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut text = || std::str::from_utf8(fields.next()?).ok();
    let (_, _, _) = (text()?, text()?, text()?);
    let (major, minor) = text()?.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = text()?.parse().ok()?;
    Some((inode, device, fields.next()?))
}

#[cfg(test)]
mod tests {
    use super::{lists, offset_ns, started_then};
    use telltale_ledger::FileNumber;

    #[test]
    fn offsets_are_read_with_their_signs() {
        let text = b"monotonic    -5   250000000\nboottime    864000         1\n";
        assert_eq!(offset_ns(text, b"monotonic"), Some(-4_750_000_000));
        assert_eq!(offset_ns(text, b"boottime"), Some(864_000_000_000_001));
        for odd in [&b""[..], b"boottime", b"boottime 1", b"boottime x 1"] {
            assert_eq!(offset_ns(odd, b"boottime"), None);
        }
    }

    #[test]
    fn a_start_is_compared_by_the_clock_of_its_own_process() {
        assert!(started_then(700, 700, 0));
        assert!(!started_then(700, 701, 0), "clocks that agree are not rounded twice");
        assert!(started_then(700, 750, 500_000_000) && started_then(700, 751, 500_000_000));
        assert!(started_then(700, 650, -500_000_000) && started_then(700, 700, -500_000_000));
        assert!(!started_then(700, 690, -500_000_000) && !started_then(3, 0, i128::MAX));
    }

    #[test]
    fn a_mapped_file_is_known_by_inode_and_device_or_name() {
        let file = FileNumber { device: rustix::fs::makedev(0xfe, 1), inode: 77 };
        let line = |device: &str, inode: u32, path: &str| {
            format!(
                "7f00-7f01 rw-p 00000000 00:00 0 \n7f02-7f03 rw-s 00000000 {device} {inode}      {path}\n"
            )
        };
        for (expected, line) in [
            (true, line("fe:01", 77, "/tmp/a b/x")),
            (true, line("00:2a", 77, "/tmp/a b/ledger_1_2.tt")),
            (true, line("00:2a", 77, "/ledger_1_2.tt (deleted)")),
            // It was made without a name and linked.
            (true, line("00:2a", 77, "/run/tt/#77 (deleted)")),
            (false, line("00:2a", 77, "/run/tt/#78 (deleted)")),
            (false, line("00:2a", 77, "/run/tt#77/x (deleted)")),
            (false, line("00:2a", 77, "/run/tt/# (deleted)")),
            (false, line("00:2a", 77, "/usr/lib/libc.so")),
            // Another file system counts its inodes from one as well.
            (false, line("00:2a", 77, "/dev/shm/tt_device_1_memory")),
            (false, line("fe:01", 78, "/ledger_1_2.tt")),
            (false, String::new()),
            (false, "7f00-7f01 rw-p 0".to_owned()),
        ] {
            assert_eq!(lists(line.as_bytes(), file), expected, "{line}");
        }
    }
}
