//! Dates and times of day of a [`Timestamp`], in UTC, as text and back (RFC 3339). No time zone's
//! rules are known here: a text may give its distance from UTC.

use crate::clock::Timestamp;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;

/// `2026-11-21T10:00:00Z`: the moment to the second, what is below a second cut off.
pub fn format(moment: Timestamp) -> String {
    let seconds = moment.0 / SECOND_NS;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(i64::try_from(days).expect("2^64 ns are 213,504 days"));
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}

/// Reads `2026-11-21T10:00:00Z`, with a space for the `T`, a fraction of a second, and a distance
/// from UTC (`+01:00`) for the `Z`; without either of these it is UTC. The seconds, or the whole time
/// of day, may be left out. None for anything else, and for moments before 1970 or after 2554.
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, time),
        None => (text, "00:00"),
    };
    let (time, offset_seconds) = split_offset(time)?;
    let (seconds_of_day, fraction_ns) = time_of_day(time)?;
    let seconds = days(date)? * DAY_SECONDS + seconds_of_day - offset_seconds;
    let whole_ns = u64::try_from(seconds).ok()?.checked_mul(SECOND_NS)?;
    Some(Timestamp(whole_ns.checked_add(fraction_ns)?))
}

/// A time of day without its distance from UTC, and that distance in seconds.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(rest) = time.strip_suffix(['Z', 'z']) {
        return Some((rest, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let (hours, minutes) = time[at + 1..].split_once(':')?;
    let (hours, minutes) = (number(hours, 2, 23)?, number(minutes, 2, 59)?);
    let distance = hours * 3600 + minutes * 60;
    Some((&time[..at], if time[at..].starts_with('-') { -distance } else { distance }))
}

/// Seconds since midnight, and nanoseconds since that second.
fn time_of_day(text: &str) -> Option<(i64, u64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = whole.split(':');
    let hour = number(parts.next()?, 2, 23)?;
    let minute = number(parts.next()?, 2, 59)?;
    let second = parts.next().map_or(Some(0), |second| number(second, 2, 59))?;
    if parts.next().is_some() || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let fraction_ns = format!("{fraction:0<9}").parse().ok()?;
    Some((hour * 3600 + minute * 60 + second, fraction_ns))
}

/// Days since 1970 of `2026-11-21`.
fn days(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let year = number(parts.next()?, 4, 9999)?;
    let month = number(parts.next()?, 2, 12)?;
    let day = number(parts.next()?, 2, 31)?;
    let days = days_from_civil(year, month, day);
    // The 31st of a month that has none becomes a day of the next one.
    let real = civil(days) == (year, month, day);
    (parts.next().is_none() && real).then_some(days)
}

/// A number of just so many digits.
fn number(text: &str, digits: usize, largest: i64) -> Option<i64> {
    let plain = text.len() == digits && text.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten().filter(|number| *number <= largest)
}

/// Days since 1970 of a day of the Gregorian calendar. Years begin in March here, so that the leap
/// day is the last one; 400 of them are 146,097 days.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The reverse: year, month and day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::{SECOND_NS, civil, days_from_civil, format, parse};
    use crate::clock::Timestamp;

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
    fn every_day_of_eight_centuries_is_itself() {
        for day in 0..292_194 {
            let (year, month, of_month) = civil(day);
            assert_eq!(days_from_civil(year, month, of_month), day);
        }
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
            "2026-11-21T10:00:60Z",
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
