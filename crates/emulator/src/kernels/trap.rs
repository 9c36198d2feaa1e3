//! What a kernel does wrong in its own C: the signal for it becomes an error, and the kernel's fibre
//! is left as if it had returned.
//!
//! A kernel is C that runs on the device's thread, so a wild pointer is a signal for that thread. Its
//! handler looks whether a kernel runs there at this moment. If so, it notes what was done and has
//! the thread go on at the end of the fibre; else the signal goes to the handler that was there
//! before. An endless kernel is stopped by a timer's signal, at an instruction of its own: never in
//! a library or in this crate, where a lock may be held. After a fault there the thread stays where it
//! is, and the accelerator says that the process may be damaged. A library that calls `abort`, as the
//! allocator does when its heap is damaged, ends the process.

mod budget;
mod cause;
mod handlers;
mod interrupted;
mod line;

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use corosensei::trap::CoroutineTrapHandler;
use corosensei::{Coroutine, Yielder};

use self::budget::Budget;
use self::interrupted::Interrupted;
use self::line::FaultLine;
use super::context::{Core, WaitReason};
use super::fault::{KernelFault, MemoryUse};
use super::floating_point::FloatingPoint;
use super::memory::{GUARD_BYTES, Memory};
use super::progress::DeviceProgress;
use super::stack::{KernelStack, STACK_BYTES};
use super::timeouts::Timeouts;

/// The stack that handlers run on: a kernel that has filled its own leaves them none. A frame of a
/// signal takes up to 12 KiB with the processor's widest registers, and an earlier handler may be
/// called.
const HANDLER_STACK_BYTES: usize = 256 << 10;

thread_local! {
    /// What the handlers find on a device's thread; null on all others.
    static GUARD: Cell<*const TrapShared> = const { Cell::new(ptr::null()) };
}

/// Protects the thread on which kernels run, for as long as it lives. It belongs to that thread.
pub(super) struct Guard {
    shared: Box<TrapShared>,
    _stack: Memory,
    stack_before: libc::stack_t,
    of_this_thread: PhantomData<*const ()>,
}

/// What the thread and its handlers share.
struct TrapShared {
    /// The kernel that is switched to; null while none is.
    running: AtomicPtr<Core>,
    progress: Arc<DeviceProgress>,
    budget: Option<Budget>,
    /// What the thread blocks; restored when a kernel is left.
    signals: libc::sigset_t,
}

/// What it takes to leave a kernel; set before it starts. A few words, for every start of a kernel
/// writes them and hardly any is read.
#[derive(Clone, Copy)]
pub(super) struct Exit {
    fibre: CoroutineTrapHandler<()>,
    /// The lowest address of its stack.
    stack: usize,
    /// The memory of its circular buffers.
    buffers: (usize, usize),
    /// Its code.
    code: (usize, usize),
}

// === impl Guard ===

