//! `telltale alerts`: what is wrong with the machine now, or was when it was recorded, by the rules of
//! the service.

mod asking;
mod replayed;

use std::time::Duration;

use serde_json::{Value, json};
use telltale_collector::clock::SystemClock;
use telltale_collector::{CollectOptions, Collector};
use telltale_node::alerts::{Alert, Engine, Rule, Severity, VisibleAlerts};
use telltale_node::configuration::{Configuration, Effective, Origin};
use telltale_node::kubelet::list_allocated;
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::quantity::span;
use telltale_smi::{AlertRow, RuleRow};

use crate::arguments::AlertsArguments;
use crate::exit::{self, Failure, Status};
use crate::output::StandardOutput;
use crate::settings;
use asking::ServiceAnswer;

/// The key of the configuration that has rules.
const RULES_KEY: &str = "alerts.rule";

/// Runs the command.
pub(crate) fn run(arguments: &AlertsArguments) -> Result<Status, Failure> {
    let output = StandardOutput::detect();
    if arguments.rules {
        let effective = configuration(arguments)?;
        let rules = rules_of(&effective)?;
        output.print(&match arguments.json {
            true => rules_as_json(&rules, &effective),
            false => rules_as_table(&rules, &effective, &output),
        })?;
        return Ok(Status::Fine);
    }
    if let Some(path) = &arguments.replay {
        let rules = rules_of(&configuration(arguments)?)?;
        return replayed::show(path, rules, arguments.json, &output);
    }
    let found = find(arguments)?;
    output.print(&match arguments.json {
        true => serde_json::to_string(&found).expect("alerts are JSON") + "\n",
        false => as_table(&found, &output),
    })?;
    // A pending alert is wrong already; only what acts on it waits.
    let is_wrong = found.alerts.iter().any(|alert| alert.severity >= Severity::Warning);
    Ok(if is_wrong { Status::Firing } else { Status::Fine })
}

/// What the service says; where there is none, what one check finds.
fn find(arguments: &AlertsArguments) -> Result<VisibleAlerts, Failure> {
    match asking::ask(&arguments.place)? {
        ServiceAnswer::Alerts { socket, found } => {
            if let Some(file) = &arguments.config {
                let (file, socket) = (file.display(), socket.display());
                exit::tell(&format!(
                    "telltale: the service at {socket} answers with its own rules; {file} is not read"
                ));
            }
            Ok(found)
        }
        ServiceAnswer::None { left_behind } => {
            if arguments.service {
                return Err(Failure::Message(asking::none(&arguments.place, left_behind)));
            }
            if let Some(socket) = left_behind {
                exit::tell(&format!("telltale: {}", asking::left(&socket)));
            }
            evaluate_once(arguments)
        }
    }
}

/// What holds at this moment. Nothing has held for any time yet, so no time is asked for.
fn evaluate_once(arguments: &AlertsArguments) -> Result<VisibleAlerts, Failure> {
    let configuration = one_check(arguments)?;
    let mut rules = configuration.alerts.rules().map_err(|error| Failure::because(&error))?;
    rules.iter_mut().for_each(|rule| rule.for_seconds = 0);
    let place = arguments.place.clone();
    let options = CollectOptions {
        root: place.root.unwrap_or_else(|| "/".into()),
        runtime_dir: place.runtime_dir,
        list_allocated: Some(list_allocated),
        health: configuration.health.settings(),
        ..CollectOptions::default()
    };
    let options = arguments.hardware.limit(options);
    let mut collector = Collector::new(options).map_err(|error| Failure::because(&error))?;
    let mut engine = Engine::new(rules);
    collector.collect();
    collector.watch_heartbeats();
    engine.step(SystemClock.monotonic_ns(), &collector.collect());
    exit::tell(
        "no service runs here, so this is one sample: what must hold for a time counts at once, and \
         leaks, idle processes and devices that have vanished are not found; telltale serve finds \
         them",
    );
    Ok(VisibleAlerts { alerts: engine.alerts().cloned().collect(), withheld: 0 })
}

