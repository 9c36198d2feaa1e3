//! One series as it was sampled, in few bytes: runs of what stayed the same, and differences.
//!
//! A run is a number whose two lowest bits say of what, and the others of how many samples: values
//! that are all the same (followed by the difference to the value before, at first to 0), absences
//! for one reason (followed by its number), or samples without the series.

use telltale_schema::reading::Absence;

use super::varint;

const SAME: u128 = 0;
const ABSENT: u128 = 1;
const MISSING: u128 = 2;

/// What one sample says of one series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    /// A value, in the unit that the series is kept in.
    Value(i64),
    /// No value, for this reason.
    Absent(Absence),
}

/// A series that is being sampled. There are thousands, and most of them have one value all the time.
#[derive(Debug)]
pub(super) struct Samples {
    /// What was written of runs that have ended, where one has.
    #[expect(clippy::box_collection, reason = "two words less for each series that never moves")]
    bytes: Option<Box<Vec<u8>>>,
    /// The value before the run.
    before: i64,
    /// What the run repeats; none for samples without the series.
    run: Option<Item>,
    run_length: u32,
    length: u32,
}

// === impl Samples ===

impl Samples {
    pub(super) const fn new() -> Self {
        Self { bytes: None, before: 0, run: None, run_length: 0, length: 0 }
    }

    /// Adds what the sample at this place says; samples that were passed over are without the
    /// series. A place is filled once: what comes later for it is ignored.
    pub(super) fn push(&mut self, place: u32, item: Item) {
        if place < self.length {
            return;
        }
        if place > self.length {
            self.extend(None, place - self.length);
        }
        self.extend(Some(item), 1);
    }

    fn extend(&mut self, item: Option<Item>, count: u32) {
        if item != self.run {
            self.end_run();
            self.run = item;
        }
        self.run_length += count;
        self.length += count;
    }

    fn end_run(&mut self) {
        let count = u128::from(std::mem::take(&mut self.run_length)) << 2;
        if count == 0 {
            return;
        }
        let bytes = self.bytes.get_or_insert_default();
        match self.run {
            Some(Item::Value(value)) => {
                varint::put(count | SAME, bytes);
                varint::put_signed(i128::from(value) - i128::from(self.before), bytes);
                self.before = value;
            }
            Some(Item::Absent(reason)) => {
                varint::put(count | ABSENT, bytes);
                bytes.push(reason.code());
            }
            None => varint::put(count | MISSING, bytes),
        }
    }

    /// The whole series.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.end_run();
        self.bytes.map_or_else(Vec::new, |bytes| *bytes)
    }
}

/// The first `samples` samples of a series; those after its end are without it. None where the
/// bytes are no series of at most so many samples.
pub(super) fn read(mut bytes: &[u8], samples: usize) -> Option<Vec<Option<Item>>> {
    let mut items = Vec::with_capacity(samples);
    let mut before = 0i64;
    while !bytes.is_empty() {
        let head = varint::take(&mut bytes)?;
        let count = usize::try_from(head >> 2).ok()?;
        if count > samples - items.len() {
            return None;
        }
        let item = match head & 3 {
            SAME => {
                let difference = varint::take_signed(&mut bytes)?;
                before = i64::try_from(i128::from(before).checked_add(difference)?).ok()?;
                Some(Item::Value(before))
            }
            ABSENT => {
                let (code, rest) = bytes.split_first()?;
                bytes = rest;
                // A reason that a newer version knows.
                Some(Item::Absent(Absence::from_code(*code).unwrap_or(Absence::Unknown)))
            }
            MISSING => None,
            _ => return None,
        };
        items.extend(std::iter::repeat_n(item, count));
    }
    items.resize(samples, None);
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::{Item, Samples, read};
    use telltale_schema::reading::Absence;

    fn written(items: &[Option<Item>]) -> Vec<u8> {
        let mut samples = Samples::new();
        for (place, item) in (0..).zip(items) {
            if let Some(item) = item {
                samples.push(place, *item);
            }
        }
        samples.finish()
    }

    #[test]
    fn series_survive_and_constant_ones_are_short() {
        let value = |value| Some(Item::Value(value));
        let absent = |reason| Some(Item::Absent(reason));
        let cases = [
            (vec![value(0); 10], 2),
            (vec![value(1 << 34); 10], 7),
            (vec![value(i64::MIN), value(i64::MAX), None, value(-1)], 34),
            (vec![absent(Absence::TimedOut), absent(Absence::TimedOut), value(7), None], 4),
            (vec![None, None, absent(Absence::Resetting)], 3),
            (vec![None; 3], 0),
        ];
        for (items, longest) in cases {
            let bytes = written(&items);
            assert!(bytes.len() <= longest, "{items:?}: {} bytes", bytes.len());
            assert_eq!(read(&bytes, items.len()), Some(items));
        }
    }

    #[test]
    fn a_place_is_filled_once() {
        let mut samples = Samples::new();
        samples.push(0, Item::Value(5));
        samples.push(0, Item::Value(6));
        samples.push(1, Item::Value(5));
        assert_eq!(read(&samples.finish(), 2), Some(vec![Some(Item::Value(5)); 2]));
    }

    #[test]
    fn broken_bytes_are_no_series() {
        let good = written(&[Some(Item::Value(300)), Some(Item::Absent(Absence::Gone))]);
        for end in 1..good.len() {
            if end != 3 {
                assert_eq!(read(&good[..end], 2), None, "{end}");
            }
        }
        for bytes in [&[7][..], &[0xff, 0xff, 0xff, 0xff, 0x0f, 0], &[12, 0]] {
            assert_eq!(read(bytes, 2), None, "{bytes:?}");
        }
        assert_eq!(read(&[5, 200], 1), Some(vec![Some(Item::Absent(Absence::Unknown))]));
    }
}
