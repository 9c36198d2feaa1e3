//! Dates and times of day of a [`Timestamp`], in UTC, as text and back (RFC 3339). No time zone's
//! rules are known here: a text may give its distance from UTC.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::clock::Timestamp;

/// `2026-11-21T10:00:00Z`: the moment to the second, what is below a second cut off.
pub fn format(moment: Timestamp) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(moment.0));
    at.expect("2^64 ns end in 2554").strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Reads `2026-11-21T10:00:00Z`, with a space for the `T`, a fraction of a second, and a distance
/// from UTC (`+01:00`) for the `Z`; without either of these it is UTC. The seconds, or the whole time
/// of day, may be left out. None for anything else, and for moments before 1970 or after 2554.
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let in_utc = || TimeZone::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok();
    let at: jiff::Timestamp = text.parse().ok().or_else(in_utc)?;
    u64::try_from(at.as_nanosecond()).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::{format, parse};
    use crate::clock::Timestamp;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn moments_survive_text() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_255_200, "2026-11-21T10:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(format(Timestamp(seconds * SECOND_NS)), text);
            assert_eq!(parse(text), Some(Timestamp(seconds * SECOND_NS)), "{text}");
        }
        assert_eq!(
            parse(&format(Timestamp(u64::MAX))),
            Some(Timestamp(18_446_744_073 * SECOND_NS))
        );
    }

    #[test]
    fn other_ways_to_write_a_moment_are_the_same_moment() {
        let moment = parse("2026-11-21T10:00:00Z");
        for text in [
            "2026-11-21 10:00",
            "2026-11-21t10:00:00.000z",
            "2026-11-21T11:30:00+01:30",
            "2026-11-20T22:00:00-12:00",
        ] {
            assert_eq!(parse(text), moment, "{text}");
        }
        let half = parse("2026-11-21T10:00:00.5Z").map(|half| half.0);
        assert_eq!(half, moment.map(|moment| moment.0 + SECOND_NS / 2));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "T",
            "2026",
            "2026-11",
            "2026-11-31",
            "2026-02-29",
            "2026-13-01",
            "1969-12-31",
            "2026-11-21T",
            "2026-11-21T1:00",
            "2026-11-21T24:00",
            "2026-11-21T10:00:00.Z",
            "2026-11-21T10:00+1",
            "2026-11-21T10:00:00:00",
            "9999-01-01",
            "+026-11-21",
            "2026-11-21T10:00:00.0000000001Z",
            "2026-11-21Tä",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
