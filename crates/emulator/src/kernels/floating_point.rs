//! How a thread calculates with floating point: rounding, which exceptions are signals, what small
//! numbers become. A kernel may change all of it for itself. What it changed is taken back before
//! anything else runs, or the next kernel would round otherwise, or be stopped for an infinity.
//!
//! Switching between stacks leaves these registers as they are, so this is done beside it.

use std::arch::asm;

/// The registers that control it, without those that only note what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FloatingPoint {
    #[cfg(target_arch = "x86_64")]
    pub(super) mxcsr: u32,
    #[cfg(target_arch = "x86_64")]
    pub(super) x87: u16,
    #[cfg(target_arch = "aarch64")]
    fpcr: u64,
}

#[cfg(target_arch = "x86_64")]
impl FloatingPoint {
    /// As a program begins: to the nearest, no exception is a signal, small numbers are kept.
    pub(super) const USUAL: Self = Self { mxcsr: 0x1F80, x87: 0x37F };
    /// The bits of MXCSR that note which exceptions there were.
    const NOTED: u32 = 0x3F;

    /// What holds on this thread.
    #[inline]
    fn current() -> Self {
        let (mut mxcsr, mut x87) = (0_u32, 0_u16);
        // SAFETY: both instructions only store, to these two variables, and never raise what an
        // earlier calculation has left to be raised. There is no other way to read the registers.
        unsafe {
            asm!(
                "stmxcsr [{}]", "fnstcw [{}]",
                in(reg) &raw mut mxcsr, in(reg) &raw mut x87,
                options(nostack, preserves_flags),
            );
        }
        Self { mxcsr: mxcsr & !Self::NOTED, x87 }
    }

    #[cold]
    fn set(self) {
        // SAFETY: the values are valid ones, for they were read from the registers or are those of a
        // new process. `fninit` raises nothing that is left over, unlike `fldcw`, and forgets it;
        // between two functions the stack of the old unit, which it empties, is empty anyway.
        unsafe {
            asm!(
                "ldmxcsr [{}]", "fninit", "fldcw [{}]",
                in(reg) &raw const self.mxcsr, in(reg) &raw const self.x87,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(target_arch = "aarch64")]
impl FloatingPoint {
    /// As a program begins: to the nearest, no exception is a signal, small numbers are kept.
    pub(super) const USUAL: Self = Self { fpcr: 0 };

    /// What holds on this thread.
    #[inline]
    fn current() -> Self {
        let fpcr: u64;
        // SAFETY: it only reads a register that every program may read; nothing else does.
        unsafe { asm!("mrs {}, fpcr", out(reg) fpcr, options(nomem, nostack, preserves_flags)) };
        Self { fpcr }
    }

    #[cold]
    fn set(self) {
        // SAFETY: the value was read from the register or is that of a new process.
        unsafe {
            asm!("msr fpcr, {}", in(reg) self.fpcr, options(nomem, nostack, preserves_flags))
        };
    }
}

impl FloatingPoint {
    /// Makes it hold on this thread. Rust calculates as usual only: what else holds is a kernel's,
    /// and holds until it gives the thread back.
    #[inline]
    fn hold(self) {
        if Self::current() != self {
            self.set();
        }
    }

    /// Has this thread calculate as usual, whatever a kernel has set.
    #[inline]
    pub(super) fn make_usual() {
        Self::USUAL.hold();
    }

    /// Does something during which other kernels run; then what holds now holds again.
    #[inline]
    pub(super) fn kept_during(other: impl FnOnce()) {
        let own = Self::current();
        other();
        own.hold();
    }
}

#[cfg(test)]
mod tests {
    use super::FloatingPoint;

    #[test]
    fn what_is_set_holds_until_it_is_taken_back() {
        let usual = FloatingPoint::USUAL;
        #[cfg(target_arch = "x86_64")]
        let others = [
            FloatingPoint { mxcsr: usual.mxcsr | 0x8040, ..usual },
            FloatingPoint { x87: usual.x87 | 0xC00, ..usual },
        ];
        #[cfg(target_arch = "aarch64")]
        let others = [FloatingPoint { fpcr: 1 << 24 }];
        FloatingPoint::make_usual();
        for other in others {
            other.hold();
            assert_eq!(FloatingPoint::current(), other);
            FloatingPoint::kept_during(|| {
                FloatingPoint::make_usual();
                assert_eq!(FloatingPoint::current(), usual);
            });
            assert_eq!(FloatingPoint::current(), other);
            FloatingPoint::make_usual();
            assert_eq!(FloatingPoint::current(), usual);
        }
    }
}
