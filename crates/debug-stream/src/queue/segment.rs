//! Memory for events, taken from the kernel in pieces and given back to it in the same pieces.
//!
//! Each size is a power of two, so that a piece serves again for any event of its size class.

use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The size of the pieces that hold the chain of events.
pub(super) const SEGMENT_BYTES: usize = 1 << SMALLEST_CLASS;
/// The logarithm of [`SEGMENT_BYTES`]; no piece is smaller.
const SMALLEST_CLASS: u32 = 18;
/// How many sizes there are: up to 2^40 bytes.
pub(super) const CLASSES: usize = 23;

/// A piece of anonymous memory, owned.
#[derive(Debug)]
pub(super) struct Segment {
    base: NonNull<u8>,
    class: usize,
}

// SAFETY: the mapping belongs to the process, not to the thread that made it.
unsafe impl Send for Segment {}

/// The size class that holds so many bytes; none where no class is large enough.
pub(super) fn class_of(bytes: usize) -> Option<usize> {
    let log = bytes.max(SEGMENT_BYTES).checked_next_power_of_two()?.trailing_zeros();
    let class = usize::try_from(log - SMALLEST_CLASS).ok()?;
    (class < CLASSES).then_some(class)
}

impl Segment {
    /// Takes memory from the kernel; none when it refuses. The smallest size comes with its pages,
    /// which costs less than taking them one by one.
    pub(super) fn map(class: usize) -> Option<Self> {
        let mut flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        if class == 0 {
            flags |= MapFlags::POPULATE;
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: with no address given the kernel chooses one where nothing is mapped.
        let base = unsafe { mmap_anonymous(null_mut(), SEGMENT_BYTES << class, protection, flags) }
            .ok()?;
        Some(Self { base: NonNull::new(base.cast())?, class })
    }

    pub(super) fn class(&self) -> usize {
        self.class
    }

    pub(super) fn bytes(&self) -> usize {
        SEGMENT_BYTES << self.class
    }

    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Gives up ownership, to be had again from [`Segment::from_base`].
    pub(super) fn into_base(self) -> NonNull<u8> {
        std::mem::ManuallyDrop::new(self).base
    }

    /// Takes ownership of a piece again.
    ///
    /// # Safety
    /// `base` comes from [`Segment::into_base`] of a piece of this class, and nobody else has done
    /// this with it since.
    pub(super) unsafe fn from_base(base: NonNull<u8>, class: usize) -> Self {
        Self { base, class }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the piece was mapped with this size and is owned here, so nobody uses it any more.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.bytes()) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours can be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_what_it_is_asked_for_and_not_twice_as_much() {
        for (bytes, class) in [
            (0, Some(0)),
            (SEGMENT_BYTES, Some(0)),
            (SEGMENT_BYTES + 1, Some(1)),
            (SEGMENT_BYTES << 5, Some(5)),
            (1 << 40, Some(CLASSES - 1)),
            ((1 << 40) + 1, None),
            (usize::MAX, None),
        ] {
            assert_eq!(class_of(bytes), class, "{bytes}");
        }
    }
}