/// The configuration of one check. A file that was named must be usable; without those of the
/// service the program's rules hold, and a line says so.
fn one_check(arguments: &AlertsArguments) -> Result<Configuration, Failure> {
    match settings::effective(arguments.config.clone()) {
        Ok(effective) => Ok(effective.configuration),
        Err(error) if arguments.config.is_none() => {
            settings::warn(&error);
            Ok(Configuration::default())
        }
        Err(error) => Err(Failure::because(&error)),
    }
}

fn configuration(arguments: &AlertsArguments) -> Result<Effective, Failure> {
    settings::effective(arguments.config.clone()).map_err(|error| Failure::because(&error))
}

fn rules_of(effective: &Effective) -> Result<Vec<Rule>, Failure> {
    effective.configuration.alerts.rules().map_err(|error| Failure::because(&error))
}

fn as_table(found: &VisibleAlerts, output: &StandardOutput) -> String {
    let now = SystemClock.now();
    let rows: Vec<AlertRow<'_>> = found.alerts.iter().map(|alert| row(alert, now)).collect();
    let mut text = telltale_smi::alerts(&rows, &output.style());
    if found.withheld > 0 {
        let withheld = found.withheld;
        text.push_str(&format!("\nNot shown: {withheld} about processes of other users.\n"));
    }
    text
}

fn row(alert: &Alert, now: Timestamp) -> AlertRow<'_> {
    let held = Duration::from_nanos(now.since_ns(alert.since));
    AlertRow {
        state: alert.state.name(),
        severity: alert.severity.name(),
        rule: &alert.rule,
        held: span(held.as_secs_f64()),
        text: &alert.text,
    }
}

fn rules_as_table(rules: &[Rule], effective: &Effective, output: &StandardOutput) -> String {
    let rows: Vec<RuleRow<'_>> = rules.iter().map(|rule| rule_row(rule, effective)).collect();
    telltale_smi::rules(&rows, &output.style())
}

fn rule_row<'a>(rule: &'a Rule, effective: &Effective) -> RuleRow<'a> {
    let seconds = |seconds: u64| span(Duration::from_secs(seconds).as_secs_f64());
    let thresholds = match serde_json::to_value(rule.condition) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::default(),
    };
    let thresholds = thresholds.iter().filter(|(name, _)| *name != "condition");
    let thresholds = thresholds.map(|(name, value)| match value {
        Value::String(text) => format!(" {name}={text}"),
        other => format!(" {name}={other}"),
    });
    RuleRow {
        rule: &rule.name,
        severity: rule.severity.name(),
        condition: format!("{}{}", rule.condition.name(), thresholds.collect::<String>()),
        times: [seconds(rule.for_seconds), seconds(rule.clear_for_seconds)],
        origin: origin(rule, effective),
    }
}

fn rules_as_json(rules: &[Rule], effective: &Effective) -> String {
    let one = |rule: &Rule| {
        let mut fields = json!(rule);
        fields["origin"] = origin(rule, effective).into();
        fields
    };
    format!("{}\n", Value::Array(rules.iter().map(one).collect()))
}

/// Where a rule comes from: the program, the place that changes it, or the place that has it.
fn origin(rule: &Rule, effective: &Effective) -> String {
    let texts = &effective.configuration.alerts.rule;
    if !texts.iter().any(|text| text.name == rule.name) {
        return String::from("the program");
    }
    let found = effective.values.iter().find(|(key, ..)| key == RULES_KEY);
    let place = found.map_or(&Origin::Default, |(.., origin)| origin);
    let of_the_program = Rule::defaults().iter().any(|one| one.name == rule.name)
        && !effective.configuration.alerts.without_defaults;
    if of_the_program { format!("the program, changed by {place}") } else { place.to_string() }
}
