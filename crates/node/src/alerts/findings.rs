//! What each rule's condition finds in one snapshot.

use telltale_schema::health::{FaultKind, RuleSubject};
use telltale_schema::memory::MemorySpace;
use telltale_schema::quantity::{bytes, span};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Device, HeldDevice, Process, ProcessState, Snapshot, SourceStatus,
};
use telltale_schema::text::printable;

use super::growth::Trend;
use super::{Condition, Engine, Rule, Subject};

/// Where a value stands between a rule's thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// The condition holds.
    Raised,
    /// Neither: a firing alert goes on, a pending one does not.
    Between,
    /// It is clearly over.
    Clear,
    /// It is unknown.
    Unknown,
}

/// A condition checked for one subject.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RuleFinding {
    pub(super) subject: Subject,
    pub(super) uid: Option<u32>,
    pub(super) level: Level,
    pub(super) value: f64,
    pub(super) text: String,
}

/// A process as it is on one device.
pub(super) struct ProcessOnDevice<'a> {
    pub(super) process: &'a Process,
    pub(super) held: &'a HeldDevice,
    pub(super) device: &'a Device,
}

impl ProcessOnDevice<'_> {
    /// Its live bytes in one space.
    pub(super) fn live_bytes(&self, space: MemorySpace) -> u64 {
        let parts = self.held.spaces.iter().filter(|part| part.space == space);
        parts.map(|part| part.live_bytes).fold(0, u64::saturating_add)
    }
}

/// Living processes that have memory on a device, each device apart.
pub(super) fn places(snapshot: &Snapshot) -> impl Iterator<Item = ProcessOnDevice<'_>> {
    let living = snapshot.processes.iter().filter(|process| process.state == ProcessState::Alive);
    living.flat_map(|process| {
        process.devices.iter().filter_map(|held| {
            let device = snapshot.devices.get(held.device)?;
            (!held.spaces.is_empty()).then_some(ProcessOnDevice { process, held, device })
        })
    })
}

/// What a rule finds that changes something: what is raised, and where the rule has an alert already
/// all the rest too, as an alert whose subject has no finding is over. Most of the time nothing is
/// raised, and nothing is put into words then.
pub(super) fn findings(
    engine: &Engine,
    place: usize,
    rule: &Rule,
    now_ns: u64,
    snapshot: &Snapshot,
) -> Vec<RuleFinding> {
    let wanted = FindingFilter { all: engine.has_alerts(place) };
    let devices = snapshot.devices.iter();
    match rule.condition {
        Condition::Capacity { space, above_ratio, clear_ratio } => devices
            .filter_map(|device| capacity(wanted, device, space, [above_ratio, clear_ratio]))
            .collect(),
        Condition::Temperature { above_ratio, clear_ratio } => {
            devices.filter_map(|device| hot(wanted, device, [above_ratio, clear_ratio])).collect()
        }
        Condition::DeadMemory { above_bytes } => {
            devices.filter_map(|device| dead(wanted, device, above_bytes)).collect()
        }
        Condition::Leak { space, .. } => places(snapshot)
            .filter_map(|held| {
                let trend = engine.growth.of(place, held.process.identity?, &held.device.id);
                leak(wanted, &held, space, trend, rule)
            })
            .collect(),
        Condition::IdleMemory { above_bytes, idle_seconds } => places(snapshot)
            .filter_map(|held| {
                let quiet_ns = engine.activity.quiet_ns(held.process.identity?, now_ns)?;
                idle(wanted, &held, quiet_ns / 1_000_000_000, above_bytes, idle_seconds)
            })
            .collect(),
        Condition::Health { fault } if fault.rule().about == RuleSubject::Device => {
            devices.filter_map(|device| faulty(wanted, device, fault)).collect()
        }
        Condition::Health { fault } => faulty_parts(engine, place, fault, snapshot),
        Condition::SourceDown => {
            snapshot.sources.iter().filter_map(|status| source(wanted, status)).collect()
        }
    }
}

/// Which findings matter.
#[derive(Debug, Clone, Copy)]
struct FindingFilter {
    /// All of them, and not only those that are raised.
    all: bool,
}

