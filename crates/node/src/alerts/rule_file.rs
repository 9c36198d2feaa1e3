//! Rules as the configuration has them: those that come with the program, changed, switched off
//! and added to by name.

use serde::{Deserialize, Serialize};
use telltale_schema::health::{HealthState, RULES};
use telltale_schema::memory::MemorySpace;

use super::{Condition, Rule, Severity};

/// Rules that may be configured.
pub(super) const MAX_RULES: usize = 256;

/// One `[[alerts.rule]]`. What is left out is as in the rule of the same name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuleText {
    /// The rule's name.
    pub name: String,
    /// Switches the rule off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// How bad it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// `capacity`, `leak`, `dead_memory`, `idle_memory`, `temperature`, `source_down`, or the name
    /// of a rule of health.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// How long the condition must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_seconds: Option<u64>,
    /// How long it must be clearly over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clear_for_seconds: Option<u64>,
    /// `dram`, `l1` or `host` (capacity, leak).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<MemorySpace>,
    /// Raised from this share on (capacity, temperature).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above_ratio: Option<f64>,
    /// Clear below this share (capacity, temperature).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clear_ratio: Option<f64>,
    /// Raised from this many bytes on (`dead_memory`, `idle_memory`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above_bytes: Option<u64>,
    /// The time that is checked (leak).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_seconds: Option<u64>,
    /// The rise over that time (leak).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth_bytes: Option<u64>,
    /// Raised only if the space would be full within this time (leak).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exhausted_within_seconds: Option<u64>,
    /// How long nothing must have been recorded (`idle_memory`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
}

/// Why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A rule without a name.
    #[error("an alert rule has no `name`; give it one, such as name = \"nearly_full\"")]
    NoName,
    /// Two with one name.
    #[error("there are two alert rules named {0:?}; a name changes one rule, once")]
    Twice(String),
    /// A new rule that does not say what it searches for.
    #[error(
        "alert rule {0:?} is new and has no `condition`; say capacity, leak, dead_memory, \
         idle_memory, temperature, source_down or a rule of docs/health.md, or use the name of a rule \
         that is there"
    )]
    NoCondition(String),
    /// A condition that is not known.
    #[error(
        "alert rule {rule:?} has condition {condition:?}, which is not known; there are capacity, \
         leak, dead_memory, idle_memory, temperature, source_down and the rules of docs/health.md"
    )]
    UnknownCondition {
        /// The rule.
        rule: String,
        /// What it said.
        condition: String,
    },
    /// A field that the condition does not have.
    #[error("alert rule {rule:?}: condition {condition} has no `{field}`; leave it out")]
    ForeignField {
        /// The rule.
        rule: String,
        /// Its condition.
        condition: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A value that makes no sense.
    #[error("alert rule {rule:?}: {what}")]
    Senseless {
        /// The rule.
        rule: String,
        /// What is wrong and what would be right.
        what: &'static str,
    },
    /// More than can be kept.
    #[error("there are more than {MAX_RULES} alert rules")]
    TooMany,
}

/// The rules that hold: those that come with the program, unless they are left out, with `texts`
/// over them.
///
/// # Errors
/// When a rule is not understood; the first one that is not is reported.
pub(super) fn rules(without_defaults: bool, texts: &[RuleText]) -> Result<Vec<Rule>, RuleError> {
    let mut rules = if without_defaults { Vec::new() } else { Rule::defaults() };
    let mut named = std::collections::BTreeSet::new();
    for text in texts {
        if text.name.is_empty() {
            return Err(RuleError::NoName);
        }
        if !named.insert(&text.name) {
            return Err(RuleError::Twice(text.name.clone()));
        }
        let place = rules.iter().position(|rule| rule.name == text.name);
        let changed = text.applied_to(place.map(|place| &rules[place]))?;
        match place {
            Some(place) if text.disabled => drop(rules.remove(place)),
            Some(place) => rules[place] = changed,
            None if text.disabled => {}
            None => rules.push(changed),
        }
    }
    if rules.len() > MAX_RULES {
        return Err(RuleError::TooMany);
    }
    Ok(rules)
}

impl RuleText {
    /// This rule over an earlier one of the same name.
    fn applied_to(&self, earlier: Option<&Rule>) -> Result<Rule, RuleError> {
        let template = match (&self.condition, earlier) {
            (None, None) => return Err(RuleError::NoCondition(self.name.clone())),
            (None, Some(rule)) => rule.clone(),
            (Some(name), earlier) => {
                let same = earlier.filter(|rule| rule.condition.name() == name);
                same.cloned().or_else(|| template(name)).ok_or_else(|| {
                    RuleError::UnknownCondition { rule: self.name.clone(), condition: name.clone() }
                })?
            }
        };
        let condition = self.condition_over(template.condition);
        self.refuse_foreign_fields(condition)?;
        let rule = Rule {
            name: self.name.clone(),
            severity: self.severity.unwrap_or(template.severity),
            condition,
            for_seconds: self.for_seconds.unwrap_or(template.for_seconds),
            clear_for_seconds: self.clear_for_seconds.unwrap_or(template.clear_for_seconds),
        };
        match senseless(&rule.condition) {
            Some(what) => Err(RuleError::Senseless { rule: rule.name, what }),
            None => Ok(rule),
        }
    }

