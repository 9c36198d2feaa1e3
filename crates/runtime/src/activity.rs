//! What a runtime says of a device's use: operations, traffic, the ring buffer, quotas, throttling.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use telltale_schema::memory::MemorySpace;
use telltale_wire::{DeviceReport, Quota, RingBuffer, Throttling, Traffic};

/// What the runtime reported of a device's use.
#[derive(Default)]
pub(crate) struct Activity {
    pub(crate) operations: OptionalCount,
    pub(crate) host_to_device_bytes: OptionalCount,
    pub(crate) device_to_host_bytes: OptionalCount,
    pub(crate) ring_total_bytes: OptionalCount,
    pub(crate) ring_used_bytes: OptionalCount,
    pub(crate) ring_programs: OptionalCount,
    quota_bytes: [OptionalCount; MemorySpace::ALL.len()],
    pub(crate) throttling_events: OptionalCount,
    pub(crate) throttled: AtomicBool,
}

/// A number that is absent until first reported. The largest number stands for absence.
pub(crate) struct OptionalCount(AtomicU64);

impl Default for OptionalCount {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl OptionalCount {
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value.min(u64::MAX - 1), Ordering::Relaxed);
    }

    /// Adds to the number, which starts at 0; a relaxed addition after the first time.
    pub(crate) fn add(&self, count: u64) {
        if self.0.load(Ordering::Relaxed) == u64::MAX {
            let _ = self.0.compare_exchange(u64::MAX, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Starts at 0 once more, if it was ever reported.
    fn restart(&self) {
        if self.get().is_some() {
            self.set(0);
        }
    }

    fn get(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|value| *value != u64::MAX)
    }
}

// === impl Activity ===

impl Activity {
    pub(crate) fn quota(&self, space: MemorySpace) -> &OptionalCount {
        match space {
            MemorySpace::Dram => &self.quota_bytes[0],
            MemorySpace::L1 => &self.quota_bytes[1],
            MemorySpace::Host => &self.quota_bytes[2],
        }
    }

    /// What only grows starts at 0.
    pub(crate) fn restart_counts(&self) {
        self.operations.restart();
        self.host_to_device_bytes.restart();
        self.device_to_host_bytes.restart();
        self.throttling_events.restart();
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
    use super::OptionalCount;

    #[test]
    fn a_number_is_absent_until_reported() {
        let reported = OptionalCount::default();
        assert_eq!(reported.get(), None);
        reported.add(0);
        assert_eq!(reported.get(), Some(0));
        reported.add(5);
        assert_eq!(reported.get(), Some(5));
        reported.set(u64::MAX);
        assert_eq!(reported.get(), Some(u64::MAX - 1));
    }
}
