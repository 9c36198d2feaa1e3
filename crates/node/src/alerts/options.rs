//! The table `[alerts]` of the configuration: rules, and where notifications go.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use axum::http::Uri;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::rule_file::{RuleError, RuleText, rules};
use super::{Rule, webhook};

/// How long one attempt to notify may take, in seconds.
const TIMEOUT_SECONDS: RangeInclusive<u64> = 1..=60;

/// The time from one notification to the next of an alert that goes on, in seconds.
const REPEAT_SECONDS: RangeInclusive<u64> = 60..=604_800;

/// What is watched, and who is notified: the table `[alerts]` of the configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, try_from = "Unchecked")]
pub struct AlertOptions {
    /// Leave out the rules that come with the program.
    pub without_defaults: bool,
    /// Rules by name: one with the name of another takes its place, field by field.
    pub rule: Vec<RuleText>,
    /// Who is notified.
    pub webhook: WebhookOptions,
}

/// Where notifications are posted: the table `[alerts.webhook]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookOptions {
    /// Where they go, `http://` or `https://`; without it none is notified.
    #[serde(deserialize_with = "url")]
    pub url: Option<String>,
    /// A file that others cannot read, whose one line is sent as the `Authorization` header.
    pub authorization_file: Option<PathBuf>,
    /// A file of certificates (PEM) that the server's must descend from, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// How long one attempt may take, in seconds, from 1 to 60.
    #[serde(deserialize_with = "timeout_seconds")]
    pub timeout_seconds: u64,
    /// Tells again of what still fires each so many seconds, from 60 to 604800; without it once.
    #[serde(deserialize_with = "repeat_seconds")]
    pub repeat_seconds: Option<u64>,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            url: None,
            authorization_file: None,
            ca_file: None,
            timeout_seconds: 10,
            repeat_seconds: None,
        }
    }
}

/// The same before its rules were understood.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Unchecked {
    without_defaults: bool,
    rule: Vec<RuleText>,
    webhook: WebhookOptions,
}

// === impl AlertOptions ===

impl AlertOptions {
    /// The rules that hold.
    ///
    /// # Errors
    /// When a rule is not understood, which options that were read have been checked for.
    pub fn rules(&self) -> Result<Vec<Rule>, RuleError> {
        rules(self.without_defaults, &self.rule)
    }
}

impl TryFrom<Unchecked> for AlertOptions {
    type Error = RuleError;

    fn try_from(unchecked: Unchecked) -> Result<Self, RuleError> {
        let Unchecked { without_defaults, rule, webhook } = unchecked;
        rules(without_defaults, &rule)?;
        Ok(Self { without_defaults, rule, webhook })
    }
}

fn url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let checked = text.parse::<Uri>().map_err(|error| error.to_string());
    match checked.and_then(|uri| webhook::check(&uri)) {
        Ok(()) => Ok(Some(text)),
        // The text itself may have a secret in its path.
        Err(reason) => Err(D::Error::custom(format!("this is no URL to post to: {reason}"))),
    }
}

fn timeout_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    within(u64::deserialize(from)?, &TIMEOUT_SECONDS)
}

fn repeat_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<u64>::deserialize(from)?;
    number.map(|number| within(number, &REPEAT_SECONDS)).transpose()
}

/// A number of seconds within these limits.
fn within<E: Error>(number: u64, limits: &RangeInclusive<u64>) -> Result<u64, E> {
    if limits.contains(&number) {
        return Ok(number);
    }
    let (least, most) = (limits.start(), limits.end());
    Err(E::custom(format!("{number} is not from {least} to {most} seconds")))
}
