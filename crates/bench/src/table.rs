//! The table that a run prints: ours, the baseline, their ratio, the target, and whether it is met.
//!
//! It formats what it is given and measures nothing.

use std::fmt;

use crate::sample::Measurements;

/// What a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, printed in the unit that suits the size.
    Time,
    /// Bytes, likewise.
    Bytes,
    /// A plain number.
    Count,
    /// A share of one, printed in percent.
    Share,
}

/// What ours is held to. Absent parts are not judged.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Target {
    /// Our median is at most this, in nanoseconds or bytes.
    pub at_most: Option<f64>,
    /// The baseline's median is at least this many times ours.
    pub times_better: Option<f64>,
    /// Our median is at most this many times the baseline's.
    pub times_baseline: Option<f64>,
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What is measured, for one operation.
    pub what: String,
    /// The unit of both values.
    pub unit: Unit,
    /// Our values; none where there is nothing of ours to compare.
    pub ours: Option<Measurements>,
    /// The baseline's values; none where the target stands alone.
    pub baseline: Option<Measurements>,
    /// What ours is held to.
    pub target: Target,
}

/// Whether a row meets its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetVerdict {
    /// Every part of the target is met.
    Met,
    /// Some part is not.
    Missed,
    /// There is no target, or nothing of ours to hold to it.
    Unjudged,
}

// === impl Row ===

impl Row {
    /// How many times better ours is than the baseline, by medians of this run. None where one of
    /// them is missing or zero.
    pub fn ratio(&self) -> Option<f64> {
        let (ours, baseline) = (self.ours.as_ref()?.median(), self.baseline.as_ref()?.median());
        (ours > 0.0 && baseline > 0.0).then(|| baseline / ours)
    }

    /// Holds ours to the target.
    pub fn verdict(&self) -> TargetVerdict {
        let Some(ours) = &self.ours else { return TargetVerdict::Unjudged };
        let mut judged = Vec::new();
        if let Some(limit) = self.target.at_most {
            judged.push(ours.median() <= limit);
        }
        if let (Some(least), Some(ratio)) = (self.target.times_better, self.ratio()) {
            judged.push(ratio >= least);
        }
        if let (Some(most), Some(ratio)) = (self.target.times_baseline, self.ratio()) {
            judged.push(1.0 / ratio <= most);
        }
        match judged.as_slice() {
            [] => TargetVerdict::Unjudged,
            all if all.iter().all(|&met| met) => TargetVerdict::Met,
            _ => TargetVerdict::Missed,
        }
    }

    fn cells(&self) -> [String; 6] {
        let values = |values: &Option<Measurements>| {
            values.as_ref().map_or_else(|| "-".to_owned(), |f| self.unit.values(f))
        };
        let verdict = match self.verdict() {
            TargetVerdict::Met => "yes",
            TargetVerdict::Missed => "NO",
            TargetVerdict::Unjudged => "-",
        };
        [
            self.what.clone(),
            values(&self.ours),
            values(&self.baseline),
            self.ratio().map_or_else(|| "-".to_owned(), |r| format!("{}x", significant(r))),
            self.target.describe(self.unit),
            verdict.to_owned(),
        ]
    }
}

// === impl Target ===

impl Target {
    fn describe(&self, unit: Unit) -> String {
        let mut parts = Vec::new();
        if let Some(limit) = self.at_most {
            parts.push(format!("<= {}", unit.value(limit)));
        }
        if let Some(times) = self.times_better {
            parts.push(format!(">= {times}x"));
        }
        if let Some(times) = self.times_baseline {
            // Rounded: some are the inverse of what was promised.
            parts.push(format!("<= {} x baseline", (times * 100.0).round() / 100.0));
        }
        if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
    }
}

// === impl Unit ===

