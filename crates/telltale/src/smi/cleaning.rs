//! What a cleaning removed and left, for a person and for a program.

use serde_json::{Value, json};
use telltale_collector::CleanReport;
use telltale_schema::snapshot::Snapshot;

/// A line for each file, or one that says there was none.
pub(super) fn words(report: &CleanReport) -> String {
    let mut text = String::new();
    let done = [("removed", &report.removed), ("mended", &report.mended), ("left", &report.left)];
    for (verb, files) in done {
        for file in files {
            text.push_str(&format!("{verb} {}: {}\n", one_line(&file.path), one_line(&file.why)));
        }
    }
    if text.is_empty() {
        text.push_str("nothing to clean\n");
    }
    text
}

/// The snapshot as an object that also has `cleaned`: `removed`, `mended` and `left`, lists of files
/// with `path` and `why`, and `failed`, how many of those left should have gone.
pub(super) fn with(snapshot: &Snapshot, report: &CleanReport) -> Value {
    let list = |files: &[telltale_collector::Cleaned]| -> Vec<Value> {
        files.iter().map(|file| json!({ "path": file.path, "why": file.why })).collect()
    };
    let mut object = serde_json::to_value(snapshot).expect("a snapshot has only string keys");
    object["cleaned"] = json!({
        "removed": list(&report.removed),
        "mended": list(&report.mended),
        "left": list(&report.left),
        "failed": report.failed,
    });
    object
}

fn one_line(text: &str) -> String {
    telltale_schema::text::printable(text)
}
