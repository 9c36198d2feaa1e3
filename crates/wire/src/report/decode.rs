//! From a message that passed its limits to a report.

use telltale_schema::chip::{
    Architecture, AsicId, BoardId, BoardType, ChipFacts, ChipIdentity, FactSource, GalaxyPosition,
    PciAddress,
};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::{MemoryKind, MemorySpace, MemoryUsage};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{KindUsage, MetricSample, MetricValue, RecordingFaults};

use super::{DeviceReport, KernelCache, Programs, Quota, Report, RingBuffer, Throttling, Traffic};
use crate::message;
use crate::reply::ReplyError;

impl Report {
    pub(crate) fn from_message(response: message::Response) -> Result<Self, ReplyError> {
        let claimed = response.identity.ok_or(ReplyError::Missing { field: "identity" })?;
        let devices = response.devices.into_iter().map(device).collect::<Result<_, _>>()?;
        let metrics = response.metrics.into_iter().filter_map(|series| metric(series).transpose());
        let faults = response.faults.unwrap_or_default();
        Ok(Self {
            identity: identity(&claimed)?,
            name: response.name,
            runtime: response.runtime,
            started_at: response.started_at_unix_ns.map(Timestamp),
            uptime_ns: response.uptime_ns,
            devices,
            faults: RecordingFaults {
                double_frees: faults.double_frees,
                unknown_frees: faults.unknown_frees,
                reused_live_addresses: faults.reused_live_addresses,
                unrecorded_events: faults.unrecorded_events,
            },
            programs: response.programs.map(|programs| Programs {
                cached: programs.cached,
                loaded: programs.loaded,
                loaded_omitted: programs.loaded_omitted,
                hits: programs.hits,
                misses: programs.misses,
            }),
            kernel_cache: response
                .kernel_cache
                .map(|cache| KernelCache { bytes: cache.bytes, evictions: cache.evictions }),
            metrics: metrics.collect::<Result<_, _>>()?,
            metrics_omitted: response.metrics_omitted,
            ledger_follows: response.ledger_follows,
        })
    }
}

fn identity(claimed: &message::Identity) -> Result<ProcessIdentity, ReplyError> {
    let impossible = |field| ReplyError::Impossible { field };
    if claimed.pid == 0 {
        return Err(impossible("pid"));
    }
    Ok(ProcessIdentity {
        boot_id: claimed.boot_id.as_slice().try_into().map_err(|_| impossible("boot id"))?,
        pid_namespace: claimed.pid_namespace,
        pid: claimed.pid,
        start_time_ticks: claimed.start_time_ticks,
    })
}

fn device(device: message::Device) -> Result<DeviceReport, ReplyError> {
    let known_kinds: Vec<KindUsage> = device.kinds.iter().filter_map(kind).collect();
    let unknown = device.kinds.len() - known_kinds.len();
    let quotas = device.quotas.iter().filter_map(quota).collect();
    let traffic = device.traffic.as_ref().map(|traffic| Traffic {
        host_to_device_bytes: traffic.host_to_device_bytes,
        device_to_host_bytes: traffic.device_to_host_bytes,
    });
    Ok(DeviceReport {
        chip: chip(&device)?,
        logical_id: device.logical_id,
        facts: device.facts.as_ref().and_then(facts),
        kinds: known_kinds,
        unknown_kinds: u64::try_from(unknown).unwrap_or(u64::MAX),
        ring_buffer: device.ring_buffer.map(|ring| RingBuffer {
            total_bytes: ring.total_bytes,
            used_bytes: ring.used_bytes,
            programs: ring.programs,
        }),
        operations: device.operations,
        traffic,
        quotas,
        throttling: device
            .throttling
            .map(|state| Throttling { active: state.active, events: state.events }),
        mirrored: device.mirrored,
        mirrored_row: device.mirrored_row,
    })
}

