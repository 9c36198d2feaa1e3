//! Rows of the tables as the writer keeps them in memory.

use telltale_schema::history::Ending;
use telltale_schema::memory::MemoryKind;
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Container, Device, Pod, Process, ProcessSource, RecordingFaults};

use super::samples::{Item, Samples};
use super::series_kind::kept;

/// A command line that is kept has so many bytes at most.
const MAX_COMMAND_BYTES: usize = 1024;
/// Any other text of a process.
const MAX_TEXT_BYTES: usize = 256;

/// A series of the open block: the metric's number and its samples.
pub(super) type OpenSeries = (u16, Samples);

/// What one subject's open block is put together in.
#[derive(Debug, Default)]
pub(super) struct Track {
    pub(super) subject: i64,
    series: Vec<OpenSeries>,
}

/// A device.
#[derive(Debug)]
pub(super) struct DeviceRow {
    pub(super) id: i64,
    pub(super) key: String,
    pub(super) device: DeviceFacts,
    pub(super) seen: RowState,
    pub(super) track: Track,
}

/// What is kept of a device beside its series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DeviceFacts {
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) facts: String,
    pub(super) firmware: String,
}

/// When something was seen, and whether its row is written as it is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowState {
    pub(super) first_ms: i64,
    pub(super) last_ms: i64,
    pub(super) mark_ms: i64,
    pub(super) stored: Stored,
}

/// How much of a row is in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stored {
    /// None of it.
    #[default]
    Not,
    /// An older state.
    Older,
    /// All of it.
    Whole,
}

/// A process.
#[derive(Debug)]
pub(super) struct ProcessRow {
    pub(super) id: i64,
    pub(super) identity: ProcessIdentity,
    pub(super) described: Described,
    pub(super) seen: RowState,
    pub(super) ended_ms: Option<i64>,
    pub(super) ending: Option<Ending>,
    /// The number of the last snapshot that had it; 0 where none of this run did.
    pub(super) look: u64,
    pub(super) track: Track,
    pub(super) held: Vec<HeldRow>,
}

/// What is kept of a process beside its series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Described {
    pub(super) shown_pid: Option<u32>,
    pub(super) name: String,
    pub(super) command: Reading<String>,
    pub(super) uid: Reading<u32>,
    pub(super) user: Reading<String>,
    pub(super) container: Option<Container>,
    pub(super) known_by: Option<ProcessSource>,
    pub(super) recording_ms: Option<i64>,
    pub(super) faults: RecordingFaults,
}

/// A device that a process holds or held.
#[derive(Debug)]
pub(super) struct HeldRow {
    pub(super) device: i64,
    pub(super) stored: bool,
    pub(super) usages: Vec<UsageRow>,
    pub(super) track: Track,
}

/// What a process had of a kind of memory on a device.
#[derive(Debug)]
pub(super) struct UsageRow {
    pub(super) kind: MemoryKind,
    /// Whether `last` is what it has now.
    is_live: bool,
    pub(super) last: i64,
    pub(super) peak: i64,
    pub(super) peak_ms: i64,
    pub(super) byte_milliseconds: i128,
    pub(super) watched_ms: i64,
    /// Whether the row is written. One that only time passes for stays so: it was written with the
    /// mark from which on it has had the same.
    pub(super) stored: bool,
}

/// What the database has of a [`UsageRow`].
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredUsage {
    pub(super) kind: MemoryKind,
    pub(super) last: i64,
    pub(super) peak: i64,
    pub(super) peak_ms: i64,
    pub(super) byte_milliseconds: i128,
    pub(super) watched_ms: i64,
    /// The mark from which on it has had `last`; `None` where it is no longer sampled.
    pub(super) since_mark: Option<i64>,
}

// === impl Track ===

impl Track {
    pub(super) fn new(subject: i64) -> Self {
        Self { subject, series: Vec::new() }
    }

    /// Notes what a sample says of a metric.
    pub(super) fn note(
        &mut self,
        series_kind: super::series_kind::SeriesKind,
        place: u32,
        item: Item,
    ) {
        let code = series_kind.code();
        let found = self.series.iter_mut().find(|(known, _)| *known == code);
        let samples = match found {
            Some((_, samples)) => samples,
            None => {
                self.series.push((code, Samples::new()));
                &mut self.series.last_mut().expect("it was pushed just now").1
            }
        };
        samples.push(place, item);
    }