impl FindingFilter {
    /// A finding about a process on a device, if it matters.
    fn of_place(
        self,
        held: &ProcessOnDevice<'_>,
        (level, value): (Level, f64),
        text: impl FnOnce() -> String,
    ) -> Option<RuleFinding> {
        if !self.all && level != Level::Raised {
            return None;
        }
        let identity = held.process.identity?;
        let subject = Subject::Process { identity, device: held.device.id.clone() };
        let uid = held.process.uid.value().copied();
        Some(RuleFinding { subject, uid, level, value, text: text() })
    }

    /// A finding without a user, by its value, if it matters; without a value it is unknown.
    fn by_value(
        self,
        value: Option<f64>,
        thresholds: [f64; 2],
        subject: impl FnOnce() -> Subject,
        text: impl FnOnce() -> String,
    ) -> Option<RuleFinding> {
        let level = value.map_or(Level::Unknown, |value| level(value, thresholds));
        (self.all || level == Level::Raised).then(|| {
            let text = if level == Level::Unknown { String::new() } else { text() };
            RuleFinding {
                subject: subject(),
                uid: None,
                level,
                value: value.unwrap_or_default(),
                text,
            }
        })
    }
}

/// A value against a pair of thresholds, the one that raises first.
fn level(value: f64, [above, clear]: [f64; 2]) -> Level {
    if value >= above {
        Level::Raised
    } else if value < clear {
        Level::Clear
    } else {
        Level::Between
    }
}

/// One reading as a share of another.
fn ratio(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let (part, whole) = (part?, whole?);
    (whole > 0.0).then(|| part / whole)
}

fn capacity(
    wanted: FindingFilter,
    device: &Device,
    space: MemorySpace,
    thresholds: [f64; 2],
) -> Option<RuleFinding> {
    let usage = device.space(space)?;
    let (used, whole) = (usage.used_bytes.value(), usage.capacity_bytes.value());
    let share = ratio(used.map(|used| *used as f64), whole.map(|whole| *whole as f64));
    let subject = || Subject::Space { device: device.id.clone(), space };
    wanted.by_value(share, thresholds, subject, || {
        format!(
            "{:.0} % of the {} of device {} is in use: {} of {}",
            share.unwrap_or_default() * 100.0,
            space.name(),
            device.id,
            bytes(used.copied().unwrap_or_default()),
            bytes(whole.copied().unwrap_or_default())
        )
    })
}

fn hot(wanted: FindingFilter, device: &Device, thresholds: [f64; 2]) -> Option<RuleFinding> {
    let telemetry = &device.telemetry;
    let of = |reading: &Reading<f64>| reading.value().copied();
    let (now, limit) =
        (of(&telemetry.temperature_celsius), of(&telemetry.temperature_limit_celsius));
    wanted.by_value(ratio(now, limit), thresholds, about(device), || {
        format!(
            "device {} is at {:.1} °C; it throttles at {:.1} °C",
            device.id,
            now.unwrap_or_default(),
            limit.unwrap_or_default()
        )
    })
}

fn dead(wanted: FindingFilter, device: &Device, above_bytes: u64) -> Option<RuleFinding> {
    let ghosts = device.kinds.iter().map(|kind| kind.ghost_bytes).fold(0, u64::saturating_add);
    wanted.by_value(Some(ghosts as f64), [above_bytes as f64; 2], about(device), || {
        format!(
            "dead processes' rows still claim {} of device {}; `telltale smi -d` shows where they \
             are",
            bytes(ghosts),
            device.id
        )
    })
}

/// Whether a device has a fault of this kind. A heartbeat that cannot be read may have stopped or not; that
/// of a device which has vanished is over, and what is wrong is that it has vanished.
fn faulty(wanted: FindingFilter, device: &Device, kind: FaultKind) -> Option<RuleFinding> {
    let fault = device.fault(kind);
    let untold = kind == FaultKind::HeartbeatStopped
        && device.fault(FaultKind::Vanished).is_none()
        && matches!(
            device.telemetry.heartbeat_total.absence(),
            Some((Absence::TimedOut | Absence::Gone, _))
        );
    let value = match fault {
        Some(_) => Some(1.0),
        None => (!untold).then_some(0.0),
    };
    wanted.by_value(value, [1.0; 2], about(device), || {
        fault.map_or_else(String::new, |fault| format!("device {}: {}", device.id, fault.detail))
    })
}

