//! Whether devices, parts of the machine and sources are well: the rules of `health.toml`, checked
//! over one collection after another. Pure: readings and times come in, faults come out.

mod options;
mod readings;
mod track;
mod words;

use std::collections::BTreeMap;

use telltale_schema::chip::FactSource;
use telltale_schema::clock::Timestamp;
use telltale_schema::health::{
    Evidence, Fault, FaultKind, HealthSettings, RULES, RuleSubject, Shape,
};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::sensor::SENSORS;
use telltale_schema::snapshot::{
    Device, MAX_PART_FAULTS, Snapshot, SourceError, SourceNote, SourceStatus, SpaceUsage,
};

use crate::hardware::{HostPart, HostParts};
use crate::rate::SampledAt;
pub use options::HealthOptions;
use readings::{DeviceReadings, Readings, SourceReadings};
use track::Track;

/// What earlier collections have shown, and the rules.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    settings: HealthSettings,
    subjects: BTreeMap<SubjectKey, KnownSubject>,
}

/// How long a subject is remembered that a collection has not seen: one that was late.
const REMEMBERED_NS: u64 = 60_000_000_000;

/// How long a card that is gone is reported.
const GONE_NS: u64 = 3_600_000_000_000;

/// Subjects that are remembered without being seen.
const MAX_UNSEEN: usize = 1024;

/// The kind of a device, in a key.
const DEVICE: &str = "device";

