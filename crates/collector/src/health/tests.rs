mod week;

use telltale_schema::chip::ChipIdentity;
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, OtherIdentity};
use telltale_schema::health::{Fault, FaultKind, HealthSettings, HealthState, RuleSetting};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Device, DeviceErrors, Load, MAX_PART_FAULTS, MemoryCounts, PcieLink, Snapshot, SourceError,
    SourceStatus, Telemetry,
};

use super::Judge;
use crate::hardware::{HostPart, HostPartKind, HostParts};
use crate::rate::SampledAt;

const SECOND: u64 = 1_000_000_000;

fn moment(seconds: u64) -> SampledAt {
    SampledAt { monotonic_ns: seconds * SECOND, at: at(seconds) }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp((1000 + seconds) * SECOND)
}

fn value<T>(value: T) -> Reading<T> {
    Reading::new(value, at(0))
}

/// A judge, and a machine of one device that it examines.
struct Examined {
    judge: Judge,
    device: Device,
    sources: Vec<SourceStatus>,
}

impl Examined {
    fn new() -> Self {
        let mut device = Device::unread("7", ChipIdentity::default());
        device.telemetry = Telemetry::absent(Absence::Unsupported, "");
        device.telemetry.power_watts = value(20.0);
        Self { judge: Judge::default(), device, sources: Vec::new() }
    }

    fn snapshot(&mut self, seconds: u64) -> Snapshot {
        let mut snapshot = Snapshot {
            devices: vec![self.device.clone()],
            sources: self.sources.clone(),
            ..Snapshot::empty(at(seconds))
        };
        self.judge.examine(&mut snapshot, &[], (&["nvidia"], at(seconds)), moment(seconds));
        snapshot
    }

    /// What it finds of the device after so many seconds.
    fn faults(&mut self, seconds: u64) -> Vec<Fault> {
        self.snapshot(seconds).devices.remove(0).faults
    }

    fn kinds(&mut self, seconds: u64) -> Vec<FaultKind> {
        self.faults(seconds).iter().map(|fault| fault.kind).collect()
    }
}

