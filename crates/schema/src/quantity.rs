//! Quantities as a person reads and writes them. Machine-readable output never goes through here.

/// Bytes with a binary unit: `0 B`, `11.0 KiB`, `2.8 GiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().expect("there is a first unit");
    // 1023.95 would print as 1024.0.
    while value >= 1023.95 {
        let Some(larger) = units.next() else { break };
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// The number of bytes that a text is, at least one: `4096`, `64KiB`, `8 GiB`.
///
/// # Errors
/// With what a text must be, for another text.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("B", 0), ("", 0)];
    let (number, shift) = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
        .expect("every text ends with nothing");
    let number = number.trim_end().parse::<u64>().ok().filter(|number| *number > 0);
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| String::from("not a size such as 4096, 64KiB or 1MiB"))
}

/// A count with its thousands apart: `12,345`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A span of time in its two largest units: `7s`, `3m05s`, `2h10m`, `4d03h`.
pub fn span(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return String::from("n/a");
    }
    let whole = seconds as u64;
    let (days, hours, minutes, seconds) =
        (whole / 86_400, whole / 3_600 % 24, whole / 60 % 60, whole % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{seconds:02}s"),
        (0, _, _) => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours:02}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, parse_bytes, span};

    #[test]
    fn quantities_read_well_at_every_size() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (11 * 1024, "11.0 KiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (12 << 30, "12.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (value, text) in cases {
            assert_eq!(bytes(value), text);
        }
        for (value, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")]
        {
            assert_eq!(count(value), text);
        }
        for (value, text) in [
            (0.4, "0s"),
            (59.9, "59s"),
            (185.0, "3m05s"),
            (7_800.0, "2h10m"),
            (356_400.0, "4d03h"),
            (f64::NAN, "n/a"),
        ] {
            assert_eq!(span(value), text);
        }
    }

    #[test]
    fn sizes_are_bytes_or_have_a_unit() {
        let cases = [("1", 1), ("4096", 4096), ("64KiB", 65_536), ("1 MiB", 1 << 20), ("7B", 7)];
        for (text, bytes) in cases {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for bad in ["", "0", "-1", "1.5MiB", "1MB", "KiB", "99999999999GiB"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }
}
