//! Prometheus' rules and Grafana's dashboard: their metrics and labels are those that are defined,
//! and Prometheus' own tool takes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use telltale_harness::Scratch;
use telltale_schema::metric::{DEFINITIONS, MetricDefinition};

use crate::deploy::dashboard::Dashboard;
use crate::deploy::files::{deploy, text, tool, yaml};

/// Labels that Prometheus adds to whatever it scrapes.
const OF_PROMETHEUS: [&str; 2] = ["instance", "job"];

/// Files whose texts have selectors of series.
const FILES: [&str; 3] =
    ["prometheus/rules.yaml", "prometheus/rules_test.yaml", "grafana/telltale.json"];

/// A metric that a text names, and the labels by which it selects series.
type Selector<'a> = (&'a str, Vec<&'a str>);

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Everything in `text` that looks like one of our metrics.
fn selectors(text: &str) -> Vec<Selector<'_>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("telltale_") {
        if text[..at].ends_with(is_of_name) {
            continue;
        }
        let rest = &text[at..];
        let (name, rest) = rest.split_at(rest.find(|it| !is_of_name(it)).unwrap_or(rest.len()));
        let inside = rest.strip_prefix('{').and_then(|rest| rest.split('}').next());
        let labels = inside.unwrap_or_default().split(',').filter_map(|pair| {
            let end = pair.find(['=', '!'])?;
            Some(pair[..end].trim())
        });
        found.push((name, labels.collect()));
    }
    found
}

fn definition(name: &str) -> Option<&'static MetricDefinition> {
    DEFINITIONS.iter().copied().find(|definition| definition.name == name)
}

#[test]
fn every_metric_and_label_that_is_selected_is_defined() {
    let mut names = BTreeSet::new();
    for file in FILES {
        let text = text(file);
        for (name, labels) in selectors(&text) {
            let Some(definition) = definition(name) else { panic!("{file}: no metric is {name}") };
            for label in labels {
                let known = definition.labels.contains(&label) || OF_PROMETHEUS.contains(&label);
                assert!(known, "{file}: {name} has no label {label}");
            }
            names.insert(name.to_owned());
        }
    }
    assert!(names.len() > 20, "{names:?}");
}

#[test]
fn what_is_searched_for_in_a_text_is_found() {
    let text = "sum by (a) (rate(telltale_x_total{instance=~\"$i\",b!=\"c\"}[5m])) / telltale:y \
                + my_telltale_z > telltale_w";
    let found = selectors(text);
    assert_eq!(found, [("telltale_x_total", vec!["instance", "b"]), ("telltale_w", vec![])]);
}

fn promtool(test: &str, words: &[&str], directory: &Path) -> Option<()> {
    let output = tool(test, Command::new("promtool").args(words).current_dir(directory))?;
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !out.contains("FAILED"), "{words:?}: {out}{err}");
    Some(())
}

#[test]
fn prometheus_takes_the_rules_and_their_tests_pass() {
    let test = "deploy::prometheus_takes_the_rules_and_their_tests_pass";
    let directory = deploy("prometheus");
    let commands: [&[&str]; 3] = [
        &["check", "rules", "rules.yaml"],
        &["test", "rules", "rules_test.yaml"],
        &["check", "config", "--syntax-only", "scrape.yaml"],
    ];
    for words in commands {
        let Some(()) = promtool(test, words, &directory) else { return };
    }
}

#[test]
fn every_alert_of_the_rules_has_a_test_that_sees_it_fire() {
    let test = "deploy::every_alert_of_the_rules_has_a_test_that_sees_it_fire";
    let Some(rules) = yaml(test, "prometheus/rules.yaml") else { return };
    let Some(tests) = yaml(test, "prometheus/rules_test.yaml") else { return };
    let groups = rules[0]["groups"].as_array().unwrap().iter();
    let all = groups.flat_map(|group| group["rules"].as_array().unwrap());
    let alerts: BTreeSet<&str> = all.filter_map(|rule| rule["alert"].as_str()).collect();
    let cases = tests[0]["tests"].as_array().unwrap().iter();
    let cases = cases.flat_map(|case| case["alert_rule_test"].as_array().unwrap());
    let seen: BTreeSet<&str> = cases
        .filter(|case| case["exp_alerts"].as_array().is_some_and(|alerts| !alerts.is_empty()))
        .filter_map(|case| case["alertname"].as_str())
        .collect();
    assert_eq!(seen, alerts);
}

#[test]
fn prometheus_takes_the_dashboard_s_expressions() {
    let dashboard = Dashboard::read();
    let queries = dashboard.queries();
    let found: Vec<String> = queries.iter().map(|query| dashboard.filled_in(query, &[])).collect();
    assert!(found.len() > 15, "{found:?}");
    let rule =
        |(number, expr): (usize, &String)| json!({"record": format!("r{number}"), "expr": expr});
    let rules: Vec<Value> = found.iter().enumerate().map(rule).collect();
    let place = Scratch::new();
    // JSON is YAML.
    let file = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    fs::write(place.join("rules.yaml"), file.to_string()).unwrap();
    let test = "deploy::prometheus_takes_the_dashboard_s_expressions";
    let _ = promtool(test, &["check", "rules", "rules.yaml"], place.path());
}
