//! One GPU as last reported: answers become readings here.

use std::collections::BTreeMap;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::{MemoryInfo, Utilization};
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, OtherIdentity};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    DeviceErrors, Load, MemoryCounts, NvLinks, PcieLink, Power, Telemetry,
};

use super::complaints::Complaints;
use super::events::{XidErrors, XidReadings};
use super::inquiry::{EccCounts, Engines, Identity, NvmlAnswer};
use super::library::{Said, absence_of};
use super::nvlink::{NvLinkCounts, NvLinkTraffic};
use super::part;
use super::power::MAX_MILLIWATTS;
use super::process_use::ProcessUse;
use super::question::Question;
use super::traffic::Traffic;
use super::users::User;
use crate::report::SourceReport;
use crate::source::{DeviceReading, DriverMemory};

/// What stands where an answer would be.
pub(super) const SILENT: &str = "NVML did not answer in time";

/// The performance state of the lowest clocks.
const SLOWEST_STATE: u32 = 15;

/// Reasons to run slower than possible, by nvidia-smi's names. That there is nothing to do is none.
const REASONS: [(ThrottleReasons, &str); 8] = [
    (ThrottleReasons::APPLICATIONS_CLOCKS_SETTING, "applications_clocks_setting"),
    (ThrottleReasons::SW_POWER_CAP, "sw_power_cap"),
    (ThrottleReasons::HW_SLOWDOWN, "hw_slowdown"),
    (ThrottleReasons::SYNC_BOOST, "sync_boost"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "sw_thermal_slowdown"),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "hw_thermal_slowdown"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "hw_power_brake_slowdown"),
    (ThrottleReasons::DISPLAY_CLOCK_SETTING, "display_clock_setting"),
];

/// A GPU that NVML has under a number.
#[derive(Debug)]
pub(super) struct Gpu {
    index: u32,
    pub(super) device: DeviceReading,
    /// Bytes in use and bytes in all, of all of it.
    memory: Reading<(u64, u64)>,
    users: Reading<Vec<User>>,
    /// How busy each process keeps it; none where that is not known now.
    process_use: Option<ProcessUse>,
    traffic: Traffic,
    nvlink: NvLinkTraffic,
    pub(super) xid: XidErrors,
    /// The driver had lost it or asked for a reset, and it has not answered since.
    is_away: bool,
    /// Its instances by their numbers, in MIG mode.
    pub(super) parts: BTreeMap<u32, DeviceReading>,
}

// === impl Gpu ===

impl Gpu {
    /// A GPU that has not answered yet.
    pub(super) fn new(index: u32) -> Self {
        let identity = OtherIdentity {
            driver: Some(String::from("nvidia")),
            driver_ordinal: Some(index),
            ..OtherIdentity::new(format!("nvidia{index}"), "nvidia", DeviceClass::Gpu)
        };
        let mut gpu = Self {
            index,
            device: DeviceReading::new(identity),
            memory: Reading::absent(Absence::TimedOut, SILENT),
            users: Reading::absent(Absence::TimedOut, SILENT),
            process_use: None,
            traffic: Traffic::default(),
            nvlink: NvLinkTraffic::default(),
            xid: XidErrors::default(),
            is_away: false,
            parts: BTreeMap::new(),
        };
        gpu.forget(Absence::TimedOut, SILENT);
        gpu
    }

    /// Nothing is known of it any more but who it was.
    pub(super) fn forget(&mut self, reason: Absence, detail: &str) {
        let has_links = self.device.telemetry.nvlink.is_some();
        self.device.telemetry = Telemetry {
            firmware: std::mem::take(&mut self.device.telemetry.firmware),
            load: Some(Box::new(Load::absent(reason, detail))),
            memory_counts: Some(Box::new(MemoryCounts::absent(reason, detail))),
            link: Some(Box::new(PcieLink::absent(reason, detail))),
            power: Some(Box::new(Power::absent(reason, detail))),
            errors: Some(Box::new(DeviceErrors::absent(reason, detail))),
            nvlink: has_links.then(|| Box::new(NvLinks::absent(reason, detail))),
            ..Telemetry::absent(reason, detail)
        };
        // What no call of NVML reports: the latter are of Tenstorrent's firmware.
        let telemetry = &mut self.device.telemetry;
        telemetry.voltage_volts = unsaid();
        telemetry.voltage_limit_volts = unsaid();
        telemetry.current_amperes = unsaid();
        telemetry.current_limit_amperes = unsaid();
        telemetry.axiclk_hertz = unsaid();
        telemetry.arcclk_hertz = unsaid();
        telemetry.heartbeat_total = unsaid();
        telemetry.thermal_trips_total = unsaid();
        // Its counters may start again while it is away.
        self.traffic = Traffic::default();
        self.nvlink = NvLinkTraffic::default();
        self.xid.doubt(reason, detail);
        self.is_away |= matches!(reason, Absence::Gone | Absence::Resetting);
        self.memory = Reading::absent(reason, detail);
        self.device.memory = Some(part::no_memory(reason, detail));
        for part in self.parts.values_mut() {
            part.memory = Some(part::no_memory(reason, detail));
        }
        self.forget_users(reason, detail);
    }

