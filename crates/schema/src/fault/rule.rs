//! What a rule of health declares, and what a user can set of it.

use serde::{Deserialize, Serialize};

use super::{FaultKind, HealthState, RULES};

/// A rule: one thing that can be wrong, and how it is found.
#[derive(Debug)]
pub struct HealthRule {
    /// What it finds.
    pub kind: FaultKind,
    /// Its name in JSON, labels, queries and the configuration.
    pub name: &'static str,
    /// The name of its alert rule.
    pub alert: &'static str,
    /// How long it must last before its alert fires and a node is drained for it: a reset takes some
    /// things away for a while, and a link trains for seconds.
    pub alert_after_seconds: u64,
    /// Its name in a few words.
    pub words: &'static str,
    /// What it finds it of.
    pub about: RuleSubject,
    /// What a device or a machine with it is.
    pub state: HealthState,
    /// How it is found.
    pub shape: Shape,
    /// A reading of the same subject that must be above 0 as well.
    pub only_while: Option<&'static str>,
    /// A reading that must have been above 0 at some time: what was never used does not fail.
    pub only_after: Option<&'static str>,
    /// Rises count while this reading is one of these.
    pub only_by: Option<(&'static str, &'static [&'static str])>,
    /// Readings that explain it, which its evidence has too.
    pub beside: &'static [&'static str],
    /// Whether each reader counts it from 0 on: what one has counted is not what another counts.
    pub counted_by_reader: bool,
    /// What holds where the user sets nothing.
    pub thresholds: Thresholds,
    /// What ends it.
    pub ends: &'static str,
    /// What to do, as the end of a sentence.
    pub action: &'static str,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleSubject {
    /// A device.
    Device,
    /// A source of readings.
    Source,
    /// A part of the machine of this kind.
    Part(&'static str),
}

/// How a rule finds what it searches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The source of the device finds it by itself.
    Found,
    /// A reading is above [`Thresholds::above`].
    Above(&'static str),
    /// The first reading is below the second.
    Below(&'static str, &'static str),
    /// A reading is below the most that was seen of it.
    Fell(&'static str),
    /// A reading is 0 and was above 0.
    Lost(&'static str),
    /// A counter rose by [`Thresholds::rise`] within [`Thresholds::within_seconds`]. It is over when
    /// the counter did not rise for [`Thresholds::quiet_seconds`].
    Rises(&'static str),
    /// A counter went down. It is over after [`Thresholds::quiet_seconds`].
    Restarts(&'static str),
    /// A reading is one of these, or a list with one of them.
    Includes(&'static str, &'static [&'static str]),
    /// The device had vanished and is there again. It is over after [`Thresholds::quiet_seconds`].
    Returns,
    /// Its readings are not answered in time.
    Hangs,
}

/// The numbers of a rule. Only those that its shape names mean something.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Whether the rule is checked at all.
    pub enabled: bool,
    /// See [`Shape::Above`]; in the unit of the reading.
    pub above: f64,
    /// See [`Shape::Rises`].
    pub rise: f64,
    /// See [`Shape::Rises`].
    pub within_seconds: u64,
    /// How long a counter must be quiet, or how long an event is shown.
    pub quiet_seconds: u64,
    /// How long it must hold before it is found.
    pub hold_seconds: u64,
}

/// What a user sets of one rule: `[[health.rule]]` of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSetting {
    /// Which rule.
    pub name: String,
    /// Whether it is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// As in [`Thresholds`], each of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// The rise from which on a counter counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<f64>,
    /// The time within which it must rise so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_seconds: Option<u64>,
    /// The time without a rise after which it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_seconds: Option<u64>,
    /// The time for which it must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_seconds: Option<u64>,
}

/// The thresholds of every rule, in the order of [`RULES`].
#[derive(Debug, Clone, PartialEq)]
pub struct HealthSettings(Vec<Thresholds>);

/// Why settings are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// There is no such rule.
    #[error("there is no health rule {0:?}; docs/health.md lists them{hint}", hint = of_alert(.0))]
    UnknownRule(String),
    /// Two settings of one rule.
    #[error("health rule {0} is set twice; put all of its keys into one [[health.rule]]")]
    Twice(String),
    /// The rule has no such threshold.
    #[error("health rule {rule} has no `{field}`; it has {}", own.join(", "))]
    ForeignField {
        /// The rule.
        rule: String,
        /// What was set.
        field: &'static str,
        /// What can be.
        own: Vec<&'static str>,
    },
    /// A number that makes no sense.
    #[error("health rule {rule}: `{field}` must be a number {least}")]
    Senseless {
        /// The rule.
        rule: String,
        /// What was set.
        field: &'static str,
        /// The least that it may be.
        least: &'static str,
    },
}

/// What was meant by the name of an alert rule.
fn of_alert(name: &str) -> String {
    let rule = RULES.iter().find(|rule| rule.alert == name);
    rule.map(|rule| format!("; did you mean {:?}?", rule.name)).unwrap_or_default()
}

// === impl HealthRule ===

impl HealthRule {
    /// The thresholds that mean something to it.
    #[must_use]
    pub fn fields(&self) -> Vec<&'static str> {
        let own: &[&str] = match self.shape {
            Shape::Found => return vec!["enabled"],
            Shape::Above(_) => &["above"],
            Shape::Rises(_) => &["rise", "within_seconds", "quiet_seconds"],
            Shape::Restarts(_) | Shape::Returns => return vec!["enabled", "quiet_seconds"],
            Shape::Below(..)
            | Shape::Fell(_)
            | Shape::Lost(_)
            | Shape::Includes(..)
            | Shape::Hangs => &[],
        };
        ["enabled"].into_iter().chain(own.iter().copied()).chain(["hold_seconds"]).collect()
    }
}

// === impl HealthSettings ===

impl Default for HealthSettings {
    fn default() -> Self {
        Self(RULES.iter().map(|rule| rule.thresholds).collect())
    }
}

impl HealthSettings {
    /// The rules' own, changed as a user says.
    ///
    /// # Errors
    /// When a setting names no rule or one that another names, or sets what its rule does not have.
    pub fn new(settings: &[RuleSetting]) -> Result<Self, SettingError> {
        let mut all = Self::default();
        let mut is_set = vec![false; RULES.len()];
        for setting in settings {
            let unknown = || SettingError::UnknownRule(setting.name.clone());
            let found = RULES.iter().position(|rule| rule.name == setting.name);
            let place = found.ok_or_else(unknown)?;
            setting.check(&RULES[place])?;
            if std::mem::replace(&mut is_set[place], true) {
                return Err(SettingError::Twice(setting.name.clone()));
            }
            setting.apply(&mut all.0[place]);
        }
        Ok(all)
    }

    /// The thresholds of one rule.
    #[must_use]
    pub fn of(&self, kind: FaultKind) -> &Thresholds {
        &self.0[kind as usize]
    }
}

// === impl RuleSetting ===

impl RuleSetting {
    fn check(&self, rule: &HealthRule) -> Result<(), SettingError> {
        let whole = |seconds: Option<u64>| seconds.map(|seconds| seconds > 0);
        let given = [
            ("enabled", self.enabled.map(|_| true)),
            ("above", self.above.map(|above| above.is_finite() && above >= 0.0)),
            ("rise", self.rise.map(|rise| rise.is_finite() && rise > 0.0)),
            ("within_seconds", whole(self.within_seconds)),
            ("quiet_seconds", whole(self.quiet_seconds)),
            ("hold_seconds", self.hold_seconds.map(|_| true)),
        ];
        let own = rule.fields();
        for (field, is_sensible) in given {
            let name = || rule.name.to_owned();
            match is_sensible {
                Some(_) if !own.contains(&field) => {
                    return Err(SettingError::ForeignField { rule: name(), field, own });
                }
                Some(false) => {
                    let least = if field == "above" { "of 0 or more" } else { "above 0" };
                    return Err(SettingError::Senseless { rule: name(), field, least });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn apply(&self, to: &mut Thresholds) {
        let Self { name: _, enabled, above, rise, within_seconds, quiet_seconds, hold_seconds } =
            self;
        *to = Thresholds {
            enabled: enabled.unwrap_or(to.enabled),
            above: above.unwrap_or(to.above),
            rise: rise.unwrap_or(to.rise),
            within_seconds: within_seconds.unwrap_or(to.within_seconds),
            quiet_seconds: quiet_seconds.unwrap_or(to.quiet_seconds),
            hold_seconds: hold_seconds.unwrap_or(to.hold_seconds),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FaultKind, RULES};
    use super::{HealthSettings, RuleSetting, SettingError};

    fn setting(text: &str) -> RuleSetting {
        let mut object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&format!("{{{text}}}")).unwrap();
        object.entry("name").or_insert("memory_corrected_rising".into());
        serde_json::from_value(object.into()).unwrap()
    }

    #[test]
    fn a_user_sets_what_a_rule_has_and_nothing_else() {
        let kind = FaultKind::MemoryCorrectedRising;
        let all = HealthSettings::new(&[setting(r#""rise": 7"#)]).unwrap();
        let own = RULES[kind as usize].thresholds;
        assert_eq!((all.of(kind).rise, all.of(kind).within_seconds), (7.0, own.within_seconds));
        let refused = |text| HealthSettings::new(&[setting(text)]).unwrap_err();
        assert!(matches!(refused(r#""name": "x""#), SettingError::UnknownRule(_)));
        let alert = refused(r#""name": "device_vanished""#).to_string();
        assert!(alert.ends_with("did you mean \"vanished\"?"), "{alert}");
        let twice = [setting(r#""rise": 7"#), setting(r#""enabled": false"#)];
        assert!(matches!(HealthSettings::new(&twice), Err(SettingError::Twice(_))));
        assert!(matches!(
            refused(r#""above": 3"#),
            SettingError::ForeignField { field: "above", .. }
        ));
        for text in [r#""rise": 0"#, r#""rise": -1"#, r#""within_seconds": 0"#] {
            assert!(matches!(refused(text), SettingError::Senseless { .. }), "{text}");
        }
    }

    #[test]
    fn a_rule_stands_at_the_place_of_its_kind() {
        for (place, rule) in RULES.iter().enumerate() {
            assert_eq!(rule.kind as usize, place);
            assert_eq!(FaultKind::ALL[place], rule.kind);
            assert_eq!(serde_json::to_value(rule.kind).unwrap(), rule.name);
        }
    }
}
