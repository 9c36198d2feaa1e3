//! A moment as a person writes it: so long ago, or a date. The reader supplies the present time.

use std::str::FromStr;

use jiff::{Span, SpanRelativeTo};

use crate::calendar;
use crate::clock::Timestamp;

/// What is said instead of a moment that is none.
const REFUSED: &str = "not a moment: write `3m ago`, `2h`, `now` or 2026-11-21T10:00:00Z";

/// A moment, before it is known when now is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// So many nanoseconds before now.
    Ago(u64),
    /// A date.
    At(Timestamp),
}

// === impl Moment ===

impl Moment {
    /// When that is.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Ago(nanoseconds) => Timestamp(now.0.saturating_sub(nanoseconds)),
            Self::At(moment) => moment,
        }
    }
}

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text == "now" {
            return Ok(Self::Ago(0));
        }
        if let Some(moment) = calendar::parse(text) {
            return Ok(Self::At(moment));
        }
        nanoseconds(text).map(Self::Ago).ok_or(REFUSED)
    }
}

/// A span such as `90s`, `1h30m` or `2 days`; days have 24 hours.
fn nanoseconds(text: &str) -> Option<u64> {
    let span: Span = text.parse().ok()?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    u64::try_from(duration.as_nanos().unsigned_abs()).ok()
}

#[cfg(test)]
mod tests {
    use super::Moment;
    use crate::clock::Timestamp;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn moments_are_spans_or_dates() {
        let ago = |seconds: u64| Moment::Ago(seconds * SECOND_NS);
        for (text, moment) in [
            ("now", ago(0)),
            ("3m ago", ago(180)),
            ("2h", ago(7_200)),
            ("1d 12h ago", ago(129_600)),
            ("1h30m", ago(5_400)),
            ("1.5h", ago(5_400)),
            ("-3m", ago(180)),
            ("90 seconds ago", ago(90)),
            ("2w", ago(14 * 86_400)),
            ("2026-11-21T10:00:00Z", Moment::At(Timestamp(1_795_255_200 * SECOND_NS))),
            ("2026-11-21", Moment::At(Timestamp(1_795_219_200 * SECOND_NS))),
        ] {
            assert_eq!(text.parse(), Ok(moment), "{text}");
        }
        let now = Timestamp(100 * SECOND_NS);
        assert_eq!(ago(40).at(now), Timestamp(60 * SECOND_NS));
        assert_eq!(ago(200).at(now), Timestamp(0), "time begins in 1970");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in ["", "ago", "3", "3x", "m", "99999999999999999999s", "9999999999w", "3mé"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }
}
