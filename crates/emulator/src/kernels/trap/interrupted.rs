//! What a signal interrupted: the registers of the thread, to be checked and changed. The only
//! file that knows the processor.

#[cfg(target_arch = "x86_64")]
use std::ptr;

use corosensei::trap::TrapHandlerRegs;

#[cfg(target_arch = "x86_64")]
use crate::kernels::floating_point::FloatingPoint;

#[cfg(any(test, target_arch = "aarch64"))]
mod records;
#[cfg(any(test, target_arch = "aarch64"))]
mod syndrome;

/// The thread's state, as the handler was given it and as the thread goes on with.
pub(super) struct Interrupted<'a>(&'a mut libc::ucontext_t);

/// How memory was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
    Execute,
}

/// As much of a set of signals as the kernel has in a context; what the C library has behind it
/// belongs to something else there.
const KERNEL_SIGNALS_BYTES: usize = 8;

impl<'a> Interrupted<'a> {
    /// # Safety
    /// `context` is what the handler of a signal was given, and the handler has not returned.
    pub(super) unsafe fn of(context: *mut libc::c_void) -> Self {
        // SAFETY: the system gives a handler a valid context that is the handler's own.
        Self(unsafe { &mut *context.cast() })
    }

    fn restore(&mut self, signals: &libc::sigset_t) {
        let (from, to) = ((&raw const *signals).cast::<u8>(), &raw mut self.0.uc_sigmask);
        // SAFETY: both sets are larger than that.
        unsafe { to.cast::<u8>().copy_from_nonoverlapping(from, KERNEL_SIGNALS_BYTES) };
    }
}

#[cfg(target_arch = "x86_64")]
impl Interrupted<'_> {
    pub(super) fn instruction(&self) -> usize {
        let address = self.0.uc_mcontext.gregs[libc::REG_RIP as usize];
        usize::try_from(address.cast_unsigned()).unwrap_or_default()
    }

    /// Where the function returns to if it has no frame; none if the thread is not on this stack.
    pub(super) fn returns_to(&self, stack: (usize, usize)) -> Option<usize> {
        let top = self.0.uc_mcontext.gregs[libc::REG_RSP as usize];
        let top = usize::try_from(top.cast_unsigned()).ok()?;
        let is_there = top >= stack.0 && top <= stack.1 - size_of::<usize>();
        // SAFETY: the stack is mapped between its bounds, and any bytes are a number.
        is_there.then(|| unsafe { ptr::with_exposed_provenance::<usize>(top).read_unaligned() })
    }

    /// How memory was used, after a fault of memory.
    pub(super) fn memory_use(&self) -> Option<Use> {
        // The processor's code of a page fault: bit 1 is a write, bit 4 an instruction.
        let code = self.0.uc_mcontext.gregs[libc::REG_ERR as usize];
        Some(match (code & 0x10 != 0, code & 2 != 0) {
            (true, _) => Use::Execute,
            (false, true) => Use::Write,
            (false, false) => Use::Read,
        })
    }

    pub(super) fn go_on_at(&mut self, registers: &TrapHandlerRegs, signals: &libc::sigset_t) {
        /// Direction, trap, alignment check: as a function expects them.
        const FLAGS: i64 = 0x400 | 0x100 | 0x4_0000;
        let TrapHandlerRegs { rip, rsp, rbp, rdi, rsi } = *registers;
        let own = &mut self.0.uc_mcontext.gregs;
        for (register, value) in [
            (libc::REG_RIP, rip),
            (libc::REG_RSP, rsp),
            (libc::REG_RBP, rbp),
            (libc::REG_RDI, rdi),
            (libc::REG_RSI, rsi),
        ] {
            own[register as usize] = value.cast_signed();
        }
        own[libc::REG_EFL as usize] &= !FLAGS;
        // SAFETY: the system has put these registers behind the others, or says that it has not.
        if let Some(registers) = unsafe { self.0.uc_mcontext.fpregs.as_mut() } {
            make_floating_point_usual(registers);
        }
        self.restore(signals);
    }
}

/// Has the thread calculate as usual when it goes on, with an empty stack of the old unit: what a
/// kernel was about to calculate there is not left for others to overflow.
#[cfg(target_arch = "x86_64")]
fn make_floating_point_usual(registers: &mut libc::_libc_fpstate) {
    let FloatingPoint { mxcsr, x87 } = FloatingPoint::USUAL;
    (registers.mxcsr, registers.cwd) = (mxcsr, x87);
    (registers.swd, registers.ftw) = (0, 0);
}

#[cfg(target_arch = "aarch64")]
impl Interrupted<'_> {
    pub(super) fn instruction(&self) -> usize {
        usize::try_from(self.0.uc_mcontext.pc).unwrap_or_default()
    }

    /// Where the function returns to if it has called nothing yet.
    pub(super) fn returns_to(&self, _stack: (usize, usize)) -> Option<usize> {
        usize::try_from(self.0.uc_mcontext.regs[30]).ok()
    }

    /// How memory was used, after a fault of memory, if the system says it.
    pub(super) fn memory_use(&self) -> Option<Use> {
        // SAFETY: the structure has that many bytes, all of which the system wrote.
        syndrome::memory_use(unsafe { &*records_of(&raw const self.0.uc_mcontext) })
    }

    pub(super) fn go_on_at(&mut self, registers: &TrapHandlerRegs, signals: &libc::sigset_t) {
        let TrapHandlerRegs { pc, sp, x0, x1, x29, lr } = *registers;
        let own = &mut self.0.uc_mcontext;
        (own.pc, own.sp) = (pc, sp);
        // Whether the last instruction was an indirect branch: then only some may follow.
        own.pstate &= !(3 << 10);
        for (register, value) in [(0, x0), (1, x1), (29, x29), (30, lr)] {
            own.regs[register] = value;
        }
        let records = records_of(&raw mut *own).cast_mut();
        // SAFETY: as in `memory_use`, and nothing else borrows them.
        records::make_floating_point_usual(unsafe { &mut *records });
        self.restore(signals);
    }
}

/// As much as there is for records.
#[cfg(target_arch = "aarch64")]
const RECORDS_BYTES: usize = 4_096;

#[cfg(target_arch = "aarch64")]
fn records_of(context: *const libc::mcontext_t) -> *const [u8; RECORDS_BYTES] {
    /// Where they begin in `struct sigcontext`: behind 34 registers, at a multiple of 16.
    const RECORDS: usize = 288;
    const {
        assert!(size_of::<libc::mcontext_t>() == RECORDS + RECORDS_BYTES);
    }
    context.cast::<u8>().wrapping_add(RECORDS).cast()
}
