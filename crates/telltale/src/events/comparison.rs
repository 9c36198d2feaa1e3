//! Two captures compared, event by event: by core, prefix and iteration, element by element.
//!
//! Of the second capture everything is held, its data only where that is in no file of its own.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use serde_json::{Value as Json, json};
use telltale_debug_stream::Tensor;
use telltale_debug_stream::capture::{CapturedEvent, Item, MAX_EVENTS};
use telltale_schema::text::printable;

use super::selection::Selection;
use super::source::Source;
use super::words::{self, NUMBER_COLUMNS, filled, fitted, plural};
use super::{loaded, tally::Tally};
use crate::arguments::EventSelection;
use crate::exit::Failure;

/// The most bytes of data of the second capture that are held.
const MAX_HELD_BYTES: usize = 1 << 30;
/// The most events of the second capture that are held.
const MOST_EVENTS: u64 = MAX_EVENTS as u64;
const CORE: usize = 4;
/// A name has so many columns.
const NAME: usize = 24;
const NUMBER: usize = NUMBER_COLUMNS;

/// What makes events of two captures the same one: core, prefix, and the iteration or else the
/// sequence number.
type Key = (Option<u32>, String, Option<u64>);

/// Compares what it is given to another capture.
pub(super) struct Comparison {
    /// Several have one key where a program ran twice, or nothing distinguishes its events; they are
    /// compared in their order.
    others: BTreeMap<Key, VecDeque<Box<CapturedEvent>>>,
    /// Of the other capture, what could not be read.
    pub(super) tally: Tally,
    tolerance: f64,
    json: bool,
    has_begun: bool,
    same: u64,
    different: u64,
    only_first: u64,
}

/// How two tensors differ.
#[derive(Debug, Default, PartialEq)]
struct Difference {
    /// Elements that differ by more than the tolerance.
    elements: u64,
    /// The largest difference of finite elements.
    most: f64,
    /// The largest difference of them relative to the second.
    most_relative: f64,
    /// The position of the first that differs.
    first: Option<usize>,
}

// === impl Comparison ===

impl Comparison {
    /// Reads the other capture.
    pub(super) fn begin(
        other: &Path,
        wanted: &EventSelection,
        tolerance: f64,
        json: bool,
    ) -> Result<Self, Failure> {
        let mut comparison = Self {
            others: BTreeMap::new(),
            tally: Tally::default(),
            tolerance,
            json,
            has_begun: false,
            same: 0,
            different: 0,
            only_first: 0,
        };
        let mut selection = Selection::new(wanted);
        let mut source = Source::open(other, None)?;
        let mut held_bytes = 0;
        while let Some(item) = source.next_item()?.or_else(|| source.next_left()) {
            if !selection.wants(&item) {
                continue;
            }
            comparison.tally.count(&item);
            let Item::Event(event) = item else { continue };
            held_bytes += event.data().map_or(0, <[u8]>::len);
            comparison.others.entry(key(&event)).or_default().push_back(event);
            if held_bytes > MAX_HELD_BYTES || comparison.tally.events > MOST_EVENTS {
                return Err(Failure::Message(format!(
                    "{} has too much to be compared at once; choose fewer events, with --prefix \
                     or --iteration",
                    other.display()
                )));
            }
        }
        Ok(comparison)
    }

    /// Compares an event to that of the other capture; gives its line if they differ.
    pub(super) fn take(&mut self, item: &Item) -> Option<String> {
        let Item::Event(event) = item else { return None };
        let others = self.others.get_mut(&key(event));
        let Some(other) = others.and_then(VecDeque::pop_front) else {
            self.only_first += 1;
            return Some(self.line(event, &Err(String::from("only in the first"))));
        };
        let other = match loaded(Item::Event(other)) {
            Item::Event(other) => other,
            unreadable => {
                self.tally.count(&unreadable);
                self.different += 1;
                return Some(self.line(event, &Err(String::from("the second cannot be read"))));
            }
        };
        let found = compared(event, &other, self.tolerance);
        match &found {
            Ok(difference) if difference.elements == 0 => {
                self.same += 1;
                None
            }
            _ => {
                self.different += 1;
                Some(self.line(event, &found))
            }
        }
    }