/// A device, a part or a source: its kind and its name.
type SubjectKey = (&'static str, String);

/// What is known of a subject, by rule.
#[derive(Debug, Default)]
struct KnownSubject {
    tracks: BTreeMap<FaultKind, Track>,
    /// When a collection last had it; none of one that only another reader has seen.
    seen_ns: Option<u64>,
    /// Until when it is remembered without being seen.
    until_ns: u64,
}

// === impl Judge ===

impl Judge {
    pub(crate) fn new(settings: HealthSettings) -> Self {
        Self { settings, subjects: BTreeMap::new() }
    }

    /// Adds to a snapshot what is wrong with its devices, and with these parts and sources. `hardware`
    /// are the sources whose calls go into drivers, which were read at that time.
    pub(crate) fn examine(
        &mut self,
        snapshot: &mut Snapshot,
        parts: &[HostPart],
        (hardware, read_at): (&[&str], Timestamp),
        now: SampledAt,
    ) {
        let of_hardware = |status: &&SourceStatus| hardware.contains(&status.name.as_str());
        let Snapshot { devices, sources, .. } = &mut *snapshot;
        for device in devices {
            device.faults.retain(|fault| self.settings.of(fault.kind).enabled);
            let mut errors = sources.iter().filter(of_hardware).flat_map(|status| &status.errors);
            let is_late = errors.any(|error| is_late_answer(error, device));
            let is_late = is_late && !is_fresh(device, read_at);
            let readings = DeviceReadings { device, is_late };
            let faults = self.faults(RuleSubject::Device, &device.id, &readings, now);
            device.faults.extend(faults);
        }
        let mut faults = Vec::new();
        for HostPart { kind, name, readings } in parts {
            faults.extend(self.faults(RuleSubject::Part(kind.name()), name, readings, now));
        }
        let is_hanging =
            |device: &Device| device.faults.iter().any(|one| one.kind == FaultKind::DriverHangs);
        for status in snapshot.sources.iter().filter(of_hardware) {
            let own = || snapshot.devices.iter().filter(|device| is_of(device, &status.name));
            let is_read = match status.name == HostParts::NAME {
                true => parts.iter().any(|part| is_part_fresh(part, read_at)),
                false => own().any(|device| is_fresh(device, read_at)),
            };
            let is_explained = own().any(is_hanging);
            let readings = SourceReadings { status, is_read, is_explained };
            faults.extend(self.faults(RuleSubject::Source, &status.name, &readings, now));
        }
        self.forget(now);
        faults.extend(self.faults_of_unseen());
        snapshot.faults = faults;
        let surplus = snapshot.bound_faults();
        if surplus > 0 {
            note_surplus(&mut snapshot.sources, surplus);
        }
    }

    /// Forgets subjects that were not seen for a while, and where they are too many.
    fn forget(&mut self, now: SampledAt) {
        self.subjects.retain(|_, known| now.monotonic_ns <= known.until_ns);
        let mut left = MAX_UNSEEN;
        self.subjects.retain(|_, known| {
            let is_seen = known.seen_ns == Some(now.monotonic_ns);
            let stays = is_seen || left > 0;
            left -= usize::from(!is_seen && stays);
            stays
        });
    }

    /// What another reader has found of parts that this one has never seen: of a card that is gone.
    fn faults_of_unseen(&self) -> Vec<Fault> {
        let is_unseen = |(kind, _): &SubjectKey, known: &KnownSubject| {
            *kind != DEVICE && known.seen_ns.is_none()
        };
        let unseen = self.subjects.iter().filter(|(key, known)| is_unseen(key, known));
        let found = unseen.flat_map(|((_, name), known)| {
            let enabled = |(kind, _): &(&FaultKind, &Track)| self.settings.of(**kind).enabled;
            let of = |(kind, track): (&FaultKind, &Track)| {
                let (since, evidence) = track.found()?;
                Some(fault(*kind, name.clone(), since, evidence))
            };
            known.tracks.iter().filter(enabled).filter_map(of).collect::<Vec<_>>()
        });
        found.collect()
    }

    /// Takes over the faults that another reader has found by watching this machine for longer. The
    /// next collection confirms or refutes those that one reading shows; the others go on.
    pub(crate) fn learn(&mut self, snapshot: &Snapshot, now: SampledAt) {
        let of_devices = snapshot.devices.iter().flat_map(|device| {
            device.faults.iter().map(|fault| ((DEVICE, device.id.clone()), fault))
        });
        let of_parts = snapshot
            .faults
            .iter()
            .map(|fault| ((kind_name(fault.kind.rule().about), fault.part.clone()), fault));
        for (key, fault) in of_devices.chain(of_parts) {
            if fault.kind.rule().shape != Shape::Found {
                let known = self.subjects.entry(key).or_default();
                let until_ns = now.monotonic_ns.saturating_add(remembered_ns(fault, now.at));
                known.until_ns = known.until_ns.max(until_ns);
                known.tracks.insert(fault.kind, Track::learned(fault, now));
            }
        }
    }

    /// What is wrong with one subject.
    fn faults(
        &mut self,
        about: RuleSubject,
        name: &str,
        readings: &dyn Readings,
        now: SampledAt,
    ) -> Vec<Fault> {
        let known = self.subjects.entry((kind_name(about), name.to_owned())).or_default();
        known.seen_ns = Some(now.monotonic_ns);
        known.until_ns = now.monotonic_ns.saturating_add(REMEMBERED_NS);
        let rules = RULES.iter().filter(|rule| rule.about == about && rule.shape != Shape::Found);
        let mut faults = Vec::new();
        for rule in rules {
            let thresholds = self.settings.of(rule.kind);
            if !thresholds.enabled {
                continue;
            }
            let track = known.tracks.entry(rule.kind).or_default();
            if let Some((since, evidence)) = track.check(rule, thresholds, readings, now) {
                let part = match about {
                    RuleSubject::Device => String::new(),
                    RuleSubject::Source | RuleSubject::Part(_) => name.to_owned(),
                };
                faults.push(fault(rule.kind, part, since, evidence));
            }
        }
        faults
    }
}

/// How long what another reader has found is remembered, though what has it is not seen. A card that
/// is gone is not seen by its nature, and reported for an hour.
fn remembered_ns(fault: &Fault, now: Timestamp) -> u64 {
    match fault.kind {
        FaultKind::NetworkCardGone => {
            GONE_NS.saturating_sub(now.since_ns(fault.since)).max(REMEMBERED_NS)
        }
        _ => REMEMBERED_NS,
    }
}

fn fault(kind: FaultKind, part: String, since: Timestamp, evidence: Vec<Evidence>) -> Fault {
    let detail = words::detail(kind.rule(), &evidence);
    Fault { kind, part, since, detail, evidence }
}

/// Whether something of a part was read since then.
fn is_part_fresh(part: &HostPart, since: Timestamp) -> bool {
    part.readings.values().any(|it| matches!(it, Reading::Value { at, .. } if *at >= since))
}

/// Whether this says that a device did not answer something in time.
fn is_late_answer(error: &SourceError, device: &Device) -> bool {
    error.reason == Absence::TimedOut && error.subject == device.id
}

/// Whether something of a device was read since then: what hangs keeps its last value. The kernel knows
/// the link of one that hangs, and its errors are counted by who watches.
fn is_fresh(device: &Device, since: Timestamp) -> bool {
    let mut own = SENSORS.iter().filter(|it| !matches!(it.part, Some("link" | "errors")));
    let is_sensor_fresh = own.any(|sensor| {
        let reading = sensor.read(&device.telemetry);
        matches!(reading, Some(Reading::Value { at, .. }) if at >= since)
    });
    let is_counted = |usage: &SpaceUsage| {
        let is_fresh = matches!(usage.used_bytes, Reading::Value { at, .. } if at >= since);
        usage.capacity_source == Some(FactSource::Driver) && is_fresh
    };
    is_sensor_fresh || device.spaces.iter().any(is_counted)
}

/// Whether a device is this source's.
fn is_of(device: &Device, source: &str) -> bool {
    match source {
        "tenstorrent" => device.identity.chip().is_some(),
        "neuron" => device.identity.vendor() == "aws",
        "nvidia" => device.identity.vendor() == "nvidia",
        _ => !["tenstorrent", "aws", "nvidia"].contains(&device.identity.vendor()),
    }
}

/// Says that a snapshot has not all faults: the status of the parts is in it only when it has something to say.
fn note_surplus(sources: &mut Vec<SourceStatus>, surplus: usize) {
    let note = SourceNote {
        subject: String::from("faults"),
        count: u64::try_from(surplus).unwrap_or(u64::MAX),
        detail: format!("left out: a snapshot has the worst {MAX_PART_FAULTS} at most"),
    };
    if let Some(status) = sources.iter_mut().find(|status| status.name == HostParts::NAME) {
        status.notes.push(note);
        return;
    }
    sources.push(SourceStatus {
        name: HostParts::NAME.to_owned(),
        duration_ns: 0,
        errors: Vec::new(),
        errors_dropped: 0,
        notes: vec![note],
    });
}

/// The kind of a subject, in a key.
const fn kind_name(about: RuleSubject) -> &'static str {
    match about {
        RuleSubject::Device => DEVICE,
        RuleSubject::Source => "source",
        RuleSubject::Part(kind) => kind,
    }
}

#[cfg(test)]
mod tests;
