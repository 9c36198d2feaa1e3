// Generated from crates/schema/health.toml by `cargo xtask generate`. Do not edit.

use super::HealthState;
use super::rule::{HealthRule, RuleSubject, Shape, Thresholds};
use serde::{Deserialize, Serialize};

/// What can be wrong with a device or with a part of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The firmware's heartbeat does not count any more: its sensors show what was last.
    HeartbeatStopped,
    /// The driver listed the device and does not any more.
    Vanished,
    /// The device had vanished and is there again.
    CameBack,
    /// The firmware's heartbeat counts from the start again: the device was reset.
    WasReset,
    /// Calls into the driver do not return.
    DriverHangs,
    /// Nothing of a source is answered in time: what its devices do is unknown.
    SourceHangs,
    /// The device shut itself down because it was too hot.
    ThermalTrip,
    /// The hardware itself holds the clocks down, for heat or because the supply asks for it.
    ThrottledByHardware,
    /// The device's memory had errors that it could not correct.
    MemoryUncorrected,
    /// The device's memory corrects many errors by itself.
    MemoryCorrectedRising,
    /// The PCIe link has fewer lanes than the device and its slot can do.
    PcieWidthBelowSlot,
    /// The PCIe link is slower than the device and its slot can do. Graphics processors slow an idle link, which is none.
    PcieSpeedBelowSlot,
    /// The hardware monitor gives an alarm for a fan that has turned or must.
    FanFailed,
    /// The hardware monitor gives an alarm for a power supply.
    PowerSupplyFailed,
    /// The hardware monitor gives an alarm for a voltage.
    VoltageOutOfRange,
    /// A network interface that is enabled and has had a link has none.
    NetworkLinkDown,
    /// A network interface runs slower than it did.
    NetworkSpeedLow,
    /// A network interface was there and is not any more, nor is its PCI function.
    NetworkCardGone,
    /// The PCIe link of a network card has fewer lanes than it and its slot can do.
    NetworkPcieWidthBelowSlot,
    /// An InfiniBand port that was active is not.
    InfinibandPortDown,
    /// The link of an InfiniBand port recovers from errors: it is about to fail.
    InfinibandRecoveriesRising,
    /// A port has lost all its addresses (GIDs) for RDMA but that of the link: connections by them fail.
    RdmaGidMissing,
    /// The machine's memory had errors that could not be corrected.
    HostMemoryUncorrected,
    /// The machine's memory corrects many errors.
    HostMemoryCorrectedRising,
    /// The driver lists the device and says that it is lost: it does not answer on the bus.
    DeviceLost,
    /// NVIDIA's driver reported an error of the hardware (XID), not of a program.
    XidError,
    /// Rows of the memory are to be replaced by spare ones, which a reset does.
    RowRemapPending,
    /// A row of the memory could not be replaced by a spare one.
    RowRemapFailed,
    /// Pages of the memory are to be retired, which a reset does.
    PageRetirementPending,
    /// Caches or registers of the device had errors that could not be corrected.
    SramUncorrected,
    /// The device has fewer NVLink links up than it had.
    NvlinkDown,
    /// NVLink links of the device were lost and came back: one is about to fail.
    NvlinkErrorsRising,
    /// The PCIe link of the device had errors that made it unreliable, as the kernel reports them (AER).
    PcieErrorsFatal,
    /// Transactions over the PCIe link of the device failed, as the kernel reports it (AER).
    PcieErrorsNonfatal,
    /// The PCIe link of the device corrects many errors by itself (AER).
    PcieErrorsCorrectedRising,
    /// The PCIe link of a network card had errors that made it unreliable (AER).
    NetworkPcieErrorsFatal,
    /// A network interface lost its link several times.
    NetworkLinkFlapping,
    /// A call of a source does not return, while others are answered.
    CallHangs,
}

