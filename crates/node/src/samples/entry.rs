//! What a row has of one series, and how the values of several processes become one.

use telltale_wire::exposition::Number;

use super::label_sets::SetId;
use super::{BucketCounts, SampleValue};

/// A value of one process or of a row; its series is the first three fields.
#[derive(Debug, Clone)]
pub(super) struct SampleEntry<'a> {
    pub(super) family: usize,
    pub(super) second: SetId,
    pub(super) third: SetId,
    /// `None` where there is something of unknown amount: what it is a part of is then not
    /// known either.
    pub(super) value: Option<SampleValue<'a>>,
    pub(super) joining: Joining,
}

/// How two values become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joining {
    /// By adding them.
    Sum,
    /// By taking the larger one.
    Largest,
}

impl SampleEntry<'_> {
    pub(super) fn series(&self) -> (usize, SetId, SetId) {
        (self.family, self.second, self.third)
    }
}

/// Makes one entry of all those of a series; sorts by series.
pub(super) fn fold(entries: &mut Vec<SampleEntry<'_>>) {
    entries.sort_by_key(SampleEntry::series);
    entries.dedup_by(|next, first| {
        let same = next.series() == first.series();
        if same {
            first.value = match (first.value.take(), next.value.take()) {
                (Some(one), Some(other)) => joined(one, other, first.joining),
                _ => None,
            };
        }
        same
    });
}

/// None where the two cannot be joined: histograms with other bounds.
fn joined<'a>(
    one: SampleValue<'a>,
    other: SampleValue<'a>,
    joining: Joining,
) -> Option<SampleValue<'a>> {
    match (one, other) {
        (SampleValue::Number(one), SampleValue::Number(other)) => {
            Some(SampleValue::Number(number(one, other, joining)))
        }
        (SampleValue::Buckets(one), SampleValue::Buckets(other)) => {
            let BucketCounts { bounds, counts, sum } = *one;
            let alike = bounds == other.bounds && counts.len() == other.counts.len();
            alike.then(|| {
                let mut counts = counts.into_owned();
                for (count, more) in counts.iter_mut().zip(&*other.counts) {
                    *count = count.saturating_add(*more);
                }
                let sum = sum.plus(other.sum);
                SampleValue::Buckets(Box::new(BucketCounts { bounds, counts: counts.into(), sum }))
            })
        }
        _ => None,
    }
}

/// A sum that does not fit stays at the largest number.
#[allow(clippy::cast_precision_loss)]
fn number(one: Number, other: Number, joining: Joining) -> Number {
    let float = |number| match number {
        Number::Whole(number) => number as f64,
        Number::Float(number) => number,
    };
    match (one, other, joining) {
        (Number::Whole(one), Number::Whole(other), Joining::Sum) => {
            Number::Whole(one.saturating_add(other))
        }
        (Number::Whole(one), Number::Whole(other), Joining::Largest) => {
            Number::Whole(one.max(other))
        }
        (one, other, Joining::Sum) => Number::Float(float(one) + float(other)),
        (one, other, Joining::Largest) => Number::Float(float(one).max(float(other))),
    }
}
