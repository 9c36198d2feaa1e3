//! PCIe traffic of a GPU: two counters of its driver, and the rates that are made of them.
//!
//! `nvmlDeviceGetPcieThroughput` must not be used: it blocks 20 ms for each direction, and what it
//! returns is of those 20 ms alone. The counters are read in less than one millisecond and miss
//! nothing between two collections. Drivers have them from R550 on.

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::{
    NVML_FI_DEV_PCIE_COUNT_RX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES,
};
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::PcieLink;

use super::complaints::Complaints;
use super::library::{Said, unsupported_if_refused};
use super::question::Question;
use super::raw_calls::{DOUBLE, SIGNED};
use crate::traffic_rate::{TrafficRate, TrafficSum};

/// Faster than PCIe 6.0 x16, the most that a GPU of NVIDIA's has.
const FASTEST_BYTES_PER_SECOND: u64 = 128_000_000_000;

/// Where a counter of 32 bits begins at zero again.
const WRAP_BYTES: u64 = 1 << 32;

const UNCOUNTED: &str = "the GPU does not count it, or its driver is older than R550";

/// What stands where the rest of a link would be, until the kernel's files are read.
const UNREAD: &str = "its PCI function is not known";

/// The counters as NVML gave them, from the host to the GPU and from the GPU to the host.
#[derive(Debug)]
pub(super) struct TrafficCounters {
    said: Said<[Said<ByteCount>; 2]>,
    read_ns: u64,
}

/// One counter.
#[derive(Debug, Clone, Copy)]
struct ByteCount {
    bytes: u64,
    wraps_after_bytes: Option<u64>,
}

/// The rates of one GPU, followed over time.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    received: TrafficRate,
    sent: TrafficRate,
}

// === impl TrafficCounters ===

impl TrafficCounters {
    pub(super) fn of(device: &Device<'_>, clock: &dyn Clock) -> Self {
        let said = both(device).map_err(unsupported_if_refused);
        Self { said, read_ns: clock.monotonic_ns() }
    }
}

fn both(device: &Device<'_>) -> Said<[Said<ByteCount>; 2]> {
    // What NVML calls TX is what the GPU sends.
    let fields = [NVML_FI_DEV_PCIE_COUNT_RX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES].map(FieldId);
    let values = device.field_values_for(&fields)?;
    let counts = values.into_iter().map(|sample| {
        // A driver that does not know a field refuses that one alone.
        sample.and_then(|sample| sample.value).map_err(unsupported_if_refused).and_then(count)
    });
    let counts: Vec<Said<ByteCount>> = counts.collect();
    Ok(counts.try_into().expect("the wrapper gives one value for each field"))
}

/// A counter's bits are those of its type. That of an `unsigned long` arrives without its upper half,
/// which makes it one of 32 bits.
fn count(value: SampleValue) -> Said<ByteCount> {
    match value {
        SampleValue::U32(bytes) => {
            Ok(ByteCount { bytes: u64::from(bytes), wraps_after_bytes: Some(WRAP_BYTES) })
        }
        SampleValue::U64(bytes) => Ok(ByteCount { bytes, wraps_after_bytes: None }),
        SampleValue::I64(_) => Err(NvmlError::UnexpectedVariant(SIGNED)),
        SampleValue::F64(_) => Err(NvmlError::UnexpectedVariant(DOUBLE)),
    }
}

// === impl Traffic ===

impl Traffic {
    /// Takes note of the counters, and returns a link of which nothing but the rates is known.
    pub(super) fn follow(
        &mut self,
        counters: TrafficCounters,
        now: Timestamp,
        complaints: &mut Complaints<'_>,
    ) -> PcieLink {
        let mut reading = |said| complaints.reading(Question::Traffic, said, now, |_| true);
        let [received, sent] = match counters.said {
            Ok(both) => both.map(reading),
            Err(error) => {
                let neither = reading(Err(error));
                [neither.clone(), neither]
            }
        };
        let sum = |counter: Reading<ByteCount>| match counter {
            Reading::Value { value: ByteCount { bytes, wraps_after_bytes }, at } => {
                Ok(TrafficSum { bytes, wraps_after_bytes, read_ns: counters.read_ns, at })
            }
            Reading::Absent { absent: Absence::Unsupported, .. } => {
                Err((Absence::Unsupported, String::from(UNCOUNTED)))
            }
            Reading::Absent { absent, detail } => Err((absent, detail.to_string())),
        };
        PcieLink {
            pcie_received_bytes_per_second: self
                .received
                .follow(sum(received), FASTEST_BYTES_PER_SECOND),
            pcie_sent_bytes_per_second: self.sent.follow(sum(sent), FASTEST_BYTES_PER_SECOND),
            ..PcieLink::absent(Absence::Unknown, UNREAD)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ByteCount, count};
    use nvml_wrapper::enums::device::SampleValue;

    #[test]
    fn a_counter_wraps_where_its_type_ends_and_is_unsigned() {
        let found = |value| {
            let counted = count(value).ok();
            counted.map(|ByteCount { bytes, wraps_after_bytes }| (bytes, wraps_after_bytes))
        };
        let (most, wrap) = (u64::from(u32::MAX), Some(u64::from(u32::MAX) + 1));
        assert_eq!(found(SampleValue::U32(u32::MAX)), Some((most, wrap)));
        assert_eq!(found(SampleValue::U64(u64::MAX)), Some((u64::MAX, None)));
        assert_eq!(found(SampleValue::I64(1)), None);
        assert_eq!(found(SampleValue::F64(1.0)), None);
    }
}
