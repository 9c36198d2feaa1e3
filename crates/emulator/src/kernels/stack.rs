//! A kernel's stack: memory with a guard on both sides, so that neither endless recursion nor a
//! local array that is written beyond its end reaches anything else.

use std::io;

use corosensei::stack::{Stack, StackPointer};

use super::memory::{GUARD_BYTES, Memory};

/// Host memory is taken for what is used of it. The compiler refuses functions that want a large
/// part of it.
pub(super) const STACK_BYTES: usize = 256 << 10;

/// See the module.
pub(super) struct KernelStack(Memory);

impl KernelStack {
    pub(super) fn reserve() -> io::Result<Self> {
        Memory::reserve(STACK_BYTES).map(Self)
    }

    /// Its lowest address and the one behind its highest, which is [`STACK_BYTES`] further.
    #[inline]
    pub(super) fn bounds(&self) -> (usize, usize) {
        self.0.bounds()
    }
}

// SAFETY: the mapping is writable between the two addresses but for the guard at its lower end,
// which `limit` includes; all are multiples of the page size. It lives as long as this value.
unsafe impl Stack for KernelStack {
    #[inline]
    fn base(&self) -> StackPointer {
        StackPointer::new(self.bounds().1).expect("a mapping does not end at zero")
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        let lowest = self.bounds().0 - GUARD_BYTES;
        StackPointer::new(lowest).expect("a mapping without MAP_FIXED is not at zero")
    }
}
