//! NVLink of a GPU: how many links are up, what goes over all of them, and their errors.

use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::sys_exports::field_id::{
    NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
    NVML_FI_DEV_NVLINK_ERROR_DL_CRC, NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY,
    NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, NVML_FI_DEV_NVLINK_LINK_COUNT,
    NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
};
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::NvLinks;

use super::complaints::Complaints;
use super::library::Said;
use super::question::Question;
use super::raw_calls::{ALL_LINKS, ScopedField, field_values};
use crate::traffic_rate::{TrafficRate, TrafficSum};

/// Links of one GPU that are checked; Blackwell has 18.
const MAX_LINKS: u64 = 64;

/// Faster than all links of a GPU together: twice what is announced for those after Blackwell.
const FASTEST_BYTES_PER_SECOND: u64 = 3_600_000_000_000;

/// Data is counted in KiB.
const KIB: u64 = 1024;

/// What is asked in one call; the sums over all links have no scope but for data.
const FIELDS: [ScopedField; 6] = [
    ScopedField { id: NVML_FI_DEV_NVLINK_LINK_COUNT, scope: 0 },
    ScopedField { id: NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, scope: ALL_LINKS },
    ScopedField { id: NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, scope: ALL_LINKS },
    ScopedField { id: NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, scope: 0 },
    ScopedField { id: NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, scope: 0 },
    ScopedField { id: NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, scope: 0 },
];

/// Checksum errors, replays and recoveries of one link, from Hopper on.
const OF_EACH: [u32; 3] = [
    NVML_FI_DEV_NVLINK_ERROR_DL_CRC,
    NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY,
    NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY,
];

/// What NVML said of them.
#[derive(Debug)]
pub(super) struct NvLinkCounts {
    links: Said<u64>,
    up: Said<u64>,
    /// Received and sent, in KiB since the driver was loaded.
    data: [Said<u64>; 2],
    crc: Said<u64>,
    replays: Said<u64>,
    recoveries: Said<u64>,
    read_ns: u64,
}

/// The rates of one GPU, followed over time.
#[derive(Debug, Default)]
pub(super) struct NvLinkTraffic {
    received: TrafficRate,
    sent: TrafficRate,
}

// === impl NvLinkCounts ===

