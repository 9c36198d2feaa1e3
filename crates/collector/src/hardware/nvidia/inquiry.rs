//! What a GPU is asked, one task each, so that a call that hangs or fails costs its own answer.

use std::sync::Arc;

use nvml_wrapper::Device;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{
    Clock, EccCounter, MemoryError, MemoryLocation, PerformanceState, TemperatureSensor,
    TemperatureThreshold,
};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::{MemoryInfo, Utilization};
use telltale_schema::chip::PciAddress;
use telltale_schema::clock;

use super::errors::RepairCounts;
use super::instances::{Instance, instances};
use super::library::{Said, unsupported_if_refused, word};
use super::nvlink::NvLinkCounts;
use super::power::PowerCounts;
use super::process_use::{ProcessUse, process_use};
use super::question::Question;
use super::traffic::TrafficCounters;
use super::users::{User, Visibility, users};

/// What NVML said to it.
#[derive(Debug)]
pub(super) enum NvmlAnswer {
    Identity(Identity),
    Memory(Said<MemoryInfo>),
    Users(Said<Vec<User>>),
    Load(Said<Utilization>),
    /// In degrees Celsius: now, and where the hardware slows down.
    Temperature(Said<u32>, Said<u32>),
    /// In milliwatts: now, and the limit that holds.
    Power(Said<u32>, Said<u32>),
    /// In megahertz: of the multiprocessors, and of the memory.
    Clocks(Said<u32>, Said<u32>),
    /// In revolutions per minute, and in percent of the greatest.
    Fan(Said<u32>, Said<u32>),
    Throttling(Said<ThrottleReasons>),
    Errors(EccCounts),
    /// Over PCIe.
    Traffic(TrafficCounters),
    /// Its parts; none where it has none.
    Instances(Said<Vec<Instance>>),
    Engines(Engines),
    Energy(PowerCounts),
    Repairs(RepairCounts),
    /// None where it has no link.
    NvLink(Said<Option<NvLinkCounts>>),
    ProcessUse(Said<ProcessUse>),
}

/// Errors of its memory that were found by its checksums (ECC).
#[derive(Debug)]
pub(super) struct EccCounts {
    /// Since the driver was loaded or the GPU reset: those corrected, and those not.
    pub(super) volatile: [Said<u64>; 2],
    /// The same over the life of the GPU.
    pub(super) lifetime: [Said<u64>; 2],
    /// Of caches and registers, not corrected: since the driver was loaded or the GPU reset, and over
    /// the life of the GPU.
    pub(super) sram: [Said<u64>; 2],
}

/// How busy its video engines are, in percent, and its performance state.
#[derive(Debug)]
pub(super) struct Engines {
    pub(super) encoder: Said<u32>,
    pub(super) decoder: Said<u32>,
    pub(super) state: Said<u32>,
}

/// Who a GPU is. What it does not tell is absent.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) pci: Said<Option<PciAddress>>,
    pub(super) model: Option<String>,
    pub(super) uuid: Option<String>,
    pub(super) serial: Option<String>,
    pub(super) vbios: Option<String>,
}

/// A question, and whom it is put to.
pub(super) struct NvmlInquiry {
    pub(super) device: Arc<Device<'static>>,
    pub(super) question: Question,
    pub(super) visibility: Visibility,
    pub(super) clock: Arc<dyn clock::Clock>,
}

// === impl NvmlInquiry ===

impl NvmlInquiry {
    pub(super) fn answer(&self) -> NvmlAnswer {
        let device = &*self.device;
        match self.question {
            Question::Identity => NvmlAnswer::Identity(Identity::of(device)),
            Question::Memory => NvmlAnswer::Memory(device.memory_info()),
            Question::Users => NvmlAnswer::Users(users(device, &self.visibility)),
            Question::Load => NvmlAnswer::Load(device.utilization_rates()),
            Question::Temperature => {
                let limit = device.temperature_threshold(TemperatureThreshold::Slowdown);
                let limit =
                    limit.or_else(|_| device.temperature_threshold(TemperatureThreshold::GpuMax));
                NvmlAnswer::Temperature(device.temperature(TemperatureSensor::Gpu), limit)
            }
            Question::Power => {
                NvmlAnswer::Power(device.power_usage(), device.enforced_power_limit())
            }
            Question::Clocks => {
                NvmlAnswer::Clocks(device.clock_info(Clock::SM), device.clock_info(Clock::Memory))
            }
            // A GPU without a fan refuses the number of its first (an H200 with driver 580).
            Question::Fan => {
                let percent = device.fan_speed(0).map_err(unsupported_if_refused);
                NvmlAnswer::Fan(device.fan_speed_rpm(0).map_err(unsupported_if_refused), percent)
            }
            Question::Throttling => NvmlAnswer::Throttling(device.current_throttle_reasons()),
            Question::Errors => NvmlAnswer::Errors(EccCounts::of(device)),
            Question::Traffic => NvmlAnswer::Traffic(TrafficCounters::of(device, &*self.clock)),
            Question::Instances => NvmlAnswer::Instances(instances(device, &self.visibility)),
            Question::Engines => NvmlAnswer::Engines(Engines::of(device)),
            Question::Energy => NvmlAnswer::Energy(PowerCounts::of(device)),
            Question::Repairs => NvmlAnswer::Repairs(RepairCounts::of(device)),
            Question::NvLink => NvmlAnswer::NvLink(NvLinkCounts::of(device, &*self.clock)),
            Question::ProcessUse => NvmlAnswer::ProcessUse(process_use(device, &*self.clock)),
        }
    }
}

// === impl EccCounts ===

impl EccCounts {
    fn of(device: &Device<'_>) -> Self {
        let total =
            |kind, counter| device.total_ecc_errors(kind, counter).map_err(unsupported_if_refused);
        let both = |counter| {
            [MemoryError::Corrected, MemoryError::Uncorrected].map(|kind| total(kind, counter))
        };
        let sram = |counter| {
            let of_sram = MemoryLocation::SRAM;
            let said = device.memory_error_counter(MemoryError::Uncorrected, counter, of_sram);
            said.map_err(unsupported_if_refused)
        };
        Self {
            volatile: both(EccCounter::Volatile),
            lifetime: both(EccCounter::Aggregate),
            sram: [EccCounter::Volatile, EccCounter::Aggregate].map(sram),
        }
    }
}

// === impl Engines ===

impl Engines {
    fn of(device: &Device<'_>) -> Self {
        let state = device.performance_state().and_then(|state| match state {
            PerformanceState::Unknown => Err(NvmlError::NotSupported),
            known => Ok(known.as_c()),
        });
        Self {
            encoder: device.encoder_utilization().map(|busy| busy.utilization),
            decoder: device.decoder_utilization().map(|busy| busy.utilization),
            state,
        }
    }
}

// === impl Identity ===

impl Identity {
    fn of(device: &Device<'_>) -> Self {
        // The library's domain has eight digits where the kernel's has four.
        let pci = device.pci_info().map(|info| info.bus_id.parse().ok());
        let text = |said: Said<String>| said.ok().and_then(|text| word(&text));
        Self {
            pci,
            model: text(device.name()),
            uuid: text(device.uuid()),
            serial: text(device.serial()),
            vbios: text(device.vbios_version()),
        }
    }
}
