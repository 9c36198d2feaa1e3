//! A fault in words: what was seen, and what to do.

use telltale_schema::health::{Evidence, HealthRule, Shape};
use telltale_schema::quantity::span;
use telltale_schema::sensor::SENSORS;

/// What readings of parts and sources are called, and their unit, as sensors are called by their titles.
const TITLES: [(&str, &str, &str); 16] = [
    ("carrier_downs_total", "link down count", ""),
    ("corrected_errors_total", "memory errors corrected", ""),
    ("gids", "GIDs", ""),
    ("link_downs_total", "link down count", ""),
    ("link_recoveries_total", "link error recoveries", ""),
    ("maximum_volts", "max", " V"),
    ("minimum_revolutions_per_minute", "min", " rpm"),
    ("minimum_volts", "min", " V"),
    ("physical_state", "physical state", ""),
    ("revolutions_per_minute", "speed", " rpm"),
    ("routable_gids", "routable GIDs", ""),
    ("speed_bits_per_second", "speed", " Gbit/s"),
    ("timed_out_calls", "calls without an answer", ""),
    ("uncorrected_errors_total", "memory errors uncorrected", ""),
    ("volts", "voltage", " V"),
    ("watts", "power", " W"),
];

/// Truths: the words of a rule say them already.
const TRUTHS: [&str; 4] = ["alarm", "up", "is_there", "lost"];

/// States of the hardware of an InfiniBand port, by their number (`phys_state_to_str` of the kernel).
const PHYSICAL_STATES: [&str; 8] = [
    "No state change",
    "Sleep",
    "Polling",
    "Disabled",
    "PortConfigurationTraining",
    "LinkUp",
    "LinkErrorRecovery",
    "Phy Test",
];

/// What the name of a reading begins with that is the most that was seen of another one.
const HIGHEST: &str = "highest_";

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
            let numbers = evidence.iter().filter(|it| !TRUTHS.contains(&it.reading.as_str()));
            numbers.map(shown).collect::<Vec<_>>().join(", ")
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

/// The title of a reading.
fn title(name: &str) -> String {
    if let Some(of) = name.strip_prefix(HIGHEST) {
        return format!("highest {}", title(of));
    }
    let sensor = SENSORS.iter().find(|sensor| sensor.field == name).map(|sensor| sensor.title);
    let title = sensor.or_else(|| own(name).map(|(_, title, _)| *title));
    // A reason, such as that clocks are held down for.
    title.map_or_else(|| name.replace('_', " "), str::to_owned)
}

fn number(name: &str, value: f64) -> String {
    let name = name.strip_prefix(HIGHEST).unwrap_or(name);
    let unit = own(name).map_or("", |(_, _, unit)| unit);
    let state = PHYSICAL_STATES.iter().zip(0_u8..).find(|(_, state)| f64::from(*state) == value);
    if let Some((words, _)) = state.filter(|_| name == "physical_state") {
        return (*words).to_owned();
    }
    let value = if name.ends_with("_bits_per_second") { value / 1e9 } else { value };
    match value.fract() == 0.0 {
        true => format!("{value:.0}{unit}"),
        false => format!("{}{unit}", (value * 1e3).round() / 1e3),
    }
}

/// The entry of a reading of a part or a source.
fn own(name: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    TITLES.iter().find(|(reading, ..)| *reading == name)
}

#[cfg(test)]
mod tests {
    use telltale_schema::health::{RULES, RuleSubject, Shape};
    use telltale_schema::sensor::SENSORS;

    use super::{TITLES, TRUTHS};

    #[test]
    fn every_reading_that_a_rule_shows_has_a_title() {
        let mut shown = Vec::new();
        for rule in RULES.iter().filter(|rule| rule.about != RuleSubject::Device) {
            match rule.shape {
                Shape::Above(name) | Shape::Below(name, _) | Shape::Fell(name) => shown.push(name),
                Shape::Lost(name) | Shape::Rises(name) => shown.push(name),
                _ => {}
            }
            shown.extend(rule.beside);
        }
        let is_titled = |name: &str| {
            let is_own = TITLES.iter().any(|(reading, ..)| *reading == name);
            is_own || TRUTHS.contains(&name) || SENSORS.iter().any(|sensor| sensor.field == name)
        };
        for name in &shown {
            assert!(is_titled(name), "{name}");
        }
        for (name, ..) in TITLES {
            assert!(shown.contains(&name), "no rule shows {name}");
        }
    }
}