/// The faults of one part with these readings.
fn part(
    judge: &mut Judge,
    kind: HostPartKind,
    all: &[(&'static str, f64)],
    second: u64,
) -> Vec<Fault> {
    let readings =
        all.iter().map(|(name, number)| (*name, Reading::new(*number, at(second)))).collect();
    let mut snapshot = Snapshot::empty(at(second));
    let part = HostPart { kind, name: "x0".to_owned(), readings };
    judge.examine(&mut snapshot, &[part], (&[], at(second)), moment(second));
    snapshot.faults
}

#[test]
fn a_link_below_its_slot_is_found_at_once_and_over_at_once() {
    let mut machine = Examined::new();
    let mut link = PcieLink::absent(Absence::Unknown, "");
    (link.pcie_width, link.pcie_width_max) = (value(8), value(16));
    (link.pcie_generation, link.pcie_generation_max) = (value(1), value(4));
    machine.device.telemetry.link = Some(Box::new(link.clone()));
    let faults = machine.faults(0);
    let kinds: Vec<_> = faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, [FaultKind::PcieWidthBelowSlot, FaultKind::PcieSpeedBelowSlot]);
    let shown: Vec<_> = faults[0].evidence.iter().map(|one| (&*one.reading, one.value)).collect();
    assert_eq!(shown, [("pcie_width", 8.0), ("pcie_width_max", 16.0)]);
    assert_eq!(faults[0].since, at(0));
    // A graphics processor slows an idle link, and no device gives up lanes.
    let gpu = OtherIdentity::new("0000:03:00.0", "nvidia", DeviceClass::Gpu);
    machine.device.identity = gpu.into();
    assert_eq!(machine.kinds(1), [FaultKind::PcieWidthBelowSlot]);
    // A reading that is late refutes nothing, one that is well does.
    link.pcie_width = Reading::absent(Absence::TimedOut, "");
    machine.device.telemetry.link = Some(Box::new(link.clone()));
    assert_eq!(machine.kinds(2), [FaultKind::PcieWidthBelowSlot]);
    link.pcie_width = value(16);
    machine.device.telemetry.link = Some(Box::new(link));
    assert_eq!(machine.kinds(3), []);
}

#[test]
fn a_counter_that_rises_is_a_trend_with_times() {
    let mut judge = Judge::default();
    let mut look = |total: f64, seconds| {
        part(
            &mut judge,
            HostPartKind::InfinibandPort,
            &[("link_recoveries_total", total), ("up", 1.0)],
            seconds,
        )
    };
    assert_eq!(look(502.0, 0), [], "what was before is no trend");
    assert_eq!(look(503.0, 60), []);
    assert_eq!(look(504.0, 600), []);
    let found = look(505.0, 60 + 21 * 60);
    assert_eq!(found[0].kind, FaultKind::InfinibandRecoveriesRising);
    assert_eq!((found[0].since, found[0].part.as_str()), (at(60), "x0"));
    assert!(found[0].detail.contains("rose from 502 to 505 in 21m00s"), "{}", found[0].detail);
    assert_eq!(look(505.0, 1500)[0].detail, found[0].detail, "it says the same until it rises");
    assert_eq!(found[0].kind.state(), HealthState::Warning);
    // It goes on until the counter was quiet for an hour, and is one fault all the while.
    let quiet = 60 + 21 * 60;
    assert_eq!(look(505.0, quiet + 3599)[0].since, at(60));
    assert_eq!(look(505.0, quiet + 3600), []);
    // Slower than the rule: three in more than an hour. A reset ends all.
    for (total, seconds) in [(506.0, 10_000), (507.0, 13_000), (508.0, 16_700), (509.0, 16_701)] {
        assert_eq!(look(total, seconds), [], "{total}");
    }
    assert_eq!(look(510.0, 16_702).len(), 1);
    assert_eq!(look(0.0, 16_703), []);
}

#[test]
fn a_counter_that_rises_more_slowly_than_its_rule_for_hours_is_no_trend() {
    let mut machine = Examined::new();
    let thresholds = FaultKind::MemoryCorrectedRising.rule().thresholds;
    let every = thresholds.within_seconds / (thresholds.rise as u64 * 3 / 4);
    for number in 0..1000 {
        let mut counts = MemoryCounts::absent(Absence::Unsupported, "");
        counts.corrected_errors_total = value(number);
        machine.device.telemetry.memory_counts = Some(Box::new(counts));
        assert_eq!(machine.kinds(number * every), [], "{number}");
    }
}

#[test]
fn what_was_found_is_not_over_because_it_cannot_be_read() {
    let mut machine = Examined::new();
    let mut counts = MemoryCounts::absent(Absence::Unsupported, "");
    for (reading, is_found) in [
        (Reading::absent(Absence::Failed, "EIO"), false),
        (value(2), true),
        (Reading::absent(Absence::Failed, "EIO"), true),
        (Reading::absent(Absence::Gone, ""), true),
        (value(0), false),
        (value(2), true),
        (Reading::absent(Absence::Resetting, ""), false),
    ] {
        counts.uncorrected_errors_total = reading;
        machine.device.telemetry.memory_counts = Some(Box::new(counts.clone()));
        let expected: &[FaultKind] = if is_found { &[FaultKind::MemoryUncorrected] } else { &[] };
        assert_eq!(machine.kinds(0), expected, "{:?}", counts.uncorrected_errors_total);
    }
}

#[test]
fn a_part_that_one_collection_has_not_seen_is_remembered_for_a_while() {
    let mut judge = Judge::default();
    let unseen = |judge: &mut Judge, second| {
        let mut snapshot = Snapshot::empty(at(second));
        judge.examine(&mut snapshot, &[], (&[], at(second)), moment(second));
        assert_eq!(snapshot.faults, [], "it may be in a container");
    };
    let mut look = |up: f64, second| {
        let all = [("up", up), ("is_enabled", 1.0)];
        let found = part(&mut judge, HostPartKind::NetworkInterface, &all, second);
        unseen(&mut judge, second + if up > 0.0 { 60 } else { 61 });
        found.iter().map(|fault| fault.kind).collect::<Vec<_>>()
    };
    assert_eq!(look(1.0, 0), []);
    assert_eq!(look(0.0, 61), [FaultKind::NetworkLinkDown]);
    assert_eq!(look(0.0, 123), [], "by then it is another one");
}

#[test]
fn parts_that_hang_are_their_source_s_whatever_other_devices_do() {
    let mut machine = Examined::new();
    machine.device.identity = OtherIdentity::new("0000:03:00.0", "amd", DeviceClass::Gpu).into();
    let late = || Reading::absent(Absence::TimedOut, "slow");
    let error = SourceError {
        subject: String::from("hwmon0"),
        reason: Absence::TimedOut,
        detail: String::new(),
    };
    let status = SourceStatus {
        name: HostParts::NAME.to_owned(),
        duration_ns: 1,
        errors: vec![error],
        errors_dropped: 0,
        notes: Vec::new(),
    };
    let mut look = |rpm: Reading<f64>, second| {
        let mut snapshot = Snapshot::empty(at(second));
        machine.device.telemetry.power_watts = Reading::new(20.0, at(second));
        (snapshot.devices, snapshot.sources) = (vec![machine.device.clone()], vec![status.clone()]);
        let readings = [("revolutions_per_minute", rpm)].into_iter().collect();
        let fan = HostPart { kind: HostPartKind::Fan, name: "x0".to_owned(), readings };
        let names = (&[HostParts::NAME][..], at(second));
        machine.judge.examine(&mut snapshot, &[fan], names, moment(second));
        snapshot.faults.iter().map(|fault| fault.kind).collect::<Vec<_>>()
    };
    let hold = FaultKind::SourceHangs.rule().thresholds.hold_seconds;
    look(late(), 0);
    assert_eq!(look(late(), hold), [FaultKind::SourceHangs]);
    look(Reading::new(900.0, at(hold + 1)), hold + 1);
    let hold = hold + 1 + FaultKind::CallHangs.rule().thresholds.hold_seconds;
    assert_eq!(look(Reading::new(900.0, at(hold)), hold), [FaultKind::CallHangs]);
}

#[test]
fn a_machine_with_thousands_of_broken_parts_shows_the_worst_of_them() {
    let (mut judge, mut snapshot) = (Judge::default(), Snapshot::empty(at(0)));
    let parts = (0..2 * MAX_PART_FAULTS).map(|number| HostPart {
        kind: HostPartKind::NetworkInterface,
        name: format!("x{number}"),
        readings: [("up", 0.0), ("is_enabled", 1.0), ("has_been_up", 1.0)]
            .map(|(name, number)| (name, Reading::new(number, at(0))))
            .into(),
    });
    judge.examine(&mut snapshot, &parts.collect::<Vec<_>>(), (&[], at(0)), moment(0));
    assert_eq!(snapshot.check(), Ok(()));
    assert_eq!(snapshot.faults.len(), MAX_PART_FAULTS);
    let [SourceStatus { name, notes, .. }] = &snapshot.sources[..] else { panic!("{snapshot:?}") };
    assert_eq!((name.as_str(), notes[0].count), (HostParts::NAME, MAX_PART_FAULTS as u64));
}

#[test]
fn what_was_up_and_is_not_is_down_unless_it_is_disabled() {
    let look = |judge: &mut Judge, up: f64, enabled: f64, been: f64, second| {
        let all = [("up", up), ("is_enabled", enabled), ("has_been_up", been)];
        let found = part(judge, HostPartKind::NetworkInterface, &all, second);
        found.iter().map(|fault| fault.kind).collect::<Vec<_>>()
    };
    let mut judge = Judge::default();
    assert_eq!(look(&mut judge, 0.0, 1.0, 0.0, 0), [], "nothing was ever plugged in");
    assert_eq!(look(&mut judge, 1.0, 1.0, 1.0, 1), []);
    assert_eq!(look(&mut judge, 0.0, 1.0, 1.0, 2), [FaultKind::NetworkLinkDown]);
    assert_eq!(look(&mut judge, 0.0, 0.0, 1.0, 3), [], "its administrator wants it so");
    // The kernel remembers what a reader that begins later has not seen.
    let mut later = Judge::default();
    assert_eq!(look(&mut later, 0.0, 1.0, 1.0, 0), [FaultKind::NetworkLinkDown]);
}

#[test]
fn a_fault_of_a_part_shows_what_explains_it_and_no_more() {
    use HostPartKind::{Fan, InfinibandPort, NetworkInterface, PowerSupply, Voltage};
    type All = &'static [(&'static str, f64)];
    let cases: [(HostPartKind, All, &[&str], &str); 6] = [
        (
            NetworkInterface,
            &[
                ("up", 0.0),
                ("is_enabled", 1.0),
                ("has_been_up", 1.0),
                ("carrier_downs_total", 3.0),
                ("pcie_width", 16.0),
                ("pcie_fatal_errors_total", 0.0),
            ],
            &["up", "carrier_downs_total"],
            "network link down: link down count 3; check cable, module and switch port",
        ),
        (
            Voltage,
            &[("alarm", 1.0), ("volts", 9.72), ("minimum_volts", 10.8), ("maximum_volts", 13.2)],
            &["alarm", "volts", "minimum_volts", "maximum_volts"],
            "voltage out of range: voltage 9.72 V, min 10.8 V, max 13.2 V; check the power \
             supplies and the board",
        ),
        (
            Fan,
            &[("alarm", 1.0), ("is_used", 1.0), ("revolutions_per_minute", 0.0)],
            &["alarm", "revolutions_per_minute"],
            "fan failed: speed 0 rpm; replace the fan before the machine gets hot",
        ),
        (
            PowerSupply,
            &[("alarm", 1.0)],
            &["alarm"],
            "power supply failed; check its cable, then replace it",
        ),
        (
            InfinibandPort,
            &[
                ("up", 0.0),
                ("is_infiniband", 1.0),
                ("has_been_up", 1.0),
                ("physical_state", 2.0),
                ("gids", 2.0),
            ],
            &["up", "physical_state"],
            "InfiniBand port down: physical state Polling; check cable, module and switch port \
             (`ibstat`)",
        ),
        (
            NetworkInterface,
            &[("pcie_width", 4.0), ("pcie_width_max", 16.0), ("up", 1.0)],
            &["pcie_width", "pcie_width_max"],
            "network card's PCIe narrower than the slot: PCIe lanes 4 of 16; reseat the card",
        ),
    ];
    for (kind, all, evidence, detail) in cases {
        let found = part(&mut Judge::default(), kind, all, 0);
        let shown: Vec<_> = found[0].evidence.iter().map(|one| &*one.reading).collect();
        assert_eq!((shown.as_slice(), &*found[0].detail), (evidence, detail));
    }
}

