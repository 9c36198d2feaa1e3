//! The handlers of signals: installed once in a process, in front of those that were there.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::{Interrupted, TrapShared};
use super::{budget, cause};

/// Signals that an instruction of the thread itself causes.
const FAULTS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];
/// One more than the largest of them.
const SIGNALS: usize = 16;

/// What was there before us.
static BEFORE: [OnceLock<libc::sigaction>; SIGNALS] = [const { OnceLock::new() }; SIGNALS];
/// The signal of the budgets' timers.
static TICK: OnceLock<c_int> = OnceLock::new();

/// A handler that was installed with `SA_SIGINFO`.
type Detailed = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
/// One that was not.
type Plain = extern "C" fn(c_int);

/// Installs the handlers, once in the life of a process. A handler that the application installs
/// later replaces ours; then a kernel's faults are its own.
pub(super) fn install() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    for signal in FAULTS {
        let before = action(signal)?;
        let Some(place) = place(signal) else { continue };
        if place.set(before).is_ok() {
            // What the earlier handler wants to be blocked or not, but on the handlers' stack and
            // more than once.
            let kept = before.sa_flags & (libc::SA_NODEFER | libc::SA_RESTART);
            handle(signal, on_fault, libc::SA_ONSTACK | kept, before.sa_mask)?;
        }
    }
    let tick = free_signal()?;
    handle(tick, on_tick, libc::SA_ONSTACK | libc::SA_RESTART, no_signals())?;
    let _ = TICK.set(tick);
    *installed = true;
    Ok(())
}

/// The signal of the budgets' timers, once the handlers are installed.
pub(super) fn tick() -> c_int {
    *TICK.get().expect("the handlers are installed before a budget starts")
}

/// Blocks none of the handled signals on this thread: a fault whose signal is blocked ends the
/// process. What the thread blocks then.
pub(super) fn let_through() -> libc::sigset_t {
    let mut all = no_signals();
    // SAFETY: the set is valid and initialised, and the signals are valid ones.
    unsafe {
        for signal in FAULTS.into_iter().chain([tick()]) {
            libc::sigaddset(&raw mut all, signal);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const all, ptr::null_mut());
    }
    blocked()
}

/// Blocks all signals on this thread, for others to get them.
pub(super) fn block_all() {
    let mut all = no_signals();
    // SAFETY: the set is valid, and both calls may be made in a handler.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut());
    }
}

/// What this thread blocks.
fn blocked() -> libc::sigset_t {
    let mut blocked = no_signals();
    // SAFETY: without a set to block, the call only writes what is blocked.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut blocked) };
    blocked
}

fn no_signals() -> libc::sigset_t {
    let mut none = MaybeUninit::uninit();
    // SAFETY: the call writes the whole set and cannot fail.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        none.assume_init()
    }
}

/// A signal of real time that is unused: it has no handler, and this thread, which has from the
/// one that opens the accelerator what it blocks, does not block it. Who waits for a signal in
/// another way than by a handler blocks it. Those of the C library are not among them.
fn free_signal() -> io::Result<c_int> {
    let blocked = blocked();
    // The last one is valgrind's.
    let mut candidates = (libc::SIGRTMIN()..libc::SIGRTMAX()).rev();
    let free = candidates.find(|signal| {
        let has_handler = !action(*signal).is_ok_and(|action| action.sa_sigaction == libc::SIG_DFL);
        // SAFETY: the set is initialised, and the signal a valid one.
        !has_handler && unsafe { libc::sigismember(&raw const blocked, *signal) } == 0
    });
    free.ok_or_else(|| io::Error::other("every real-time signal has a handler or is blocked"))
}

