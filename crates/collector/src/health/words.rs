//! A fault in words: what was seen, and what to do.

use telltale_schema::health::{Evidence, HealthRule, Shape};
use telltale_schema::quantity::span;
use telltale_schema::sensor::SENSORS;

/// Readings of a part that are shown beside the one of the rule.
const MAX_OTHERS: usize = 3;

/// What was seen and what to do, for a person.
pub(super) fn detail(rule: &HealthRule, evidence: &[Evidence]) -> String {
    let seen = match (rule.shape, evidence) {
        (Shape::Rises(name), [first, between @ .., last]) => {
            let (before, now) = (number(name, first.value), number(name, last.value));
            let span = match last.at.since_ns(first.at) / 1_000_000_000 {
                0 => String::new(),
                seconds => format!(" in {}", span(seconds as f64)),
            };
            let by: String = between.iter().map(|it| format!(", {}", shown(it))).collect();
            format!("{} rose from {before} to {now}{span}{by}", title(name))
        }
        (Shape::Restarts(name), [first, .., last]) => {
            format!("{} went from {} to {}", title(name), first.value, last.value)
        }
        (Shape::Below(name, _), [value, most]) => {
            format!("{} {} of {}", title(name), number(name, value.value), number(name, most.value))
        }
        _ => {
            let numbers = evidence.iter().filter(|it| !it.reading.starts_with("is_"));
            numbers.take(1 + MAX_OTHERS).map(shown).collect::<Vec<_>>().join(", ")
        }
    };
    match seen.is_empty() {
        true => format!("{}; {}", rule.words, rule.action),
        false => format!("{}: {seen}; {}", rule.words, rule.action),
    }
}

fn shown(it: &Evidence) -> String {
    format!("{} {}", title(&it.reading), number(&it.reading, it.value))
}

/// The name of a reading: its title where it has one, else its words without the unit.
fn title(name: &str) -> String {
    if let Some(sensor) = SENSORS.iter().find(|sensor| sensor.field == name) {
        return sensor.title.to_owned();
    }
    name.trim_end_matches("_bits_per_second").trim_end_matches("_total").replace('_', " ")
}

fn number(name: &str, value: f64) -> String {
    if name.ends_with("_bits_per_second") {
        return format!("{} Gbit/s", value / 1e9);
    }
    match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.3}"),
    }
}
