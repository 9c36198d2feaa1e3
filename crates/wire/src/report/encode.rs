//! From a report to its message.

use prost::Message;
use prost::encoding::encoded_len_varint;
use telltale_schema::chip::{Architecture, BoardType, ChipFacts};
use telltale_schema::memory::MemorySpace;
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{KindUsage, MetricSample, MetricValue};

use super::{DeviceReport, LIMITS, Report};
use crate::limits::{MAX_FRAME_BYTES, MAX_METRICS};
use crate::reply::EncodeError;
use crate::{PROTOCOL_VERSION, message, shape};

impl Report {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let mut response = self.without_metrics();
        let base_bytes = response.encoded_len();
        if base_bytes > MAX_FRAME_BYTES {
            return Err(EncodeError::TooLong(base_bytes));
        }
        self.add_metrics(&mut response, base_bytes);
        let bytes = response.encode_to_vec();
        shape::check(&bytes, LIMITS).map_err(EncodeError::Limit)?;
        Ok(bytes)
    }

    fn without_metrics(&self) -> message::Response {
        message::Response {
            version: PROTOCOL_VERSION,
            refusal: None,
            identity: Some(identity(&self.identity)),
            name: self.name.clone(),
            runtime: self.runtime.clone(),
            started_at_unix_ns: self.started_at.map(|time| time.0),
            uptime_ns: self.uptime_ns,
            devices: self.devices.iter().map(device).collect(),
            faults: Some(message::Faults {
                double_frees: self.faults.double_frees,
                unknown_frees: self.faults.unknown_frees,
                reused_live_addresses: self.faults.reused_live_addresses,
                unrecorded_events: self.faults.unrecorded_events,
            }),
            programs: self.programs.as_ref().map(|programs| message::Programs {
                cached: programs.cached,
                loaded: programs.loaded.clone(),
                loaded_omitted: programs.loaded_omitted,
                hits: programs.hits,
                misses: programs.misses,
            }),
            kernel_cache: self.kernel_cache.map(|cache| message::KernelCache {
                bytes: cache.bytes,
                evictions: cache.evictions,
            }),
            metrics: Vec::new(),
            metrics_omitted: u64::MAX,
            ledger_follows: self.ledger_follows,
        }
    }

    /// Adds what fits. `base_bytes` was measured with the longest possible count of omissions.
    fn add_metrics(&self, response: &mut message::Response, base_bytes: usize) {
        let mut omitted = self.metrics_omitted;
        let mut used_bytes = base_bytes;
        for sample in &self.metrics {
            let encoded = metric(sample);
            let length = encoded.encoded_len();
            let varint = encoded_len_varint(u64::try_from(length).unwrap_or(u64::MAX));
            let field_bytes = 1 + varint + length;
            let fits = used_bytes + field_bytes <= MAX_FRAME_BYTES;
            if fits && response.metrics.len() < MAX_METRICS {
                used_bytes += field_bytes;
                response.metrics.push(encoded);
            } else {
                omitted = omitted.saturating_add(1);
            }
        }
        response.metrics_omitted = omitted;
    }
}

fn identity(identity: &ProcessIdentity) -> message::Identity {
    message::Identity {
        boot_id: identity.boot_id.to_vec(),
        pid_namespace: identity.pid_namespace,
        pid: identity.pid,
        start_time_ticks: identity.start_time_ticks,
    }
}

fn device(device: &DeviceReport) -> message::Device {
    let chip = &device.chip;
    let board_type = match chip.board_type {
        BoardType::Unknown => String::new(),
        known => known.name().to_owned(),
    };
    message::Device {
        logical_id: device.logical_id,
        driver_ordinal: chip.driver_ordinal,
        pci_address: chip.pci.map(|pci| pci.to_bits()),
        asic_id: chip.asic_id.map(|id| id.0),
        board_id: chip.board_id.map(|id| id.0),
        board_type,
        location: chip.location.into(),
        galaxy_tray: chip.galaxy.map(|position| position.tray.into()),
        galaxy_nibble: chip.galaxy.map(|position| position.nibble.into()),
        remote: chip.remote,
        facts: device.facts.as_ref().map(facts),
        kinds: device.kinds.iter().map(kind).collect(),
        ring_buffer: device.ring_buffer.map(|ring| message::RingBuffer {
            total_bytes: ring.total_bytes,
            used_bytes: ring.used_bytes,
            programs: ring.programs,
        }),
        operations: device.operations,
        traffic: device.traffic.map(|traffic| message::Traffic {
            host_to_device_bytes: traffic.host_to_device_bytes,
            device_to_host_bytes: traffic.device_to_host_bytes,
        }),
        quotas: device
            .quotas
            .iter()
            .map(|quota| message::Quota {
                space: space(quota.space).into(),
                limit_bytes: quota.limit_bytes,
            })
            .collect(),
        throttling: device
            .throttling
            .map(|state| message::Throttling { active: state.active, events: state.events }),
        mirrored: device.mirrored,
        mirrored_row: device.mirrored_row,
    }
}

fn facts(facts: &ChipFacts) -> message::Facts {
    let architecture = match facts.architecture {
        Architecture::Grayskull => message::Architecture::Grayskull,
        Architecture::WormholeB0 => message::Architecture::WormholeB0,
        Architecture::Blackhole => message::Architecture::Blackhole,
    };
    message::Facts {
        architecture: architecture.into(),
        dram_capacity_bytes: facts.dram_capacity_bytes,
        dram_channels: facts.dram_channels,
        l1_per_core_bytes: facts.l1_per_core_bytes,
        worker_cores: facts.worker_cores,
        grid_columns: facts.grid.0,
        grid_rows: facts.grid.1,
    }
}

fn kind(kind: &KindUsage) -> message::KindUsage {
    message::KindUsage {
        kind: kind.kind.code().into(),
        live_bytes: kind.usage.live_bytes,
        live_buffers: kind.usage.live_buffers,
        peak_bytes: kind.usage.peak_bytes,
        allocations: kind.usage.allocations,
        allocated_bytes: kind.usage.allocated_bytes,
        failed_allocations: kind.usage.failed_allocations,
    }
}

fn space(space: MemorySpace) -> message::Space {
    match space {
        MemorySpace::Dram => message::Space::Dram,
        MemorySpace::L1 => message::Space::L1,
        MemorySpace::Host => message::Space::Host,
    }
}

fn metric(sample: &MetricSample) -> message::Metric {
    let value = match &sample.value {
        MetricValue::Counter(count) => message::metric::Value::Counter(*count),
        MetricValue::Gauge(value) => message::metric::Value::Gauge(*value),
        MetricValue::Histogram { bounds, counts, sum } => {
            message::metric::Value::Histogram(message::Histogram {
                bounds: bounds.clone(),
                counts: counts.clone(),
                sum: *sum,
            })
        }
    };
    message::Metric {
        name: sample.name.clone(),
        help: sample.help.clone(),
        unit: sample.unit.clone(),
        labels: sample
            .labels
            .iter()
            .map(|(name, value)| message::Label { name: name.clone(), value: value.clone() })
            .collect(),
        value: Some(value),
    }
}