fn handle(signal: c_int, handler: Detailed, flags: c_int, mask: libc::sigset_t) -> io::Result<()> {
    // SAFETY: all zeros is a valid action.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | flags;
    action.sa_mask = mask;
    // SAFETY: the action is complete, and the handler has the form that SA_SIGINFO asks for and
    // lives as long as this program. It may interrupt any code: it takes no lock and allocates
    // nothing.
    match unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What happens now when the signal comes.
fn action(signal: c_int) -> io::Result<libc::sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: the pointer is valid for a write, and the call changes nothing else.
    match unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } {
        // SAFETY: the call wrote it, because it succeeded.
        0 => Ok(unsafe { action.assume_init() }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn place(signal: c_int) -> Option<&'static OnceLock<libc::sigaction>> {
    BEFORE.get(usize::try_from(signal).ok()?)
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if let Some(shared) = TrapShared::of_this_thread()
        && let Some(kernel) = shared.kernel()
        && let Some(exit) = kernel.exit.get()
    {
        // SAFETY: the system gave this handler both.
        let (info, mut interrupted) = unsafe { (&*info, Interrupted::of(context)) };
        if let Some(fault) = cause::of(signal, info, &interrupted, &exit) {
            if super::can_be_left(kernel, &exit, &interrupted, fault) {
                if shared.stop(kernel, &mut interrupted, fault) {
                    return;
                }
            } else {
                shared.say(fault);
                if signal != libc::SIGABRT {
                    shared.stay(fault);
                }
            }
        }
    }
    pass_on(signal, info, context);
}

extern "C" fn on_tick(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gave this handler the information, with a value if it is of a timer.
    let is_ours = unsafe {
        (*info).si_code == libc::SI_TIMER
            && (*info).si_value().sival_ptr == budget::value().sival_ptr
    };
    if !is_ours {
        // Another process sent it, to a process that did nothing about it before this was installed.
        use_default(signal);
        send_again(signal, info);
        return;
    }
    let Some(shared) = TrapShared::of_this_thread() else { return };
    let Some(budget) = &shared.budget else { return };
    // SAFETY: the address is this thread's own, always valid.
    let error = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *error };
    if let Some(fault) = budget.tick()
        && let Some(kernel) = shared.kernel()
        && let Some(exit) = kernel.exit.get()
    {
        // SAFETY: the system gave this handler the context.
        let mut interrupted = unsafe { Interrupted::of(context) };
        // Elsewhere a lock may be held. The timer soon comes again, and the next call is refused.
        kernel.lowest_call.set(usize::MAX);
        if (exit.code.0..exit.code.1).contains(&interrupted.instruction()) {
            shared.stop(kernel, &mut interrupted, fault);
        }
    }
    // SAFETY: as above.
    unsafe { *error = saved };
}

/// Does what would have been done without us.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // It was set before this handler was installed.
    let Some(before) = place(signal).and_then(OnceLock::get) else { return };
    // SAFETY: the system gave this handler the information.
    let was_sent = unsafe { (*info).si_code } <= 0;
    match before.sa_sigaction {
        libc::SIG_IGN if was_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            use_default(signal);
            if was_sent || signal == libc::SIGTRAP {
                send_again(signal, info);
            }
            // Else the instruction is run again, and ends the process with all that is known of it.
            // A breakpoint's is behind the thread by now.
        }
        handler => {
            if before.sa_flags & libc::SA_RESETHAND != 0 {
                use_default(signal);
            }
            if before.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: the application installed this address as a handler of this form.
                let handler = unsafe { std::mem::transmute::<usize, Detailed>(handler) };
                handler(signal, info, context);
            } else {
                // SAFETY: as above.
                let handler = unsafe { std::mem::transmute::<usize, Plain>(handler) };
                handler(signal);
            }
        }
    }
}

fn use_default(signal: c_int) {
    // SAFETY: the default action is always valid.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Sends a signal that was sent to this thread, to come when the handler returns.
fn send_again(signal: c_int, info: *mut libc::siginfo_t) {
    // SAFETY: the calls have no conditions but a valid `info`, which is the system's own, unchanged.
    // A thread may send itself what it was sent, from any sender.
    unsafe {
        let (process, thread) = (libc::getpid(), libc::syscall(libc::SYS_gettid));
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info.cast_const());
    }
}