/// The sources and parts that have a fault of this kind, and those whose alert is not over.
fn faulty_parts(
    engine: &Engine,
    place: usize,
    kind: FaultKind,
    snapshot: &Snapshot,
) -> Vec<RuleFinding> {
    let subject = |part: &str| match kind.rule().about {
        RuleSubject::Source => Subject::Source { source: part.to_owned() },
        RuleSubject::Device | RuleSubject::Part(_) => Subject::Part { part: part.to_owned() },
    };
    let finding =
        |subject, level, value, text| RuleFinding { subject, uid: None, level, value, text };
    let faults = snapshot.faults.iter().filter(|fault| fault.kind == kind);
    let mut found: Vec<RuleFinding> = faults
        .map(|fault| {
            let text = format!("{}: {}", fault.part, fault.detail);
            finding(subject(&fault.part), Level::Raised, 1.0, text)
        })
        .collect();
    let is_over = |one: &&Subject| !found.iter().any(|found| found.subject == **one);
    let over: Vec<Subject> = engine.subjects(place).filter(is_over).cloned().collect();
    found.extend(over.into_iter().map(|one| finding(one, Level::Clear, 0.0, String::new())));
    found
}

fn about(device: &Device) -> impl FnOnce() -> Subject {
    move || Subject::Device { device: device.id.clone() }
}

fn source(wanted: FindingFilter, status: &SourceStatus) -> Option<RuleFinding> {
    let first = status.errors.first();
    let count = u64::try_from(status.errors.len()).unwrap_or(u64::MAX);
    let count = count.saturating_add(status.errors_dropped);
    let subject = || Subject::Source { source: status.name.clone() };
    wanted.by_value(Some(count as f64), [1.0; 2], subject, || {
        first.map_or_else(String::new, |error| {
            format!(
                "source {} has {count} error{}: {}: {}",
                status.name,
                if count == 1 { "" } else { "s, the first" },
                error.subject,
                error.detail
            )
        })
    })
}

fn leak(
    wanted: FindingFilter,
    held: &ProcessOnDevice<'_>,
    space: MemorySpace,
    trend: Option<Trend>,
    rule: &Rule,
) -> Option<RuleFinding> {
    let Condition::Leak { window_seconds, growth_bytes, exhausted_within_seconds, .. } =
        rule.condition
    else {
        return None;
    };
    let usage = held.device.space(space)?;
    let room = usage.capacity_bytes.value().zip(usage.used_bytes.value());
    let (Some(trend), Some((capacity, used))) = (trend, room) else {
        return wanted.of_place(held, (Level::Unknown, 0.0), String::new);
    };
    let slope = trend.bytes_per_second;
    let exhausted_in_seconds = (slope > 0.0).then(|| capacity.saturating_sub(*used) as f64 / slope);
    let soon = exhausted_in_seconds.is_some_and(|left| left <= exhausted_within_seconds as f64);
    let growth = slope * window_seconds as f64;
    let level = if trend.rises && soon && growth >= growth_bytes as f64 {
        Level::Raised
    } else if trend.rises && growth >= growth_bytes as f64 / 2.0 {
        Level::Between
    } else {
        Level::Clear
    };
    wanted.of_place(held, (level, slope), || {
        exhausted_in_seconds.map_or_else(String::new, |left| {
            format!(
                "{} gains {} of {} an hour on device {}, which is full in {}",
                named(held.process),
                bytes((slope * 3600.0) as u64),
                space.name(),
                held.device.id,
                span(left)
            )
        })
    })
}

fn idle(
    wanted: FindingFilter,
    held: &ProcessOnDevice<'_>,
    quiet_seconds: u64,
    above_bytes: u64,
    idle_seconds: u64,
) -> Option<RuleFinding> {
    let live = held.held.spaces.iter().map(|part| part.live_bytes).fold(0, u64::saturating_add);
    let raised = live >= above_bytes && quiet_seconds >= idle_seconds;
    let level = if raised { Level::Raised } else { Level::Clear };
    wanted.of_place(held, (level, live as f64), || {
        format!(
            "{} keeps {} on device {} and has recorded no allocation and no operation for {}",
            named(held.process),
            bytes(live),
            held.device.id,
            span(quiet_seconds as f64)
        )
    })
}

/// A process by its name and pid.
fn named(process: &Process) -> String {
    let pid = process.pid.map_or_else(|| "hidden".to_owned(), |pid| pid.to_string());
    format!("{} ({pid})", printable(&process.name))
}
