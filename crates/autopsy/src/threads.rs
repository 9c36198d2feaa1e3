//! The kernel's view of a process: each thread's state, wait channel, system call and processor time.

use std::fs;
use std::path::Path;

use procfs::process::{Process, Syscall, Task};

use crate::bounds::{MAX_THREADS, bounded};
use crate::evidence::{SystemCall, ThreadEvidence};
use crate::system_calls;

/// Thread ids that are listed before the list is cut; a process with more says how many it has.
const MAX_LISTED: usize = 65_536;

/// The threads to take, the main one first, then those that must not be missing, then the others by id;
/// and how many were left out.
pub(crate) fn chosen(process: &Process, needed: &[u32]) -> procfs::ProcResult<(Vec<u32>, u64)> {
    let main = process.pid().unsigned_abs();
    let mut all: Vec<u32> = process
        .tasks()?
        .take(MAX_LISTED)
        .filter_map(Result::ok)
        .map(|task| task.tid.unsigned_abs())
        .collect();
    all.sort_by_key(|tid| (*tid != main, !needed.contains(tid), *tid));
    let left_out = all.len().saturating_sub(MAX_THREADS);
    all.truncate(MAX_THREADS);
    Ok((all, u64::try_from(left_out).unwrap_or(u64::MAX)))
}

/// One thread, without its stacks; none where it has ended.
pub(crate) fn state(process: &Process, tid: u32) -> Option<ThreadEvidence> {
    let task = process.task_from_tid(i32::try_from(tid).ok()?).ok()?;
    let stat = task.stat().ok()?;
    let cpu_ms = (stat.utime + stat.stime).saturating_mul(1000) / procfs::ticks_per_second();
    Some(ThreadEvidence {
        tid,
        name: bounded(&stat.comm),
        state: stat.state,
        wait_channel: wait_channel(process.pid(), tid),
        system_call: system_call(process.pid(), &task),
        cpu_ms,
        python: None,
        native: Vec::new(),
    })
}

fn wait_channel(pid: i32, tid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/wchan")).ok()?;
    // 0: it runs, or the kernel does not name it to this user.
    (!text.is_empty() && text != "0").then(|| bounded(&text))
}

fn system_call(pid: i32, task: &Task) -> Option<SystemCall> {
    let Ok(Syscall::Blocked { syscall_number, argument_registers, .. }) = task.syscall() else {
        return None;
    };
    if syscall_number < 0 {
        return None;
    }
    let (name, is_on_descriptor) = system_calls::named(syscall_number);
    let file = is_on_descriptor.then(|| opened(pid, argument_registers[0])).flatten();
    Some(SystemCall { name, file })
}

/// What a descriptor of the process is open on, as the kernel names it.
fn opened(pid: i32, descriptor: u64) -> Option<String> {
    let link = format!("/proc/{pid}/fd/{descriptor}");
    let target = fs::read_link(Path::new(&link)).ok()?;
    Some(bounded(&target.to_string_lossy()))
}
