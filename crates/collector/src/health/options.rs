//! The table `[health]` of the configuration: what users set of the rules.

use serde::{Deserialize, Serialize};
use telltale_schema::health::{HealthSettings, RuleSetting, SettingError};

/// From when on something is wrong with a device or a part of the machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, try_from = "Unchecked")]
pub struct HealthOptions {
    /// Settings of rules by name; what is left out is as the rule has it.
    pub rule: Vec<RuleSetting>,
}

/// The same before it is known whether the rules are there.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Unchecked {
    rule: Vec<RuleSetting>,
}

impl TryFrom<Unchecked> for HealthOptions {
    type Error = SettingError;

    fn try_from(Unchecked { rule }: Unchecked) -> Result<Self, SettingError> {
        HealthSettings::new(&rule)?;
        Ok(Self { rule })
    }
}

impl HealthOptions {
    /// The thresholds of all rules.
    pub fn settings(&self) -> HealthSettings {
        HealthSettings::new(&self.rule).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use telltale_schema::health::FaultKind;

    use super::HealthOptions;

    #[test]
    fn settings_of_rules_are_checked_when_they_are_read() {
        let text = r#"{"rule": [{"name": "fan_failed", "enabled": false}]}"#;
        let options: HealthOptions = serde_json::from_str(text).unwrap();
        assert!(!options.settings().of(FaultKind::FanFailed).enabled);
        for (wrong, words) in [
            (r#"{"rule": [{"name": "fan"}]}"#, "docs/health.md lists them"),
            (r#"{"rule": [{"name": "fan_failed", "rise": 3}]}"#, "has no `rise`; it has enabled"),
            (r#"{"rules": []}"#, "unknown field"),
        ] {
            let error = serde_json::from_str::<HealthOptions>(wrong).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
