//! From a signal to what the kernel did.

use std::ffi::c_int;

use super::interrupted::{Interrupted, Use};
use super::{Exit, GUARD_BYTES};
use crate::kernels::fault::{KernelFault, MemoryPlace, MemoryUse};
use crate::kernels::stack::STACK_BYTES;

/// Addresses below this are a null pointer with an offset.
const NULL_BYTES: usize = 64 << 10;
/// The code of a signal that the processor raised and the kernel says no more about: for memory, an
/// address that no address can be.
const FROM_PROCESSOR: c_int = 0x80;
/// No mapping at the address.
const NOT_MAPPED: c_int = 1;
/// A whole number was divided by zero.
const DIVIDED: c_int = 1;
/// What the upper half of a signal's value holds that stands for `exit`: see kernel_api.h.
const EXIT: u64 = 0x7465_6c6c;

/// What the kernel did; none if the signal is nothing of its own.
pub(super) fn of(
    signal: c_int,
    info: &libc::siginfo_t,
    interrupted: &Interrupted<'_>,
    exit: &Exit,
) -> Option<KernelFault> {
    if signal == libc::SIGABRT {
        // Its own `abort`, or that of a library that it called, is sent by the thread itself.
        return match info.si_code {
            libc::SI_TKILL => Some(KernelFault::Aborted),
            libc::SI_QUEUE => exited(info),
            _ => None,
        };
    }
    if info.si_code <= 0 {
        return None;
    }
    match signal {
        libc::SIGSEGV | libc::SIGBUS => Some(memory(signal, info, interrupted, exit)),
        libc::SIGFPE if info.si_code == DIVIDED => Some(KernelFault::Division),
        libc::SIGFPE => Some(KernelFault::FloatingPoint),
        _ => Some(KernelFault::Instruction),
    }
}

fn exited(info: &libc::siginfo_t) -> Option<KernelFault> {
    // SAFETY: the system sets a value for signals with this code.
    let value = unsafe { info.si_value() }.sival_ptr.addr() as u64;
    let is_exit = value >> 32 == EXIT;
    // The lower half is the status.
    let status = u32::try_from(value & u64::from(u32::MAX)).unwrap_or_default().cast_signed();
    is_exit.then_some(KernelFault::Exited { status })
}

fn memory(
    signal: c_int,
    info: &libc::siginfo_t,
    interrupted: &Interrupted<'_>,
    exit: &Exit,
) -> KernelFault {
    let used = match interrupted.memory_use() {
        Some(Use::Read) => MemoryUse::Read,
        Some(Use::Write) => MemoryUse::Write,
        Some(Use::Execute) => MemoryUse::Execute,
        None => MemoryUse::Unknown,
    };
    if info.si_code == FROM_PROCESSOR {
        return KernelFault::Memory { used, place: MemoryPlace::Impossible };
    }
    // SAFETY: the system sets the address for these signals.
    let address = unsafe { info.si_addr() }.addr();
    let (stack, buffers) = ((exit.stack, exit.stack + STACK_BYTES), exit.buffers);
    let place = match address {
        _ if (stack.0 - GUARD_BYTES..stack.0).contains(&address) => {
            return KernelFault::StackOverflow { stack_bytes: STACK_BYTES as u64 };
        }
        _ if (stack.1..stack.1 + GUARD_BYTES).contains(&address) => MemoryPlace::AboveStack,
        _ if address < NULL_BYTES => MemoryPlace::Null,
        _ if buffers.1 > 0 && (buffers.1..buffers.1 + GUARD_BYTES).contains(&address) => {
            MemoryPlace::BehindBuffers { bytes: (address - buffers.1) as u64 + 1 }
        }
        _ if buffers.1 > 0 && (buffers.0 - GUARD_BYTES..buffers.0).contains(&address) => {
            MemoryPlace::BeforeBuffers
        }
        _ if signal == libc::SIGBUS => MemoryPlace::EndOfFile,
        _ if info.si_code == NOT_MAPPED => MemoryPlace::Nowhere,
        _ => MemoryPlace::Protected,
    };
    KernelFault::Memory { used, place }
}
