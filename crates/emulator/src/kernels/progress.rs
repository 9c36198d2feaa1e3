//! Where the device's thread is, for whoever waits for it: a kernel that neither ends nor waits
//! cannot be stopped, but it can be named.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::plan::Plan;

/// Bits of the mark that count how often a kernel was switched to.
const COUNT_SHIFT: u32 = 32;
const KERNEL_SHIFT: u32 = 16;
const PLACE_MASK: u64 = 0xFFFF;

/// Written by the device's thread, read by others.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Switches so far, the kernel's number, the core's place in the grid.
    mark: AtomicU64,
    plan: Mutex<Option<Arc<Plan>>>,
}

/// Where the thread was at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Progress {
    /// Says which program runs now, if any.
    pub(crate) fn runs(&self, plan: Option<Arc<Plan>>) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// Says which kernel is switched to. Only the device's thread calls this.
    pub(super) fn at(&self, kernel: usize, place: usize) {
        let count = (self.mark.load(Ordering::Relaxed) >> COUNT_SHIFT).wrapping_add(1);
        let kernel = (kernel as u64 & PLACE_MASK) << KERNEL_SHIFT;
        let mark = count << COUNT_SHIFT | kernel | (place as u64 & PLACE_MASK);
        self.mark.store(mark, Ordering::Relaxed);
    }

    /// Where the thread is now; none while no program runs.
    pub(crate) fn mark(&self) -> Option<Mark> {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.as_ref().map(|_| Mark(self.mark.load(Ordering::Relaxed)))
    }

    /// The kernel and the core's column and row that a mark stands for, if its program still runs.
    pub(crate) fn named(&self, mark: Mark) -> Option<(Arc<str>, u16, u16)> {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = plan.as_ref()?;
        let kernel = usize::try_from(mark.0 >> KERNEL_SHIFT & PLACE_MASK).ok()?;
        let place = usize::try_from(mark.0 & PLACE_MASK).ok()?;
        let core = plan.cores.iter().find(|core| core.place == place)?;
        Some((Arc::clone(&plan.kernels.get(kernel)?.name), core.x, core.y))
    }
}
