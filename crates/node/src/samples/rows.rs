//! Rows of processes: those that have name, user and container in common are one, and those beyond
//! the limit are the row [`OTHER`].

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{HeldKind, Process, ProcessState, Snapshot};

use super::carry::{Carry, CarryScope};
use super::entry::{SampleEntry, fold};
use super::label_sets::{Pair, SetId};
use super::process::Making;
use super::{OTHER, Sample, SampleOptions, Samples};

/// What the processes of a row have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RowKey<'a> {
    process: Cow<'a, str>,
    user: Cow<'a, str>,
    container_id: Cow<'a, str>,
    pod_uid: Cow<'a, str>,
    /// The pid, where each process has a row of its own.
    pid: Cow<'a, str>,
}

/// One row.
struct SampleRow<'a> {
    key: RowKey<'a>,
    members: Vec<&'a Process>,
    live_bytes: u64,
    series: usize,
}

impl<'a> RowKey<'a> {
    pub(super) fn of(process: &'a Process, has_pid: bool) -> Self {
        let user = match (process.user.value(), process.uid.value()) {
            (Some(name), _) if !name.is_empty() => Cow::Borrowed(name.as_str()),
            (_, Some(uid)) => Cow::Owned(uid.to_string()),
            // No row but the one for others is without a user.
            _ => Cow::Borrowed("unknown"),
        };
        let container = process.container.as_ref();
        let pid = process.pid.filter(|_| has_pid);
        Self {
            process: Cow::Borrowed(&process.name),
            user,
            container_id: container.map(|it| it.id.as_str()).unwrap_or_default().into(),
            pod_uid: container.and_then(|it| it.pod_uid.as_deref()).unwrap_or_default().into(),
            pid: pid.map(|pid| pid.to_string()).unwrap_or_default().into(),
        }
    }

    pub(super) fn into_pairs(self) -> [Pair<'a>; 5] {
        [
            ("process".into(), self.process),
            ("user".into(), self.user),
            ("container_id".into(), self.container_id),
            ("pod_uid".into(), self.pod_uid),
            ("pid".into(), self.pid),
        ]
    }

    fn to_owned(&self) -> RowKey<'static> {
        let owned = |text: &Cow<'a, str>| Cow::Owned(text.as_ref().to_owned());
        RowKey {
            process: owned(&self.process),
            user: owned(&self.user),
            container_id: owned(&self.container_id),
            pod_uid: owned(&self.pod_uid),
            pid: owned(&self.pid),
        }
    }
}

/// Adds the samples of all processes.
pub(super) fn add<'a>(
    samples: &mut Samples<'a>,
    snapshot: &'a Arc<Snapshot>,
    options: &SampleOptions,
    carry: &mut Carry,
) {
    let mut rows = rows(snapshot, options);
    let others = rows.split_off(shown(&rows, options.process_series));
    carry.turn(snapshot, places(&rows, &others), options);
    // What finds room must not depend on who has how much memory just now.
    rows.sort_by(|one, other| one.key.cmp(&other.key));
    let mut making = Making::new(samples, snapshot, *options);
    let mut entries = Vec::new();
    for row in rows {
        for process in &row.members {
            making.entries(process, &mut entries);
        }
        let Making { samples, applications, .. } = &mut making;
        let is_whole = applications.entries(samples, &row.members, options, &mut entries);
        let place = CarryScope::Row(row.key.to_owned());
        // One process may say one thing twice, too.
        fold(&mut entries);
        // Where some are left out, the living may have what was left by others.
        let find_room = |size| is_whole && applications.take_room(size, options);
        carry.apply(&place, samples, &mut entries, find_room);
        let set = making.samples.sets.of(row.key.into_pairs());
        put(making.samples, set, &mut entries);
    }
    for process in others.iter().flat_map(|row| &row.members) {
        making.entries(process, &mut entries);
        let registered = process.metrics.iter().filter(|it| !super::process::is_ours(&it.name));
        let registered = u64::try_from(registered.count()).unwrap_or(u64::MAX);
        making.samples.dropped.application += registered;
    }
    let dropped = others.iter().map(|row| row.series).sum::<usize>();
    making.samples.dropped.process += u64::try_from(dropped).unwrap_or(u64::MAX);
    if !others.is_empty() {
        making.without_identities(&mut entries);
        fold(&mut entries);
        carry.apply(&CarryScope::Other, making.samples, &mut entries, |_| false);
        let set = making.samples.sets.one("process", OTHER);
        put(making.samples, set, &mut entries);
    }
}

/// How many rows, from the first on, have no more series than this together.
fn shown(rows: &[SampleRow<'_>], mut room: usize) -> usize {
    let beyond = rows.iter().position(|row| match room.checked_sub(row.series) {
        Some(left) => {
            room = left;
            false
        }
        None => true,
    });
    beyond.unwrap_or(rows.len())
}

/// All rows, those with most memory first.
fn rows<'a>(snapshot: &'a Snapshot, options: &SampleOptions) -> Vec<SampleRow<'a>> {
    let mut by_key: BTreeMap<RowKey<'a>, SampleRow<'a>> = BTreeMap::new();
    for process in &snapshot.processes {
        let key = RowKey::of(process, options.process_pids);
        let row = by_key.entry(key).or_insert_with_key(|key| SampleRow {
            key: key.clone(),
            members: Vec::new(),
            live_bytes: 0,
            series: 0,
        });
        row.members.push(process);
        row.live_bytes = row.live_bytes.saturating_add(live_bytes(process));
        row.series += Making::series_of(process);
    }
    let mut rows: Vec<SampleRow<'a>> = by_key.into_values().collect();
    // Stable, so that rows with as much are in the order of their keys.
    rows.sort_by_key(|row| Reverse(row.live_bytes));
    rows
}

fn live_bytes(process: &Process) -> u64 {
    if process.state == ProcessState::Dead {
        return 0;
    }
    let kinds = process.devices.iter().flat_map(|held| &held.kinds);
    kinds.map(|HeldKind { usage, .. }| usage.live_bytes()).fold(0, u64::saturating_add)
}

/// Where each process is counted.
fn places(
    rows: &[SampleRow<'_>],
    others: &[SampleRow<'_>],
) -> HashMap<ProcessIdentity, CarryScope> {
    let living = |process: &&Process| process.state != ProcessState::Dead;
    let mut places = HashMap::new();
    for row in rows {
        let place = CarryScope::Row(row.key.to_owned());
        let members = row.members.iter().copied().filter(living);
        let identities = members.filter_map(|process| process.identity);
        places.extend(identities.map(|identity| (identity, place.clone())));
    }
    let members = others.iter().flat_map(|row| row.members.iter().copied()).filter(living);
    places.extend(members.filter_map(|process| Some((process.identity?, CarryScope::Other))));
    places
}

/// Makes samples of a row's entries, as far as their values are known.
fn put<'a>(samples: &mut Samples<'a>, row: SetId, entries: &mut Vec<SampleEntry<'a>>) {
    for SampleEntry { family, second, third, value, .. } in entries.drain(..) {
        if let Some(value) = value {
            samples.families[family].samples.push(Sample { sets: [row, second, third], value });
        }
    }
}
