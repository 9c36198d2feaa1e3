//! Numbers as both formats take them.

/// A sample's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A whole number, written with all its digits.
    Whole(u64),
    /// Any number, written with as few digits as distinguish it from others.
    Float(f64),
}

impl Number {
    /// Appends the number.
    pub(super) fn write(self, to: &mut String) {
        match self {
            Self::Whole(number) => to.push_str(itoa::Buffer::new().format(number)),
            Self::Float(number) => float(number, to),
        }
    }
}

/// Appends `number`; a finite one always with a decimal point or an exponent, as OpenMetrics wants
/// bounds of buckets to be.
pub(super) fn float(number: f64, to: &mut String) {
    if number.is_finite() {
        to.push_str(zmij::Buffer::new().format_finite(number));
    } else {
        to.push_str(match (number.is_nan(), number > 0.0) {
            (true, _) => "NaN",
            (_, true) => "+Inf",
            (_, false) => "-Inf",
        });
    }
}

/// Appends a point in time in seconds, to the millisecond.
pub(super) fn seconds(nanoseconds: u64, to: &mut String) {
    let milliseconds = nanoseconds / 1_000_000;
    to.push_str(itoa::Buffer::new().format(milliseconds / 1000));
    let rest = milliseconds % 1000;
    to.push('.');
    for digit in [rest / 100, rest / 10 % 10, rest % 10] {
        to.push_str(itoa::Buffer::new().format(digit));
    }
}

#[cfg(test)]
mod tests {
    use super::{Number, seconds};

    #[test]
    fn numbers_are_written_as_parsers_take_them() {
        let cases = [
            (Number::Whole(u64::MAX), "18446744073709551615"),
            (Number::Whole(0), "0"),
            (Number::Float(0.1), "0.1"),
            (Number::Float(1.0), "1.0"),
            (Number::Float(-2.5e-9), "-2.5e-9"),
            (Number::Float(1e300), "1e+300"),
            (Number::Float(f64::NAN), "NaN"),
            (Number::Float(f64::INFINITY), "+Inf"),
            (Number::Float(f64::NEG_INFINITY), "-Inf"),
        ];
        for (number, text) in cases {
            let mut written = String::new();
            number.write(&mut written);
            assert_eq!(written, text);
        }
    }

    #[test]
    fn a_time_keeps_its_milliseconds() {
        let cases =
            [(0, "0.000"), (1_700_000_000_045_999_999, "1700000000.045"), (999_999, "0.000")];
        for (nanoseconds, text) in cases {
            let mut written = String::new();
            seconds(nanoseconds, &mut written);
            assert_eq!(written, text);
        }
    }
}