impl Guard {
    /// Protects this thread. Kernels are stopped when their time is over.
    pub(super) fn new(progress: Arc<DeviceProgress>, timeouts: Timeouts) -> io::Result<Self> {
        progress.is_of_this_thread();
        handlers::install()?;
        // A new thread has what the one has set that opened the accelerator.
        FloatingPoint::make_usual();
        let stack = Memory::reserve(HANDLER_STACK_BYTES)?;
        let ours = libc::stack_t {
            ss_sp: stack.start().cast(),
            ss_flags: 0,
            ss_size: HANDLER_STACK_BYTES,
        };
        let mut before = MaybeUninit::uninit();
        // SAFETY: the memory is mapped, used by nobody else, and kept until the stack of before is
        // given back in `drop`; both pointers are valid.
        if unsafe { libc::sigaltstack(&raw const ours, before.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so it wrote it.
        let stack_before = unsafe { before.assume_init() };
        let signals = handlers::let_through();
        let budget = timeouts
            .shortest()
            .map(|shortest| Budget::start(Arc::clone(&progress), timeouts, shortest));
        let shared = budget.transpose().map(|budget| {
            let running = AtomicPtr::new(ptr::null_mut());
            Box::new(TrapShared { running, progress, budget, signals })
        });
        let shared = match shared {
            Ok(shared) => shared,
            Err(error) => {
                give_back(&stack_before);
                return Err(error);
            }
        };
        GUARD.set(&raw const *shared);
        Ok(Self { shared, _stack: stack, stack_before, of_this_thread: PhantomData })
    }

    /// Says which kernel is switched to next.
    #[inline]
    pub(super) fn enter(&self, kernel: &Core) {
        self.shared.running.store((&raw const *kernel).cast_mut(), Ordering::Relaxed);
    }

    /// Says that no kernel runs any more.
    #[inline]
    pub(super) fn leave(&self) {
        self.shared.running.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        GUARD.set(ptr::null());
        give_back(&self.stack_before);
    }
}

fn give_back(stack: &libc::stack_t) {
    // SAFETY: it is what the system said was this thread's, and its owner keeps it while the
    // thread lives.
    unsafe { libc::sigaltstack(stack, ptr::null_mut()) };
}

// === impl TrapShared ===

impl TrapShared {
    /// This thread's, in a handler or below a kernel.
    fn of_this_thread() -> Option<&'static Self> {
        // SAFETY: it is set while the `Guard` of this thread lives. The callers are handlers, which
        // end before the thread goes on and could drop it, and `endless`, which a kernel's call
        // makes while the executor that owns the guard runs it; neither keeps what it is given.
        unsafe { GUARD.get().as_ref() }
    }

    /// The kernel that is switched to.
    fn kernel(&self) -> Option<&Core> {
        // SAFETY: the scheduler sets it before it switches to a kernel, whose run it keeps until
        // after it has unset it.
        unsafe { self.running.load(Ordering::Relaxed).as_ref() }
    }

    /// Has the interrupted thread go on at the end of the kernel's fibre, with this fault.
    fn stop(&self, kernel: &Core, interrupted: &mut Interrupted, fault: KernelFault) -> bool {
        let (Some(exit), yielder) = (kernel.exit.get(), kernel.yielder.get()) else {
            return false;
        };
        kernel.waiting.set(WaitReason::Failed(fault));
        kernel.is_at_its_memory.store(false, Ordering::Relaxed);
        // SAFETY: the kernel runs on this fibre, whose stack is mapped. The parent link at its top
        // is what the kernel's fibre had there when it last began to run, for a kernel that writes
        // beyond its own variables may have overwritten it. The frames that are left are those of
        // C, of calls that keep nothing that needs dropping, and of the fibre's closure. What the
        // kernel wrote elsewhere was written behind calls that the compiler cannot look into.
        let registers = unsafe {
            yielder.cast::<usize>().cast_mut().write_volatile(kernel.parent_link.get());
            exit.fibre.setup_trap_handler(|| ())
        };
        interrupted.go_on_at(&registers, &self.signals);
        true
    }

    /// Writes to stderr what the kernel did where it cannot be left: no thread that waits for a lock
    /// that is held there could say it.
    fn say(&self, fault: KernelFault) {
        self.progress.report_soon(|kernel, x, y| {
            FaultLine::write(format_args!(
                "telltale: kernel {kernel} on core ({x}, {y}) went wrong in a library that it had \
                 called, so this process may be damaged: {fault}"
            ));
        });
    }

    /// Notes this fault for others, and has the thread go nowhere any more.
    fn stay(&self, fault: KernelFault) -> ! {
        self.progress.is_damaged(fault);
        handlers::block_all();
        loop {
            // SAFETY: the call has no conditions, and a handler may make it.
            unsafe { libc::pause() };
        }
    }
}

// === impl Exit ===

impl Exit {
    /// How a kernel with this code is left that runs on a fibre whose stack begins there, with circular
    /// buffers in this memory.
    #[inline]
    pub(super) fn of(
        fibre: &Coroutine<(), (), (), KernelStack>,
        stack: usize,
        buffers: (usize, usize),
        code: (usize, usize),
    ) -> Self {
        Self { fibre: fibre.trap_handler(), stack, buffers, code }
    }

    /// The lowest address at which a call of this crate may begin.
    #[inline]
    pub(super) fn lowest_call(&self) -> usize {
        self.stack + RESERVE_BYTES
    }
}

/// Whether no lock can be held where a kernel was interrupted by this fault, so that it can be left: in
/// its own code, in a call of this crate that is at the kernel's own memory, behind a wild jump, or in a
/// function without calls and without a frame that its code has called, as `memcpy` and `strlen`
/// are.
fn can_be_left(
    kernel: &Core,
    exit: &Exit,
    interrupted: &Interrupted<'_>,
    fault: KernelFault,
) -> bool {
    let is_own = |address: usize| (exit.code.0..exit.code.1).contains(&address);
    if is_own(interrupted.instruction()) {
        return true;
    }
    match fault {
        // Its own `abort` is in its own code, see kernel_api.h. This is the allocator's, or another's.
        KernelFault::Aborted => false,
        KernelFault::Memory { used: MemoryUse::Execute, .. } => true,
        _ => {
            let stack = (exit.stack, exit.stack + STACK_BYTES);
            kernel.is_at_its_memory.load(Ordering::Relaxed)
                || interrupted.returns_to(stack).is_some_and(is_own)
        }
    }
}

/// What a kernel of this thread did whose time is over.
pub(super) fn endless() -> KernelFault {
    let budget = TrapShared::of_this_thread().and_then(|shared| shared.budget.as_ref());
    // A tick that found another kernel since would have another one refused.
    budget.and_then(Budget::spent).unwrap_or(KernelFault::Endless { milliseconds: 0 })
}

/// What the parent link of a fibre holds: where the scheduler goes on.
///
/// # Safety
/// The yielder is one that its fibre was given, and the fibre is alive.
#[inline]
pub(super) unsafe fn parent_link(yielder: *const Yielder<(), ()>) -> usize {
    // SAFETY: a yielder is its fibre's parent link: one word, at the top of the fibre's stack.
    unsafe { yielder.cast::<usize>().read_volatile() }
}

/// The stack that a call of this crate needs at most.
const RESERVE_BYTES: usize = 48 << 10;
