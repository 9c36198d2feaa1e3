//! Which events of a capture are wanted. Checks an event's metadata, never its data.

use std::collections::{HashMap, VecDeque};
use std::mem;

use telltale_debug_stream::capture::{CapturedEvent, Item};
use telltale_debug_stream::{MAX_COUNTED_PREFIXES, Pattern};

use crate::arguments::{EventSelection, Numbers, WantedKind};

/// The most bytes of data that are held back for `--last`.
const MAX_HELD_BYTES: u64 = 256 << 20;

/// Lets through what is wanted.
pub(super) struct Selection<'arguments> {
    wanted: &'arguments EventSelection,
    prefixes: Vec<Pattern>,
    /// The time of the first event of the capture, wanted or not.
    pub(super) started_ns: Option<u64>,
    /// Events of the capture, wanted or not.
    pub(super) seen: u64,
    /// How many of each core and prefix got as far as `--every`.
    counted: HashMap<(Option<u32>, String), u64>,
}

/// Holds back all but the last events.
pub(super) struct Last {
    most: u64,
    items: VecDeque<Item>,
    events: u64,
    bytes: u64,
    /// Events that had to go because those behind them are so large.
    pub(super) too_many: u64,
}

// === impl Selection ===

impl<'arguments> Selection<'arguments> {
    pub(super) fn new(wanted: &'arguments EventSelection) -> Self {
        let prefixes = wanted.prefix.iter().map(|pattern| Pattern::new(pattern)).collect();
        Self { wanted, prefixes, started_ns: None, seen: 0, counted: HashMap::new() }
    }

    /// Whether the filter accepts no event at all.
    pub(super) fn wants_none(&self) -> bool {
        self.wanted.last == Some(0)
    }

    /// Whether an item is wanted. What is not about one core is wanted always.
    pub(super) fn wants(&mut self, item: &Item) -> bool {
        match item {
            Item::Event(event) => self.wants_event(event),
            Item::Missing { core, .. } => among(&self.wanted.core, core.map(u64::from)),
            Item::Lost(_) | Item::Unreadable(_) => true,
        }
    }

    fn wants_event(&mut self, event: &CapturedEvent) -> bool {
        let wanted = self.wanted;
        let is_wanted_kind = |kind: &WantedKind| match kind {
            WantedKind::Named(name) => *name == event.kind.name(),
            WantedKind::Numbered(code) => *code == event.kind.code(),
        };
        self.seen += 1;
        if let Some(time_ns) = event.time_ns {
            self.started_ns.get_or_insert(time_ns);
        }
        among(&wanted.core, event.core.map(u64::from))
            && among(&wanted.iteration, event.iteration)
            && (wanted.kind.is_empty() || wanted.kind.iter().any(is_wanted_kind))
            && (wanted.dtype.is_empty() || wanted.dtype.contains(&event.dtype))
            && (self.prefixes.is_empty()
                || self.prefixes.iter().any(|pattern| pattern.matches(&event.prefix)))
            && wanted.since.is_none_or(|since| {
                seconds_since(self.started_ns, event.time_ns).is_some_and(|time| time >= since)
            })
            && wanted.every.is_none_or(|every| self.count(event).is_multiple_of(every))
    }

    /// How many like this there were before. Those of prefixes beyond the limit count as one.
    fn count(&mut self, event: &CapturedEvent) -> u64 {
        let key = (event.core, event.prefix.clone());
        let is_known = self.counted.contains_key(&key);
        let has_room = self.counted.len() < MAX_COUNTED_PREFIXES;
        let key = if is_known || has_room { key } else { (None, String::new()) };
        let counted = self.counted.entry(key).or_default();
        mem::replace(counted, *counted + 1)
    }
}

/// The seconds from the first event to this one.
#[allow(clippy::cast_precision_loss, reason = "shown to a millisecond")]
pub(super) fn seconds_since(started_ns: Option<u64>, time_ns: Option<u64>) -> Option<f64> {
    let (started_ns, time_ns) = (started_ns?, time_ns?);
    let distance = time_ns.abs_diff(started_ns) as f64 / 1e9;
    Some(if time_ns < started_ns { -distance } else { distance })
}

/// Whether a number is in one of these ranges, or there are none.
fn among(ranges: &[Numbers], number: Option<u64>) -> bool {
    ranges.is_empty()
        || number.is_some_and(|number| ranges.iter().any(|range| range.0.contains(&number)))
}

// === impl Last ===

impl Last {
    pub(super) fn new(most: u64) -> Self {
        Self { most, items: VecDeque::new(), events: 0, bytes: 0, too_many: 0 }
    }

    /// Holds an item back, and lets go of those that are no longer among the last.
    pub(super) fn push(&mut self, item: Item) {
        let (events, bytes) = weight(&item);
        self.events += events;
        self.bytes += bytes;
        self.items.push_back(item);
        while self.events > self.most || (self.bytes > MAX_HELD_BYTES && self.events > 1) {
            let Some(gone) = self.items.pop_front() else { break };
            let (events, bytes) = weight(&gone);
            self.too_many += if self.events > self.most { 0 } else { events };
            self.events -= events;
            self.bytes -= bytes;
        }
        // Marks alone are as many as a stranger likes.
        if self.items.len() as u64 > 2 * self.most + 16 {
            self.items.retain(|item| matches!(item, Item::Event(_)));
        }
    }

    /// The last ones, in order.
    pub(super) fn into_items(self) -> VecDeque<Item> {
        self.items
    }
}

/// For how many events and bytes an item counts.
fn weight(item: &Item) -> (u64, u64) {
    match item {
        Item::Event(event) => {
            let held = event.data().map_or(0, <[u8]>::len);
            (1, u64::try_from(held).unwrap_or(u64::MAX))
        }
        _ => (0, 0),
    }
}
