//! A reading: a value with the time it was taken, or the reason there is none.
//!
//! Unknown is never 0, −1 or NaN. Code that shows a reading must define what it does with absence.

use serde::{Deserialize, Deserializer, Serialize};

use crate::clock::Timestamp;

/// Why there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// This hardware, firmware or driver does not offer it.
    Unsupported,
    /// It will come, but has not been reported yet.
    NotYet,
    /// We are not allowed to read it.
    Permission,
    /// The device is between reset and re-initialisation.
    Resetting,
    /// A value was read that cannot be true.
    Implausible,
    /// The source did not answer in time.
    TimedOut,
    /// The device or process went away while it was read.
    Gone,
    /// The process that could tell it has ended.
    Ended,
    /// It belongs to something that cannot be seen from here, such as a process of another PID
    /// namespace.
    Hidden,
    /// No source reports it; the detail names the sources.
    Unknown,
    /// It was found, in a form that this version does not know. A reason that only a newer version
    /// knows is read as this one.
    NotUnderstood,
    /// It was found and is not believed: it belongs to the wrong user or contradicts the kernel.
    Refused,
    /// What it would be read from is not there; the detail says what to do about that.
    Missing,
    /// The source failed in a way that has no other name here; the detail says how.
    Failed,
    /// Not requested: the reader was configured to leave it out.
    NotAsked,
    /// It was known at the time, and the history does not keep it.
    NotKept,
}

impl Absence {
    /// All reasons. A reason's place is its number in files and messages: places are never
    /// reused, new reasons come at the end.
    pub const ALL: [Self; 16] = [
        Self::Unsupported,
        Self::NotYet,
        Self::Permission,
        Self::Resetting,
        Self::Implausible,
        Self::TimedOut,
        Self::Gone,
        Self::Ended,
        Self::Hidden,
        Self::Unknown,
        Self::NotUnderstood,
        Self::Refused,
        Self::Missing,
        Self::Failed,
        Self::NotAsked,
        Self::NotKept,
    ];

    /// The reason's number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The reason with this number; none for a number that a newer version may know.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::NotYet => "not_yet",
            Self::Permission => "permission",
            Self::Resetting => "resetting",
            Self::Implausible => "implausible",
            Self::TimedOut => "timed_out",
            Self::Gone => "gone",
            Self::Ended => "ended",
            Self::Hidden => "hidden",
            Self::Unknown => "unknown",
            Self::NotUnderstood => "not_understood",
            Self::Refused => "refused",
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::NotAsked => "not_asked",
            Self::NotKept => "not_kept",
        }
    }

    /// The words a person reads.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unsupported => "not offered by this device or driver",
            Self::NotYet => "not reported yet",
            Self::Permission => "permission denied",
            Self::Resetting => "device is resetting",
            Self::Implausible => "implausible value",
            Self::TimedOut => "timed out",
            Self::Gone => "went away while it was read",
            Self::Ended => "the process has ended",
            Self::Hidden => "not visible from here",
            Self::Unknown => "not known",
            Self::NotUnderstood => "not understood",
            Self::Refused => "refused",
            Self::Missing => "not there",
            Self::Failed => "reading failed",
            Self::NotAsked => "not asked for",
            Self::NotKept => "not kept in the history",
        }
    }
}

impl<'de> Deserialize<'de> for Absence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = Self::ALL.into_iter().find(|reason| reason.name() == name);
        Ok(known.unwrap_or(Self::NotUnderstood))
    }
}

/// What a reading says that the writer of a file or message left out: it was written before the
/// reading existed. The reason is [`Absence::Unknown`], which every version can read.
const UNREPORTED: &str = "not reported by the version that wrote this";

/// A value and when it was taken, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(rename = "Reading_of_{T}"))]
#[serde(untagged)]
pub enum Reading<T> {
    /// What the source said.
    Value {
        /// The value, in the unit that the field's name ends with.
        value: T,
        /// When it was read.
        at: Timestamp,
    },
    /// The source said nothing usable.
    Absent {
        /// Why.
        absent: Absence,
        /// What exactly happened, for a person: a path, an error, the value refused.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
    },
}

/// What JSON has of a reading that is there.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written<T> {
    Value {
        value: T,
        at: Timestamp,
    },
    Absent {
        absent: Absence,
        #[serde(default)]
        detail: String,
    },
}

