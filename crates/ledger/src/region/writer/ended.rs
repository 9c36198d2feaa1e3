//! Which pids of a region's rows belong to no process any more.
//!
//! A row has a pid as its writer's PID namespace numbers it, and does not say which namespace that
//! is. So a pid has ended only if no process that can be seen from here has this number in any of
//! its namespaces. Whatever cannot be seen to the end counts as alive. Reads `/proc`; never waits.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};

use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};

/// Processes that are checked; with more of them none is taken for dead.
const MAX_PROCESSES: usize = 1 << 16;

/// Bytes that are read of one `/proc/<pid>/status`. The longest line before the one that is needed
/// lists supplementary groups; where they push it out, no process is taken for dead.
const MAX_STATUS_BYTES: u64 = 1 << 16;

/// Those of `pids` that certainly no other process has.
///
/// This is certain only for pids of this process's PID namespace and of those below it: ask it in
/// the initial namespace, or where all writers share one. With a `/proc` of another namespace, or
/// one that hides other users' processes (`hidepid`), the answer is: none.
#[must_use]
pub fn ended_pids(pids: &BTreeSet<u32>) -> BTreeSet<u32> {
    let own_pid = getpid().as_raw_nonzero().get().unsigned_abs();
    let unknown_here = |pid: &u32| *pid == own_pid || is_unknown_to_the_kernel(*pid);
    let mut ended: BTreeSet<u32> = pids.iter().copied().filter(unknown_here).collect();
    if !ended.is_empty() && strike_out_the_living(&mut ended, own_pid).is_none() {
        ended.clear();
    }
    ended
}

/// Whether no process of this namespace has this pid. It asks by signal 0, which `hidepid` does
/// not hide from.
fn is_unknown_to_the_kernel(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.map(test_kill_process) == Some(Err(Errno::SRCH))
}

/// Takes from `ended` whatever number another process has in any namespace; absent if not all
/// processes can be seen.
fn strike_out_the_living(ended: &mut BTreeSet<u32>, own_pid: u32) -> Option<()> {
    let named = fs::read_link("/proc/self").ok()?;
    if named.to_str() != Some(own_pid.to_string().as_str()) {
        return None;
    }
    let mut sees_first_process = false;
    let mut processes = 0;
    for entry in fs::read_dir("/proc").ok()? {
        let name = entry.ok()?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        processes += 1;
        if processes > MAX_PROCESSES {
            return None;
        }
        // `hidepid` leaves it out of the list for all but root.
        sees_first_process |= pid == 1;
        if pid == own_pid {
            continue;
        }
        match read_status(pid) {
            Ok(status) => {
                for pid in namespace_pids(&status)? {
                    ended.remove(&pid);
                }
            }
            // It ended meanwhile.
            Err(error) if is_gone(&error) => {}
            Err(_) => return None,
        }
        if ended.is_empty() {
            return Some(());
        }
    }
    sees_first_process.then_some(())
}

fn is_gone(error: &io::Error) -> bool {
    [Errno::NOENT, Errno::SRCH].map(Errno::raw_os_error).map(Some).contains(&error.raw_os_error())
}

fn read_status(pid: u32) -> io::Result<Vec<u8>> {
    let mut status = Vec::new();
    File::open(format!("/proc/{pid}/status"))?.take(MAX_STATUS_BYTES).read_to_end(&mut status)?;
    Ok(status)
}

/// A process's number in each of its PID namespaces; absent where the kernel does not tell (before
/// 4.1), or the line was cut. A name cannot forge the line: the kernel escapes its line ends.
fn namespace_pids(status: &[u8]) -> Option<Vec<u32>> {
    let (line, is_whole) = status.split_inclusive(|byte| *byte == b'\n').find_map(|line| {
        let numbers = line.strip_prefix(b"NSpid:")?;
        Some((numbers, line.ends_with(b"\n")))
    })?;
    let text = std::str::from_utf8(line).ok().filter(|_| is_whole)?;
    let numbers: Result<Vec<u32>, _> = text.split_ascii_whitespace().map(str::parse).collect();
    numbers.ok().filter(|numbers| !numbers.is_empty())
}

#[cfg(test)]
mod tests {
    use super::namespace_pids;

    #[test]
    fn only_a_whole_line_of_numbers_is_taken() {
        let cases: [(&[u8], Option<Vec<u32>>); 6] = [
            (b"Name:\tx\nNSpid:\t77\t2\t1\nNSpgid:\t5\n", Some(vec![77, 2, 1])),
            (b"Name:\t\xff\nNSpid:\t77\n", Some(vec![77])),
            (b"Name:\tNSpid:\t1\nPid:\t77\n", None),
            (b"NSpid:\t77\t2", None),
            (b"NSpid:\tx\n", None),
            (b"NSpid:\n", None),
        ];
        for (status, expected) in cases {
            assert_eq!(namespace_pids(status), expected);
        }
    }
}
