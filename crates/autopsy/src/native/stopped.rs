//! One thread, stopped for as long as its registers and its stack take to copy.
//!
//! `PTRACE_SEIZE` and `PTRACE_INTERRUPT` send no signal, so a program that is looked at sees nothing: no
//! interrupted call of its own, no SIGSTOP. What arrives at the thread at that moment is passed on.

use std::time::{Duration, Instant};
use std::{fs, io, mem, ptr, thread};

use crate::memory;

/// How long a thread is given to stop. One that does not is in a system call that cannot be interrupted.
const STOP_TIMEOUT: Duration = Duration::from_millis(20);
/// How much of a stack is copied; frames beyond it are missing.
const STACK_BYTES: usize = 128 << 10;

/// Why there is no native stack of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It has ended.
    Ended,
    /// The kernel does not permit it.
    NotPermitted,
    /// Another process traces it, which a debugger does.
    Traced(u32),
    /// It is in a system call that cannot be interrupted (D), so it would not stop.
    Uninterruptible,
    /// There was no time left.
    NoTime,
}

/// A thread's registers and stack, copied.
#[derive(Debug)]
pub(crate) struct ThreadCopy {
    pub(crate) registers: libc::user_regs_struct,
    pub(crate) stack_start: u64,
    pub(crate) stack: Vec<u8>,
    pub(crate) stopped: Duration,
}

/// Stops threads one at a time.
#[derive(Debug, Default)]
pub(crate) struct Tracer {
    /// Threads that had not stopped in time, and must be let go once they do. The kernel does so too when
    /// this process ends.
    late: Vec<libc::pid_t>,
}

impl Tracer {
    /// Copies one thread.
    pub(crate) fn copy(&mut self, pid: u32, tid: u32) -> Result<ThreadCopy, Refused> {
        match status(pid, tid) {
            None | Some(ThreadStatus { state: 'Z' | 'X', .. }) => return Err(Refused::Ended),
            Some(ThreadStatus { tracer: tracer @ 1.., .. }) => return Err(Refused::Traced(tracer)),
            Some(ThreadStatus { state: 'D', .. }) => return Err(Refused::Uninterruptible),
            Some(_) => {}
        }
        let tid = libc::pid_t::try_from(tid).map_err(|_| Refused::Ended)?;
        request(libc::PTRACE_SEIZE, tid, 0).map_err(|error| refused(&error))?;
        let began = Instant::now();
        request(libc::PTRACE_INTERRUPT, tid, 0).map_err(|error| refused(&error))?;
        let Some(signal) = wait_for_stop(tid, began + STOP_TIMEOUT)? else {
            self.late.push(tid);
            return Err(Refused::Uninterruptible);
        };
        let registers = registers(tid);
        let copied = registers.map(|registers| {
            let stack_start = stack_pointer(&registers);
            let mut stack = vec![0; STACK_BYTES];
            let length = memory::read(pid, stack_start, &mut stack);
            stack.truncate(length);
            (registers, stack_start, stack)
        });
        // A thread that was killed meanwhile has nothing to let go.
        let _ = request(libc::PTRACE_DETACH, tid, signal);
        let stopped = began.elapsed();
        let (registers, stack_start, stack) = copied.ok_or(Refused::Ended)?;
        Ok(ThreadCopy { registers, stack_start, stack, stopped })
    }

    /// Lets go of threads that have stopped since.
    pub(crate) fn release_late(&mut self) {
        self.late.retain(|tid| match wait_for_stop(*tid, Instant::now()) {
            Ok(Some(signal)) => request(libc::PTRACE_DETACH, *tid, signal).is_err(),
            Ok(None) => true,
            Err(_) => false,
        });
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.release_late();
    }
}

struct ThreadStatus {
    state: char,
    tracer: u32,
}

fn status(pid: u32, tid: u32) -> Option<ThreadStatus> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    Some(ThreadStatus {
        state: value("State:")?.chars().next()?,
        tracer: value("TracerPid:")?.parse().ok()?,
    })
}

fn refused(error: &io::Error) -> Refused {
    match error.raw_os_error() {
        Some(libc::ESRCH) => Refused::Ended,
        _ => Refused::NotPermitted,
    }
}

/// Waits until the thread stops; the answer is the signal that it must be given when it is let go, or
/// none where it does not stop in time.
fn wait_for_stop(tid: libc::pid_t, deadline: Instant) -> Result<Option<libc::c_int>, Refused> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a live integer, which is all that the call writes.
        let found = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
        if found < 0 || found == tid && !libc::WIFSTOPPED(status) {
            return Err(Refused::Ended);
        }
        if found == tid {
            // The stop that was asked for has an event in its upper half and passes no signal on.
            let is_own = status >> 16 != 0;
            return Ok(Some(if is_own { 0 } else { libc::WSTOPSIG(status) }));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(Duration::from_micros(50));
    }
}

fn request(what: libc::c_uint, tid: libc::pid_t, data: libc::c_int) -> io::Result<()> {
    // SAFETY: these requests take a thread id and a number, and touch no memory of this process.
    let done = unsafe { libc::ptrace(what, tid, ptr::null_mut::<libc::c_void>(), i64::from(data)) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn registers(tid: libc::pid_t) -> Option<libc::user_regs_struct> {
    let mut registers = mem::MaybeUninit::<libc::user_regs_struct>::zeroed();
    let length = mem::size_of::<libc::user_regs_struct>();
    let mut wanted = libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: length };
    // SAFETY: the kernel writes at most `iov_len` bytes at `iov_base`, which are those of `registers`.
    let done =
        unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, libc::NT_PRSTATUS, &raw mut wanted) };
    // SAFETY: it was zeroed, and every bit pattern is a value of these whole numbers.
    (done == 0 && wanted.iov_len == length).then(|| unsafe { registers.assume_init() })
}

#[cfg(target_arch = "x86_64")]
const fn stack_pointer(registers: &libc::user_regs_struct) -> u64 {
    registers.rsp
}

#[cfg(target_arch = "aarch64")]
const fn stack_pointer(registers: &libc::user_regs_struct) -> u64 {
    registers.sp
}
