//! What each rule's condition finds in one snapshot.

use telltale_schema::memory::MemorySpace;
use telltale_schema::quantity::{bytes, span};
use telltale_schema::reading::Reading;
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
    /// It cannot be told.
    Unknown,
}

/// A condition looked at for one subject.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    pub(super) subject: Subject,
    pub(super) uid: Option<u32>,
    pub(super) level: Level,
    pub(super) value: f64,
    pub(super) text: String,
}

/// A process as it is on one device.
pub(super) struct Place<'a> {
    pub(super) process: &'a Process,
    pub(super) held: &'a HeldDevice,
    pub(super) device: &'a Device,
}

impl Place<'_> {
    /// Its live bytes in one space.
    pub(super) fn live_bytes(&self, space: MemorySpace) -> u64 {
        let parts = self.held.spaces.iter().filter(|part| part.space == space);
        parts.map(|part| part.live_bytes).fold(0, u64::saturating_add)
    }

    /// The subject; none for a process that nothing tells from others.
    pub(super) fn subject(&self) -> Option<Subject> {
        let identity = self.process.identity?;
        Some(Subject::Process { identity, device: self.device.id.clone() })
    }
}

/// Living processes that have memory on a device, each device apart.
pub(super) fn places(snapshot: &Snapshot) -> impl Iterator<Item = Place<'_>> {
    let living = snapshot.processes.iter().filter(|process| process.state == ProcessState::Alive);
    living.flat_map(|process| {
        process.devices.iter().filter_map(|held| {
            let device = snapshot.devices.get(held.device)?;
            (!held.spaces.is_empty()).then_some(Place { process, held, device })
        })
    })
}

