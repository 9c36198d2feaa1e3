//! An open device: the handle through which a runtime records.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use telltale_ledger::{DeviceEntry, RegionMirror};
use telltale_schema::chip::{ChipFacts, ChipIdentity};
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_wire::{DeviceReport, Quota, RingBuffer, Throttling, Traffic};

use crate::index::{self, Place};
use crate::runtime::Inner;
use crate::session::Session;
use crate::tracker;

/// What a runtime knows of a device when it opens it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceDescription {
    /// Who the chip is. The more of it is known, the surer a reader can tell it from others; any of
    /// ASIC id, PCI address, board id with location and driver's number will do.
    pub identity: ChipIdentity,
    /// The runtime's own number for it. Where nothing else is known, the device is `unknown:N`.
    pub logical_id: u32,
    /// Its capacities, where the runtime knows them.
    pub facts: Option<ChipFacts>,
}

/// An open device. Recording through it takes no lock that parks a thread, makes no system call
/// and cannot fail; what cannot be recorded is counted. Dropping the handle closes the device.
///
/// A handle may be used by any number of threads, and in a forked child, which then records into
/// a ledger of its own from its first allocation on.
pub struct Device {
    /// None when Telltale is switched off or the device could not be recorded.
    opened: Option<Opened>,
}

/// What a handle of a recorded device holds.
pub(crate) struct Opened {
    pub(crate) inner: Arc<Inner>,
    /// The session in which the device was opened; a child's own session stands in for it.
    pub(crate) session_id: u64,
    /// That session, for an event that has no seat to itself.
    pub(crate) session: Arc<Session>,
    /// The device's place among those that the runtime ever opened, below [`MAX_DEVICES`].
    pub(crate) index: u8,
    pub(crate) activity: Arc<Activity>,
}

/// Devices that one runtime can open in its life; the same one again counts once.
pub const MAX_DEVICES: usize = telltale_wire::limits::MAX_DEVICES;

// What the address index has room for in an entry.
const _: () = {
    assert!(MAX_DEVICES <= index::MAX_DEVICE as usize + 1);
    assert!(MemoryKind::ALL.len() <= 1 << 8, "the code of a kind has eight bits there");
};

/// What the runtime told of a device's use.
#[derive(Default)]
pub(crate) struct Activity {
    operations: Told,
    host_to_device_bytes: Told,
    device_to_host_bytes: Told,
    ring_total_bytes: Told,
    ring_used_bytes: Told,
    ring_programs: Told,
    quota_bytes: [Told; MemorySpace::ALL.len()],
    throttling_events: Told,
    throttled: AtomicBool,
}

/// A number that is absent until it is first told. The largest number stands for absence.
struct Told(AtomicU64);

impl Default for Told {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Told {
    fn set(&self, value: u64) {
        self.0.store(value.min(u64::MAX - 1), Ordering::Relaxed);
    }

    /// Adds to the number, which starts at 0; a relaxed addition after the first time.
    fn add(&self, count: u64) {
        if self.0.load(Ordering::Relaxed) == u64::MAX {
            let _ = self.0.compare_exchange(u64::MAX, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn get(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|value| *value != u64::MAX)
    }
}

// === impl DeviceDescription ===

impl DeviceDescription {
    /// Whether both are one device to a ledger. Such descriptions must be one device here too: what
    /// closing one of two gives back would be the other one's.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self == other || self.entry(RegionMirror::None) == other.entry(RegionMirror::None)
    }

    pub(crate) fn entry(&self, mirror: RegionMirror) -> DeviceEntry {
        let facts = self.facts.as_ref();
        DeviceEntry {
            identity: self.identity.clone(),
            logical_id: self.logical_id,
            architecture: facts.map(|facts| facts.architecture),
            dram_capacity_bytes: facts.map(|facts| facts.dram_capacity_bytes),
            l1_capacity_bytes: facts.map(ChipFacts::l1_capacity_bytes),
            dram_channels: facts.map(|facts| facts.dram_channels),
            worker_cores: facts.map(|facts| facts.worker_cores),
            mirror,
            is_host: false,
        }
    }
}

// === impl Device ===

impl Device {
    pub(crate) fn new(opened: Option<Opened>) -> Self {
        Self { opened }
    }

    /// Whether anything is recorded: not when Telltale is switched off, nor for a device beyond
    /// [`MAX_DEVICES`].
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

    /// Tells how full the kernels' ring buffer in L1 is. A reader may for an instant see numbers
    /// of two tellings together.
    pub fn tell_ring_buffer(&self, ring: RingBuffer) {
        self.activity(|activity| {
            activity.ring_total_bytes.set(ring.total_bytes);
            activity.ring_used_bytes.set(ring.used_bytes);
            activity.ring_programs.set(ring.programs);
        });
    }

    /// Tells the limit on memory of one space.
    pub fn tell_quota(&self, quota: Quota) {
        self.activity(|activity| activity.quota(quota.space).set(quota.limit_bytes));
    }

    /// Tells whether the device is being held back now; each time it begins counts.
    pub fn tell_throttled(&self, active: bool) {
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
            opened.inner.close_device(opened.index);
        }
    }
}

impl Opened {
    #[inline]
    fn place(&self, kind: MemoryKind, address: u64) -> Place {
        Place { device: self.index, space: kind.space(), address }
    }
}

// === impl Activity ===

impl Activity {
    fn quota(&self, space: MemorySpace) -> &Told {
        match space {
            MemorySpace::Dram => &self.quota_bytes[0],
            MemorySpace::L1 => &self.quota_bytes[1],
            MemorySpace::Host => &self.quota_bytes[2],
        }
    }

    /// Puts the ring buffer into a report.
    pub(crate) fn report_kernels(&self, report: &mut DeviceReport) {
        let numbers =
            (self.ring_total_bytes.get(), self.ring_used_bytes.get(), self.ring_programs.get());
        if let (Some(total_bytes), Some(used_bytes), Some(programs)) = numbers {
            report.ring_buffer = Some(RingBuffer { total_bytes, used_bytes, programs });
        }
    }

    /// Puts operations, traffic, quotas and throttling into a report.
    pub(crate) fn report_performance(&self, report: &mut DeviceReport) {
        report.operations = self.operations.get();
        let traffic = (self.host_to_device_bytes.get(), self.device_to_host_bytes.get());
        if let (Some(host_to_device_bytes), Some(device_to_host_bytes)) = traffic {
            report.traffic = Some(Traffic { host_to_device_bytes, device_to_host_bytes });
        }
        for space in MemorySpace::ALL {
            let limit = self.quota(space).get();
            report.quotas.extend(limit.map(|limit_bytes| Quota { space, limit_bytes }));
        }
        report.throttling = self
            .throttling_events
            .get()
            .map(|events| Throttling { active: self.throttled.load(Ordering::Relaxed), events });
    }
}

#[cfg(test)]
mod tests {
    use super::Told;

    #[test]
    fn a_number_is_absent_until_told() {
        let told = Told::default();
        assert_eq!(told.get(), None);
        told.add(0);
        assert_eq!(told.get(), Some(0));
        told.add(5);
        assert_eq!(told.get(), Some(5));
        told.set(u64::MAX);
        assert_eq!(told.get(), Some(u64::MAX - 1));
    }
}
