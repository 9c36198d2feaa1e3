//! What the trainings of a demo report about themselves below the tables: a line for each, and one with
//! what its kernels last printed into the debug stream.

use telltale_schema::snapshot::{Process, ProcessState, Snapshot};
use telltale_smi::TrainingReport;

/// A line for each training; none without any.
pub(super) fn lines(snapshot: &Snapshot) -> Option<String> {
    let alive = snapshot.processes.iter().filter(|one| one.state == ProcessState::Alive);
    let lines: Vec<String> = alive.filter_map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// How many trainings have reported a loss.
pub(super) fn count(snapshot: &Snapshot) -> usize {
    let reports = snapshot.processes.iter().filter_map(TrainingReport::of);
    reports.filter(|report| report.loss.is_some()).count()
}

fn line(process: &Process) -> Option<String> {
    let report = TrainingReport::of(process)?;
    let line = format!("process {}: {}", process.pid?, report.words());
    let printed = report.printed.map(|printed| format!("\n    printed: {printed}"));
    Some(line + &printed.unwrap_or_default())
}