impl NvLinkCounts {
    /// None for a GPU without NVLink.
    pub(super) fn of(device: &Device<'_>, clock: &dyn Clock) -> Said<Option<Self>> {
        let values = match field_values(device, &FIELDS) {
            Ok(values) => values,
            Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let read_ns = clock.monotonic_ns();
        let [links, received, sent, crc, replays, recoveries] =
            values.try_into().map_err(|_| NvmlError::Unknown)?;
        let count = match &links {
            Ok(0) | Err(NvmlError::NotSupported) => return Ok(None),
            Ok(count) => (*count).min(MAX_LINKS),
            Err(_) => 0,
        };
        let of_each = errors_of_each(device, count);
        let [crc_of_each, replays_of_each, recoveries_of_each] = of_each;
        Ok(Some(Self {
            up: links_up(device, count),
            links,
            data: [received, sent],
            crc: or_sum(crc_of_each, crc),
            replays: or_sum(replays_of_each, replays),
            recoveries: or_sum(recoveries_of_each, recoveries),
            read_ns,
        }))
    }
}

/// How many of the first so many links are up. One that leads nowhere may have no state.
fn links_up(device: &Device<'_>, count: u64) -> Said<u64> {
    let mut up = 0;
    for link in numbers(count) {
        match device.link_wrapper_for(link).is_active() {
            Ok(is_up) => up += u64::from(is_up),
            Err(NvmlError::NotSupported | NvmlError::InvalidArg) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(up)
}

/// Checksum errors, replays and recoveries of the first so many links, added up.
fn errors_of_each(device: &Device<'_>, count: u64) -> [Said<u64>; 3] {
    let sum = |id| {
        let fields: Vec<ScopedField> =
            numbers(count).map(|scope| ScopedField { id, scope }).collect();
        added_up(field_values(device, &fields)?)
    };
    let [crc, replays, recoveries] = OF_EACH.map(sum);
    // Blackwell counts these alone, as another field.
    let recoveries = match recoveries {
        Err(NvmlError::NotSupported) => sum(NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS),
        known => known,
    };
    [crc, replays, recoveries]
}

/// The sum of the links that count: one that is down may not.
fn added_up(each: Vec<Said<u64>>) -> Said<u64> {
    let mut sum: Option<u64> = None;
    for said in each {
        match said {
            Ok(count) => sum = Some(sum.unwrap_or(0).saturating_add(count)),
            Err(NvmlError::NotSupported) => {}
            Err(error) => return Err(error),
        }
    }
    sum.ok_or(NvmlError::NotSupported)
}

/// What was said of each link, else, by older drivers and GPUs, of the sum.
fn or_sum(of_each: Said<u64>, sum: Said<u64>) -> Said<u64> {
    match of_each {
        Err(NvmlError::NotSupported) => sum,
        known => known,
    }
}

fn numbers(count: u64) -> impl Iterator<Item = u32> {
    (0..count).map_while(|number| u32::try_from(number).ok())
}

// === impl NvLinkTraffic ===

impl NvLinkTraffic {
    /// Takes note of the counters, and makes readings of all that was said.
    pub(super) fn follow(
        &mut self,
        counts: NvLinkCounts,
        now: Timestamp,
        complaints: &mut Complaints<'_>,
    ) -> NvLinks {
        let NvLinkCounts { links, up, data, crc, replays, recoveries, read_ns } = counts;
        let most = links.as_ref().map_or(MAX_LINKS, |links| *links);
        let mut reading = |said, most| {
            complaints.reading(Question::NvLink, said, now, |value: &u64| *value <= most)
        };
        let any = u64::MAX;
        let [received, sent] = data.map(|kib| {
            let kib = reading(kib, any / KIB);
            kib.map(|kib| kib * KIB)
        });
        let rate = |rate: &mut TrafficRate, bytes: &Reading<u64>| {
            let sum = match bytes {
                Reading::Value { value, at } => {
                    Ok(TrafficSum { bytes: *value, wraps_after_bytes: None, read_ns, at: *at })
                }
                Reading::Absent { absent, detail } => Err((*absent, detail.to_string())),
            };
            rate.follow(sum, FASTEST_BYTES_PER_SECOND)
        };
        NvLinks {
            nvlink_links: reading(links, MAX_LINKS),
            nvlink_links_up: reading(up, most),
            nvlink_received_bytes_per_second: rate(&mut self.received, &received),
            nvlink_sent_bytes_per_second: rate(&mut self.sent, &sent),
            nvlink_received_bytes_total: received,
            nvlink_sent_bytes_total: sent,
            nvlink_crc_errors_total: reading(crc, any),
            nvlink_replays_total: reading(replays, any),
            nvlink_recoveries_total: reading(recoveries, any),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::added_up;
    use nvml_wrapper::error::NvmlError;

    #[test]
    fn links_that_do_not_count_are_left_out_and_none_is_no_zero() {
        let lacking = || Err(NvmlError::NotSupported);
        assert_eq!(added_up(vec![Ok(3), lacking(), Ok(4)]).ok(), Some(7));
        assert!(matches!(added_up(vec![lacking()]), Err(NvmlError::NotSupported)));
        assert!(matches!(added_up(Vec::new()), Err(NvmlError::NotSupported)));
        assert_eq!(added_up(vec![Ok(u64::MAX), Ok(1)]).ok(), Some(u64::MAX));
        assert!(matches!(added_up(vec![Ok(3), Err(NvmlError::GpuLost)]), Err(NvmlError::GpuLost)));
    }
}