    fn condition_over(&self, template: Condition) -> Condition {
        match template {
            Condition::Capacity { space, above_ratio, clear_ratio } => Condition::Capacity {
                space: self.space.unwrap_or(space),
                above_ratio: self.above_ratio.unwrap_or(above_ratio),
                clear_ratio: self.clear_ratio.unwrap_or(clear_ratio),
            },
            Condition::Leak { space, window_seconds, growth_bytes, exhausted_within_seconds } => {
                Condition::Leak {
                    space: self.space.unwrap_or(space),
                    window_seconds: self.window_seconds.unwrap_or(window_seconds),
                    growth_bytes: self.growth_bytes.unwrap_or(growth_bytes),
                    exhausted_within_seconds: self
                        .exhausted_within_seconds
                        .unwrap_or(exhausted_within_seconds),
                }
            }
            Condition::DeadMemory { above_bytes } => {
                Condition::DeadMemory { above_bytes: self.above_bytes.unwrap_or(above_bytes) }
            }
            Condition::IdleMemory { above_bytes, idle_seconds } => Condition::IdleMemory {
                above_bytes: self.above_bytes.unwrap_or(above_bytes),
                idle_seconds: self.idle_seconds.unwrap_or(idle_seconds),
            },
            Condition::Temperature { above_ratio, clear_ratio } => Condition::Temperature {
                above_ratio: self.above_ratio.unwrap_or(above_ratio),
                clear_ratio: self.clear_ratio.unwrap_or(clear_ratio),
            },
            Condition::SourceDown | Condition::Health { .. } => template,
        }
    }

    fn refuse_foreign_fields(&self, condition: Condition) -> Result<(), RuleError> {
        let given = [
            ("space", self.space.is_some()),
            ("above_ratio", self.above_ratio.is_some()),
            ("clear_ratio", self.clear_ratio.is_some()),
            ("above_bytes", self.above_bytes.is_some()),
            ("window_seconds", self.window_seconds.is_some()),
            ("growth_bytes", self.growth_bytes.is_some()),
            ("exhausted_within_seconds", self.exhausted_within_seconds.is_some()),
            ("idle_seconds", self.idle_seconds.is_some()),
        ];
        let own = condition.fields();
        match given.iter().find(|(field, there)| *there && !own.contains(field)) {
            Some((field, _)) => Err(RuleError::ForeignField {
                rule: self.name.clone(),
                condition: condition.name(),
                field,
            }),
            None => Ok(()),
        }
    }
}

impl Condition {
    /// Its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Capacity { .. } => "capacity",
            Self::Leak { .. } => "leak",
            Self::DeadMemory { .. } => "dead_memory",
            Self::IdleMemory { .. } => "idle_memory",
            Self::Temperature { .. } => "temperature",
            Self::SourceDown => "source_down",
            Self::Health { fault } => fault.rule().alert,
        }
    }

    pub(super) const fn fields(&self) -> &'static [&'static str] {
        match self {
            Self::Capacity { .. } => &["space", "above_ratio", "clear_ratio"],
            Self::Leak { .. } => {
                &["space", "window_seconds", "growth_bytes", "exhausted_within_seconds"]
            }
            Self::DeadMemory { .. } => &["above_bytes"],
            Self::IdleMemory { .. } => &["above_bytes", "idle_seconds"],
            Self::Temperature { .. } => &["above_ratio", "clear_ratio"],
            Self::SourceDown | Self::Health { .. } => &[],
        }
    }
}

/// The rule of the program that has this condition: what a new rule leaves out is as there.
fn template(condition: &str) -> Option<Rule> {
    let events = RULES.iter().filter(|rule| rule.state == HealthState::Ok).map(Rule::of_health);
    Rule::defaults().into_iter().chain(events).find(|rule| rule.condition.name() == condition)
}

fn senseless(condition: &Condition) -> Option<&'static str> {
    match *condition {
        Condition::Capacity { above_ratio, clear_ratio, .. }
        | Condition::Temperature { above_ratio, clear_ratio } => {
            let finite = above_ratio.is_finite() && clear_ratio.is_finite();
            if !finite || above_ratio <= 0.0 || clear_ratio <= 0.0 {
                Some("a ratio must be above 0; 0.9 is 90 %")
            } else if clear_ratio > above_ratio {
                Some("`clear_ratio` must not be above `above_ratio`")
            } else {
                None
            }
        }
        Condition::Leak { window_seconds, growth_bytes, .. } => {
            if window_seconds < 60 {
                Some("`window_seconds` must be at least 60: less cannot tell a leak from a step")
            } else if growth_bytes == 0 {
                Some("`growth_bytes` must be at least 1")
            } else {
                None
            }
        }
        Condition::DeadMemory { above_bytes } | Condition::IdleMemory { above_bytes, .. } => {
            (above_bytes == 0).then_some("`above_bytes` must be at least 1")
        }
        Condition::SourceDown | Condition::Health { .. } => None,
    }
}