impl FaultKind {
    /// All of them. A kind's place is its number in messages.
    pub const ALL: [Self; 38] = [
        Self::HeartbeatStopped,
        Self::Vanished,
        Self::CameBack,
        Self::WasReset,
        Self::DriverHangs,
        Self::SourceHangs,
        Self::ThermalTrip,
        Self::ThrottledByHardware,
        Self::MemoryUncorrected,
        Self::MemoryCorrectedRising,
        Self::PcieWidthBelowSlot,
        Self::PcieSpeedBelowSlot,
        Self::FanFailed,
        Self::PowerSupplyFailed,
        Self::VoltageOutOfRange,
        Self::NetworkLinkDown,
        Self::NetworkSpeedLow,
        Self::NetworkCardGone,
        Self::NetworkPcieWidthBelowSlot,
        Self::InfinibandPortDown,
        Self::InfinibandRecoveriesRising,
        Self::RdmaGidMissing,
        Self::HostMemoryUncorrected,
        Self::HostMemoryCorrectedRising,
        Self::DeviceLost,
        Self::XidError,
        Self::RowRemapPending,
        Self::RowRemapFailed,
        Self::PageRetirementPending,
        Self::SramUncorrected,
        Self::NvlinkDown,
        Self::NvlinkErrorsRising,
        Self::PcieErrorsFatal,
        Self::PcieErrorsNonfatal,
        Self::PcieErrorsCorrectedRising,
        Self::NetworkPcieErrorsFatal,
        Self::NetworkLinkFlapping,
        Self::CallHangs,
    ];
}

