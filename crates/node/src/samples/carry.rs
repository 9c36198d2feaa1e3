//! What keeps a row's counters and histograms from going down when a process of it ends, or moves
//! to another row: a smaller number would look as if all had restarted, and be counted a second
//! time.
//!
//! What a process had when it was last seen stays with the row it was in; a row that it moves to
//! counts it from there on. A row without living processes is forgotten with all it had.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use telltale_schema::metric::{DEFINITIONS, MetricKind};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{Process, Snapshot};
use telltale_wire::exposition::Number;

use super::applications::Applications;
use super::entry::{Joining, SampleEntry};
use super::label_sets::SetId;
use super::process::Making;
use super::rows::RowKey;
use super::{BucketCounts, SampleOptions, SampleValue, Samples, Total};

/// Numbers of one row that are remembered of processes that have ended: one for a counter, one for
/// each bucket of a histogram. One more, and what it counts restarts.
const MAX_CARRIED_NUMBERS: usize = 4096;

/// Where a process is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum CarryScope {
    /// In a row of its kind.
    Row(RowKey<'static>),
    /// In the row for the others.
    Other,
}

/// A series within a row, by its names and values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CarriedSeries {
    family: String,
    second: Vec<(String, String)>,
    third: Vec<(String, String)>,
}

/// What is remembered from one making of samples to the next.
#[derive(Debug, Default)]
pub(super) struct Carry {
    previous: Option<Arc<Snapshot>>,
    places: HashMap<ProcessIdentity, CarryScope>,
    /// What is added to the sums over living processes, by row.
    carried: HashMap<CarryScope, CarriedRow>,
}

#[derive(Debug, Default)]
struct CarriedRow {
    series: BTreeMap<CarriedSeries, Carried>,
    numbers: usize,
}

/// What a series has had of processes that it has no more; less than nothing where a process came
/// with a past.
#[derive(Debug, Clone, PartialEq)]
enum Carried {
    Count(i128),
    Buckets { bounds: Vec<f64>, counts: Vec<i128>, sum: Total },
}

impl Carry {
    /// Goes on to `snapshot`, whose processes are counted in these places.
    pub(super) fn turn(
        &mut self,
        snapshot: &Arc<Snapshot>,
        now: HashMap<ProcessIdentity, CarryScope>,
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
                    self.carried.entry(to.clone()).or_default().add(&series, &count.negated());
                }
                self.carried.entry(from.clone()).or_default().add(&series, &count);
            }
        }
        let places = &self.places;
        self.carried.retain(|place, _| places.values().any(|other| other == place));
    }

    /// Adds it to the row's entries, which are sorted and one for each series. Registered series that no
    /// entry has are added only if they find room, by their size.
    pub(super) fn apply<'a>(
        &self,
        place: &CarryScope,
        samples: &mut Samples<'a>,
        entries: &mut Vec<SampleEntry<'a>>,
        mut find_room: impl FnMut(usize) -> bool,
    ) {
        let sorted = entries.len();
        let row = self.carried.get(place).map(|row| &row.series);
        for (series, carried) in row.into_iter().flatten() {
            let Some(family) = family(samples, &series.family) else { continue };
            if samples.families[family].kind != carried.kind() {
                continue;
            }
            let mut set = |pairs: &Vec<(String, String)>| {
                let pairs = pairs.iter().cloned();
                samples.sets.of(pairs.map(|(name, value)| (name.into(), value.into())))
            };
            let (second, third) = (set(&series.second), set(&series.third));
            let key = (family, second, third);
            match entries[..sorted].binary_search_by_key(&key, SampleEntry::series) {
                Ok(found) => {
                    if let Some(value) = &mut entries[found].value {
                        carried.add_to(value);
                    }
                }
                Err(_) => {
                    let is_registered = samples.families[family].definition.is_none();
                    if is_registered && !find_room(carried.numbers()) {
                        continue;
                    }
                    let value = Some(carried.alone());
                    entries.push(SampleEntry {
                        family,
                        second,
                        third,
                        value,
                        joining: Joining::Sum,
                    });
                }
            }
        }
    }
}

// === impl CarriedRow ===

impl CarriedRow {
    fn add(&mut self, series: &CarriedSeries, more: &Carried) {
        if let Some(known) = self.series.get_mut(series) {
            if known.add(more) {
                return;
            }
            // Its buckets are others now: the series restarts.
            self.numbers -= known.numbers();
            self.series.remove(series);
        }
        if !more.is_nothing() && self.numbers + more.numbers() <= MAX_CARRIED_NUMBERS {
            self.numbers += more.numbers();
            self.series.insert(series.clone(), more.clone());
        }
    }
}

// === impl Carried ===

