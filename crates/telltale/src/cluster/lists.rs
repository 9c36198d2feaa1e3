//! The job, its nodes and its incidents as text.

use telltale_control_plane::view::{IncidentView, NodeView, StatusView, age, duration};
use telltale_schema::calendar;
use telltale_schema::clock::Timestamp;
use telltale_schema::quantity;
use telltale_schema::text::printable;
use telltale_smi::{Cell, Column, Style, Table, Tone, paragraph};

/// A moment as a person reads it: date and time in UTC.
pub(super) fn moment(unix_ms: u64) -> String {
    match unix_ms.checked_mul(1_000_000) {
        Some(nanoseconds) if unix_ms > 0 => {
            calendar::format(Timestamp(nanoseconds)).replace('T', " ").replace('Z', " UTC")
        }
        _ => String::from("n/a"),
    }
}

/// The job at a glance.
pub(super) fn status(status: &StatusView, style: &Style) -> String {
    let tone = if status.is_well() { Tone::Heading } else { Tone::Alarm };
    let heading = format!(
        "Job {}: {}; epoch {}, mode {}",
        printable(&status.job),
        status.sentence(),
        status.epoch,
        status.mode
    );
    let workers = u64::from(status.workers_per_node) * u64::from(status.slots);
    let restarts = format!(
        "{} in all; of the budget {} of {}",
        status.restarts, status.counted_restarts, status.restart_budget
    );
    let evictions =
        format!("of the budget {} of {}", status.counted_evictions, status.eviction_budget);
    let incident = match &status.open_incident {
        Some(id) => format!("{id} is open; see `telltale cluster explain {id}`"),
        None => String::from("none is open"),
    };
    let leader = format!(
        "term {}, for {}; Telltale {}; decisions are in {}",
        status.term,
        duration(status.led_for_ns),
        status.version,
        status.store
    );
    let mut lines = vec![
        ("nodes", status.nodes_sentence()),
        ("ranks", format!("{workers}, {} a node", status.workers_per_node)),
        ("restarts", restarts),
        ("evictions", evictions),
        ("incident", incident),
        ("leader", leader),
    ];
    if let Some(master) = &status.master {
        lines.insert(2, ("rank 0", format!("at {master}")));
    }
    if let Some(waits) = status.waiting() {
        lines.insert(0, ("waits", waits));
    }
    if let Some(trouble) = &status.store_trouble {
        let time = status.store_troubled_for_ns.map(|time| format!(", for {}", age(time)));
        let text = format!("fails{}: {}", time.unwrap_or_default(), printable(trouble));
        lines.insert(0, ("store", text));
    }
    let mut text = tone.paint(heading.as_str(), style) + "\n";
    for (name, value) in lines {
        text.push_str(&paragraph(&format!("  {name:<11}{value}"), 13, style));
    }
    text
}

/// A table of nodes.
pub(super) fn nodes(nodes: &[NodeView], style: &Style) -> String {
    let mut table = Table::new(vec![
        Column::left("NODE", 0),
        Column::left("STATE", 0),
        Column::right("SLOT", 3),
        Column::left("RANKS", 1),
        Column::left("WORKERS", 2),
        Column::right("HEARD", 4),
        Column::right("FAILURES", 6),
        Column::right("CPU", 8),
        Column::right("MEMORY", 9),
        Column::left("DEVICES", 7),
        Column::left("ADDRESS", 10),
    ]);
    for node in nodes {
        table.push(node_row(node));
    }
    match nodes {
        [] => String::from("no node has registered\n"),
        _ => table.render(style),
    }
}

fn node_row(node: &NodeView) -> Vec<Cell> {
    let state = match node.bar {
        Some(bar) => format!("{}: {bar}", node.state),
        None => node.state.to_owned(),
    };
    let tone = match node.state {
        "silent" => Tone::Alarm,
        "barred" => Tone::Warning,
        _ => Tone::Plain,
    };
    let ranks = match (node.first_rank, node.worker_states.as_slice()) {
        (Some(first), [_, .., last]) if last.rank > first => format!("{first}-{}", last.rank),
        (Some(first), _) => first.to_string(),
        (None, _) => String::new(),
    };
    let workers = node.workers_sentence();
    let failed = node.worker_states.iter().any(|worker| worker.state == "failed");
    let heard = node.heard_ago_ns.map_or_else(|| String::from("never"), age);
    let busy = node.processors_busy_ratio.map(|ratio| format!("{:.0}%", ratio * 100.0));
    let ill = node.devices.iter().filter(|device| !device.healthy).count();
    let devices = match (node.devices.len(), ill) {
        (0, _) => Cell::new(""),
        (all, 0) => Cell::new(format!("{all} well")),
        (all, ill) => Cell::toned(format!("{ill} of {all} ill"), Tone::Alarm),
    };
    vec![
        Cell::new(printable(&node.name)),
        Cell::toned(state, tone),
        Cell::new(node.slot.map(|slot| slot.to_string()).unwrap_or_default()),
        Cell::new(ranks),
        Cell::toned(workers, if failed { Tone::Alarm } else { Tone::Plain }),
        Cell::new(heard),
        Cell::new(node.failures.to_string()),
        busy.map_or_else(Cell::absent, Cell::new),
        Cell::bytes(node.memory_used_bytes),
        devices,
        Cell::new(printable(node.address.as_deref().unwrap_or_default())),
    ]
}

/// A table of incidents.
pub(super) fn incidents(incidents: &[IncidentView], style: &Style) -> String {
    let mut table = Table::new(vec![
        Column::left("INCIDENT", 0),
        Column::left("OPENED", 2),
        Column::right("EPOCH", 3),
        Column::left("STANDING", 0),
        Column::right("EVENTS", 4),
        Column::left("WHAT IS DONE", 1),
    ]);
    for incident in incidents {
        let tone = match incident.standing {
            "collecting" | "held" => Tone::Alarm,
            _ => Tone::Plain,
        };
        let events = u64::try_from(incident.events.len()).unwrap_or(u64::MAX);
        table.push(vec![
            Cell::new(printable(&incident.id)),
            Cell::new(moment(incident.opened_unix_ms)),
            Cell::new(incident.epoch.to_string()),
            Cell::toned(incident.standing, tone),
            Cell::new(quantity::count(events.saturating_add(incident.dropped_events))),
            Cell::new(printable(&incident.text)),
        ]);
    }
    match incidents {
        [] => String::from("no incident is known\n"),
        _ => table.render(style),
    }
}

#[cfg(test)]
mod tests {
    use telltale_wire::cluster::message::{GetStatusResponse, JobPhase};

    use super::*;

    #[test]
    fn a_store_that_fails_is_reported_first() {
        let reported = |trouble: &str| {
            let answer = GetStatusResponse {
                job: "trial".to_owned(),
                phase: JobPhase::Committed.into(),
                runs: true,
                store: "journal in /j".to_owned(),
                store_trouble: trouble.to_owned(),
                store_troubled_for_ns: (!trouble.is_empty()).then_some(12_000_000_000),
                ..GetStatusResponse::default()
            };
            status(&StatusView::from(&answer), &Style::PLAIN)
        };
        let text = reported("cannot write the journal /j/journal; make room on its disk");
        let line =
            "  store      fails, for 12.0 s: cannot write the journal /j/journal; make room on";
        assert!(text.lines().nth(1).is_some_and(|reported| reported.starts_with(line)), "{text}");
        assert!(!reported("").contains("fails"));
    }
}