    /// Who used it a while ago may be another process by now.
    pub(super) fn forget_users(&mut self, reason: Absence, detail: &str) {
        self.process_use = None;
        self.users = Reading::absent(reason, detail);
        part::forget_users(&mut self.device, reason, detail);
        self.forget_users_of_parts(reason, detail);
    }

    fn forget_users_of_parts(&mut self, reason: Absence, detail: &str) {
        for part in self.parts.values_mut() {
            part::forget_users(part, reason, detail);
        }
    }

    /// Why NVML gives no handle for it.
    pub(super) fn refuse(&mut self, error: &NvmlError, report: &mut SourceReport) {
        let reason = absence_of(error);
        let detail = self.xid.with_last(&error.to_string());
        Complaints::of(self.device.identity.display_id(), report)
            .add(reason, format!("NVML does not show it: {detail}"));
        self.forget(reason, &detail);
    }

    /// What it says to a question; none where it did not answer in time. What is known from before
    /// stays then, with its age.
    pub(super) fn take(
        &mut self,
        question: Question,
        answer: Option<NvmlAnswer>,
        now: Timestamp,
        complaints: &mut Complaints<'_>,
    ) {
        match answer {
            None => {
                complaints.add(Absence::TimedOut, format!("{SILENT}: {}", question.words()));
                match question {
                    Question::Users => self.users = Reading::absent(Absence::TimedOut, SILENT),
                    Question::ProcessUse => self.process_use = None,
                    Question::Instances => self.forget_users_of_parts(Absence::TimedOut, SILENT),
                    _ => {}
                }
            }
            Some(NvmlAnswer::Identity(identity)) => self.take_identity(identity, complaints),
            Some(NvmlAnswer::Memory(said)) => self.take_memory(said, now, complaints),
            Some(NvmlAnswer::Users(said)) => {
                self.users = complaints.reading(question, said, now, |_| true);
            }
            Some(NvmlAnswer::Load(said)) => self.take_load(said, now, complaints),
            Some(NvmlAnswer::Errors(counts)) => self.take_ecc(counts, now, complaints),
            Some(NvmlAnswer::Engines(engines)) => self.take_engines(engines, now, complaints),
            Some(NvmlAnswer::Energy(counts)) => {
                self.device.telemetry.power = Some(Box::new(counts.readings(now, complaints)));
            }
            Some(NvmlAnswer::Repairs(counts)) => {
                self.device.telemetry.errors = Some(Box::new(counts.readings(now, complaints)));
            }
            Some(NvmlAnswer::ProcessUse(said)) => {
                let found = complaints.reading(question, said, now, |_| true);
                self.process_use = found.value().cloned();
            }
            Some(NvmlAnswer::NvLink(said)) => self.take_nvlink(said, now, complaints),
            Some(NvmlAnswer::Traffic(counters)) => {
                let link = self.traffic.follow(counters, now, complaints);
                self.device.telemetry.link = Some(Box::new(link));
            }
            Some(NvmlAnswer::Instances(said)) => {
                let whole = &self.device.identity;
                self.parts = match said {
                    Ok(found) => part::parts(found, whole, now, complaints),
                    Err(error) => part::unknown(&mut self.parts, &error, complaints),
                };
            }
            Some(other) => self.take_sensor(question, other, now, complaints),
        }
    }

