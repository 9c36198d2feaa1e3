// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use crate::metric::{Convention, MetricDefinition, MetricKind, Scope, Unit};

/// Number of the NUMA node that the device is near.
pub const DEVICE_NUMA_NODE: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_numa_node",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Number of the NUMA node that the device is near.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Errors of all NVLink links of the device: crc for checksums of flow control, replay for data sent again, recovery for links that were lost and came back.
pub const DEVICE_NVLINK_ERRORS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_nvlink_errors_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Errors of all NVLink links of the device: crc for checksums of flow control, replay for data sent again, recovery for links that were lost and came back.",
    labels: &["device", "kind"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// NVLink links that the device has.
pub const DEVICE_NVLINK_LINKS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_nvlink_links",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "NVLink links that the device has.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// NVLink links of the device that are up.
pub const DEVICE_NVLINK_LINKS_UP: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_nvlink_links_up",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "NVLink links of the device that are up.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes a second of data that the device received over all its NVLink links.
pub const DEVICE_NVLINK_RECEIVED_BYTES_PER_SECOND: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_nvlink_received_bytes_per_second",
    unit: Unit::BytesPerSecond,
    kind: MetricKind::Gauge,
    help: "Bytes a second of data that the device received over all its NVLink links.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: Some("telltale_device_nvlink_received_bytes_total"),
    otlp: None,
};

/// Bytes of data that the device received over all its NVLink links since its driver was loaded.
pub const DEVICE_NVLINK_RECEIVED_BYTES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_nvlink_received_bytes_total",
    unit: Unit::Bytes,
    kind: MetricKind::Counter,
    help: "Bytes of data that the device received over all its NVLink links since its driver was loaded.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes a second of data that the device sent over all its NVLink links.
pub const DEVICE_NVLINK_SENT_BYTES_PER_SECOND: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_nvlink_sent_bytes_per_second",
    unit: Unit::BytesPerSecond,
    kind: MetricKind::Gauge,
    help: "Bytes a second of data that the device sent over all its NVLink links.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: Some("telltale_device_nvlink_sent_bytes_total"),
    otlp: None,
};

/// Bytes of data that the device sent over all its NVLink links since its driver was loaded.
pub const DEVICE_NVLINK_SENT_BYTES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_nvlink_sent_bytes_total",
    unit: Unit::Bytes,
    kind: MetricKind::Counter,
    help: "Bytes of data that the device sent over all its NVLink links since its driver was loaded.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Errors of the device's PCIe function since the kernel found it: correctable ones that the link mended, nonfatal ones that cost a transaction, fatal ones that made the link unreliable.
pub const DEVICE_PCIE_ERRORS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_errors_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Errors of the device's PCIe function since the kernel found it: correctable ones that the link mended, nonfatal ones that cost a transaction, fatal ones that made the link unreliable.",
    labels: &["device", "severity"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Generation of PCIe that the device's link runs at: 1 is 2.5 GT/s a lane, 2 is 5, 3 is 8, 4 is 16, 5 is 32, 6 is 64.
pub const DEVICE_PCIE_LINK_GENERATION: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_link_generation",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Generation of PCIe that the device's link runs at: 1 is 2.5 GT/s a lane, 2 is 5, 3 is 8, 4 is 16, 5 is 32, 6 is 64.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Fastest generation of PCIe that both the device and its slot can do.
pub const DEVICE_PCIE_LINK_GENERATION_MAX: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_link_generation_max",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Fastest generation of PCIe that both the device and its slot can do.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Lanes that the device's PCIe link has.
pub const DEVICE_PCIE_LINK_LANES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_link_lanes",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Lanes that the device's PCIe link has.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Most lanes that both the device and its slot can do.
pub const DEVICE_PCIE_LINK_LANES_MAX: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_link_lanes_max",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Most lanes that both the device and its slot can do.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes a second that the device received over PCIe.
pub const DEVICE_PCIE_RECEIVED_BYTES_PER_SECOND: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_received_bytes_per_second",
    unit: Unit::BytesPerSecond,
    kind: MetricKind::Gauge,
    help: "Bytes a second that the device received over PCIe.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: Some("telltale_device_pcie_received_bytes_total"),
    otlp: None,
};

/// Bytes the device received over PCIe through one of its networks on chip.
pub const DEVICE_PCIE_RECEIVED_BYTES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_received_bytes_total",
    unit: Unit::Bytes,
    kind: MetricKind::Counter,
    help: "Bytes the device received over PCIe through one of its networks on chip.",
    labels: &["device", "noc"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention {
        name: "hw.gpu.io",
        adds_up: false,
        attribute: Some(("network.io.direction", "receive")),
    }),
};

/// Packets that were sent again over the device's PCIe link.
pub const DEVICE_PCIE_REPLAYS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_replays_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Packets that were sent again over the device's PCIe link.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes a second that the device sent over PCIe.
pub const DEVICE_PCIE_SENT_BYTES_PER_SECOND: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_sent_bytes_per_second",
    unit: Unit::BytesPerSecond,
    kind: MetricKind::Gauge,
    help: "Bytes a second that the device sent over PCIe.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: Some("telltale_device_pcie_sent_bytes_total"),
    otlp: None,
};

/// Bytes the device sent over PCIe through one of its networks on chip.
pub const DEVICE_PCIE_SENT_BYTES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_sent_bytes_total",
    unit: Unit::Bytes,
    kind: MetricKind::Counter,
    help: "Bytes the device sent over PCIe through one of its networks on chip.",
    labels: &["device", "noc"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention {
        name: "hw.gpu.io",
        adds_up: false,
        attribute: Some(("network.io.direction", "transmit")),
    }),
};