fn chip(device: &message::Device) -> Result<ChipIdentity, ReplyError> {
    let impossible = |field| ReplyError::Impossible { field };
    let pci = match device.pci_address {
        None => None,
        Some(bits) => Some(PciAddress::from_bits(bits).ok_or(impossible("PCI address"))?),
    };
    let galaxy = match (device.galaxy_tray, device.galaxy_nibble) {
        (None, None) => None,
        (Some(tray @ 1..=4), Some(nibble @ 1..=8)) => Some(GalaxyPosition {
            tray: u8::try_from(tray).map_err(|_| impossible("tray"))?,
            nibble: u8::try_from(nibble).map_err(|_| impossible("place in the tray"))?,
        }),
        _ => return Err(impossible("place in a Galaxy")),
    };
    Ok(ChipIdentity {
        driver_ordinal: device.driver_ordinal,
        pci,
        asic_id: device.asic_id.map(AsicId),
        board_id: device.board_id.map(BoardId),
        board_type: BoardType::from_card_type(&device.board_type),
        location: u8::try_from(device.location).map_err(|_| impossible("place on the board"))?,
        galaxy,
        remote: device.remote,
    })
}

/// None for a generation that this version does not know: its other facts mean nothing then.
fn facts(facts: &message::Facts) -> Option<ChipFacts> {
    let architecture = match facts.architecture() {
        message::Architecture::Grayskull => Architecture::Grayskull,
        message::Architecture::WormholeB0 => Architecture::WormholeB0,
        message::Architecture::Blackhole => Architecture::Blackhole,
        message::Architecture::Unspecified => return None,
    };
    // Capacities are multiplied by those who read them; what overflows is no fact.
    facts.l1_per_core_bytes.checked_mul(facts.worker_cores.into())?;
    Some(ChipFacts {
        architecture,
        dram_capacity_bytes: facts.dram_capacity_bytes,
        dram_channels: facts.dram_channels,
        l1_per_core_bytes: facts.l1_per_core_bytes,
        worker_cores: facts.worker_cores,
        grid: (facts.grid_columns, facts.grid_rows),
        source: FactSource::Ledger,
    })
}

fn kind(kind: &message::KindUsage) -> Option<KindUsage> {
    Some(KindUsage {
        kind: MemoryKind::from_code(u16::try_from(kind.kind).ok()?)?,
        usage: MemoryUsage {
            live_bytes: kind.live_bytes,
            live_buffers: kind.live_buffers,
            peak_bytes: kind.peak_bytes,
            allocations: kind.allocations,
            allocated_bytes: kind.allocated_bytes,
            failed_allocations: kind.failed_allocations,
        },
    })
}

fn quota(quota: &message::Quota) -> Option<Quota> {
    let space = match quota.space() {
        message::Space::Dram => MemorySpace::Dram,
        message::Space::L1 => MemorySpace::L1,
        message::Space::Host => MemorySpace::Host,
        message::Space::Unspecified => return None,
    };
    Some(Quota { space, limit_bytes: quota.limit_bytes })
}

/// None for a series whose value is of a form that this version does not know.
fn metric(series: message::Metric) -> Result<Option<MetricSample>, ReplyError> {
    let value = match series.value {
        None => return Ok(None),
        Some(message::metric::Value::Counter(count)) => MetricValue::Counter(count),
        Some(message::metric::Value::Gauge(value)) => MetricValue::Gauge(value),
        Some(message::metric::Value::Histogram(found)) => histogram(found)?,
    };
    if series.name.is_empty() {
        return Err(ReplyError::Missing { field: "a metric's name" });
    }
    let labels = series.labels.into_iter().map(|label| (label.name, label.value)).collect();
    let message::Metric { name, help, unit, .. } = series;
    Ok(Some(MetricSample { name, help, unit, labels, value }))
}

fn histogram(found: message::Histogram) -> Result<MetricValue, ReplyError> {
    let ascending = found.bounds.windows(2).all(|pair| pair[0] < pair[1]);
    let finite = found.bounds.iter().all(|bound| bound.is_finite());
    if !ascending || !finite || found.counts.len() != found.bounds.len() + 1 {
        return Err(ReplyError::Impossible { field: "a histogram's buckets" });
    }
    Ok(MetricValue::Histogram { bounds: found.bounds, counts: found.counts, sum: found.sum })
}
