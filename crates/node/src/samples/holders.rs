//! The biggest holders of each device, one by one: by default the only series with a pid, so few that
//! ended ones cost little. All other processes of a device are [`OTHER`], so that sums stay exact.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use telltale_schema::memory::MemorySpace;
use telltale_schema::metric::definitions::{
    HOLDER_MEMORY_LIVE_BYTES, HOLDER_MEMORY_PEAK_BYTES, HOLDER_START_TIME_SECONDS,
};
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{HeldUsage, Process, ProcessState, Snapshot};
use telltale_wire::exposition::Number;

use super::label_sets::SetId;
use super::rows::RowKey;
use super::{OTHER, Samples, device};

/// A device's place in the snapshot, and one of its spaces.
type Place = (usize, MemorySpace);

/// One process, or those that cannot be distinguished because their pids are hidden.
#[derive(Default)]
struct Holder {
    held: BTreeMap<Place, HeldUsage>,
    started_at: Option<f64>,
}

/// Adds the samples of the `most` biggest holders of each device; none at all where that is 0.
pub(super) fn add<'a>(samples: &mut Samples<'a>, snapshot: &'a Snapshot, most: usize) {
    if most == 0 {
        return;
    }
    let holders = holders(snapshot);
    let shown = biggest(&holders, most);
    let devices = device::labels(samples, &snapshot.devices);
    let mut others: BTreeMap<Place, HeldUsage> = BTreeMap::new();
    for (number, (key, Holder { held, started_at })) in holders.into_iter().enumerate() {
        let (mine, beyond): (Vec<_>, Vec<_>) =
            held.into_iter().partition(|((device, _), _)| shown.contains(&(*device, number)));
        for (place, usage) in beyond {
            join(&mut others, place, usage);
        }
        if mine.is_empty() {
            continue;
        }
        let row = samples.sets.of(key.into_pairs());
        for (place, usage) in mine {
            memory(samples, row, &devices, place, usage);
        }
        if let Some(start) = started_at {
            let sets = [row, SetId::default(), SetId::default()];
            samples.put(HOLDER_START_TIME_SECONDS, sets, Number::Float(start));
        }
    }
    let row = samples.sets.one("process", OTHER);
    for (place, usage) in others {
        // A sum of peaks would be the peak of nothing.
        let usage = HeldUsage::BytesOnly { live_bytes: usage.live_bytes() };
        memory(samples, row, &devices, place, usage);
    }
}

/// All of them in the order of their keys, with what they have on each device.
fn holders(snapshot: &Snapshot) -> Vec<(RowKey<'_>, Holder)> {
    let mut holders: BTreeMap<RowKey<'_>, Holder> = BTreeMap::new();
    let living = snapshot.processes.iter().filter(|it| it.state != ProcessState::Dead);
    for process in living.filter(|process| !process.devices.is_empty()) {
        let holder = holders.entry(RowKey::of(process, true)).or_default();
        for held in process.devices.iter().filter(|it| it.device < snapshot.devices.len()) {
            for one in &held.kinds {
                join(&mut holder.held, (held.device, one.kind.space()), one.usage);
            }
        }
        let starts = [holder.started_at, started_at(process)];
        holder.started_at = starts.into_iter().flatten().reduce(f64::min);
    }
    holders.into_iter().collect()
}

/// The devices and, by their numbers, the holders that are shown on them.
fn biggest(holders: &[(RowKey<'_>, Holder)], most: usize) -> BTreeSet<(usize, usize)> {
    let mut by_device: BTreeMap<usize, BTreeMap<usize, u64>> = BTreeMap::new();
    for (number, (_, holder)) in holders.iter().enumerate() {
        for ((device, _), usage) in &holder.held {
            let total = by_device.entry(*device).or_default().entry(number).or_default();
            *total = total.saturating_add(usage.live_bytes());
        }
    }
    let ranked = by_device.into_iter().flat_map(|(device, totals)| {
        let mut totals: Vec<(usize, u64)> = totals.into_iter().collect();
        // Stable, so that holders of as much are in the order of their keys.
        totals.sort_by_key(|(_, total)| Reverse(*total));
        totals.into_iter().take(most).map(move |(number, _)| (device, number))
    });
    ranked.collect()
}

fn join(held: &mut BTreeMap<Place, HeldUsage>, place: Place, usage: HeldUsage) {
    held.entry(place).and_modify(|sum| *sum = sum.plus(usage)).or_insert(usage);
}

fn memory(
    samples: &mut Samples<'_>,
    row: SetId,
    devices: &[SetId],
    (device, space): Place,
    usage: HeldUsage,
) {
    let sets = [row, devices[device], samples.sets.one("space", space.name())];
    samples.put(HOLDER_MEMORY_LIVE_BYTES, sets, Number::Whole(usage.live_bytes()));
    if let Some(recorded) = usage.recorded() {
        samples.put(HOLDER_MEMORY_PEAK_BYTES, sets, Number::Whole(recorded.peak_bytes));
    }
}

/// When it began to record, in whole seconds since 1970: the rest would be another value in each scrape.
#[allow(clippy::cast_precision_loss)]
fn started_at(process: &Process) -> Option<f64> {
    let Reading::Value { value, at } = &process.uptime_seconds else { return None };
    Some((at.0 as f64 / 1e9 - value).round())
}
