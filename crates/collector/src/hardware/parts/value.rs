//! What a part's file says as a number, or why it says none.

use std::ops::RangeInclusive;

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};

use crate::tree::{Directory, Unreadable};

/// What of a text that is no number is shown, in characters.
const MAX_EXCERPT: usize = 40;

/// A part's directory at one moment.
pub(super) struct PartFiles<'a> {
    pub(super) directory: &'a Directory,
    pub(super) now: Timestamp,
}

// === impl PartFiles ===

impl PartFiles<'_> {
    /// The whole number in a file, in units of which so many are one of the reading's.
    pub(super) fn number(
        &self,
        name: &str,
        divisor: f64,
        plausible: RangeInclusive<f64>,
    ) -> Reading<f64> {
        let value = self.parsed(name, |text| number(text).map(|number| number / divisor));
        value.keep_if(|value| plausible.contains(value))
    }

    /// What a counter says.
    pub(super) fn counter(&self, name: &str) -> Reading<f64> {
        self.number(name, 1.0, 0.0..=f64::MAX)
    }

    /// What `parse` makes of a file; a text of which it makes nothing is implausible.
    pub(super) fn parsed(&self, name: &str, parse: impl Fn(&str) -> Option<f64>) -> Reading<f64> {
        match self.text(name) {
            Ok(text) => match parse(&text) {
                Some(value) => Reading::new(value, self.now),
                None => implausible(&text),
            },
            Err(error) => error.reading(),
        }
    }

    /// A file's text without the white space around it.
    pub(super) fn text(&self, name: &str) -> Result<String, Unreadable> {
        let bytes = self.directory.attribute(name)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A truth.
    pub(super) fn is(&self, truth: bool) -> Reading<f64> {
        Reading::new(f64::from(u8::from(truth)), self.now)
    }
}

/// 1 where one of these truths is, 0 where those that are there are not. One that cannot be read leaves
/// it open, unless another one is. They are read until then.
pub(super) fn any(truths: impl IntoIterator<Item = Reading<f64>>) -> Reading<f64> {
    let mut found = Reading::absent(Absence::Unsupported, "");
    for reading in truths {
        match (reading.value(), reading.absence(), found.absence()) {
            (Some(value), ..) if *value > 0.0 => return reading,
            (_, Some((Absence::Unsupported, _)), _) => {}
            // A failure is the answer, whatever files after it say that nothing is wrong.
            (_, Some(_), _) | (_, None, Some((Absence::Unsupported, _))) => found = reading,
            _ => {}
        }
    }
    found
}

/// The absent reading of a text that should have been something else.
pub(super) fn implausible(text: &str) -> Reading<f64> {
    let excerpt: String = text.chars().take(MAX_EXCERPT).flat_map(char::escape_default).collect();
    Reading::absent(Absence::Implausible, excerpt)
}

/// `1` or `0`.
pub(super) fn truth(text: &str) -> Option<f64> {
    match text {
        "0" => Some(0.0),
        "1" => Some(1.0),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counters above 2^53 lose what no rule asks for")]
fn number(text: &str) -> Option<f64> {
    let number: i128 = text.parse().ok()?;
    let is_64_bits = u64::try_from(number).is_ok() || i64::try_from(number).is_ok();
    is_64_bits.then_some(number as f64)
}
