//! Spans of equal length and what a series did in each: least, greatest, and its sum over time.
//!
//! All sums are whole numbers (value times milliseconds), so that adding up spans gives the same
//! value whatever their length: nothing is lost in keeping fewer of them.

use telltale_schema::reading::Absence;

use super::samples::Item;
use super::varint;

const CONSTANT: u128 = 0;
const ABSENT: u128 = 1;
const MISSING: u128 = 2;
const VARIED: u128 = 3;

/// Spans of one answer or block, at most.
pub(super) const MAX_BUCKETS: usize = 100_000;

/// What a series did in one span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bucket {
    /// For how much of the span a value is known, in milliseconds.
    pub(crate) covered_ms: u64,
    /// The sum of value times milliseconds over that time.
    pub(crate) sum: i128,
    /// The least and the greatest value; none when there was no value.
    pub(crate) extremes: Option<(i64, i64)>,
    /// Why there was none, where there was none and a reason is known.
    pub(crate) absent: Option<Absence>,
}

/// Spans of equal length, from a multiple of that length on.
#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    /// Milliseconds since 1970 at which the first span begins.
    from_ms: i64,
    step_ms: u64,
    buckets: Vec<Bucket>,
}

// === impl Bucket ===

impl Bucket {
    /// A span with this value all the time.
    fn constant(value: i64, step_ms: u64) -> Self {
        Self {
            covered_ms: step_ms,
            sum: i128::from(value) * i128::from(step_ms),
            extremes: Some((value, value)),
            absent: None,
        }
    }

    /// Whether nothing at all is known of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.extremes.is_none() && self.absent.is_none()
    }

    /// The mean over the time that is known; the value itself where it was seen for no time at all.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn mean(&self) -> Option<f64> {
        let (least, _) = self.extremes?;
        Some(match self.covered_ms {
            0 => least as f64,
            covered_ms => self.sum as f64 / covered_ms as f64,
        })
    }

    /// The mean as a whole number, exactly rounded.
    pub(crate) fn rounded_mean(&self) -> Option<i64> {
        let (least, _) = self.extremes?;
        if self.covered_ms == 0 {
            return Some(least);
        }
        let covered = i128::from(self.covered_ms);
        let doubled = self.sum.saturating_mul(2).saturating_add(covered);
        i64::try_from(doubled.div_euclid(covered * 2)).ok()
    }

    /// Takes in what another span says.
    pub(crate) fn add(&mut self, other: &Self) {
        self.covered_ms = self.covered_ms.saturating_add(other.covered_ms);
        self.sum = self.sum.saturating_add(other.sum);
        self.extremes = match (self.extremes, other.extremes) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, two) => one.or(two),
        };
        self.absent = if self.extremes.is_some() { None } else { other.absent.or(self.absent) };
    }
}

// === impl Buckets ===

impl Buckets {
    /// So many spans of `step_ms`, of which nothing is known yet; at most [`MAX_BUCKETS`].
    pub(crate) fn new(from_ms: i64, step_ms: u64, count: usize) -> Self {
        debug_assert!(step_ms > 0, "a span has a length");
        let buckets = vec![Bucket::default(); count.min(MAX_BUCKETS)];
        Self { from_ms, step_ms: step_ms.max(1), buckets }
    }

    /// Spans of `step_ms` at its multiples, as many as it takes to cover this time.
    pub(crate) fn covering(from_ms: i64, to_ms: i64, step_ms: u64) -> Self {
        let step = i64::try_from(step_ms).unwrap_or(i64::MAX);
        let first = from_ms.div_euclid(step);
        let count = to_ms.max(from_ms).div_euclid(step) - first + 1;
        Self::new(first * step, step_ms, usize::try_from(count).unwrap_or(MAX_BUCKETS))
    }

    /// When the first span begins, in milliseconds since 1970.
    pub(crate) fn begins_ms(&self) -> i64 {
        self.from_ms
    }

    /// The spans, in order.
    pub(crate) fn all(&self) -> &[Bucket] {
        &self.buckets
    }

    fn place(&self, at_ms: i64) -> Option<usize> {
        let since = u64::try_from(at_ms.checked_sub(self.from_ms)?).ok()?;
        usize::try_from(since / self.step_ms).ok()
    }

