//! One process over its whole life.

use telltale_schema::calendar;
use telltale_schema::history::{PastProcess, ProcessReport};
use telltale_schema::quantity;
use telltale_schema::text::printable;

use crate::history::owner;
use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Table};
use crate::text;

/// The report of one process: who it was, how long it lived and how it ended, and what it had.
pub fn report(report: &ProcessReport, style: &Style) -> String {
    let process = &report.process;
    let title = match process.pid {
        Some(pid) => format!("Process {pid} ({})", printable(&process.name)),
        None => format!("Process {}", printable(&process.name)),
    };
    let mut page = text::painted(&title, Tone::Heading, style);
    for (name, fact) in facts(report) {
        page.push_str(&text::wrapped(&format!("  {name:<16}{fact}"), 18, style));
    }
    page.push('\n');
    page.push_str(&match report.usage.is_empty() {
        true => text::painted("No memory of it was recorded.", Tone::Faint, style),
        false => usage(report, style),
    });
    page
}

fn facts(report: &ProcessReport) -> Vec<(&'static str, String)> {
    let process = &report.process;
    let user = match (&process.user, process.uid) {
        (Some(user), Some(uid)) => format!("{} ({uid})", printable(user)),
        (Some(user), None) => printable(user),
        (None, Some(uid)) => uid.to_string(),
        (None, None) => String::from("n/a"),
    };
    let command = process.command.as_deref().map_or_else(|| "n/a".into(), printable);
    let mut facts = vec![
        ("identity", process.key.clone()),
        ("user", user),
        ("command", command),
        ("first seen", calendar::format(report.first_seen)),
        ("last seen", calendar::format(report.last_seen)),
        ("lifetime", quantity::span(report.lifetime_seconds)),
    ];
    if let Some(container) = &report.container {
        let words = format!("{} ({})", container.id, container.engine);
        facts.insert(3, ("container", printable(&words)));
        if let Some(pod) = &container.pod {
            let container = pod.container.as_deref().map(|name| format!(", container {name}"));
            let words = format!("{}/{}{}", pod.namespace, pod.name, container.unwrap_or_default());
            facts.insert(4, ("pod", printable(&words)));
        }
    }
    facts.push(("end", end(report)));
    let faults = &report.faults;
    for (name, count) in [
        ("double frees", faults.double_frees),
        ("unknown frees", faults.unknown_frees),
        ("reused live", faults.reused_live_addresses),
        ("unrecorded", faults.unrecorded_events),
    ] {
        if count > 0 {
            facts.push((name, quantity::count(count)));
        }
    }
    facts
}

fn end(report: &ProcessReport) -> String {
    match (report.ending, report.ended) {
        (None, _) => String::from("none yet"),
        (Some(ending), Some(ended)) => {
            format!("{}: {}", calendar::format(ended), ending.words())
        }
        (Some(ending), None) => ending.words().to_owned(),
    }
}

fn usage(report: &ProcessReport, style: &Style) -> String {
    let mut table = Table::new(vec![
        Column::left("DEVICE", 0),
        Column::left("KIND", 0),
        Column::right("PEAK", 0),
        Column::left("AT", 3),
        Column::right("MEAN", 1),
        Column::right("LAST", 4),
        Column::right("GIB-HOURS", 2),
        Column::right("WATCHED", 5),
    ]);
    for one in &report.usage {
        let mean = one
            .mean_bytes
            .map_or_else(Cell::absent, |mean| Cell::new(crate::history::amount(mean, "bytes")));
        table.push(vec![
            Cell::new(printable(&one.device)),
            Cell::new(one.kind.name()),
            Cell::bytes(Some(one.peak_bytes)),
            Cell::new(calendar::format(one.peak_at)),
            mean,
            Cell::bytes(Some(one.live_bytes)),
            Cell::new(format!("{:.3}", gibibyte_hours(one.byte_seconds))),
            Cell::new(quantity::span(one.watched_seconds)),
        ]);
    }
    table.render(style)
}

#[allow(clippy::cast_precision_loss)]
fn gibibyte_hours(byte_seconds: u64) -> f64 {
    byte_seconds as f64 / f64::from(1 << 30) / 3_600.0
}

/// The processes to choose from, one a line.
pub fn choices<'a>(
    processes: impl IntoIterator<Item = &'a ProcessReport>,
    style: &Style,
) -> String {
    let mut table = Table::new(vec![
        Column::left("PROCESS", 0),
        Column::left("USER", 3),
        Column::left("FIRST SEEN", 1),
        Column::left("LAST SEEN", 2),
        Column::left("COMMAND", 4),
    ]);
    for report in processes {
        let process = &report.process;
        table.push(vec![
            Cell::new(short(process)),
            owner(process),
            Cell::new(calendar::format(report.first_seen)),
            Cell::new(calendar::format(report.last_seen)),
            Cell::new(printable(process.command.as_deref().unwrap_or(&process.name))),
        ]);
    }
    table.render(style)
}

/// A process as it can be named again: pid and start.
fn short(process: &PastProcess) -> String {
    let pid = process.pid.unwrap_or(process.identity.pid);
    format!("{pid}@{}", process.identity.start_time_ticks)
}
