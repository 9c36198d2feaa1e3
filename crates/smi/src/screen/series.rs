//! What was seen since the view was opened: a bounded number of samples of each device, and of a
//! bounded number of processes.

mod filled;
mod losses;

use std::collections::{HashMap, VecDeque};

use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::{Device, Process, Snapshot};

use super::machines::Machines;
use super::row::Who;
use super::settings::GraphValue;
use losses::Losses;

/// Samples that are kept of each series: five minutes at one a second.
pub const SAMPLES: usize = 300;
/// Devices with a history.
const MAX_DEVICES: usize = 1024;
/// Processes with a history.
pub const MAX_PROCESSES: usize = 512;

/// Samples, the newest last. One that could not be had is no number in here, since a view keeps a
/// hundred thousand of them, and none outside.
#[derive(Debug, Default)]
pub(super) struct GraphSeries(VecDeque<f32>);

/// The history of everything.
#[derive(Debug)]
pub(super) struct History {
    /// The space whose bytes the series of processes have.
    pub(super) space: MemorySpace,
    devices: HashMap<String, Vec<GraphSeries>>,
    processes: HashMap<Who, GraphSeries>,
    losses: Losses,
    /// Of when the last samples are, as many as series keep.
    times: VecDeque<Timestamp>,
    /// When the view took its first sample, where those before come from a service's history.
    live_from: Option<Timestamp>,
    /// Processes of the last snapshot that have no history, because there were too many.
    pub(super) left_out: usize,
}

impl GraphSeries {
    pub(super) fn push(&mut self, sample: Option<f64>) {
        if self.0.capacity() == 0 {
            self.0.reserve_exact(SAMPLES);
        }
        if self.0.len() == SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back(Self::packed(sample));
    }

    /// A sample as it is kept: a graph has some hundred levels.
    #[allow(clippy::cast_possible_truncation)]
    fn packed(sample: Option<f64>) -> f32 {
        sample.map_or(f32::NAN, |sample| sample as f32)
    }

    /// The last `count` samples, fewer where there are fewer.
    pub(super) fn last(&self, count: usize) -> impl Iterator<Item = Option<f32>> {
        let samples = self.0.iter().skip(self.0.len().saturating_sub(count));
        samples.map(|sample| (!sample.is_nan()).then_some(*sample))
    }

    fn pop(&mut self) {
        self.0.pop_back();
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|sample| sample.is_nan())
    }
}

impl Default for History {
    fn default() -> Self {
        Self {
            space: MemorySpace::Dram,
            devices: HashMap::new(),
            processes: HashMap::new(),
            losses: Losses::default(),
            times: VecDeque::new(),
            live_from: None,
            left_out: 0,
        }
    }
}

impl History {
    /// Forgets what is not before this moment. Who goes back in a recording sees what was before it.
    pub(super) fn rewind(&mut self, to: Timestamp) {
        while self.times.back().is_some_and(|time| *time >= to) {
            self.times.pop_back();
            self.devices.values_mut().flatten().for_each(GraphSeries::pop);
            self.processes.values_mut().for_each(GraphSeries::pop);
            self.losses.pop();
        }
    }

    /// Takes note of a snapshot; `selected` has a history whatever else has. What a machine that does
    /// not answer said some time ago is no sample.
    pub(super) fn push(&mut self, snapshot: &Snapshot, machines: &Machines, selected: Option<Who>) {
        if self.times.len() == SAMPLES {
            self.times.pop_front();
        }
        self.times.push_back(snapshot.taken_at);
        let mut seen: HashMap<&str, Option<&Device>> = HashMap::new();
        for (place, device) in snapshot.devices.iter().enumerate() {
            seen.insert(&device.id, (!machines.is_old_device(place)).then_some(device));
            if !self.devices.contains_key(&device.id) && self.devices.len() < MAX_DEVICES {
                let series = GraphValue::all().map(|_| GraphSeries::default()).collect();
                self.devices.insert(device.id.clone(), series);
            }
        }
        for (id, series) in &mut self.devices {
            let device = seen.get(id.as_str()).copied().flatten();
            for (shown_metric, series) in GraphValue::all().zip(series) {
                series.push(device.and_then(|device| shown_metric.value(device)));
            }
        }
        self.devices.retain(|id, series| {
            seen.contains_key(id.as_str()) || !series.iter().all(GraphSeries::is_empty)
        });
        self.space = graphed(snapshot);
        self.push_processes(snapshot, machines, selected);
        self.losses.push(snapshot, machines);
    }