impl Unit {
    fn scale(self, value: f64) -> (f64, &'static str) {
        match self {
            Self::Time if value < 1e3 => (1.0, "ns"),
            Self::Time if value < 1e6 => (1e3, "us"),
            Self::Time => (1e6, "ms"),
            Self::Bytes if value < 10_240.0 => (1.0, "B"),
            Self::Bytes if value < 1_048_576.0 => (1024.0, "KiB"),
            Self::Bytes => (1_048_576.0, "MiB"),
            Self::Count => (1.0, ""),
            Self::Share => (0.01, "%"),
        }
    }

    fn value(self, value: f64) -> String {
        let (scale, name) = self.scale(value);
        format!("{} {name}", significant(value / scale)).trim_end().to_owned()
    }

    /// Median and range in the unit that suits the median.
    fn values(self, values: &Measurements) -> String {
        let (scale, name) = self.scale(values.median());
        let [median, min, max] =
            [values.median(), values.min(), values.max()].map(|v| significant(v / scale));
        let middle = format!("{median} {name}");
        let middle = middle.trim_end();
        if min == max { middle.to_owned() } else { format!("{middle} ({min}-{max})") }
    }
}

/// Three significant digits: more than the machine repeats.
fn significant(value: f64) -> String {
    match value.abs() {
        v if v < 0.1 => format!("{value:.4}"),
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Rows under one heading, with remarks below.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// What the rows have in common.
    pub heading: String,
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// Findings that are not numbers.
    pub remarks: Vec<String>,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["what", "ours", "baseline", "ratio", "target", "met?"].map(str::to_owned);
        let lines: Vec<[String; 6]> =
            std::iter::once(head).chain(self.rows.iter().map(Row::cells)).collect();
        let widths: [usize; 6] =
            std::array::from_fn(|i| lines.iter().map(|l| l[i].chars().count()).max().unwrap_or(0));
        writeln!(f, "{}", self.heading)?;
        for line in &lines {
            let padded: Vec<String> =
                line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(f, "  {}", padded.join(" | ").trim_end())?;
        }
        for remark in &self.remarks {
            writeln!(f, "  * {remark}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, Table, Target, TargetVerdict, Unit};
    use crate::sample::Measurements;

    fn row(ours: Option<f64>, baseline: Option<f64>, target: Target) -> Row {
        let values = |value: Option<f64>| value.map(|v| Measurements::new(vec![v]));
        Row {
            what: "a thing".to_owned(),
            unit: Unit::Time,
            ours: values(ours),
            baseline: values(baseline),
            target,
        }
    }

    #[test]
    fn verdicts() {
        let both = Target { at_most: Some(8.0), times_better: Some(8.0), ..Target::default() };
        let near = Target { times_baseline: Some(1.5), ..Target::default() };
        let cases = [
            (Some(5.0), Some(50.0), both, TargetVerdict::Met),
            (Some(9.0), Some(90.0), both, TargetVerdict::Missed),
            (Some(7.0), Some(50.0), both, TargetVerdict::Missed),
            (Some(5.0), None, both, TargetVerdict::Met),
            (None, Some(50.0), both, TargetVerdict::Unjudged),
            (Some(5.0), Some(5.0), Target::default(), TargetVerdict::Unjudged),
            (Some(14.0), Some(10.0), near, TargetVerdict::Met),
            (Some(16.0), Some(10.0), near, TargetVerdict::Missed),
        ];
        for (ours, baseline, target, expected) in cases {
            assert_eq!(row(ours, baseline, target).verdict(), expected, "{ours:?} {baseline:?}");
        }
    }

    #[test]
    fn columns_align_and_units_suit_the_size() {
        let table = Table {
            heading: "Heading".to_owned(),
            rows: vec![
                row(
                    Some(4.0),
                    Some(46_900_000.0),
                    Target { at_most: Some(8.0), ..Target::default() },
                ),
                row(None, Some(12_345.0), Target::default()),
            ],
            remarks: vec!["a remark".to_owned()],
        };
        let expected = "\
Heading
  what    | ours    | baseline | ratio     | target     | met?
  a thing | 4.00 ns | 46.9 ms  | 11725000x | <= 8.00 ns | yes
  a thing | -       | 12.3 us  | -         | -          | -
  * a remark
";
        assert_eq!(table.to_string(), expected);
    }
}