    /// The block's part, and nothing after that; none where nothing was noted.
    pub(super) fn finish(&mut self) -> Option<(i64, Vec<u8>)> {
        if self.series.is_empty() {
            return None;
        }
        let capacity = self.series.len();
        let series = std::mem::replace(&mut self.series, Vec::with_capacity(capacity));
        let mut bytes = Vec::with_capacity(series.len() * 8);
        for (code, samples) in series {
            super::part::put(code, &samples.finish(), &mut bytes);
        }
        bytes.shrink_to_fit();
        Some((self.subject, bytes))
    }
}

// === impl RowState ===

impl RowState {
    /// Something seen for the first time.
    pub(super) fn first(at_ms: i64, mark_ms: i64) -> Self {
        Self { first_ms: at_ms, last_ms: at_ms, mark_ms, stored: Stored::Not }
    }

    /// Seen again.
    pub(super) fn again(&mut self, at_ms: i64, mark_ms: i64) {
        self.last_ms = at_ms;
        self.mark_ms = mark_ms;
        self.changed();
    }

    /// The row is not as it was written.
    pub(super) fn changed(&mut self) {
        if self.stored == Stored::Whole {
            self.stored = Stored::Older;
        }
    }
}

// === impl DeviceFacts ===

impl DeviceFacts {
    pub(super) fn of(device: &Device) -> Self {
        let json = "devices have only string keys";
        Self {
            name: cut(&device.id, MAX_TEXT_BYTES),
            identity: serde_json::to_string(&device.identity).expect(json),
            facts: serde_json::to_string(&device.facts).expect(json),
            firmware: serde_json::to_string(&device.telemetry.firmware).expect(json),
        }
    }
}

// === impl Described ===

impl Described {
    /// What is kept of `process`, seen at this time.
    pub(super) fn of(process: &Process, at_ms: i64) -> Self {
        let text = |reading: &Reading<String>, most| reading.clone().map(|text| cut(&text, most));
        let uptime_ms = process.uptime_seconds.value().map(|seconds| seconds * 1000.0);
        Self {
            shown_pid: process.pid,
            name: cut(&process.name, MAX_TEXT_BYTES),
            command: text(&process.command, MAX_COMMAND_BYTES),
            uid: process.uid.clone(),
            user: text(&process.user, MAX_TEXT_BYTES),
            container: process.container.as_ref().map(|container| Container {
                id: cut(&container.id, MAX_TEXT_BYTES),
                engine: cut(&container.engine, MAX_TEXT_BYTES),
                pod_uid: container.pod_uid.as_deref().map(|uid| cut(uid, MAX_TEXT_BYTES)),
                // What was allocated is the kubelet's to keep, and grows without need.
                pod: container.pod.clone().map(|pod| Pod { allocated: Vec::new(), ..pod }),
            }),
            known_by: process.known_by,
            recording_ms: uptime_ms.map(|uptime_ms| at_ms.saturating_sub(whole(uptime_ms))),
            faults: process.faults,
        }
    }

    /// Takes in what a later check says; whether that changed anything worth writing. The dead are
    /// reported less of than the living, so that what is absent then does not replace what was known.
    pub(super) fn update(&mut self, later: Self) -> bool {
        let mut next = later;
        keep_known(&mut next.command, &self.command);
        keep_known(&mut next.uid, &self.uid);
        keep_known(&mut next.user, &self.user);
        next.shown_pid = next.shown_pid.or(self.shown_pid);
        next.known_by = next.known_by.or(self.known_by);
        keep_container(&mut next.container, self.container.as_ref());
        // It is computed from an uptime, and wobbles.
        next.recording_ms = self.recording_ms.or(next.recording_ms);
        let changed = self.reported() != next.reported();
        *self = next;
        changed
    }

    /// Everything but when it was read.
    fn reported(&self) -> impl PartialEq + '_ {
        (
            (&self.name, self.shown_pid, self.known_by, self.recording_ms, self.faults),
            (self.command.value(), self.command.absence(), self.user.value(), self.user.absence()),
            (self.uid.value(), self.uid.absence(), &self.container),
        )
    }
}

