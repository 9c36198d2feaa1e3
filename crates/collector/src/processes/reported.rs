//! What an endpoint reports besides memory, as samples of the metrics that we define. Pure.

use telltale_schema::metric::{DEFINITIONS, MetricDefinition, MetricKind};
use telltale_schema::snapshot::{MetricSample, MetricValue};
use telltale_wire::{DeviceReport, Report};

use super::claims::described;

/// Everything in a report that has no place of its own in a snapshot: first what every runtime
/// can tell, then the application's own metrics.
pub(crate) fn metrics(report: &mut Report) -> Vec<MetricSample> {
    let mut samples = Vec::new();
    let mut put = |name, value: Option<u64>| samples.extend(sample(name, &[], value));
    if let Some(programs) = &report.programs {
        let named = u64::try_from(programs.loaded.len()).unwrap_or(u64::MAX);
        put("telltale_process_programs_cached", Some(programs.cached));
        put(
            "telltale_process_programs_loaded",
            Some(named.saturating_add(programs.loaded_omitted)),
        );
        put("telltale_process_program_cache_hits_total", programs.hits);
        put("telltale_process_program_cache_misses_total", programs.misses);
    }
    if let Some(cache) = &report.kernel_cache {
        put("telltale_process_kernel_cache_bytes", Some(cache.bytes));
        put("telltale_process_kernel_cache_evictions_total", cache.evictions);
    }
    let loaded = report.programs.iter().flat_map(|programs| &programs.loaded);
    for program in loaded.filter(|program| !program.is_empty()) {
        let name = "telltale_process_program_loaded";
        samples.extend(sample(name, &[("program", program)], Some(1)));
    }
    for device in &report.devices {
        of_device(device, &mut samples);
    }
    samples.append(&mut report.metrics);
    samples
}

fn of_device(device: &DeviceReport, samples: &mut Vec<MetricSample>) {
    let id = described(device).name();
    let mut put = |name, more: &[(&str, &str)], value: Option<u64>| {
        let labels: Vec<(&str, &str)> =
            [("device", id.as_str())].into_iter().chain(more.iter().copied()).collect();
        samples.extend(sample(name, &labels, value));
    };
    let ring = device.ring_buffer;
    put("telltale_process_l1_ring_buffer_capacity_bytes", &[], ring.map(|ring| ring.total_bytes));
    put("telltale_process_l1_ring_buffer_used_bytes", &[], ring.map(|ring| ring.used_bytes));
    put("telltale_process_l1_ring_buffer_programs", &[], ring.map(|ring| ring.programs));
    put("telltale_process_operations_total", &[], device.operations);
    if let Some(traffic) = device.traffic {
        let name = "telltale_process_transferred_bytes_total";
        put(name, &[("direction", "host_to_device")], Some(traffic.host_to_device_bytes));
        put(name, &[("direction", "device_to_host")], Some(traffic.device_to_host_bytes));
    }
    for quota in &device.quotas {
        let space = [("space", quota.space.name())];
        put("telltale_process_memory_quota_bytes", &space, Some(quota.limit_bytes));
    }
    if let Some(throttling) = device.throttling {
        put("telltale_process_throttled", &[], Some(u64::from(throttling.active)));
        put("telltale_process_throttlings_total", &[], Some(throttling.events));
    }
}

/// A sample of one of our metrics, where there is a value.
fn sample(name: &str, labels: &[(&str, &str)], value: Option<u64>) -> Option<MetricSample> {
    let value = value?;
    let definition = definition(name)?;
    let value = match definition.kind {
        MetricKind::Counter => MetricValue::Counter(value),
        // Above 2⁵³ a gauge is off by less than one part in 10¹⁵.
        #[allow(clippy::cast_precision_loss)]
        _ => MetricValue::Gauge(value as f64),
    };
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Some(MetricSample {
        name: definition.name.to_owned(),
        help: definition.help.to_owned(),
        unit: definition.unit.suffix().unwrap_or_default().to_owned(),
        labels: labels.iter().map(owned).collect(),
        value,
    })
}

fn definition(name: &str) -> Option<&'static MetricDefinition> {
    let place = DEFINITIONS.binary_search_by(|definition| definition.name.cmp(name)).ok()?;
    DEFINITIONS.get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::metrics;
    use telltale_schema::memory::MemorySpace;
    use telltale_schema::process::ProcessIdentity;
    use telltale_schema::snapshot::{MetricValue, RecordingFaults};
    use telltale_wire::{
        DeviceReport, KernelCache, Programs, Quota, Report, RingBuffer, Throttling, Traffic,
    };

    fn report() -> Report {
        let quotas = vec![Quota { space: MemorySpace::Dram, limit_bytes: 9 }];
        let device = DeviceReport {
            ring_buffer: Some(RingBuffer { total_bytes: 1, used_bytes: 2, programs: 3 }),
            operations: Some(4),
            traffic: Some(Traffic { host_to_device_bytes: 5, device_to_host_bytes: 6 }),
            quotas,
            throttling: Some(Throttling { active: true, events: 7 }),
            ..DeviceReport::default()
        };
        let boot_id = [0; 16];
        let identity = ProcessIdentity { boot_id, pid_namespace: 1, pid: 2, start_time_ticks: 3 };
        Report {
            identity,
            name: String::new(),
            runtime: String::new(),
            started_at: None,
            uptime_ns: None,
            devices: vec![device],
            faults: RecordingFaults::default(),
            programs: Some(Programs {
                cached: 1,
                loaded: vec!["matmul".to_owned()],
                loaded_omitted: 4,
                hits: Some(2),
                misses: Some(3),
            }),
            kernel_cache: Some(KernelCache { bytes: 8, evictions: Some(1) }),
            metrics: Vec::new(),
            metrics_omitted: 0,
            ledger_follows: false,
        }
    }

    #[test]
    fn everything_that_was_reported_is_a_defined_metric() {
        let samples = metrics(&mut report());
        assert_eq!(samples.len(), 16);
        let value = |name: &str| {
            let full = format!("telltale_process_{name}");
            samples.iter().find(|sample| sample.name == full).map(|sample| sample.value.clone())
        };
        assert_eq!(value("programs_loaded"), Some(MetricValue::Gauge(5.0)));
        assert_eq!(value("program_cache_hits_total"), Some(MetricValue::Counter(2)));
        assert_eq!(value("throttled"), Some(MetricValue::Gauge(1.0)));
        assert_eq!(value("throttlings_total"), Some(MetricValue::Counter(7)));
        assert_eq!(value("l1_ring_buffer_programs"), Some(MetricValue::Gauge(3.0)));
        let loaded = samples.iter().find(|one| one.name == "telltale_process_program_loaded");
        assert_eq!(loaded.unwrap().labels, [("program".to_owned(), "matmul".to_owned())]);
        assert!(samples.iter().all(|sample| !sample.help.is_empty()));
    }

    #[test]
    fn what_was_not_told_is_left_out() {
        let mut report = Report {
            programs: None,
            kernel_cache: None,
            devices: vec![DeviceReport::default()],
            ..report()
        };
        assert_eq!(metrics(&mut report), []);
    }
}
