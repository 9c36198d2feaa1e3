//! A line for each core and prefix instead of one for each event.

use std::collections::BTreeMap;

use serde_json::json;
use telltale_debug_stream::MAX_COUNTED_PREFIXES;
use telltale_debug_stream::capture::{CapturedEvent, Item, NoTensor};
use telltale_schema::quantity;
use telltale_schema::text::printable;

use super::selection::seconds_since;
use super::tally::Tally;
use super::words::{self, filled, fitted};

const CORE: usize = 4;
const NUMBER: usize = words::NUMBER_COLUMNS;
/// A prefix has at least so many columns, and at most these.
const NARROWEST: usize = 12;
const WIDEST: usize = 60;
/// What comes after the prefix.
const TITLES: [&str; 6] = ["EVENTS", "FIRST", "LAST", "BYTES", "MIN", "MAX"];

/// What events of a core and a prefix have in common.
#[derive(Default)]
struct EventGroup {
    events: u64,
    malformed: u64,
    bytes: u64,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    first_iteration: Option<u64>,
    last_iteration: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    nan: u64,
    infinite: u64,
}

/// Gathers events by core and prefix.
pub(super) struct EventSummary {
    json: bool,
    groups: BTreeMap<(Option<u32>, String), EventGroup>,
    /// All whose prefix is one too many.
    others: EventGroup,
}

impl EventSummary {
    pub(super) fn new(json: bool) -> Self {
        Self { json, groups: BTreeMap::new(), others: EventGroup::default() }
    }

    pub(super) fn take(&mut self, item: &Item) {
        let Item::Event(event) = item else { return };
        let key = (event.core, event.prefix.clone());
        let has_room = self.groups.len() < MAX_COUNTED_PREFIXES;
        if has_room || self.groups.contains_key(&key) {
            self.groups.entry(key).or_default().add(event);
        } else {
            self.others.add(event);
        }
    }

    /// All of it, with what was counted in all.
    pub(super) fn page(
        &self,
        tally: &Tally,
        started_ns: Option<u64>,
        width: Option<usize>,
    ) -> String {
        let groups = self.groups.iter().map(|((core, prefix), group)| (*core, &**prefix, group));
        let others = (self.others.events > 0).then_some((None, "(other prefixes)", &self.others));
        let groups = groups.chain(others);
        if self.json {
            let lines = groups.map(|(core, prefix, group)| group.json(core, prefix) + "\n");
            return lines.collect::<String>() + &total(tally) + "\n";
        }
        let columns = self.name_columns(width);
        let mut page = format!("{:>CORE$} {}", "CORE", filled("PREFIX", columns));
        page.extend(TITLES.map(|title| format!(" {title:>NUMBER$}")));
        page.push('\n');
        for (core, prefix, group) in groups {
            let core = core.map_or_else(|| String::from("-"), |core| core.to_string());
            let name = filled(&fitted(&printable(prefix), columns), columns);
            page.push_str(&format!("{core:>CORE$} {name}{}\n", group.row(started_ns)));
        }
        page + &tally.words() + "\n"
    }

    /// As many as the longest needs, or as there are.
    fn name_columns(&self, width: Option<usize>) -> usize {
        let names = self.groups.keys().map(|(_, prefix)| prefix.chars().count());
        let longest = names.max().unwrap_or(0).clamp(NARROWEST, WIDEST);
        let notes = self.groups.values().map(|group| group.notes().len()).max().unwrap_or(0);
        let others = CORE + 1 + TITLES.len() * (NUMBER + 1) + notes;
        longest.min(width.map_or(WIDEST, |width| width.saturating_sub(others).max(NARROWEST)))
    }
}

impl EventGroup {
    fn add(&mut self, event: &CapturedEvent) {
        self.events += 1;
        let is_malformed = matches!(event.tensor(), Err(NoTensor::Malformed(_)));
        self.malformed += u64::from(is_malformed);
        self.bytes = self.bytes.saturating_add(event.bytes);
        self.first_ns = self.first_ns.or(event.time_ns);
        self.last_ns = event.time_ns.or(self.last_ns);
        self.first_iteration = self.first_iteration.or(event.iteration);
        self.last_iteration = event.iteration.or(self.last_iteration);
        if let Some(found) = event.statistics() {
            self.min = found.min.into_iter().chain(self.min).reduce(f64::min);
            self.max = found.max.into_iter().chain(self.max).reduce(f64::max);
            self.nan = self.nan.saturating_add(found.nan);
            self.infinite = self.infinite.saturating_add(found.infinite);
        }
    }

    fn row(&self, started_ns: Option<u64>) -> String {
        let when = |time_ns: Option<u64>, iteration: Option<u64>| match (
            seconds_since(started_ns, time_ns),
            iteration,
        ) {
            (Some(time), _) => format!("{time:.6}"),
            (None, Some(iteration)) => format!("#{iteration}"),
            (None, None) => String::from("-"),
        };
        let number = |value: Option<f64>| value.map_or_else(|| String::from("-"), words::number);
        let cells = [
            self.events.to_string(),
            when(self.first_ns, self.first_iteration),
            when(self.last_ns, self.last_iteration),
            quantity::bytes(self.bytes),
            number(self.min),
            number(self.max),
        ];
        cells.map(|cell| format!(" {cell:>NUMBER$}")).concat() + &self.notes()
    }

    /// What is said behind the columns, where there is something to say.
    fn notes(&self) -> String {
        [(self.nan, "nan"), (self.infinite, "inf"), (self.malformed, "malformed")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!(" {count} {name}"))
            .collect()
    }

    fn json(&self, core: Option<u32>, prefix: &str) -> String {
        let mut line = json!({
            "version": 1, "kind": "summary", "prefix": prefix, "events": self.events,
            "malformed": self.malformed, "bytes": self.bytes, "nan": self.nan,
            "inf": self.infinite,
        });
        let numbers = [
            ("core", core.map(u64::from)),
            ("first_time_ns", self.first_ns),
            ("last_time_ns", self.last_ns),
            ("first_iteration", self.first_iteration),
            ("last_iteration", self.last_iteration),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                line[name] = number.into();
            }
        }
        for (name, number) in [("min", self.min), ("max", self.max)] {
            if let Some(number) = number {
                line[name] = number.into();
            }
        }
        line.to_string()
    }
}

fn total(tally: &Tally) -> String {
    json!({
        "version": 1, "kind": "total", "events": tally.events, "lost": tally.lost,
        "missing": tally.missing, "malformed": tally.malformed, "unreadable": tally.unreadable,
    })
    .to_string()
}