/// A reading is read like an `Option`, so that serde takes a missing field for an absent reading:
/// no field needs an attribute for it.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Reading<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Option::deserialize(deserializer)? {
            Some(Written::Value { value, at }) => Self::Value { value, at },
            Some(Written::Absent { absent, detail }) => Self::Absent { absent, detail },
            None => Self::unreported(),
        })
    }
}

impl<T> Reading<T> {
    /// The reading that the writer of a file or message left out.
    pub fn unreported() -> Self {
        Self::absent(Absence::Unknown, UNREPORTED)
    }

    /// A value read at `at`.
    pub fn new(value: T, at: Timestamp) -> Self {
        Self::Value { value, at }
    }

    /// No value, with the reason and what exactly happened (may be empty).
    pub fn absent(reason: Absence, detail: impl Into<String>) -> Self {
        Self::Absent { absent: reason, detail: detail.into() }
    }

    /// The value, where there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value { value, .. } => Some(value),
            Self::Absent { .. } => None,
        }
    }

    /// Why there is no value, where there is none.
    pub fn absence(&self) -> Option<(Absence, &str)> {
        match self {
            Self::Value { .. } => None,
            Self::Absent { absent, detail } => Some((*absent, detail)),
        }
    }

    /// The same reading of another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Value { value, at } => Reading::Value { value: change(value), at },
            Self::Absent { absent, detail } => Reading::Absent { absent, detail },
        }
    }

    /// Keeps the value if `plausible` says so, otherwise becomes [`Absence::Implausible`] with
    /// the refused value in its detail.
    pub fn keep_if(self, plausible: impl FnOnce(&T) -> bool) -> Self
    where
        T: std::fmt::Debug,
    {
        match self {
            Self::Value { value, .. } if !plausible(&value) => {
                Self::absent(Absence::Implausible, format!("{value:?}"))
            }
            kept => kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Absence, Reading};
    use crate::clock::Timestamp;

    #[test]
    fn absence_survives_json_with_its_reason() {
        let readings = [
            (Reading::new(36.5, Timestamp(7)), r#"{"value":36.5,"at":7}"#),
            (Reading::absent(Absence::Resetting, ""), r#"{"absent":"resetting"}"#),
            (Reading::absent(Absence::Failed, "EIO"), r#"{"absent":"failed","detail":"EIO"}"#),
        ];
        for (reading, text) in readings {
            assert_eq!(serde_json::to_string(&reading).unwrap(), text);
            assert_eq!(serde_json::from_str::<Reading<f64>>(text).unwrap(), reading);
        }
    }

    #[test]
    fn what_an_older_or_newer_version_wrote_is_read() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Row {
            added: Reading<f64>,
        }
        for text in ["{}", r#"{"added":null}"#] {
            let row: Row = serde_json::from_str(text).unwrap();
            assert_eq!(row, Row { added: Reading::unreported() }, "{text}");
        }
        let newer = r#"{"added":{"absent":"asleep","detail":"until noon"}}"#;
        let row: Row = serde_json::from_str(newer).unwrap();
        assert_eq!(row.added.absence(), Some((Absence::NotUnderstood, "until noon")));
        for bad in [r#"{"added":7}"#, r#"{"added":{}}"#, r#"{"added":{"value":1}}"#] {
            assert!(serde_json::from_str::<Row>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_reason_is_at_the_place_that_its_number_says() {
        for (code, reason) in (0u8..).zip(Absence::ALL) {
            assert_eq!((reason.code(), Absence::from_code(code)), (code, Some(reason)));
            let json = serde_json::to_value(reason).unwrap();
            assert_eq!(json, reason.name());
            assert_eq!(serde_json::from_value::<Absence>(json).unwrap(), reason);
        }
        assert_eq!(Absence::from_code(16), None);
    }

    #[test]
    fn only_what_a_device_or_driver_lacks_is_said_to_be_theirs() {
        let others = [
            Absence::Ended,
            Absence::Hidden,
            Absence::Unknown,
            Absence::NotUnderstood,
            Absence::Refused,
            Absence::Missing,
        ];
        for absence in others {
            assert!(!absence.words().contains("device"), "{absence:?}");
        }
    }

    #[test]
    fn an_implausible_value_is_refused_and_shown() {
        let reading = Reading::new(4_000.0, Timestamp(1)).keep_if(|watts| *watts <= 1_500.0);
        assert_eq!(reading.absence(), Some((Absence::Implausible, "4000.0")));
        assert_eq!(Reading::new(20.0, Timestamp(1)).keep_if(|_| true).value(), Some(&20.0));
    }
}
