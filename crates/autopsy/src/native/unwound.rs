//! From copied registers and a copied stack to the addresses of the functions that have been called.

use framehop::{CacheNative, FrameAddress, Unwinder};

use super::modules::Modules;
use super::stopped::ThreadCopy;
use crate::bounds::MAX_FRAMES;

impl Modules {
    /// The addresses, innermost first; a stack that cannot be followed further ends there.
    pub(super) fn unwind(&self, copy: &ThreadCopy) -> Vec<u64> {
        let mut cache = CacheNative::<framehop::MayAllocateDuringUnwind>::new();
        let mut read = |address: u64| word_at(copy, address).ok_or(());
        let (counter, registers) = unwind_registers(copy);
        let mut frames = self.unwinder.iter_frames(counter, registers, &mut cache, &mut read);
        let mut addresses = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            addresses.push(match frame {
                FrameAddress::InstructionPointer(address) => address,
                // The call lies before the address that it returns to.
                FrameAddress::ReturnAddress(address) => address.get() - 1,
            });
            if addresses.len() >= MAX_FRAMES {
                break;
            }
        }
        addresses
    }
}

fn word_at(copy: &ThreadCopy, address: u64) -> Option<u64> {
    let start = usize::try_from(address.checked_sub(copy.stack_start)?).ok()?;
    let bytes = copy.stack.get(start..start.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(target_arch = "x86_64")]
fn unwind_registers(copy: &ThreadCopy) -> (u64, framehop::UnwindRegsNative) {
    let registers = &copy.registers;
    let (counter, stack, frame) = (registers.rip, registers.rsp, registers.rbp);
    (counter, framehop::UnwindRegsNative::new(counter, stack, frame))
}

#[cfg(target_arch = "aarch64")]
fn unwind_registers(copy: &ThreadCopy) -> (u64, framehop::UnwindRegsNative) {
    let registers = &copy.registers;
    let (link, stack, frame) = (registers.regs[30], registers.sp, registers.regs[29]);
    // Return addresses may be signed in their upper bits (pointer authentication).
    let mask = framehop::aarch64::PtrAuthMask::new_24_40();
    (registers.pc, framehop::UnwindRegsNative::new_with_ptr_auth_mask(mask, link, stack, frame))
}