#[test]
fn a_fan_that_never_turned_does_not_fail() {
    let mut judge = Judge::default();
    let mut look = |turns: f64, alarm: f64, second| {
        let all = [("alarm", alarm), ("is_used", turns)];
        part(&mut judge, HostPartKind::Fan, &all, second).len()
    };
    assert_eq!(look(0.0, 1.0, 0), 0, "nothing is plugged in");
    assert_eq!([look(900.0, 0.0, 1), look(0.0, 1.0, 2), look(900.0, 0.0, 3)], [0, 1, 0]);
}

#[test]
fn a_slower_port_is_measured_by_what_it_was() {
    let mut judge = Judge::default();
    let mut look = |gigabits: f64, second| {
        let all = [("up", 1.0), ("speed_bits_per_second", gigabits * 1e9)];
        part(&mut judge, HostPartKind::NetworkInterface, &all, second)
    };
    assert_eq!(look(400.0, 0), []);
    let found = look(100.0, 1);
    assert_eq!(found[0].kind, FaultKind::NetworkSpeedLow);
    assert!(
        found[0].detail.contains("100 Gbit/s, highest speed 400 Gbit/s"),
        "{}",
        found[0].detail
    );
    assert_eq!(look(400.0, 2), []);
}

#[test]
fn a_driver_that_hangs_is_found_by_its_device_else_by_its_source() {
    let mut machine = Examined::new();
    machine.device.identity = OtherIdentity::new("0000:03:00.0", "nvidia", DeviceClass::Gpu).into();
    machine.device.telemetry = Telemetry::absent(Absence::TimedOut, "slow");
    let error = SourceError {
        subject: String::from("0"),
        reason: Absence::TimedOut,
        detail: String::from("slow"),
    };
    let status = |name: &str, errors: Vec<SourceError>| SourceStatus {
        name: name.to_owned(),
        duration_ns: 1,
        errors,
        errors_dropped: 0,
        notes: Vec::new(),
    };
    machine.sources = vec![status("nvidia", vec![error.clone()]), status("endpoints", vec![error])];
    assert_eq!(machine.kinds(0), [], "one late answer is no hang");
    let found = machine.snapshot(1);
    assert_eq!(found.devices[0].faults[0].kind, FaultKind::DriverHangs);
    assert_eq!(found.devices[0].health().state, HealthState::Failed);
    assert_eq!(found.faults, [], "the device explains it");

    machine.device.telemetry = Telemetry::absent(Absence::Unsupported, "");
    assert_eq!(machine.snapshot(2).faults, []);
    let found = machine.snapshot(3);
    let hanging: Vec<_> = found.faults.iter().map(|one| (one.kind, one.part.as_str())).collect();
    assert_eq!(hanging, [(FaultKind::SourceHangs, "nvidia")], "a stopped process is none");
    assert_eq!(found.host_health().state, HealthState::Failed);
}

