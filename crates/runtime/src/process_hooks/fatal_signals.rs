//! What happens before a signal ends the process: the debug stream is flushed, then whatever was
//! there before us happens as if we were not.
//!
//! The handler does only what a signal handler may: atomics and system calls. A signal that was
//! ignored stays ignored, and a handler that the application installs later replaces ours.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

/// Signals whose default is to end the process, save for those that cannot be caught and those of
/// timers and real time.
const FATAL: [c_int; 16] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGUSR1,
    libc::SIGSEGV,
    libc::SIGUSR2,
    libc::SIGPIPE,
    libc::SIGTERM,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGSYS,
];
/// Those that an application with a handler of its own may get often and survive: nothing is done
/// before its handler.
const EVERYDAY: [c_int; 3] = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGPIPE];
/// Those that an instruction of the thread itself causes.
const FAULTS: [c_int; 7] = [
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
];
/// One more than the largest signal of the list.
const SIGNALS: usize = 32;

/// What was there before us.
static BEFORE: [OnceLock<libc::sigaction>; SIGNALS] = [const { OnceLock::new() }; SIGNALS];

/// A handler that was installed with `SA_SIGINFO`.
type Detailed = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
/// One that was not.
type Plain = extern "C" fn(c_int);

/// What is called before the process ends. It may interrupt any code.
static BEFORE_DEATH: OnceLock<fn()> = OnceLock::new();

/// Installs the handler, once in the life of a process, and the one for a normal exit. `flush` is
/// what they call: nothing but atomics and system calls.
pub(crate) fn flush_before_death(flush: fn()) {
    BEFORE_DEATH.get_or_init(|| {
        for signal in FATAL {
            install(signal);
        }
        // SAFETY: the function lives as long as this library and does not unwind. A refusal, for
        // want of memory, leaves out the flush at exit.
        unsafe { libc::atexit(at_exit) };
        flush
    });
}

fn before_death() {
    if let Some(flush) = BEFORE_DEATH.get() {
        flush();
    }
}

extern "C" fn at_exit() {
    before_death();
}

fn install(signal: c_int) {
    let Some(before) = action(signal) else { return };
    let has_handler = before.sa_sigaction != libc::SIG_DFL;
    if before.sa_sigaction == libc::SIG_IGN || (has_handler && EVERYDAY.contains(&signal)) {
        return;
    }
    let Some(place) = place(signal) else { return };
    let mut ours = before;
    let handler: Detailed = on_signal;
    ours.sa_sigaction = handler as usize;
    // The mask and the stack are those that the earlier handler wants. That it is to run once only
    // is seen to when it runs.
    ours.sa_flags = libc::SA_SIGINFO | (before.sa_flags & !libc::SA_RESETHAND);
    if !has_handler {
        ours.sa_flags |= libc::SA_ONSTACK | libc::SA_RESTART;
    }
    if place.set(before).is_ok() {
        // SAFETY: the action is complete: it was the system's own with another handler, which has
        // the form that SA_SIGINFO asks for and lives as long as this library. It may interrupt
        // any code, because it takes no lock and allocates nothing.
        unsafe { libc::sigaction(signal, &ours, ptr::null_mut()) };
    }
}

/// What happens now when the signal comes.
fn action(signal: c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the pointer is valid for a write, and the call changes nothing else.
    let done = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } == 0;
    // SAFETY: the call wrote it, because it succeeded.
    done.then(|| unsafe { action.assume_init() })
}

fn place(signal: c_int) -> Option<&'static OnceLock<libc::sigaction>> {
    BEFORE.get(usize::try_from(signal).ok()?)
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the address is this thread's own, always valid.
    let error = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *error };
    before_death();
    // SAFETY: as above.
    unsafe { *error = saved };
    // It was set before this handler was installed.
    let Some(before) = place(signal).and_then(OnceLock::get) else { return };
    if before.sa_sigaction == libc::SIG_DFL {
        end(signal, info);
        return;
    }
    if before.sa_flags & libc::SA_RESETHAND != 0 {
        use_default(signal);
    }
    if before.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the application installed this address as a handler of this form.
        let handler = unsafe { std::mem::transmute::<usize, Detailed>(before.sa_sigaction) };
        handler(signal, info, context);
    } else {
        // SAFETY: as above.
        let handler = unsafe { std::mem::transmute::<usize, Plain>(before.sa_sigaction) };
        handler(signal);
    }
}

/// Has the signal do what it does by itself: it comes again, with all its data, when the
/// handler returns.
fn end(signal: c_int, info: *mut libc::siginfo_t) {
    use_default(signal);
    // SAFETY: the calls have no conditions but a valid `info`, which is the kernel's own, unchanged.
    // A thread may send itself what it was sent, from any sender.
    unsafe {
        let (process, thread) = (libc::getpid(), libc::syscall(libc::SYS_gettid));
        let sent =
            libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info.cast_const());
        if sent != 0 {
            libc::raise(signal);
        }
    }
}

fn use_default(signal: c_int) {
    // SAFETY: zeros are a complete action: the default one with an empty mask and no flags.
    let default = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    // SAFETY: the action is complete, and the default may be restored at any time.
    unsafe { libc::sigaction(signal, &default, ptr::null_mut()) };
}

/// Has the calling thread get the signals of its own faults, which would otherwise end the process
/// without a handler.
pub(crate) fn let_faults_through() {
    let mut faults = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set and, as `sigaddset` with valid signals, cannot
    // fail; `pthread_sigmask` reads it and concerns this thread alone.
    unsafe {
        libc::sigemptyset(faults.as_mut_ptr());
        for signal in FAULTS {
            libc::sigaddset(faults.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, faults.as_ptr(), ptr::null_mut());
    }
}