impl Carried {
    /// What an entry's value has; none where it is nothing that only grows.
    fn of(value: &SampleValue<'_>, kind: MetricKind) -> Option<Self> {
        match value {
            SampleValue::Number(Number::Whole(count)) if kind == MetricKind::Counter => {
                Some(Self::Count(i128::from(*count)))
            }
            SampleValue::Buckets(counted) => Some(Self::Buckets {
                bounds: counted.bounds.to_vec(),
                counts: counted.counts.iter().map(|count| i128::from(*count)).collect(),
                sum: counted.sum,
            }),
            SampleValue::Number(_) => None,
        }
    }

    fn kind(&self) -> MetricKind {
        match self {
            Self::Count(_) => MetricKind::Counter,
            Self::Buckets { .. } => MetricKind::Histogram,
        }
    }

    fn numbers(&self) -> usize {
        match self {
            Self::Count(_) => 1,
            Self::Buckets { counts, .. } => counts.len(),
        }
    }

    fn is_nothing(&self) -> bool {
        match self {
            Self::Count(count) => *count == 0,
            Self::Buckets { counts, .. } => counts.iter().all(|count| *count == 0),
        }
    }

    fn negated(&self) -> Self {
        match self {
            Self::Count(count) => Self::Count(-count),
            Self::Buckets { bounds, counts, sum } => Self::Buckets {
                bounds: bounds.clone(),
                counts: counts.iter().map(|count| -count).collect(),
                sum: sum.negated(),
            },
        }
    }

    /// Adds `more`, where it has the same buckets; says whether it has.
    fn add(&mut self, more: &Self) -> bool {
        match (self, more) {
            (Self::Count(count), Self::Count(more)) => {
                *count = count.saturating_add(*more);
                true
            }
            (
                Self::Buckets { bounds, counts, sum },
                Self::Buckets { bounds: same, counts: more, sum: rest },
            ) if bounds == same && counts.len() == more.len() => {
                for (count, more) in counts.iter_mut().zip(more) {
                    *count = count.saturating_add(*more);
                }
                *sum = sum.plus(*rest);
                true
            }
            _ => false,
        }
    }

    /// Adds it to what the living processes have, if that has the same buckets.
    fn add_to(&self, value: &mut SampleValue<'_>) {
        match (self, value) {
            (Self::Count(carried), SampleValue::Number(Number::Whole(count))) => {
                *count = together(*count, *carried);
            }
            (Self::Buckets { bounds, counts, sum }, SampleValue::Buckets(living))
                if *bounds == *living.bounds && counts.len() == living.counts.len() =>
            {
                for (count, carried) in living.counts.to_mut().iter_mut().zip(counts) {
                    *count = together(*count, *carried);
                }
                living.sum = living.sum.plus(*sum);
            }
            _ => {}
        }
    }

    /// The value where no living process has the series.
    fn alone<'a>(&self) -> SampleValue<'a> {
        match self {
            Self::Count(carried) => SampleValue::Number(Number::Whole(together(0, *carried))),
            Self::Buckets { bounds, counts, sum } => {
                let counts = counts.iter().map(|count| together(0, *count)).collect();
                let (bounds, counts) = (Cow::Owned(bounds.clone()), Cow::Owned(counts));
                SampleValue::Buckets(Box::new(BucketCounts { bounds, counts, sum: *sum }))
            }
        }
    }
}

fn together(count: u64, carried: i128) -> u64 {
    let sum = i128::from(count).saturating_add(carried).max(0);
    u64::try_from(sum).unwrap_or(u64::MAX)
}

fn family(samples: &Samples<'_>, name: &str) -> Option<usize> {
    let defined = DEFINITIONS.binary_search_by(|definition| definition.name.cmp(name));
    defined.ok().or_else(|| Applications::place_of(samples, name))
}

/// The counters and histograms of one process of a snapshot.
fn counters(
    snapshot: &Snapshot,
    process: &Process,
    options: &SampleOptions,
) -> Vec<(CarriedSeries, Carried)> {
    let mut samples = Samples::empty();
    // Whatever found room in the row, it is carried with all that the process had.
    let options = &SampleOptions {
        application_series: usize::MAX,
        application_series_per_process: usize::MAX,
        ..*options
    };
    let mut making = Making::new(&mut samples, snapshot, *options);
    let mut entries = Vec::new();
    making.entries(process, &mut entries);
    let Making { samples, applications, .. } = &mut making;
    applications.entries(samples, &[process], options, &mut entries);
    let pairs = |set: SetId| {
        let pairs = samples.sets.pairs(set);
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let counter = |entry: &SampleEntry<'_>| {
        let family = &samples.families[entry.family];
        let carried = Carried::of(entry.value.as_ref()?, family.kind)?;
        let series = CarriedSeries {
            family: family.name.to_string(),
            second: pairs(entry.second),
            third: pairs(entry.third),
        };
        Some((series, carried))
    };
    entries.iter().filter_map(counter).collect()
}
