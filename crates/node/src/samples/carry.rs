//! What keeps a row's counters from going down when a process of it ends, or moves to another row:
//! a smaller number would look as if all had begun anew, and be counted a second time.
//!
//! What a process had when it was last seen stays with the row it was in; a row that it moves to
//! counts it from there on. A row without living processes is forgotten with all it had.

use std::collections::HashMap;
use std::sync::Arc;

use telltale_schema::metric::{DEFINITIONS, MetricKind};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{Process, Snapshot};
use telltale_wire::exposition::Number;

use super::applications::Applications;
use super::entry::{Entry, Joining};
use super::label_sets::SetId;
use super::process::Making;
use super::rows::RowKey;
use super::{SampleOptions, Samples, Value};

/// Series of one row that are remembered of processes that have ended. One more, and its counter
/// begins anew.
const MAX_CARRIED_SERIES: usize = 4096;

/// Where a process is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// In a row of its kind.
    Row(RowKey<'static>),
    /// In the row for the others.
    Other,
}

/// A series within a row, by its names and values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Series {
    family: String,
    second: Vec<(String, String)>,
    third: Vec<(String, String)>,
}

/// What is remembered from one making of samples to the next.
#[derive(Debug, Default)]
pub(super) struct Carry {
    previous: Option<Arc<Snapshot>>,
    places: HashMap<ProcessIdentity, Place>,
    /// What is added to the sums over living processes; less than nothing where a process came
    /// with a past.
    carried: HashMap<Place, HashMap<Series, i128>>,
}

impl Carry {
    /// Goes on to `snapshot`, whose processes are counted in these places.
    pub(super) fn turn(
        &mut self,
        snapshot: &Arc<Snapshot>,
        now: HashMap<ProcessIdentity, Place>,
        options: &SampleOptions,
    ) {
        let Some(previous) = self.previous.replace(Arc::clone(snapshot)) else {
            self.places = now;
            return;
        };
        let before = std::mem::replace(&mut self.places, now);
        for process in &previous.processes {
            let Some(identity) = process.identity else { continue };
            let Some(from) = before.get(&identity) else { continue };
            let to = self.places.get(&identity);
            if to == Some(from) {
                continue;
            }
            let counters = counters(&previous, process, options);
            let known = to.filter(|to| before.values().any(|place| place == *to)).cloned();
            for (series, count) in counters {
                if let Some(to) = &known {
                    add(&mut self.carried, to, &series, -i128::from(count));
                }
                add(&mut self.carried, from, &series, i128::from(count));
            }
        }
        let places = &self.places;
        self.carried.retain(|place, _| places.values().any(|other| other == place));
    }

    /// Whether there is anything to add to this row.
    pub(super) fn has(&self, place: &Place) -> bool {
        self.carried.contains_key(place)
    }

    /// Adds it to the row's entries, which are sorted and one for each series.
    pub(super) fn apply<'a>(
        &self,
        place: &Place,
        samples: &mut Samples<'a>,
        entries: &mut Vec<Entry<'a>>,
    ) {
        let sorted = entries.len();
        for (series, carried) in self.carried.get(place).into_iter().flatten() {
            let Some(family) = family(samples, &series.family) else { continue };
            let mut set = |pairs: &Vec<(String, String)>| {
                let pairs = pairs.iter().cloned();
                samples.sets.of(pairs.map(|(name, value)| (name.into(), value.into())))
            };
            let (second, third) = (set(&series.second), set(&series.third));
            let key = (family, second, third);
            match entries[..sorted].binary_search_by_key(&key, Entry::series) {
                Ok(found) => {
                    if let Some(Value::Number(Number::Whole(count))) = &mut entries[found].value {
                        *count = sum(*count, *carried);
                    }
                }
                Err(_) => {
                    let value = Some(Value::Number(Number::Whole(sum(0, *carried))));
                    entries.push(Entry { family, second, third, value, joining: Joining::Sum });
                }
            }
        }
    }
}

fn sum(count: u64, carried: i128) -> u64 {
    let sum = i128::from(count).saturating_add(carried).max(0);
    u64::try_from(sum).unwrap_or(u64::MAX)
}

fn add(
    carried: &mut HashMap<Place, HashMap<Series, i128>>,
    place: &Place,
    series: &Series,
    count: i128,
) {
    let row = carried.entry(place.clone()).or_default();
    if let Some(known) = row.get_mut(series) {
        *known = known.saturating_add(count);
    } else if count != 0 && row.len() < MAX_CARRIED_SERIES {
        row.insert(series.clone(), count);
    }
}

fn family(samples: &Samples<'_>, name: &str) -> Option<usize> {
    let defined = DEFINITIONS.binary_search_by(|definition| definition.name.cmp(name));
    defined.ok().or_else(|| Applications::place_of(samples, name))
}

/// The counters of one process of a snapshot.
fn counters(snapshot: &Snapshot, process: &Process, options: &SampleOptions) -> Vec<(Series, u64)> {
    let mut samples = Samples::empty();
    let mut making = Making::new(&mut samples, snapshot, *options);
    let mut entries = Vec::new();
    making.entries(process, &mut entries);
    let Making { samples, applications, .. } = &mut making;
    applications.entries(samples, process, options, &mut entries);
    let pairs = |set: SetId| {
        let pairs = samples.sets.pairs(set);
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let counter = |entry: &Entry<'_>| {
        let family = &samples.families[entry.family];
        let Some(Value::Number(Number::Whole(count))) = entry.value else { return None };
        let series = Series {
            family: family.name.to_string(),
            second: pairs(entry.second),
            third: pairs(entry.third),
        };
        (family.kind == MetricKind::Counter).then_some((series, count))
    };
    entries.iter().filter_map(counter).collect()
}