    /// The lines of what is left, and what there was in all.
    pub(super) fn end(&mut self) -> String {
        let others = std::mem::take(&mut self.others);
        let mut only_second = 0_u64;
        let mut text = String::new();
        for event in others.values().flatten() {
            only_second += 1;
            text.push_str(&self.line(event, &Err(String::from("only in the second"))));
        }
        if self.json {
            let total = json!({
                "version": 1, "kind": "compared", "same": self.same, "different": self.different,
                "only_first": self.only_first, "only_second": only_second,
            });
            return format!("{text}{total}\n");
        }
        let mut words = format!("{} the same", plural(self.same, "event"));
        for (number, what) in [
            (self.different, "different"),
            (self.only_first, "only in the first"),
            (only_second, "only in the second"),
        ] {
            if number > 0 {
                words.push_str(&format!(", {number} {what}"));
            }
        }
        self.only_first += only_second;
        format!("{text}{words}\n")
    }

    /// Whether anything differed.
    pub(super) fn found_differences(&self) -> bool {
        self.different + self.only_first > 0
    }

    fn line(&mut self, event: &CapturedEvent, found: &Result<Difference, String>) -> String {
        if self.json {
            return json_line(event, found) + "\n";
        }
        let mut text = String::new();
        if !self.has_begun {
            self.has_begun = true;
            let titles = ["DIFFER", "MAX ABS", "MAX REL"].map(|t| format!(" {t:>NUMBER$}"));
            text = format!(
                "{:>CORE$} {} {:10}{} FIRST AT\n",
                "CORE",
                filled("PREFIX#ITERATION", NAME),
                "SHAPE",
                titles.concat()
            );
        }
        let core = event.core.map_or_else(|| String::from("-"), |core| core.to_string());
        let name = filled(&fitted(&words::name_of(event), NAME), NAME);
        text.push_str(&format!("{core:>CORE$} {name} {:10}", words::shape(&event.shape)));
        text.push_str(&match found {
            Ok(found) => {
                let first = found.first.map(|position| place(position, &event.shape));
                let [most, relative] = [found.most, found.most_relative].map(words::number);
                let elements = found.elements;
                let first = first.unwrap_or_default();
                format!(" {elements:>NUMBER$} {most:>NUMBER$} {relative:>NUMBER$} {first}\n")
            }
            Err(why) => format!(" {}\n", printable(why)),
        });
        text
    }
}

fn key(event: &CapturedEvent) -> Key {
    (event.core, event.prefix.clone(), event.iteration.or(event.sequence))
}

/// How two events differ, or why their elements cannot be compared.
fn compared(
    first: &CapturedEvent,
    second: &CapturedEvent,
    tolerance: f64,
) -> Result<Difference, String> {
    match (first.tensor(), second.tensor()) {
        (Ok(first), Ok(second)) if first.shape() == second.shape() => {
            Ok(difference(&first, &second, tolerance))
        }
        (Ok(_), Ok(second)) => Err(format!("the second is {}", words::shape(second.shape()))),
        _ if first.kind != second.kind => {
            Err(format!("the second is of kind {}", second.kind.name()))
        }
        // Texts, types of one's own, and what is malformed: byte by byte.
        _ => match (first.data(), second.data()) {
            (Some(one), Some(other)) if one == other && first.dtype == second.dtype => {
                Ok(Difference::default())
            }
            (Some(_), Some(_)) => Err(String::from("other bytes")),
            _ => Err(String::from("a capture does not have its data")),
        },
    }
}

