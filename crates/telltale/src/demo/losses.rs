//! What the trainings of a demo report about themselves below the tables: a line for each, and one with
//! what its kernels last printed into the debug stream.

use telltale_schema::quantity;
use telltale_schema::snapshot::{MetricSample, MetricValue, Process, ProcessState, Snapshot};

use crate::gpt::{
    LOSS, LOSS_PREFIX, PRINTED_MAX, PRINTED_MEAN, PRINTED_MIN, PRINTED_PREFIX, SPEED, STEP,
};

/// A line for each training; none without any.
pub(super) fn lines(snapshot: &Snapshot) -> Option<String> {
    let alive = snapshot.processes.iter().filter(|one| one.state == ProcessState::Alive);
    let lines: Vec<String> = alive.filter_map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// How many trainings have reported a loss.
pub(super) fn count(snapshot: &Snapshot) -> usize {
    snapshot.processes.iter().filter(|process| gauge(process, LOSS).is_some()).count()
}

fn line(process: &Process) -> Option<String> {
    let pid = process.pid?;
    let reported = gauge(process, LOSS).zip(gauge(process, STEP)).zip(gauge(process, SPEED));
    let Some(((loss, step), speed)) = reported else {
        return Some(format!("process {pid}: compiling kernels"));
    };
    let [step, speed] = [step, speed].map(|value| quantity::count(value as u64));
    let line = format!("process {pid}: step {step}, loss {loss:.4}, {speed} tokens/s");
    let printed = printed(process).map(|printed| format!("\n    {printed}"));
    Some(line + &printed.unwrap_or_default())
}

/// The last prints of a process: its loss, and the range of each activation.
fn printed(process: &Process) -> Option<String> {
    let mut parts = Vec::new();
    for mean in process.metrics.iter().filter(|sample| sample.name == PRINTED_MEAN) {
        let Some((_, prefix)) = mean.labels.iter().find(|(name, _)| name == PRINTED_PREFIX) else {
            continue;
        };
        let of_prefix = |name: &str| {
            let has_prefix = |sample: &&MetricSample| sample.labels == mean.labels;
            process.metrics.iter().filter(has_prefix).find(|sample| sample.name == name)
        };
        let Some(mean) = value(mean) else { continue };
        if prefix == LOSS_PREFIX {
            parts.insert(0, format!("{prefix} {mean:.4}"));
        } else if let Some((min, max)) =
            of_prefix(PRINTED_MIN).and_then(value).zip(of_prefix(PRINTED_MAX).and_then(value))
        {
            parts.push(format!("{prefix} {min:.3} to {max:.3}, mean {mean:.4}"));
        }
    }
    (!parts.is_empty()).then(|| format!("printed: {}", parts.join("; ")))
}

fn gauge(process: &Process, name: &str) -> Option<f64> {
    value(process.metrics.iter().find(|sample| sample.name == name)?)
}

fn value(sample: &MetricSample) -> Option<f64> {
    match sample.value {
        MetricValue::Gauge(value) => Some(value),
        MetricValue::Counter(_) | MetricValue::Histogram { .. } => None,
    }
}
