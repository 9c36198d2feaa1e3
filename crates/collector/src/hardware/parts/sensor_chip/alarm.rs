//! Whether an alarm of a channel is on and means something: a board leaves the limits of inputs that it does
//! not use as its chip starts up with them, and their alarms are on for ever.
//!
//! Chips start up with both limits 0, with the lower one above the upper one, or with anything. So an
//! alarm about limits counts where these were set and the value is beyond them.

use telltale_schema::reading::{Absence, Reading};

use super::MAX_FILES;
use crate::hardware::parts::value::{PartFiles, any, truth};

/// What a channel may say to raise an alarm, after its name. An alarm of a cap is none: a chip that is
/// held to its cap does what it should.
pub(super) const ALARMS: [&str; 7] =
    ["alarm", "min_alarm", "max_alarm", "crit_alarm", "lcrit_alarm", "rated_max_alarm", "fault"];
/// Those of them that are about the channel's `min` and `max`.
const OF_LIMITS: [&str; 3] = ["alarm", "min_alarm", "max_alarm"];

/// How the channels of voltages begin.
const VOLTAGE: &str = "in";

/// The limits of a channel, in the unit of its value.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limits {
    min: Option<f64>,
    max: Option<f64>,
}

// === impl Limits ===

impl Limits {
    /// Those of a channel; a limit that it has and that cannot be read is an absent reading.
    fn of(files: &PartFiles<'_>, channel: &str) -> Result<Self, Reading<f64>> {
        let limit = |what: &str| {
            let limit = files.number(&format!("{channel}_{what}"), 1.0, f64::MIN..=f64::MAX);
            match (limit.value(), limit.absence()) {
                (Some(value), _) => Ok(Some(*value)),
                (_, Some((Absence::Unsupported, _))) => Ok(None),
                _ => Err(limit),
            }
        };
        Ok(Self { min: limit("min")?, max: limit("max")? })
    }

    fn are_reversed(self) -> bool {
        self.min.zip(self.max).is_some_and(|(min, max)| min > max)
    }

    /// Whether a value is beyond them; one that is not known may be.
    fn exclude(self, value: Option<f64>) -> bool {
        let is_below = |min: f64| value.is_none_or(|value| value < min);
        let is_above = |max: f64| value.is_none_or(|value| value > max);
        match (self.min, self.max) {
            (Some(min), Some(max)) => min < max && (is_below(min) || is_above(max)),
            // One that is 0 was not set.
            (Some(min), None) => min != 0.0 && is_below(min),
            (None, Some(max)) => max != 0.0 && is_above(max),
            (None, None) => true,
        }
    }
}

/// Whether any of a channel's alarms is on and means something.
pub(super) fn of_channel(files: &PartFiles<'_>, channel: &str) -> Reading<f64> {
    any(ALARMS.into_iter().map(|alarm| {
        let reading = files.parsed(&format!("{channel}_{alarm}"), truth);
        let is_on = reading.value().is_some_and(|value| *value > 0.0);
        if !is_on || !OF_LIMITS.contains(&alarm) {
            return reading;
        }
        match is_beyond(files, channel) {
            Ok(true) => reading,
            Ok(false) => files.is(false),
            Err(absent) => absent,
        }
    }))
}

/// Whether a channel's value is beyond limits that were set.
fn is_beyond(files: &PartFiles<'_>, channel: &str) -> Result<bool, Reading<f64>> {
    let limits = Limits::of(files, channel)?;
    let value = files.number(&format!("{channel}_input"), 1.0, f64::MIN..=f64::MAX);
    let is_beyond = limits.exclude(value.value().copied());
    Ok(is_beyond && (!channel.starts_with(VOLTAGE) || are_set(files)))
}

/// Whether the limits of the chip were set: where they are reversed for one voltage, all are as the chip
/// started up with them.
pub(super) fn are_set(files: &PartFiles<'_>) -> bool {
    let names = files.directory.names_up_to(MAX_FILES).unwrap_or_default();
    let mut voltages = names
        .iter()
        .filter_map(|name| name.strip_suffix("_min"))
        .filter(|channel| channel.starts_with(VOLTAGE));
    voltages.all(|channel| !Limits::of(files, channel).is_ok_and(Limits::are_reversed))
}

#[cfg(test)]
mod tests {
    use super::Limits;

    #[test]
    fn only_limits_that_were_set_exclude_a_value() {
        for (min, max, value, expected) in [
            (Some(0.0), Some(0.0), Some(1020.0), false),
            (Some(2970.0), Some(0.0), Some(3300.0), false),
            (Some(2970.0), Some(3630.0), Some(2500.0), true),
            (Some(2970.0), Some(3630.0), Some(4000.0), true),
            // At the end of the chip's range, as an input that nothing is connected to.
            (Some(0.0), Some(4080.0), Some(4080.0), false),
            (Some(2970.0), Some(3630.0), None, true),
            (Some(0.0), None, Some(0.0), false),
            (Some(1500.0), None, Some(0.0), true),
            (None, Some(0.0), Some(900.0), false),
            (None, Some(5500.0), Some(5600.0), true),
            (Some(-13_200.0), Some(-10_800.0), Some(-9000.0), true),
            (None, None, Some(3300.0), true),
        ] {
            assert_eq!(Limits { min, max }.exclude(value), expected, "{min:?} {max:?} {value:?}");
        }
    }
}