    fn take_identity(&mut self, said: Identity, complaints: &mut Complaints<'_>) {
        let pci = match said.pci {
            Ok(Some(pci)) => pci,
            Ok(None) => {
                let detail = "NVML gives no PCI address for it that is one";
                return complaints.add(Absence::NotUnderstood, detail);
            }
            Err(error) => {
                let detail = format!("NVML does not tell its PCI address: {error}");
                return complaints.add(absence_of(&error), detail);
            }
        };
        let identity = OtherIdentity {
            model: said.model,
            driver: Some(String::from("nvidia")),
            driver_ordinal: Some(self.index),
            pci: Some(pci),
            uuid: said.uuid,
            serial: said.serial,
            ..OtherIdentity::new(pci.to_string(), "nvidia", DeviceClass::Gpu)
        };
        if self.device.identity.pci().is_some_and(|known| known != pci) {
            // Another GPU has this number now, and nothing that is known is of it.
            *self = Self::new(self.index);
        }
        complaints.rename(pci.to_string());
        self.device.identity = identity.into();
        if let Some(version) = said.vbios {
            self.device.telemetry.firmware.insert(String::from("vbios_version"), version);
        }
    }

    fn take_memory(
        &mut self,
        said: Said<MemoryInfo>,
        now: Timestamp,
        complaints: &mut Complaints<'_>,
    ) {
        self.memory = part::memory(Question::Memory, said, now, complaints);
    }

    fn take_load(
        &mut self,
        said: Said<Utilization>,
        now: Timestamp,
        complaints: &mut Complaints<'_>,
    ) {
        let said = said.map(|rates| (rates.gpu, rates.memory));
        let both = complaints
            .reading(Question::Load, said, now, |(gpu, memory)| *gpu <= 100 && *memory <= 100);
        let load = self.load();
        load.busy_ratio = both.clone().map(|(gpu, _)| f64::from(gpu) / 100.0);
        load.memory_busy_ratio = both.map(|(_, memory)| f64::from(memory) / 100.0);
    }

    fn take_ecc(&mut self, counts: EccCounts, now: Timestamp, complaints: &mut Complaints<'_>) {
        let mut reading = |said| complaints.reading(Question::Errors, said, now, |_| true);
        let [corrected, uncorrected] = counts.volatile.map(&mut reading);
        let [lifetime_corrected, lifetime_uncorrected] = counts.lifetime.map(&mut reading);
        let [sram, sram_lifetime] = counts.sram.map(&mut reading);
        self.device.telemetry.memory_counts = Some(Box::new(MemoryCounts {
            category_bytes: BTreeMap::new(),
            corrected_errors_total: corrected,
            uncorrected_errors_total: uncorrected,
            corrected_errors_lifetime_total: lifetime_corrected,
            uncorrected_errors_lifetime_total: lifetime_uncorrected,
            sram_uncorrected_errors_total: sram,
            sram_uncorrected_lifetime_total: sram_lifetime,
        }));
    }

    fn take_engines(&mut self, said: Engines, now: Timestamp, complaints: &mut Complaints<'_>) {
        let mut reading =
            |said, most| complaints.reading(Question::Engines, said, now, |value| *value <= most);
        let ratio = |percent: Reading<u32>| percent.map(|percent| f64::from(percent) / 100.0);
        let (encoder, decoder) = (reading(said.encoder, 100), reading(said.decoder, 100));
        let state = reading(said.state, SLOWEST_STATE);
        let load = self.load();
        load.encoder_busy_ratio = ratio(encoder);
        load.decoder_busy_ratio = ratio(decoder);
        load.performance_state = state.map(u64::from);
    }

    fn take_nvlink(
        &mut self,
        said: Said<Option<NvLinkCounts>>,
        now: Timestamp,
        complaints: &mut Complaints<'_>,
    ) {
        let links = match said {
            Ok(None) => None,
            Ok(Some(counts)) => Some(self.nvlink.follow(counts, now, complaints)),
            Err(error) => {
                self.nvlink = NvLinkTraffic::default();
                let unread =
                    complaints.reading(Question::NvLink, Err::<u64, _>(error), now, |_| true);
                let had_links = self.device.telemetry.nvlink.is_some();
                unread
                    .absence()
                    .filter(|_| had_links)
                    .map(|(reason, detail)| NvLinks::absent(reason, detail))
            }
        };
        self.device.telemetry.nvlink = links.map(Box::new);
    }

    fn load(&mut self) -> &mut Load {
        let load = &mut self.device.telemetry.load;
        load.get_or_insert_with(|| Box::new(Load::absent(Absence::NotYet, "")))
    }

