//! What the samples of one family must obey.

use std::collections::{BTreeMap, BTreeSet};

use super::{ParsedFamily, ParsedSample, line};

/// Checks a family, all of whose lines are there.
pub(super) fn check(family: &ParsedFamily, open_metrics: bool) -> Result<(), String> {
    let ParsedFamily { name, kind, unit, samples, .. } = family;
    let endings: &[&str] = match (kind.as_str(), open_metrics) {
        ("gauge", _) => &[""],
        ("counter", false) => &[""],
        ("counter", true) => &["_total", "_created"],
        ("info", true) => &["_info"],
        ("histogram", false) => &["_bucket", "_sum", "_count"],
        ("histogram", true) => &["_bucket", "_sum", "_count", "_created"],
        _ => return Err(format!("{kind:?} is no type here")),
    };
    if kind == "counter" && name.ends_with("_total") == open_metrics {
        return Err("_total is in the wrong place".to_owned());
    }
    if let Some(unit) = unit
        && !name.ends_with(&format!("_{unit}"))
    {
        return Err(format!("the name does not end in its unit {unit}"));
    }
    if samples.is_empty() {
        return Err("is announced and has no sample".to_owned());
    }
    let mut seen = BTreeSet::new();
    for sample in samples {
        let ending = sample.name.strip_prefix(name.as_str());
        if !ending.is_some_and(|ending| endings.contains(&ending)) {
            return Err(format!("{} does not belong here", sample.name));
        }
        if !seen.insert((&sample.name, &sample.labels)) {
            return Err(format!("is there twice: {sample:?}"));
        }
        value(sample, kind)?;
    }
    together(family)?;
    if kind == "histogram" { buckets(family, open_metrics) } else { Ok(()) }
}

fn value(sample: &ParsedSample, kind: &str) -> Result<(), String> {
    let fits = match kind {
        "counter" => sample.value >= 0.0,
        "info" => sample.value == 1.0,
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("has an impossible value: {sample:?}")) }
}

/// The labels of a line's metric: all but the bound of a bucket.
fn metric(sample: &ParsedSample) -> BTreeMap<&String, &String> {
    let of_bucket = sample.name.ends_with("_bucket");
    sample.labels.iter().filter(|(label, _)| !(of_bucket && *label == "le")).collect()
}

/// The lines of one metric must stand together.
fn together(family: &ParsedFamily) -> Result<(), String> {
    let mut ended = BTreeSet::new();
    for pair in family.samples.windows(2) {
        let [before, now] = [metric(&pair[0]), metric(&pair[1])];
        if before != now {
            ended.insert(before);
        }
        if ended.contains(&now) {
            return Err(format!("{:?} does not stand with its likes", pair[1]));
        }
    }
    Ok(())
}

/// Bounds ascend to infinity, counts do not descend, and the last is the count of all.
fn buckets(family: &ParsedFamily, open_metrics: bool) -> Result<(), String> {
    let mut by_metric: BTreeMap<_, Vec<&ParsedSample>> = BTreeMap::new();
    for sample in &family.samples {
        by_metric.entry(metric(sample)).or_default().push(sample);
    }
    for samples in by_metric.values() {
        let named = |ending: &str| {
            let name = format!("{}{ending}", family.name);
            samples.iter().filter(move |sample| sample.name == name).collect::<Vec<_>>()
        };
        let mut counted = Vec::new();
        for bucket in named("_bucket") {
            let bound = bucket.labels.get("le").ok_or("a bucket has no bound")?;
            counted.push((line::number(bound)?, bucket.value));
        }
        let ascending =
            counted.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let last = counted.last().copied();
        if !ascending || last.is_none_or(|(bound, _)| bound != f64::INFINITY) {
            return Err(format!("its buckets are wrong: {counted:?}"));
        }
        let (sums, counts) = (named("_sum"), named("_count"));
        if sums.len() != counts.len() || sums.len() > 1 || (!open_metrics && sums.is_empty()) {
            return Err("has no sum, or no count".to_owned());
        }
        if counts.iter().any(|count| last.is_some_and(|(_, of_all)| count.value != of_all)) {
            return Err("its count is not that of its last bucket".to_owned());
        }
        let negative = counted.first().is_some_and(|(bound, _)| *bound < 0.0);
        if open_metrics && sums.iter().any(|sum| negative || sum.value.is_nan() || sum.value < 0.0)
        {
            return Err("has a sum that may go down".to_owned());
        }
    }
    Ok(())
}
