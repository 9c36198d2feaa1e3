//! Quantities as people write them: a number and a unit.

use telltale_schema::metric::Unit;

/// What a number measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Bytes.
    Bytes,
    /// Bytes a second.
    Rate,
    /// Degrees Celsius.
    Temperature,
    /// Watts.
    Power,
    /// Volts.
    Voltage,
    /// Amperes.
    Current,
    /// Hertz.
    Frequency,
    /// Seconds.
    Time,
    /// A share, where 1 is the whole.
    Share,
    /// A number of things.
    Count,
}

/// The units of each dimension and how much of the base unit each is. Case counts only where it
/// distinguishes two: `m` is a minute, and a unit is looked up as written first.
const UNITS: [(&str, Dimension, f64); 44] = [
    ("B", Dimension::Bytes, 1.0),
    ("KiB", Dimension::Bytes, 1024.0),
    ("MiB", Dimension::Bytes, 1_048_576.0),
    ("GiB", Dimension::Bytes, 1_073_741_824.0),
    ("TiB", Dimension::Bytes, 1_099_511_627_776.0),
    ("kB", Dimension::Bytes, 1e3),
    ("MB", Dimension::Bytes, 1e6),
    ("GB", Dimension::Bytes, 1e9),
    ("TB", Dimension::Bytes, 1e12),
    // As htop, nvtop and free(1) write them.
    ("K", Dimension::Bytes, 1024.0),
    ("M", Dimension::Bytes, 1_048_576.0),
    ("G", Dimension::Bytes, 1_073_741_824.0),
    ("T", Dimension::Bytes, 1_099_511_627_776.0),
    ("B/s", Dimension::Rate, 1.0),
    ("KiB/s", Dimension::Rate, 1024.0),
    ("MiB/s", Dimension::Rate, 1_048_576.0),
    ("GiB/s", Dimension::Rate, 1_073_741_824.0),
    ("kB/s", Dimension::Rate, 1e3),
    ("MB/s", Dimension::Rate, 1e6),
    ("GB/s", Dimension::Rate, 1e9),
    ("TB/s", Dimension::Rate, 1e12),
    ("C", Dimension::Temperature, 1.0),
    ("°C", Dimension::Temperature, 1.0),
    ("W", Dimension::Power, 1.0),
    ("mW", Dimension::Power, 1e-3),
    ("kW", Dimension::Power, 1e3),
    ("V", Dimension::Voltage, 1.0),
    ("mV", Dimension::Voltage, 1e-3),
    ("A", Dimension::Current, 1.0),
    ("mA", Dimension::Current, 1e-3),
    ("Hz", Dimension::Frequency, 1.0),
    ("kHz", Dimension::Frequency, 1e3),
    ("MHz", Dimension::Frequency, 1e6),
    ("GHz", Dimension::Frequency, 1e9),
    ("ms", Dimension::Time, 1e-3),
    ("s", Dimension::Time, 1.0),
    ("sec", Dimension::Time, 1.0),
    ("m", Dimension::Time, 60.0),
    ("min", Dimension::Time, 60.0),
    ("h", Dimension::Time, 3_600.0),
    ("d", Dimension::Time, 86_400.0),
    ("%", Dimension::Share, 0.01),
    ("k", Dimension::Count, 1e3),
    ("x", Dimension::Count, 1.0),
];

impl Dimension {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Bytes,
        Self::Rate,
        Self::Temperature,
        Self::Power,
        Self::Voltage,
        Self::Current,
        Self::Frequency,
        Self::Time,
        Self::Share,
        Self::Count,
    ];

    /// That of a metric's unit.
    pub(crate) const fn of(unit: Unit) -> Self {
        match unit {
            Unit::Bytes => Self::Bytes,
            Unit::BytesPerSecond => Self::Rate,
            Unit::Seconds => Self::Time,
            Unit::Celsius => Self::Temperature,
            Unit::Volts => Self::Voltage,
            Unit::Amperes => Self::Current,
            Unit::Watts => Self::Power,
            Unit::Hertz => Self::Frequency,
            Unit::Ratio => Self::Share,
            Unit::Joules | Unit::Count | Unit::RevolutionsPerMinute | Unit::None => Self::Count,
        }
    }

    /// Its units, the base unit first.
    pub fn units(self) -> impl Iterator<Item = &'static str> {
        UNITS.iter().filter(move |(_, of, _)| *of == self).map(|(name, ..)| *name)
    }

    /// The words for it, with its base unit.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Bytes => "an amount of memory",
            Self::Rate => "bytes a second",
            Self::Temperature => "a temperature",
            Self::Power => "a power",
            Self::Voltage => "a voltage",
            Self::Current => "a current",
            Self::Frequency => "a frequency",
            Self::Time => "a time",
            Self::Share => "a share",
            Self::Count => "a number",
        }
    }

    /// How much of the base unit one of `unit` is; none where it is no unit of this dimension.
    pub(crate) fn factor(self, unit: &str) -> Option<f64> {
        let of_this = || UNITS.iter().filter(|(_, of, _)| *of == self);
        let exact = of_this().find(|(name, ..)| *name == unit);
        let found = exact.or_else(|| of_this().find(|(name, ..)| name.eq_ignore_ascii_case(unit)));
        found.map(|(.., factor)| *factor)
    }
}

#[cfg(test)]
mod tests {
    use super::Dimension;

    #[test]
    fn a_unit_is_one_of_its_dimension_in_any_case_that_is_plain() {
        for (dimension, unit, factor) in [
            (Dimension::Bytes, "GiB", Some(1_073_741_824.0)),
            (Dimension::Bytes, "gib", Some(1_073_741_824.0)),
            (Dimension::Bytes, "GB", Some(1e9)),
            (Dimension::Bytes, "g", Some(1_073_741_824.0)),
            (Dimension::Time, "m", Some(60.0)),
            (Dimension::Power, "mW", Some(1e-3)),
            (Dimension::Bytes, "s", None),
            (Dimension::Count, "GiB", None),
            (Dimension::Share, "%", Some(0.01)),
            (Dimension::Rate, "gib/s", Some(1_073_741_824.0)),
            (Dimension::Rate, "GiB", None),
        ] {
            assert_eq!(dimension.factor(unit), factor, "{unit}");
        }
    }
}
