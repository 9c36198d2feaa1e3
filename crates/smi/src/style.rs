//! How text may look: width, colour, characters beyond ASCII.

use telltale_schema::sensor::Sensor;
use telltale_schema::snapshot::Telemetry;

/// What the output can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns there are; none when the output is not a terminal and nothing need be cut.
    pub width: Option<usize>,
    /// Whether colour is wanted.
    pub color: bool,
    /// Whether the output takes characters beyond ASCII.
    pub unicode: bool,
}

impl Style {
    /// Nothing but ASCII text of any width: what files and pipes get.
    pub const PLAIN: Self = Self { width: None, color: false, unicode: false };
}

/// What a piece of text is, from which its colour follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// A heading.
    Heading,
    /// Something absent or of lesser weight.
    Faint,
    /// A value near its limit.
    Warning,
    /// A value at its limit, or something that failed.
    Alarm,
}

impl Tone {
    /// The tone of a share of a limit.
    pub fn of_share(part: f64, whole: f64) -> Self {
        if whole <= 0.0 {
            return Self::Plain;
        }
        match part / whole {
            share if share >= 0.95 => Self::Alarm,
            share if share >= 0.80 => Self::Warning,
            _ => Self::Plain,
        }
    }

    /// The tone of what a sensor of a device says, by the device's limit of it.
    pub(crate) fn of_sensor(sensor: &Sensor, value: f64, telemetry: &Telemetry) -> Self {
        sensor.limit(telemetry).map_or(Self::Plain, |limit| Self::of_share(value, limit))
    }

    /// `text` in this tone.
    pub fn paint(self, text: &str, style: &Style) -> String {
        let code = match self {
            _ if !style.color || text.is_empty() => return text.to_owned(),
            Self::Plain => return text.to_owned(),
            Self::Heading => "1",
            Self::Faint => "2",
            Self::Warning => "33",
            Self::Alarm => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