    fn take_sensor(
        &mut self,
        question: Question,
        answer: NvmlAnswer,
        now: Timestamp,
        complaints: &mut Complaints<'_>,
    ) {
        let mut reading =
            |said, most| complaints.reading(question, said, now, |value| *value <= most);
        match answer {
            NvmlAnswer::Temperature(now, limit) => {
                let telemetry = &mut self.device.telemetry;
                telemetry.temperature_celsius = reading(now, 150).map(f64::from);
                telemetry.temperature_limit_celsius = reading(limit, 150).map(f64::from);
            }
            NvmlAnswer::Power(now, limit) => {
                let watts = |milliwatts: Reading<u32>| milliwatts.map(|it| f64::from(it) / 1e3);
                self.device.telemetry.power_watts = watts(reading(now, MAX_MILLIWATTS));
                self.device.telemetry.power_limit_watts = watts(reading(limit, MAX_MILLIWATTS));
            }
            NvmlAnswer::Clocks(cores, memory) => {
                let hertz = |mega: Reading<u32>| mega.map(|it| u64::from(it) * 1_000_000);
                self.device.telemetry.aiclk_hertz = hertz(reading(cores, 10_000));
                self.load().memory_clock_hertz = hertz(reading(memory, 30_000));
            }
            NvmlAnswer::Fan(speed, percent) => {
                self.device.telemetry.fan_revolutions_per_minute =
                    reading(speed, 30_000).map(u64::from);
                self.device.telemetry.fan_ratio =
                    reading(percent, 500).map(|it| f64::from(it) / 100.0);
            }
            NvmlAnswer::Throttling(said) => {
                let reasons = complaints.reading(question, said, now, |_| true);
                self.load().throttled_by = reasons.map(names);
            }
            NvmlAnswer::Identity(_)
            | NvmlAnswer::Memory(_)
            | NvmlAnswer::Users(_)
            | NvmlAnswer::Load(_)
            | NvmlAnswer::Errors(_)
            | NvmlAnswer::Engines(_)
            | NvmlAnswer::Energy(_)
            | NvmlAnswer::Repairs(_)
            | NvmlAnswer::NvLink(_)
            | NvmlAnswer::ProcessUse(_)
            | NvmlAnswer::Traffic(_)
            | NvmlAnswer::Instances(_) => {}
        }
    }

    /// What is counted here, also of a GPU that is gone.
    fn settle_xid(&mut self, monotonic_ns: u64) {
        let XidReadings { any, hardware } = self.xid.readings(monotonic_ns);
        let errors = &mut self.device.telemetry.errors;
        let errors =
            errors.get_or_insert_with(|| Box::new(DeviceErrors::absent(Absence::NotYet, "")));
        [errors.xid_errors_total, errors.xid_last] = any;
        [errors.xid_hardware_errors_total, errors.xid_hardware_last] = hardware;
    }

    /// One that is read again after it was lost, or after it asked for a reset, was reset.
    fn notice_reset(&mut self, complaints: &Complaints<'_>) {
        let [is_lost, needs_reset, is_late] =
            [Absence::Gone, Absence::Resetting, Absence::TimedOut]
                .map(|reason| complaints.has(reason));
        if is_lost || needs_reset {
            self.is_away = true;
        } else if self.is_away && !is_late {
            self.is_away = false;
            self.xid.restart();
        }
    }

    /// After all answers: what is its own, without what its parts have, and its events.
    pub(super) fn settle(&mut self, monotonic_ns: u64, complaints: &mut Complaints<'_>) {
        self.notice_reset(complaints);
        self.settle_xid(monotonic_ns);
        let (used_bytes, capacity_bytes) = part::rest(&self.memory, &self.parts, complaints);
        let outside = |user: &User| user.instance.is_none_or(|id| !self.parts.contains_key(&id));
        let own = self.users.clone().map(|mut users| {
            users.retain(outside);
            users
        });
        self.device.memory =
            Some(DriverMemory { used_bytes, capacity_bytes, processes: Vec::new() });
        part::take_users(&mut self.device, &own, self.process_use.as_ref(), complaints);
    }
}

fn unsaid<T>() -> Reading<T> {
    Reading::absent(Absence::Unsupported, "NVML does not say")
}

/// What holds the clocks down, in the driver's words.
fn names(reasons: ThrottleReasons) -> Vec<String> {
    let named = REASONS.iter().filter(|(reason, _)| reasons.contains(*reason));
    named.map(|(_, name)| (*name).to_owned()).collect()
}