/// All that a rule finds, whatever its level: an alert whose subject has no finding is over.
pub(super) fn findings(
    engine: &Engine,
    place: usize,
    rule: &Rule,
    now_ns: u64,
    snapshot: &Snapshot,
) -> Vec<Finding> {
    match rule.condition {
        Condition::Capacity { space, above_ratio, clear_ratio } => snapshot
            .devices
            .iter()
            .filter_map(|device| capacity(device, space, [above_ratio, clear_ratio]))
            .collect(),
        Condition::Temperature { above_ratio, clear_ratio } => {
            snapshot.devices.iter().map(|device| hot(device, [above_ratio, clear_ratio])).collect()
        }
        Condition::DeadMemory { above_bytes } => {
            snapshot.devices.iter().map(|device| dead(device, above_bytes)).collect()
        }
        Condition::Leak { space, .. } => places(snapshot)
            .filter_map(|held| leak(&held, space, engine.growth.of(place, &held.subject()?), rule))
            .collect(),
        Condition::IdleMemory { above_bytes, idle_seconds } => places(snapshot)
            .filter_map(|held| {
                let quiet_ns = engine.activity.quiet_ns(held.process.identity?, now_ns)?;
                idle(&held, quiet_ns / 1_000_000_000, above_bytes, idle_seconds)
            })
            .collect(),
        Condition::SourceDown => snapshot.sources.iter().map(source).collect(),
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

fn capacity(device: &Device, space: MemorySpace, thresholds: [f64; 2]) -> Option<Finding> {
    let usage = device.space(space)?;
    let (used, whole) = (usage.used_bytes.value(), usage.capacity_bytes.value());
    let share = ratio(used.map(|used| *used as f64), whole.map(|whole| *whole as f64));
    let text = match (used, whole, share) {
        (Some(used), Some(whole), Some(share)) => format!(
            "{:.0} % of the {} of device {} is in use: {} of {}",
            share * 100.0,
            space.name(),
            device.id,
            bytes(*used),
            bytes(*whole)
        ),
        _ => String::new(),
    };
    let subject = Subject::Space { device: device.id.clone(), space };
    Some(finding(subject, share, thresholds, text))
}

fn hot(device: &Device, thresholds: [f64; 2]) -> Finding {
    let telemetry = &device.telemetry;
    let of = |reading: &Reading<f64>| reading.value().copied();
    let (now, limit) =
        (of(&telemetry.temperature_celsius), of(&telemetry.temperature_limit_celsius));
    let text = match (now, limit) {
        (Some(now), Some(limit)) => {
            format!("device {} is at {now:.1} °C; it throttles at {limit:.1} °C", device.id)
        }
        _ => String::new(),
    };
    let subject = Subject::Device { device: device.id.clone() };
    finding(subject, ratio(now, limit), thresholds, text)
}

fn dead(device: &Device, above_bytes: u64) -> Finding {
    let ghosts = device.kinds.iter().map(|kind| kind.ghost_bytes).fold(0, u64::saturating_add);
    let text = format!(
        "dead processes' rows still claim {} of device {}; `telltale smi -d` shows where they are",
        bytes(ghosts),
        device.id
    );
    let subject = Subject::Device { device: device.id.clone() };
    finding(subject, Some(ghosts as f64), [above_bytes as f64; 2], text)
}

fn source(status: &SourceStatus) -> Finding {
    let first = status.errors.first();
    let count = u64::try_from(status.errors.len()).unwrap_or(u64::MAX);
    let count = count.saturating_add(status.errors_dropped);
    let text = first.map_or_else(String::new, |error| {
        format!(
            "source {} has {count} error{}: {}: {}",
            status.name,
            if count == 1 { "" } else { "s, the first" },
            error.subject,
            error.detail
        )
    });
    let subject = Subject::Source { source: status.name.clone() };
    finding(subject, Some(count as f64), [1.0; 2], text)
}

fn leak(held: &Place, space: MemorySpace, trend: Option<Trend>, rule: &Rule) -> Option<Finding> {
    let Condition::Leak { window_seconds, growth_bytes, exhausted_within_seconds, .. } =
        rule.condition
    else {
        return None;
    };
    let (subject, uid) = (held.subject()?, held.process.uid.value().copied());
    let unknown =
        |subject| Finding { subject, uid, level: Level::Unknown, value: 0.0, text: String::new() };
    let usage = held.device.space(space)?;
    let room = usage.capacity_bytes.value().zip(usage.used_bytes.value());
    let (Some(trend), Some((capacity, used))) = (trend, room) else {
        return Some(unknown(subject));
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
    let text = exhausted_in_seconds.map_or_else(String::new, |left| {
        format!(
            "{} ({}) gains {} of {} an hour on device {}, which is full in {}",
            printable(&held.process.name),
            held.process.pid.map_or_else(|| "hidden".to_owned(), |pid| pid.to_string()),
            bytes((slope * 3600.0) as u64),
            space.name(),
            held.device.id,
            span(left)
        )
    });
    Some(Finding { subject, uid, level, value: slope, text })
}

fn idle(held: &Place, quiet_seconds: u64, above_bytes: u64, idle_seconds: u64) -> Option<Finding> {
    let live = held.held.spaces.iter().map(|part| part.live_bytes).fold(0, u64::saturating_add);
    let raised = live >= above_bytes && quiet_seconds >= idle_seconds;
    let text = format!(
        "{} ({}) keeps {} on device {} and has recorded no allocation and no operation for {}",
        printable(&held.process.name),
        held.process.pid.map_or_else(|| "hidden".to_owned(), |pid| pid.to_string()),
        bytes(live),
        held.device.id,
        span(quiet_seconds as f64)
    );
    let level = if raised { Level::Raised } else { Level::Clear };
    let uid = held.process.uid.value().copied();
    Some(Finding { subject: held.subject()?, uid, level, value: live as f64, text })
}

/// A finding without a user, by its value; without a value it cannot be told.
fn finding(subject: Subject, value: Option<f64>, thresholds: [f64; 2], text: String) -> Finding {
    let level = value.map_or(Level::Unknown, |value| level(value, thresholds));
    Finding { subject, uid: None, level, value: value.unwrap_or_default(), text }
}