#[test]
fn a_device_that_keeps_its_last_values_hangs_all_the_same() {
    let mut machine = Examined::new();
    machine.device.identity = OtherIdentity::new("7", "nvidia", DeviceClass::Gpu).into();
    // What the watcher of events counts is no answer of the device.
    let mut errors = DeviceErrors::absent(Absence::Unsupported, "");
    errors.xid_errors_total = Reading::new(0, at(9));
    machine.device.telemetry.errors = Some(Box::new(errors));
    let late = |subject: &str| SourceStatus {
        name: String::from("nvidia"),
        duration_ns: 1,
        errors: vec![SourceError {
            subject: subject.to_owned(),
            reason: Absence::TimedOut,
            detail: String::from("slow"),
        }],
        errors_dropped: 0,
        notes: Vec::new(),
    };
    machine.sources = vec![late("8")];
    assert_eq!((machine.kinds(1), machine.kinds(2)), (vec![], vec![]), "another device hangs");
    machine.sources = vec![late("7")];
    assert_eq!(machine.kinds(3), [], "one late answer is no hang");
    assert_eq!(machine.kinds(4), [FaultKind::DriverHangs]);
    // One question of many is late.
    machine.device.telemetry.power_watts = Reading::new(21.0, at(5));
    assert_eq!(machine.kinds(5), []);
}

