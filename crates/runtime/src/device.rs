//! An open device: the handle through which a runtime records.

use std::sync::atomic::Ordering;

use telltale_schema::memory::MemoryKind;
use telltale_wire::{Quota, RingBuffer, Traffic};

use crate::activity::Activity;
use crate::opening::Opened;
#[cfg(test)]
use crate::session::Session;
use crate::tracker;

/// An open device. Recording through it takes no lock that parks a thread, makes no system call
/// and cannot fail; what cannot be recorded is counted. Dropping the handle closes the device.
///
/// A handle may be used by any number of threads, and in a forked child, which then records into
/// a ledger of its own from its first allocation on.
pub struct Device {
    /// None when Telltale is switched off or the device could not be recorded.
    opened: Option<Opened>,
}

// === impl Device ===

impl Device {
    pub(crate) fn new(opened: Option<Opened>) -> Self {
        Self { opened }
    }

    /// Whether anything is recorded: not when Telltale is switched off, nor for a device beyond
    /// [`crate::MAX_DEVICES`].
    pub fn is_recorded(&self) -> bool {
        self.opened.is_some()
    }

    /// Records that `bytes` were allocated at `address` for `kind`. If a buffer is still live
    /// there, it counts as freed now, and the reuse as a fault.
    #[inline]
    pub fn allocate(&self, kind: MemoryKind, address: u64, bytes: u64) {
        if let Some(opened) = &self.opened {
            tracker::allocate(opened, kind, opened.place(kind, address), bytes);
        }
    }

    /// Records that the buffer at `address` was freed. `kind` need only be one of the same memory
    /// space as the buffer's; size and exact kind are those it was allocated with.
    #[inline]
    pub fn free(&self, kind: MemoryKind, address: u64) {
        if let Some(opened) = &self.opened {
            tracker::free(opened, kind, opened.place(kind, address));
        }
    }

    /// Records an allocation whose owner will free it with [`Self::free_sized`].
    #[inline]
    pub fn allocate_sized(&self, kind: MemoryKind, bytes: u64) {
        if let Some(opened) = &self.opened {
            tracker::allocate_sized(opened, kind, bytes);
        }
    }

    /// Records the free of an allocation made with [`Self::allocate_sized`], of the same kind and
    /// size.
    #[inline]
    pub fn free_sized(&self, kind: MemoryKind, bytes: u64) {
        if let Some(opened) = &self.opened {
            tracker::free_sized(opened, kind, bytes);
        }
    }

    /// Records that the runtime's allocator refused an allocation of `kind`.
    pub fn allocation_failed(&self, kind: MemoryKind) {
        if let Some(opened) = &self.opened {
            tracker::failed(opened, kind);
        }
    }

    /// Adds operations that were executed.
    #[inline]
    pub fn count_operations(&self, operations: u64) {
        self.activity(|activity| activity.operations.add(operations));
    }

    /// Adds bytes that were moved.
    #[inline]
    pub fn count_traffic(&self, moved: Traffic) {
        self.activity(|activity| {
            activity.host_to_device_bytes.add(moved.host_to_device_bytes);
            activity.device_to_host_bytes.add(moved.device_to_host_bytes);
        });
    }

    /// Reports how full the kernels' ring buffer in L1 is. A reader may for an instant see numbers
    /// of two reports together.
    pub fn report_ring_buffer(&self, ring: RingBuffer) {
        self.activity(|activity| {
            activity.ring_total_bytes.set(ring.total_bytes);
            activity.ring_used_bytes.set(ring.used_bytes);
            activity.ring_programs.set(ring.programs);
        });
    }

    /// Reports the limit on memory of one space.
    pub fn report_quota(&self, quota: Quota) {
        self.activity(|activity| activity.quota(quota.space).set(quota.limit_bytes));
    }

    /// Reports whether the device is being held back now; each time it begins counts.
    pub fn report_throttled(&self, active: bool) {
        self.activity(|activity| {
            let before = activity.throttled.swap(active, Ordering::Relaxed);
            activity.throttling_events.add(u64::from(active && !before));
        });
    }

    /// Closes the device, as dropping the handle does.
    pub fn close(self) {}

    /// Where its events go, if they are recorded.
    #[cfg(test)]
    pub(crate) fn session(&self) -> Option<&Session> {
        self.opened.as_ref().map(|opened| &*opened.session)
    }

    #[inline]
    fn activity(&self, update: impl FnOnce(&Activity)) {
        if let Some(opened) = &self.opened {
            update(&opened.activity);
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Some(opened) = self.opened.take() {
            opened.close();
        }
    }
}