    /// Adds what was so from a moment on for so long; what is outside of the spans is left out.
    pub(crate) fn add_item(&mut self, item: Item, at_ms: i64, lasts_ms: u64) {
        let value = match item {
            Item::Value(value) => value,
            Item::Absent(reason) => {
                let bucket = Bucket { absent: Some(reason), ..Bucket::default() };
                return self.add_bucket(&bucket, at_ms);
            }
        };
        let end_ms = at_ms.saturating_add_unsigned(lasts_ms);
        let mut piece_ms = at_ms.max(self.from_ms);
        loop {
            let Some(bucket) = self.place(piece_ms).and_then(|at| self.buckets.get_mut(at)) else {
                return;
            };
            let step = i64::try_from(self.step_ms).unwrap_or(i64::MAX);
            let into = (piece_ms - self.from_ms).rem_euclid(step);
            let piece_end_ms = piece_ms.saturating_add(step - into).min(end_ms);
            let covered_ms = u64::try_from(piece_end_ms - piece_ms).unwrap_or(0);
            if covered_ms == 0 && piece_ms != at_ms {
                return;
            }
            bucket.add(&Bucket {
                covered_ms,
                sum: i128::from(value) * i128::from(covered_ms),
                extremes: Some((value, value)),
                absent: None,
            });
            if piece_end_ms >= end_ms {
                return;
            }
            piece_ms = piece_end_ms;
        }
    }

    /// Adds a shorter span that begins at this moment.
    pub(crate) fn add_bucket(&mut self, other: &Bucket, at_ms: i64) {
        if let Some(bucket) = self.place(at_ms).and_then(|at| self.buckets.get_mut(at)) {
            bucket.add(other);
        }
    }

    /// The spans in few bytes: runs, as in samples, and least value, greatest value and sum of
    /// those in which the value was not the same all the time.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut before = 0i64;
        let known = self.buckets.iter().rposition(|bucket| !bucket.is_empty());
        let mut rest = &self.buckets[..known.map_or(0, |last| last + 1)];
        while let Some(first) = rest.first() {
            let same = rest.iter().take_while(|bucket| *bucket == first).count();
            let whole = first.extremes.is_some_and(|(least, greatest)| {
                least == greatest && *first == Bucket::constant(least, self.step_ms)
            });
            let (count, kind) = match (first.extremes, first.absent) {
                (Some(_), _) if whole => (same, CONSTANT),
                (Some(_), _) => (1, VARIED),
                (None, Some(_)) => (same, ABSENT),
                (None, None) => (same, MISSING),
            };
            varint::put((count as u128) << 2 | kind, &mut bytes);
            if let Some((least, greatest)) = first.extremes {
                varint::put_signed(i128::from(least) - i128::from(before), &mut bytes);
                before = least;
                if !whole {
                    let over = first.sum - i128::from(least) * i128::from(first.covered_ms);
                    varint::put(u128::from(first.covered_ms), &mut bytes);
                    varint::put(u128::from(greatest.abs_diff(least)), &mut bytes);
                    varint::put_signed(over, &mut bytes);
                }
            } else if let Some(reason) = first.absent {
                bytes.push(reason.code());
            }
            rest = &rest[count..];
        }
        bytes
    }
}

/// Reads what [`Buckets::write`] wrote and hands each span with something in it to `take`, with its
/// place. None where the bytes are no such spans.
pub(super) fn read(
    mut bytes: &[u8],
    step_ms: u64,
    mut take: impl FnMut(usize, &Bucket),
) -> Option<()> {
    let mut place = 0usize;
    let mut before = 0i64;
    while !bytes.is_empty() {
        let head = varint::take(&mut bytes)?;
        let count = usize::try_from(head >> 2).ok()?;
        if count > MAX_BUCKETS - place {
            return None;
        }
        let bucket = match head & 3 {
            MISSING => Bucket::default(),
            ABSENT => {
                let (code, rest) = bytes.split_first()?;
                bytes = rest;
                let reason = Absence::from_code(*code).unwrap_or(Absence::Unknown);
                Bucket { absent: Some(reason), ..Bucket::default() }
            }
            kind => {
                let difference = varint::take_signed(&mut bytes)?;
                before = i64::try_from(i128::from(before).checked_add(difference)?).ok()?;
                if kind == CONSTANT {
                    Bucket::constant(before, step_ms)
                } else {
                    varied(before, &mut bytes)?
                }
            }
        };
        if !bucket.is_empty() {
            (place..place + count).for_each(|place| take(place, &bucket));
        }
        place += count;
    }
    Some(())
}

/// The rest of a span whose least value is known.
fn varied(least: i64, bytes: &mut &[u8]) -> Option<Bucket> {
    let covered_ms = varint::take_u64(bytes)?;
    let greatest = least.checked_add_unsigned(varint::take_u64(bytes)?)?;
    let over = varint::take_signed(bytes)?;
    let sum = (i128::from(least) * i128::from(covered_ms)).checked_add(over)?;
    Some(Bucket { covered_ms, sum, extremes: Some((least, greatest)), absent: None })
}

#[cfg(test)]
mod tests;
