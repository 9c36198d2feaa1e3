//! What a metric definition must obey: the naming rules of Prometheus and OpenMetrics, and ours.

use telltale_schema::metric::{MetricKind, Unit};

use super::Metric;

/// What is wrong with `metric`, if anything.
pub(super) fn breach(metric: &Metric) -> Option<String> {
    name(metric).or_else(|| labels(metric)).or_else(|| words(metric)).or_else(|| rate(metric))
}

fn name(metric: &Metric) -> Option<String> {
    let Some(rest) = metric.name.strip_prefix("telltale_") else {
        return Some("the name must start with telltale_".to_owned());
    };
    if !is_snake_case(rest) {
        return Some("the name must be lower-case words joined by single underscores".to_owned());
    }
    let stem = match (metric.kind, rest.strip_suffix("_total"), rest.strip_suffix("_info")) {
        (MetricKind::Counter, Some(stem), _) => stem,
        (MetricKind::Counter, None, _) => {
            return Some("a counter's name ends in _total".to_owned());
        }
        (_, Some(_), _) => return Some("only a counter's name ends in _total".to_owned()),
        (MetricKind::Info, _, Some(stem)) => stem,
        (MetricKind::Info, _, None) => {
            return Some("an info metric's name ends in _info".to_owned());
        }
        (_, _, Some(_)) => return Some("only an info metric's name ends in _info".to_owned()),
        _ => rest,
    };
    if let Some(unit) = metric.unit.suffix()
        && !stem.ends_with(&format!("_{unit}"))
    {
        return Some(format!("the name must say its unit: …_{unit}"));
    }
    (metric.kind == MetricKind::Info && metric.unit != Unit::None)
        .then(|| "an info metric has no unit".to_owned())
}

fn labels(metric: &Metric) -> Option<String> {
    if let Some(bad) = metric.labels.iter().find(|label| !is_snake_case(label)) {
        return Some(format!("the label {bad:?} is not lower-case words"));
    }
    // Prometheus adds these itself, or gives them a meaning of its own.
    const RESERVED: [&str; 6] = ["instance", "job", "hostname", "le", "quantile", "address"];
    if let Some(bad) = metric.labels.iter().find(|label| RESERVED.contains(&label.as_str())) {
        return Some(format!("the label {bad:?} must not be used"));
    }
    let distinct: std::collections::BTreeSet<_> = metric.labels.iter().collect();
    if distinct.len() != metric.labels.len() {
        return Some("a label is there twice".to_owned());
    }
    let own = metric.scope.labels();
    let present = metric.labels.iter().zip(own).filter(|(label, own)| label == own).count();
    (present < own.len()).then(|| format!("its scope's labels {own:?} must come first"))
}

fn rate(metric: &Metric) -> Option<String> {
    let is_counter = metric.rate_of.as_ref().is_none_or(|counter| counter.ends_with("_total"));
    (!is_counter).then(|| "rate_of must name a counter".to_owned())
}

fn words(metric: &Metric) -> Option<String> {
    if !metric.help.ends_with('.') || metric.help.contains('\n') {
        return Some("help must be one sentence with a full stop".to_owned());
    }
    if metric.absent_when.is_empty() {
        return Some("absent_when must say when there is no series".to_owned());
    }
    let numbers: Vec<&str> = metric.since.split('.').collect();
    let is_version = numbers.len() == 3 && numbers.iter().all(|part| part.parse::<u32>().is_ok());
    (!is_version).then(|| "since must be a version such as 0.1.0".to_owned())
}

fn is_snake_case(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && !text.ends_with('_')
        && !text.contains("__")
        && text.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_')
}