/// Every rule, each at the place of its kind.
#[rustfmt::skip]
pub static RULES: [HealthRule; 38] = [
HealthRule { kind: FaultKind::HeartbeatStopped, name: "heartbeat_stopped", alert: "heartbeat_stopped", alert_after_seconds: 10, words: "heartbeat stopped", about: RuleSubject::Device, state: HealthState::Failed, shape: Shape::Found, only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 3 }, ends: "it counts again", action: "reset it with `tt-smi -r`" },
HealthRule { kind: FaultKind::Vanished, name: "vanished", alert: "device_vanished", alert_after_seconds: 30, words: "vanished", about: RuleSubject::Device, state: HealthState::Failed, shape: Shape::Found, only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the driver lists it again, or an hour has passed", action: "read the kernel's log (`sudo dmesg`)" },
HealthRule { kind: FaultKind::CameBack, name: "came_back", alert: "came_back", alert_after_seconds: 0, words: "came back", about: RuleSubject::Device, state: HealthState::Ok, shape: Shape::Returns, only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 3600, hold_seconds: 0 }, ends: "an hour has passed", action: "start programs that used it again" },
HealthRule { kind: FaultKind::WasReset, name: "was_reset", alert: "was_reset", alert_after_seconds: 0, words: "was reset", about: RuleSubject::Device, state: HealthState::Ok, shape: Shape::Restarts("heartbeat_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 3600, hold_seconds: 0 }, ends: "an hour has passed", action: "programs that used it have lost what was on it" },
HealthRule { kind: FaultKind::DriverHangs, name: "driver_hangs", alert: "driver_hangs", alert_after_seconds: 0, words: "driver hangs", about: RuleSubject::Device, state: HealthState::Failed, shape: Shape::Hangs, only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 1 }, ends: "its readings are answered in time", action: "end what uses it and reset it; a call that never returns needs a reboot" },
HealthRule { kind: FaultKind::SourceHangs, name: "source_hangs", alert: "source_hangs", alert_after_seconds: 0, words: "source hangs", about: RuleSubject::Source, state: HealthState::Failed, shape: Shape::Hangs, only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 1 }, ends: "it answers in time", action: "look for processes in state D (`ps -eo pid,stat,wchan,comm`); reload the driver or reboot" },
HealthRule { kind: FaultKind::ThermalTrip, name: "thermal_trip", alert: "thermal_trip", alert_after_seconds: 0, words: "thermal trip", about: RuleSubject::Device, state: HealthState::Failed, shape: Shape::Rises("thermal_trips_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 1.0, within_seconds: 3600, quiet_seconds: 3600, hold_seconds: 0 }, ends: "no trip for an hour, or a power cycle", action: "check fans, heat sink and airflow, then reset it" },
HealthRule { kind: FaultKind::ThrottledByHardware, name: "throttled_by_hardware", alert: "throttled_by_hardware", alert_after_seconds: 0, words: "throttled by hardware", about: RuleSubject::Device, state: HealthState::Warning, shape: Shape::Includes("throttled_by", &["hw_thermal_slowdown", "hw_power_brake_slowdown"]), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 1 }, ends: "the driver no longer gives that reason", action: "check cooling and the power supplies" },
HealthRule { kind: FaultKind::MemoryUncorrected, name: "memory_uncorrected", alert: "memory_uncorrected", alert_after_seconds: 0, words: "uncorrected memory errors", about: RuleSubject::Device, state: HealthState::Failed, shape: Shape::Above("uncorrected_errors_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the counter starts again, at a reset or when the driver is loaded", action: "reset it; replace it when they come back" },
HealthRule { kind: FaultKind::MemoryCorrectedRising, name: "memory_corrected_rising", alert: "memory_corrected_rising", alert_after_seconds: 0, words: "corrected memory errors rise", about: RuleSubject::Device, state: HealthState::Warning, shape: Shape::Rises("corrected_errors_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 100.0, within_seconds: 3600, quiet_seconds: 3600, hold_seconds: 0 }, ends: "none for an hour, or the counter starts again", action: "watch it, and test its memory when the job ends" },
HealthRule { kind: FaultKind::PcieWidthBelowSlot, name: "pcie_width_below_slot", alert: "pcie_width_below_slot", alert_after_seconds: 0, words: "PCIe narrower than the slot", about: RuleSubject::Device, state: HealthState::Warning, shape: Shape::Below("pcie_width", "pcie_width_max"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the link trains at full width", action: "reset it; if that does not help, reseat the card" },
HealthRule { kind: FaultKind::PcieSpeedBelowSlot, name: "pcie_speed_below_slot", alert: "pcie_speed_below_slot", alert_after_seconds: 0, words: "PCIe slower than the slot", about: RuleSubject::Device, state: HealthState::Warning, shape: Shape::Below("pcie_generation", "pcie_generation_max"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the link trains at full speed", action: "reset it; if that does not help, reseat the card" },
HealthRule { kind: FaultKind::FanFailed, name: "fan_failed", alert: "fan_failed", alert_after_seconds: 0, words: "fan failed", about: RuleSubject::Part("fan"), state: HealthState::Warning, shape: Shape::Above("alarm"), only_while: None, only_after: Some("is_used"), only_by: None, beside: &["revolutions_per_minute", "minimum_revolutions_per_minute"], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the alarm is off", action: "replace the fan before the machine gets hot" },
HealthRule { kind: FaultKind::PowerSupplyFailed, name: "power_supply_failed", alert: "power_supply_failed", alert_after_seconds: 0, words: "power supply failed", about: RuleSubject::Part("power_supply"), state: HealthState::Warning, shape: Shape::Above("alarm"), only_while: None, only_after: None, only_by: None, beside: &["watts"], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the alarm is off", action: "check its cable, then replace it" },
HealthRule { kind: FaultKind::VoltageOutOfRange, name: "voltage_out_of_range", alert: "voltage_out_of_range", alert_after_seconds: 0, words: "voltage out of range", about: RuleSubject::Part("voltage"), state: HealthState::Warning, shape: Shape::Above("alarm"), only_while: None, only_after: None, only_by: None, beside: &["volts", "minimum_volts", "maximum_volts"], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the alarm is off", action: "check the power supplies and the board" },
HealthRule { kind: FaultKind::NetworkLinkDown, name: "network_link_down", alert: "network_link_down", alert_after_seconds: 20, words: "network link down", about: RuleSubject::Part("network_interface"), state: HealthState::Failed, shape: Shape::Lost("up"), only_while: Some("is_enabled"), only_after: None, only_by: None, beside: &["carrier_downs_total"], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "it has a link, or is disabled", action: "check cable, module and switch port" },
HealthRule { kind: FaultKind::NetworkSpeedLow, name: "network_speed_low", alert: "network_speed_low", alert_after_seconds: 0, words: "network link slower", about: RuleSubject::Part("network_interface"), state: HealthState::Warning, shape: Shape::Fell("speed_bits_per_second"), only_while: Some("up"), only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "it runs as fast as before", action: "check cable and module, and what the switch port is set to" },
HealthRule { kind: FaultKind::NetworkCardGone, name: "network_card_gone", alert: "network_card_gone", alert_after_seconds: 0, words: "network card gone", about: RuleSubject::Part("network_interface"), state: HealthState::Failed, shape: Shape::Lost("is_there"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "it is there again, or an hour has passed", action: "read the kernel's log (`sudo dmesg`); reseat the card" },
HealthRule { kind: FaultKind::NetworkPcieWidthBelowSlot, name: "network_pcie_width_below_slot", alert: "network_pcie_width_below_slot", alert_after_seconds: 0, words: "network card's PCIe narrower than the slot", about: RuleSubject::Part("network_interface"), state: HealthState::Warning, shape: Shape::Below("pcie_width", "pcie_width_max"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the link trains at full width", action: "reseat the card" },
HealthRule { kind: FaultKind::InfinibandPortDown, name: "infiniband_port_down", alert: "infiniband_port_down", alert_after_seconds: 20, words: "InfiniBand port down", about: RuleSubject::Part("infiniband_port"), state: HealthState::Failed, shape: Shape::Lost("up"), only_while: Some("is_infiniband"), only_after: None, only_by: None, beside: &["physical_state", "link_downs_total"], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "it is active", action: "check cable, module and switch port (`ibstat`)" },
HealthRule { kind: FaultKind::InfinibandRecoveriesRising, name: "infiniband_recoveries_rising", alert: "infiniband_recoveries_rising", alert_after_seconds: 0, words: "InfiniBand link recovers", about: RuleSubject::Part("infiniband_port"), state: HealthState::Warning, shape: Shape::Rises("link_recoveries_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 3.0, within_seconds: 3600, quiet_seconds: 3600, hold_seconds: 0 }, ends: "none for an hour, or the counter starts again", action: "clean or replace cable and module" },
HealthRule { kind: FaultKind::RdmaGidMissing, name: "rdma_gid_missing", alert: "rdma_gid_missing", alert_after_seconds: 20, words: "RDMA GID missing", about: RuleSubject::Part("infiniband_port"), state: HealthState::Failed, shape: Shape::Lost("routable_gids"), only_while: Some("up"), only_after: None, only_by: None, beside: &["gids"], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 1 }, ends: "it has one again", action: "check the addresses of its network interface (`ip address`, `show_gids`)" },
HealthRule { kind: FaultKind::HostMemoryUncorrected, name: "host_memory_uncorrected", alert: "host_memory_uncorrected", alert_after_seconds: 0, words: "uncorrected errors of host memory", about: RuleSubject::Part("memory_controller"), state: HealthState::Failed, shape: Shape::Above("uncorrected_errors_total"), only_while: None, only_after: None, only_by: None, beside: &["corrected_errors_total"], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the machine is started again", action: "find the module by `edac-util -v` or the machine's event log, and replace it" },
HealthRule { kind: FaultKind::HostMemoryCorrectedRising, name: "host_memory_corrected_rising", alert: "host_memory_corrected_rising", alert_after_seconds: 0, words: "corrected errors of host memory rise", about: RuleSubject::Part("memory_controller"), state: HealthState::Warning, shape: Shape::Rises("corrected_errors_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 100.0, within_seconds: 3600, quiet_seconds: 3600, hold_seconds: 0 }, ends: "none for an hour, or the counter starts again", action: "replace the module when the job ends" },
HealthRule { kind: FaultKind::DeviceLost, name: "device_lost", alert: "device_lost", alert_after_seconds: 0, words: "lost", about: RuleSubject::Device, state: HealthState::Failed, shape: Shape::Above("lost"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the driver reads it again", action: "read the kernel's log (`sudo dmesg`); it needs a reset or a power cycle" },
HealthRule { kind: FaultKind::XidError, name: "xid_error", alert: "xid_error", alert_after_seconds: 0, words: "XID error", about: RuleSubject::Device, state: HealthState::Failed, shape: Shape::Rises("xid_hardware_errors_total"), only_while: None, only_after: None, only_by: Some(("xid_hardware_last", &["46", "48", "54", "61", "62", "64", "74", "79", "95", "110", "119", "120", "136", "140", "143", "149", "150", "156", "158"])), beside: &[], counted_by_reader: true, thresholds: Thresholds { enabled: true, above: 0.0, rise: 1.0, within_seconds: 3600, quiet_seconds: 3600, hold_seconds: 0 }, ends: "none for an hour, or the GPU was lost or needed a reset and is read again", action: "look the number up in NVIDIA's catalog of XID errors; most of these need a reset of the GPU" },
HealthRule { kind: FaultKind::RowRemapPending, name: "row_remap_pending", alert: "row_remap_pending", alert_after_seconds: 0, words: "memory rows wait for a reset", about: RuleSubject::Device, state: HealthState::Warning, shape: Shape::Above("row_remap_pending"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the device has been reset", action: "reset it when the job ends (`nvidia-smi -r`)" },
HealthRule { kind: FaultKind::RowRemapFailed, name: "row_remap_failed", alert: "row_remap_failed", alert_after_seconds: 0, words: "no spare memory rows", about: RuleSubject::Device, state: HealthState::Failed, shape: Shape::Above("row_remap_failed"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the device is replaced", action: "replace the device" },
HealthRule { kind: FaultKind::PageRetirementPending, name: "page_retirement_pending", alert: "page_retirement_pending", alert_after_seconds: 0, words: "memory pages wait for a reset", about: RuleSubject::Device, state: HealthState::Warning, shape: Shape::Above("page_retirement_pending"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the device has been reset", action: "reset it when the job ends (`nvidia-smi -r`)" },
HealthRule { kind: FaultKind::SramUncorrected, name: "sram_uncorrected", alert: "sram_uncorrected", alert_after_seconds: 0, words: "uncorrected errors of SRAM", about: RuleSubject::Device, state: HealthState::Failed, shape: Shape::Above("sram_uncorrected_errors_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 0 }, ends: "the counter starts again, at a reset or when the driver is loaded", action: "reset it; replace it when they come back" },
HealthRule { kind: FaultKind::NvlinkDown, name: "nvlink_down", alert: "nvlink_down", alert_after_seconds: 0, words: "NVLink down", about: RuleSubject::Device, state: HealthState::Failed, shape: Shape::Fell("nvlink_links_up"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 1 }, ends: "as many are up as before", action: "read `nvidia-smi nvlink -s` and the log of the Fabric Manager" },
HealthRule { kind: FaultKind::NvlinkErrorsRising, name: "nvlink_errors_rising", alert: "nvlink_errors_rising", alert_after_seconds: 0, words: "NVLink links recover", about: RuleSubject::Device, state: HealthState::Warning, shape: Shape::Rises("nvlink_recoveries_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 3.0, within_seconds: 3600, quiet_seconds: 3600, hold_seconds: 0 }, ends: "none for an hour, or the counter starts again", action: "read `nvidia-smi nvlink -e`; reseat or replace the link's cable or board when the job ends" },
HealthRule { kind: FaultKind::PcieErrorsFatal, name: "pcie_errors_fatal", alert: "pcie_errors_fatal", alert_after_seconds: 0, words: "fatal PCIe errors", about: RuleSubject::Device, state: HealthState::Failed, shape: Shape::Rises("pcie_fatal_errors_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 1.0, within_seconds: 3600, quiet_seconds: 3600, hold_seconds: 0 }, ends: "none for an hour, or the counter starts again", action: "read the kernel's log (`sudo dmesg | grep -i aer`); reset it, else reseat the card" },
HealthRule { kind: FaultKind::PcieErrorsNonfatal, name: "pcie_errors_nonfatal", alert: "pcie_errors_nonfatal", alert_after_seconds: 0, words: "uncorrected PCIe errors", about: RuleSubject::Device, state: HealthState::Warning, shape: Shape::Rises("pcie_nonfatal_errors_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 1.0, within_seconds: 3600, quiet_seconds: 3600, hold_seconds: 0 }, ends: "none for an hour, or the counter starts again", action: "read the kernel's log (`sudo dmesg | grep -i aer`); reseat the card when they go on" },
HealthRule { kind: FaultKind::PcieErrorsCorrectedRising, name: "pcie_errors_corrected_rising", alert: "pcie_errors_corrected_rising", alert_after_seconds: 0, words: "corrected PCIe errors rise", about: RuleSubject::Device, state: HealthState::Warning, shape: Shape::Rises("pcie_correctable_errors_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 100.0, within_seconds: 3600, quiet_seconds: 3600, hold_seconds: 0 }, ends: "none for an hour, or the counter starts again", action: "reseat the card when the job ends; check riser and slot" },
HealthRule { kind: FaultKind::NetworkPcieErrorsFatal, name: "network_pcie_errors_fatal", alert: "network_pcie_errors_fatal", alert_after_seconds: 0, words: "network card's fatal PCIe errors", about: RuleSubject::Part("network_interface"), state: HealthState::Failed, shape: Shape::Rises("pcie_fatal_errors_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 1.0, within_seconds: 3600, quiet_seconds: 3600, hold_seconds: 0 }, ends: "none for an hour, or the counter starts again", action: "read the kernel's log (`sudo dmesg | grep -i aer`); reseat the card" },
HealthRule { kind: FaultKind::NetworkLinkFlapping, name: "network_link_flapping", alert: "network_link_flapping", alert_after_seconds: 0, words: "network link goes down and up", about: RuleSubject::Part("network_interface"), state: HealthState::Warning, shape: Shape::Rises("carrier_downs_total"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 3.0, within_seconds: 3600, quiet_seconds: 3600, hold_seconds: 0 }, ends: "not for an hour", action: "clean or replace cable and module" },
HealthRule { kind: FaultKind::CallHangs, name: "call_hangs", alert: "call_hangs", alert_after_seconds: 0, words: "a call hangs", about: RuleSubject::Source, state: HealthState::Warning, shape: Shape::Above("timed_out_calls"), only_while: None, only_after: None, only_by: None, beside: &[], counted_by_reader: false, thresholds: Thresholds { enabled: true, above: 0.0, rise: 0.0, within_seconds: 0, quiet_seconds: 0, hold_seconds: 2 }, ends: "it returns", action: "look for processes in state D (`ps -eo pid,stat,wchan,comm`) and read the kernel's log" },
];