    fn push_processes(&mut self, snapshot: &Snapshot, machines: &Machines, selected: Option<Who>) {
        let space = self.space;
        let sample = |place: usize, process: &Process| match machines.is_old_process(place) {
            true => None,
            false => super::row::sum(&process.devices, space).map(|bytes| bytes as f64),
        };
        let mut now: HashMap<Who, (usize, &Process)> = HashMap::new();
        for (place, process) in snapshot.processes.iter().enumerate() {
            let who = Who::of(process, place, machines);
            // A place may be another's in the next snapshot. Of a machine that is there under two names
            // the present one counts.
            let is_named = !matches!(who, Who::Place(_));
            if is_named && (!now.contains_key(&who) || !machines.is_old_process(place)) {
                now.insert(who, (place, process));
            }
        }
        self.processes.retain(|who, _| now.contains_key(who));
        if let Some(who) = selected.filter(|who| now.contains_key(who)) {
            self.processes.entry(who).or_default();
        }
        for (who, series) in &mut self.processes {
            series.push(now.remove(who).and_then(|(place, process)| sample(place, process)));
        }
        // In the snapshot's order, so that the same ones have one whenever it is checked.
        for (place, process) in snapshot.processes.iter().enumerate() {
            if self.processes.len() >= MAX_PROCESSES {
                break;
            }
            let who = Who::of(process, place, machines);
            if let Some((place, process)) = now.remove(&who) {
                let mut series = GraphSeries::default();
                series.push(sample(place, process));
                self.processes.insert(who, series);
            }
        }
        self.left_out = snapshot.processes.len().saturating_sub(self.processes.len());
    }

    pub(super) fn device(&self, id: &str, shown_metric: GraphValue) -> Option<&GraphSeries> {
        self.devices.get(id)?.get(shown_metric.place())
    }

    /// What a process had in [`Self::space`], in bytes.
    pub(super) fn process(&self, who: Who) -> Option<&GraphSeries> {
        self.processes.get(&who)
    }

    /// What a training's loss was.
    pub(super) fn loss(&self, who: Who) -> Option<&GraphSeries> {
        self.losses.of(who)
    }
}

/// How much of a space is in use, from 0 to 1.
pub(super) fn share(device: &Device, space: MemorySpace) -> Option<f64> {
    let usage = device.space(space)?;
    let capacity = *usage.capacity_bytes.value()? as f64;
    let used = *usage.used_bytes.value()? as f64;
    (capacity > 0.0).then_some(used / capacity)
}

/// The space of which processes have a history. On a machine without accelerators they have the
/// machine's own memory alone.
fn graphed(snapshot: &Snapshot) -> MemorySpace {
    let mut devices = snapshot.devices.iter();
    match devices.next().is_some_and(|first| first.identity.is_host()) && devices.next().is_none() {
        true => MemorySpace::Host,
        false => MemorySpace::Dram,
    }
}

#[cfg(test)]
mod tests {
    use super::{GraphSeries, SAMPLES};

    #[test]
    fn a_series_forgets_what_is_old() {
        let mut series = GraphSeries::default();
        for sample in 0..SAMPLES + 7 {
            series.push(Some(sample as f64));
        }
        assert_eq!(series.last(usize::MAX).count(), SAMPLES);
        assert_eq!(series.last(SAMPLES).next(), Some(Some(7.0)));
        assert_eq!(series.last(1).next(), Some(Some((SAMPLES + 6) as f32)));
    }
}