/// A container, and the names of its pod, stay known once they are.
fn keep_container(next: &mut Option<Container>, known: Option<&Container>) {
    match (next, known) {
        (next @ None, known) => *next = known.cloned(),
        (Some(next), Some(known)) if next.id == known.id && next.pod.is_none() => {
            next.pod.clone_from(&known.pod);
        }
        _ => {}
    }
}

fn keep_known<T: Clone>(next: &mut Reading<T>, known: &Reading<T>) {
    if next.value().is_none() && known.value().is_some() {
        next.clone_from(known);
    }
}

// === impl UsageRow ===

impl UsageRow {
    /// A kind that was seen for the first time.
    pub(super) fn new(kind: MemoryKind, at_ms: i64) -> Self {
        Self {
            kind,
            is_live: false,
            last: 0,
            peak: 0,
            peak_ms: at_ms,
            byte_milliseconds: 0,
            watched_ms: 0,
            stored: false,
        }
    }

    /// One that was stored, as it was when its process was last seen, at this mark.
    pub(super) fn of_stored(stored: StoredUsage, mark_ms: i64) -> Self {
        let StoredUsage { kind, last, peak, peak_ms, byte_milliseconds, watched_ms, .. } = stored;
        let mut row = Self {
            kind,
            is_live: stored.since_mark.is_some(),
            last,
            peak,
            peak_ms,
            byte_milliseconds,
            watched_ms,
            stored: true,
        };
        let passed = stored.since_mark.map_or(0, |since| mark_ms.saturating_sub(since));
        row.pass(u64::try_from(passed).unwrap_or(0));
        row.leave();
        row
    }

    /// What it has now, where that is known.
    pub(super) fn live(&self) -> Option<i64> {
        self.is_live.then_some(self.last)
    }

    /// From now on it is not known what it has.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.is_live) {
            self.stored = false;
        }
    }

    /// Takes in a value, and the peak that the process itself knows of where it does.
    pub(super) fn see(&mut self, live_bytes: u64, own_peak: Option<u64>, at_ms: i64) {
        let live = kept(live_bytes);
        let peak = own_peak.map_or(live, |own| kept(own).max(live));
        if self.live() != Some(live) || peak > self.peak {
            self.stored = false;
        }
        (self.is_live, self.last) = (true, live);
        if peak > self.peak {
            (self.peak, self.peak_ms) = (peak, at_ms);
        }
    }

    /// Lets time pass with what it has.
    pub(super) fn pass(&mut self, milliseconds: u64) {
        if let Some(live) = self.live() {
            self.byte_milliseconds += i128::from(live) * i128::from(milliseconds);
            self.watched_ms = self.watched_ms.saturating_add_unsigned(milliseconds);
        }
    }
}

/// A float of milliseconds as a whole number; floats that do not fit become the nearest one.
#[allow(clippy::cast_possible_truncation)]
fn whole(milliseconds: f64) -> i64 {
    milliseconds as i64
}

/// The beginning of a text, at most so many bytes.
pub(super) fn head(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// The same, copied.
pub(super) fn cut(text: &str, most: usize) -> String {
    head(text, most).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{UsageRow, cut};
    use telltale_schema::memory::MemoryKind;

    #[test]
    fn a_peak_between_two_samples_is_the_one_that_the_process_knows() {
        let mut usage = UsageRow::new(MemoryKind::Dram, 5);
        usage.see(100, Some(700), 10);
        usage.pass(3);
        usage.see(200, Some(700), 13);
        usage.pass(2);
        usage.see(800, None, 15);
        assert_eq!((usage.peak, usage.peak_ms, usage.last), (800, 15, 800));
        assert_eq!((usage.byte_milliseconds, usage.watched_ms), (100 * 3 + 200 * 2, 5));
        usage.see(u64::MAX, None, 16);
        assert_eq!(usage.last, i64::MAX);
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!((cut("aé", 2), cut("aé", 3), cut("", 0)), ("a".into(), "aé".into(), "".into()));
    }
}
