//! What the trainings of a demo tell of themselves: a line for each below the tables.

use telltale_schema::quantity;
use telltale_schema::snapshot::{MetricValue, Process, ProcessState, Snapshot};

use crate::gpt::{LOSS, SPEED, STEP};

/// A line for each training; none without any.
pub(super) fn lines(snapshot: &Snapshot) -> Option<String> {
    let alive = snapshot.processes.iter().filter(|one| one.state == ProcessState::Alive);
    let lines: Vec<String> = alive.filter_map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// How many trainings have told a loss.
pub(super) fn count(snapshot: &Snapshot) -> usize {
    snapshot.processes.iter().filter(|process| gauge(process, LOSS).is_some()).count()
}

fn line(process: &Process) -> Option<String> {
    let pid = process.pid?;
    let told = gauge(process, LOSS).zip(gauge(process, STEP)).zip(gauge(process, SPEED));
    let Some(((loss, step), speed)) = told else {
        return Some(format!("process {pid}: compiling kernels"));
    };
    let [step, speed] = [step, speed].map(|value| quantity::count(value as u64));
    Some(format!("process {pid}: step {step}, loss {loss:.4}, {speed} characters a second"))
}

fn gauge(process: &Process, name: &str) -> Option<f64> {
    let sample = process.metrics.iter().find(|sample| sample.name == name)?;
    match sample.value {
        MetricValue::Gauge(value) => Some(value),
        MetricValue::Counter(_) | MetricValue::Histogram { .. } => None,
    }
}
