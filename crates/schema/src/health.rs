//! How a device is, with the cause: what every view shows of it in one word. What can be wrong is
//! declared in `health.toml`.

pub use crate::fault::{
    Evidence, Fault, FaultKind, HealthRule, HealthSettings, HealthState, RULES, RuleSetting,
    RuleSubject, SettingError, Shape, Thresholds,
};

use crate::chip::FactSource;
use crate::sensor::SENSORS;
use crate::snapshot::{Device, Snapshot, SpaceUsage};

/// Parts of the telemetry that are known of a device that does not answer: the kernel knows its link,
/// and errors are counted by who watches.
const ELSEWHERE: [Option<&str>; 2] = [Some("link"), Some("errors")];

/// How a device is, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Health<'a> {
    /// The state.
    pub state: HealthState,
    /// The most severe of what is wrong, the first of several; none where nothing is known to be.
    pub cause: Option<&'a Fault>,
}

impl Device {
    /// How it is.
    pub fn health(&self) -> Health<'_> {
        let worst = most_severe(&self.faults);
        let state = match worst {
            Some(fault) => fault.kind.state(),
            None if self.is_read() && !self.health_not_kept => HealthState::Ok,
            None => HealthState::Unknown,
        };
        Health { state, cause: worst }
    }

    /// Whether a source has read something from the device: a sensor, what holds its clocks down, or
    /// what its driver counts of its memory. The kernel knows of a link what no firmware has to say.
    pub fn is_read(&self) -> bool {
        let telemetry = &self.telemetry;
        let mut sensors = SENSORS.iter().filter(|sensor| !ELSEWHERE.contains(&sensor.part));
        // A driver that counts nothing but memory has read it all the same.
        let is_counted = |usage: &SpaceUsage| {
            usage.capacity_source == Some(FactSource::Driver) && usage.used_bytes.value().is_some()
        };
        let throttled = telemetry.load.as_ref().and_then(|load| load.throttled_by.value());
        let categories = telemetry.memory_counts.as_ref().map(|counts| &counts.category_bytes);
        sensors.any(|sensor| sensor.metric.rate_of.is_none() && sensor.value(telemetry).is_some())
            || self.spaces.iter().any(is_counted)
            || throttled.is_some_and(|reasons| !reasons.is_empty())
            || categories.is_some_and(|categories| !categories.is_empty())
    }
}

impl Snapshot {
    /// How the parts of the machine and its sources are; its devices have their own health.
    pub fn host_health(&self) -> Health<'_> {
        let cause = most_severe(&self.faults);
        let is_known = !self.devices.iter().any(|device| device.health_not_kept);
        let without = if is_known { HealthState::Ok } else { HealthState::Unknown };
        Health { state: cause.map_or(without, |fault| fault.kind.state()), cause }
    }

    /// What is wrong with its devices, then with parts of the machine and with sources, each with the
    /// name of what has it. Events are left out.
    pub fn wrong(&self) -> impl Iterator<Item = (&str, &Fault)> {
        let of_devices = self
            .devices
            .iter()
            .flat_map(|device| device.faults.iter().map(|fault| (device.id.as_str(), fault)));
        let of_parts = self.faults.iter().map(|fault| (fault.part.as_str(), fault));
        of_devices.chain(of_parts).filter(|(_, fault)| fault.is_wrong())
    }
}

/// The most severe of what is wrong, the first of several. An event is not wrong.
fn most_severe(faults: &[Fault]) -> Option<&Fault> {
    faults.iter().rev().filter(|fault| fault.is_wrong()).max_by_key(|fault| fault.kind.state())
}

#[cfg(test)]
mod tests {
    use super::{Health, HealthState};
    use crate::chip::ChipIdentity;
    use crate::clock::Timestamp;
    use crate::health::{Fault, FaultKind};
    use crate::reading::Reading;
    use crate::snapshot::Device;

    fn fault(kind: FaultKind, since: u64) -> Fault {
        Fault::new(kind, Timestamp(since), String::new())
    }

    #[test]
    fn a_device_is_what_is_worst_about_it_and_unknown_where_nothing_is_read() {
        let mut device = Device::unread("0", ChipIdentity::default());
        assert_eq!(device.health(), Health { state: HealthState::Unknown, cause: None });
        device.telemetry.power_watts = Reading::new(20.0, Timestamp(1));
        assert_eq!(device.health(), Health { state: HealthState::Ok, cause: None });
        let past = Device { health_not_kept: true, ..device.clone() };
        assert_eq!(past.health(), Health { state: HealthState::Unknown, cause: None });
        // What the kernel knows of the slot is not the device's word.
        let mut silent = Device::unread("0", ChipIdentity::default());
        let link = crate::snapshot::PcieLink::absent(crate::reading::Absence::Unknown, "");
        let generation = Reading::new(4, Timestamp(1));
        silent.telemetry.link =
            Some(Box::new(crate::snapshot::PcieLink { pcie_generation: generation, ..link }));
        assert_eq!(silent.health().state, HealthState::Unknown);
        device.faults = vec![fault(FaultKind::HeartbeatStopped, 5), fault(FaultKind::Vanished, 7)];
        let health = device.health();
        assert_eq!((health.state, health.cause), (HealthState::Failed, device.faults.first()));
    }

    #[test]
    fn states_go_from_good_to_bad() {
        assert!(HealthState::ALL.is_sorted());
        let names: std::collections::BTreeSet<_> =
            HealthState::ALL.iter().map(|state| state.name()).collect();
        assert_eq!(names.len(), HealthState::ALL.len());
    }
}
