//! Which names, texts, labels and bounds a metric may have: what fits the endpoint's limits and
//! Prometheus' rules for names.

use std::collections::BTreeSet;

use telltale_schema::metric::MetricKind;
use telltale_wire::limits::{
    MAX_BUCKET_BOUNDS, MAX_LABEL_VALUE_BYTES, MAX_LABELS, MAX_NAME_BYTES, MAX_TEXT_BYTES,
};

use super::{RegisterError, Series};

/// What the runtime's own metrics begin with.
const OWN_PREFIX: &str = "telltale_";

/// Checks everything about a series but its value.
pub(super) fn check(series: &Series) -> Result<(), RegisterError> {
    let metric = || series.name.clone();
    check_name("metric", &series.name)?;
    if series.name.starts_with(OWN_PREFIX) {
        return Err(RegisterError::Reserved { metric: shortened(&series.name) });
    }
    if series.kind() != MetricKind::Counter && series.name.ends_with("_total") {
        return Err(RegisterError::Total { metric: shortened(&series.name) });
    }
    let limited = [
        ("the name", series.name.as_str(), MAX_NAME_BYTES),
        ("the help", series.help.as_str(), MAX_TEXT_BYTES),
        ("the unit", series.unit.as_str(), MAX_NAME_BYTES),
    ];
    let labels = series.labels.iter().flat_map(|(name, value)| {
        [
            ("a label's name", name.as_str(), MAX_NAME_BYTES),
            ("a label's value", value.as_str(), MAX_LABEL_VALUE_BYTES),
        ]
    });
    for (what, text, limit_bytes) in limited.into_iter().chain(labels) {
        if text.len() > limit_bytes {
            return Err(RegisterError::TooLong { metric: shortened(text), what, limit_bytes });
        }
    }
    if series.labels.len() > MAX_LABELS {
        return Err(RegisterError::Labels { metric: metric(), limit: MAX_LABELS });
    }
    let mut seen = BTreeSet::new();
    for (label, _) in &series.labels {
        check_name("label", label)?;
        if !seen.insert(label) {
            let (metric, label) = (metric(), label.clone());
            return Err(RegisterError::LabelTwice { metric, label });
        }
    }
    let bounds = series.bounds();
    let ascending = bounds.windows(2).all(|pair| pair[0] < pair[1]);
    let finite = bounds.iter().all(|bound| bound.is_finite());
    if !ascending || !finite || bounds.len() > MAX_BUCKET_BOUNDS {
        return Err(RegisterError::Bounds { metric: metric(), limit: MAX_BUCKET_BOUNDS });
    }
    Ok(())
}

fn check_name(what: &'static str, text: &str) -> Result<(), RegisterError> {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let rest = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if first && rest { Ok(()) } else { Err(RegisterError::Name { what, text: shortened(text) }) }
}

fn shortened(text: &str) -> String {
    const SHOWN_BYTES: usize = 64;
    text[..text.floor_char_boundary(SHOWN_BYTES)].to_owned()
}