#[test]
fn events_are_shown_for_a_while_and_are_not_wrong() {
    let mut machine = Examined::new();
    machine.device.telemetry.heartbeat_total = value(1000);
    assert_eq!(machine.kinds(0), []);
    machine.device.telemetry.heartbeat_total = value(3);
    assert_eq!(machine.kinds(1), [FaultKind::WasReset]);
    let reset = machine.snapshot(1 + 3599).devices.remove(0);
    assert_eq!((reset.faults[0].since, reset.health().state), (at(1), HealthState::Ok));
    assert_eq!(machine.kinds(1 + 3600), []);

    let gone = Fault::new(FaultKind::Vanished, at(9000), String::new());
    machine.device.faults = vec![gone];
    assert_eq!(machine.kinds(9000), [FaultKind::Vanished]);
    machine.device.faults.clear();
    assert_eq!(machine.kinds(9001), [FaultKind::CameBack]);
}

#[test]
fn memory_errors_and_throttling_have_their_states() {
    let mut machine = Examined::new();
    let mut counts = MemoryCounts::absent(Absence::Unsupported, "");
    counts.uncorrected_errors_total = value(2);
    counts.corrected_errors_total = value(5);
    let mut load = Load::absent(Absence::Unsupported, "");
    load.throttled_by = value(vec!["sw_power_cap".to_owned()]);
    machine.device.telemetry.memory_counts = Some(Box::new(counts.clone()));
    machine.device.telemetry.load = Some(Box::new(load.clone()));
    assert_eq!(machine.kinds(0), [FaultKind::MemoryUncorrected], "a power cap is usual");
    counts.uncorrected_errors_total = value(0);
    counts.corrected_errors_total = value(105);
    load.throttled_by = value(vec!["hw_power_brake_slowdown".to_owned()]);
    machine.device.telemetry.memory_counts = Some(Box::new(counts));
    machine.device.telemetry.load = Some(Box::new(load));
    assert_eq!(machine.kinds(1), [FaultKind::MemoryCorrectedRising], "for a moment it is usual");
    let found = [FaultKind::ThrottledByHardware, FaultKind::MemoryCorrectedRising];
    assert_eq!(machine.kinds(2), found);
}