fn difference(first: &Tensor<'_>, second: &Tensor<'_>, tolerance: f64) -> Difference {
    let mut found = Difference::default();
    for (position, (one, other)) in first.values().zip(second.values()).enumerate() {
        let [one_number, other_number] =
            [one, other].map(telltale_debug_stream::ElementValue::to_f64);
        // Large integers that are one `f64` may still be different ones.
        let is_same = one == other
            || one_number.is_nan() && other_number.is_nan()
            || one_number == other_number && first.dtype() != second.dtype();
        if is_same {
            continue;
        }
        let distance = (one_number - other_number).abs();
        if distance.is_finite() {
            found.most = found.most.max(distance);
            if other_number != 0.0 {
                found.most_relative = found.most_relative.max(distance / other_number.abs());
            }
        }
        // Also what is not finite on one side.
        if distance.is_nan() || distance > tolerance || distance == 0.0 && tolerance == 0.0 {
            found.elements += 1;
            found.first.get_or_insert(position);
        }
    }
    found
}

/// A position as indices, such as `[3,17]`.
fn place(position: usize, shape: &[u64]) -> String {
    let mut left = u64::try_from(position).unwrap_or(u64::MAX);
    let mut indices: Vec<String> = Vec::new();
    for size in shape.iter().rev() {
        indices.push((left % size.max(&1)).to_string());
        left /= size.max(&1);
    }
    indices.reverse();
    format!("[{}]", indices.join(","))
}

fn json_line(event: &CapturedEvent, found: &Result<Difference, String>) -> String {
    let mut line = json!({
        "version": 1, "kind": "difference", "prefix": event.prefix, "shape": event.shape,
    });
    let numbers = [
        ("core", event.core.map(u64::from)),
        ("iteration", event.iteration),
        ("sequence", event.sequence),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            line[name] = number.into();
        }
    }
    match found {
        Ok(found) => {
            line["elements"] = found.elements.into();
            line["max_abs"] = found.most.into();
            line["max_rel"] = found.most_relative.into();
            line["first_at"] = found.first.map_or(Json::Null, Json::from);
        }
        Err(why) => line["why"] = why.as_str().into(),
    }
    line.to_string()
}

#[cfg(test)]
mod tests {
    use super::{Difference, Tensor, difference, place};

    fn check(first: &[f32], second: &[f32], tolerance: f64, expected: (u64, f64, Option<usize>)) {
        let bytes = |numbers: &[f32]| {
            numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()
        };
        let (one, other) = (bytes(first), bytes(second));
        let shape = [first.len() as u64];
        let tensor = |data| Tensor::new("float32", &shape, data).unwrap();
        let found = difference(&tensor(&one), &tensor(&other), tolerance);
        assert_eq!((found.elements, found.most, found.first), expected, "{first:?} {second:?}");
    }

    #[test]
    fn elements_differ_by_more_than_the_tolerance_or_by_what_they_are() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        check(&[1.0, nan, inf, 0.0], &[1.0, nan, inf, -0.0], 0.0, (0, 0.0, None));
        check(&[1.0, 2.0, 3.0], &[1.0, 2.5, 3.25], 0.0, (2, 0.5, Some(1)));
        check(&[1.0, 2.0, 3.0], &[1.0, 2.5, 3.25], 0.25, (1, 0.5, Some(1)));
        check(&[nan, inf, inf], &[1.0, 1.0, -inf], 9.0, (3, 0.0, Some(0)));
    }

    #[test]
    fn large_integers_and_other_types_are_compared_by_what_they_are() {
        let tensor = |dtype, data| Tensor::new(dtype, &[1], data).unwrap();
        let one = (1_u64 << 60).to_le_bytes();
        let next = ((1_u64 << 60) + 1).to_le_bytes();
        let found = difference(&tensor("uint64", &one), &tensor("uint64", &next), 0.0);
        assert_eq!((found.elements, found.first), (1, Some(0)));
        let half = difference(
            &tensor("float32", &1.5_f32.to_le_bytes()),
            &tensor("bfloat16", &[0xc0, 0x3f]),
            0.0,
        );
        assert_eq!(half, Difference::default());
        assert_eq!((place(7, &[2, 4]), place(0, &[])), ("[1,3]".to_owned(), "[]".to_owned()));
    }
}