#[test]
fn thresholds_are_a_user_s() {
    let mut machine = Examined::new();
    let setting = RuleSetting {
        name: String::from("thermal_trip"),
        enabled: None,
        above: None,
        rise: Some(2.0),
        within_seconds: None,
        quiet_seconds: Some(10),
        hold_seconds: None,
    };
    let off = RuleSetting {
        name: String::from("heartbeat_stopped"),
        enabled: Some(false),
        rise: None,
        quiet_seconds: None,
        ..setting.clone()
    };
    machine.judge = Judge::new(HealthSettings::new(&[setting, off]).unwrap());
    machine.device.faults = vec![Fault::new(FaultKind::HeartbeatStopped, at(0), String::new())];
    let kinds: Vec<_> = [(0, 0), (1, 1), (2, 2), (2, 11), (2, 12)]
        .map(|(trips, seconds)| {
            machine.device.telemetry.thermal_trips_total = value(trips);
            machine.kinds(seconds)
        })
        .into();
    let tripped = vec![FaultKind::ThermalTrip];
    assert_eq!(kinds, [vec![], vec![], tripped.clone(), tripped, vec![]]);
}

#[test]
fn what_another_reader_found_goes_on_until_a_reading_refutes_it() {
    let mut watching = Examined::new();
    for (trips, second) in [(0, 0), (1, 1)] {
        watching.device.telemetry.thermal_trips_total = value(trips);
        watching.snapshot(second);
    }
    let known = watching.snapshot(2);
    let mut once = Examined::new();
    once.device.telemetry.thermal_trips_total = value(1);
    assert_eq!(once.kinds(3), [], "one reading shows no trend");
    let mut taught = Examined::new();
    taught.judge.learn(&known, moment(3));
    taught.device.telemetry.thermal_trips_total = value(1);
    assert_eq!(taught.faults(3)[0].since, known.devices[0].faults[0].since);
    taught.device.telemetry.thermal_trips_total = value(0);
    assert_eq!(taught.kinds(4), [], "it has been reset meanwhile");
}

#[test]
fn an_error_that_another_reader_has_counted_is_over_after_an_hour_and_by_no_count_of_ones_own() {
    let with = |machine: &mut Examined, counts: Reading<u64>| {
        let errors = machine
            .device
            .telemetry
            .errors
            .get_or_insert_with(|| Box::new(DeviceErrors::absent(Absence::Unsupported, "")));
        errors.xid_hardware_last = match counts.value() {
            Some(1..) => value(79),
            _ => Reading::absent(Absence::NotYet, ""),
        };
        errors.xid_hardware_errors_total = counts;
    };
    let mut watching = Examined::new();
    for (count, second) in [(0, 0), (1, 1)] {
        with(&mut watching, value(count));
        watching.snapshot(second);
    }
    let known = watching.snapshot(2);
    assert_eq!(known.devices[0].faults[0].kind, FaultKind::XidError);
    let mut taught = Examined::new();
    taught.judge.learn(&known, moment(3));
    with(&mut taught, Reading::absent(Absence::NotYet, ""));
    assert_eq!(taught.faults(3), known.devices[0].faults);
    with(&mut taught, value(0));
    assert_eq!(taught.faults(4), known.devices[0].faults);
    assert_eq!(taught.faults(3_500), known.devices[0].faults);
    assert_eq!(taught.kinds(3_602), []);
}

#[test]
fn a_card_that_is_gone_is_known_to_a_reader_that_never_saw_it() {
    let mut judge = Judge::default();
    let kind = HostPartKind::NetworkInterface;
    part(&mut judge, kind, &[("is_there", 1.0)], 0);
    let mut known = Snapshot::empty(at(1));
    known.faults = part(&mut judge, kind, &[("is_there", 0.0)], 1);
    assert_eq!(known.faults[0].kind, FaultKind::NetworkCardGone);
    let mut taught = Judge::default();
    taught.learn(&known, moment(2));
    let mut once = Snapshot::empty(at(2));
    taught.examine(&mut once, &[], (&[], at(2)), moment(2));
    assert_eq!(once.faults, known.faults);
    // One that runs on reports it for the hour.
    let mut running = Judge::default();
    running.learn(&known, moment(2));
    let counts = [2, 600, 3_600, 3_602].map(|second| {
        let mut snapshot = Snapshot::empty(at(second));
        running.examine(&mut snapshot, &[], (&[], at(second)), moment(second));
        snapshot.faults.len()
    });
    assert_eq!(counts, [1, 1, 1, 0]);
    assert_eq!(part(&mut taught, kind, &[("is_there", 0.0)], 3).len(), 1);
    assert_eq!(part(&mut taught, kind, &[("is_there", 1.0)], 4), []);
}
