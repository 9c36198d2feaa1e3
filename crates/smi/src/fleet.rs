//! The tables of several machines as one: each row says of which machine it is, and each machine that
//! does not answer has a line with the reason.

use telltale_schema::fleet::{Fleet, Host, HostState};
use telltale_schema::quantity;
use telltale_schema::text::printable;

use crate::devices::Idle;
use crate::machine::Machine;
use crate::style::{Style, Tone};
use crate::table::Cell;
use crate::{tables, text};

/// The tables of several machines.
pub fn fleet(fleet: &Fleet, style: &Style) -> String {
    page(fleet, Idle::Shown, style)
}

/// [`fleet`] for a window of so many rows: where it is too long, idle devices make room for the
/// processes.
pub fn fleet_within(fleet: &Fleet, rows: usize, style: &Style) -> String {
    let whole = self::fleet(fleet, style);
    if whole.lines().count() <= rows { whole } else { page(fleet, Idle::LeftOut, style) }
}

fn page(fleet: &Fleet, idle: Idle, style: &Style) -> String {
    let machine = |host| machine(fleet, host);
    let machines: Vec<Machine<'_>> = fleet.hosts.iter().filter_map(machine).collect();
    if machines.is_empty() {
        // Nothing is known of any, so nothing is said of devices and processes.
        return standing(fleet, style).trim_start().to_owned();
    }
    tables(&machines, idle, style) + &standing(fleet, style)
}

/// A machine of which something is known. What is old says so in each row.
fn machine<'a>(fleet: &Fleet, host: &'a Host) -> Option<Machine<'a>> {
    let snapshot = host.snapshot.as_deref()?;
    let name = printable(&host.name);
    let cell = match host.state {
        HostState::Answering => Cell::new(name.clone()),
        HostState::Waiting | HostState::Unreachable => {
            Cell::toned(format!("{name} ({} ago)", age(fleet, host)), Tone::Warning)
        }
    };
    Some(Machine::named(name, cell, snapshot))
}

/// How long ago the host answered last.
pub(crate) fn age(fleet: &Fleet, host: &Host) -> String {
    let since_ns = host.answered_at.map_or(0, |at| fleet.taken_at.since_ns(at));
    // Spans of time are shown to the second.
    #[allow(clippy::cast_precision_loss)]
    quantity::span(since_ns as f64 / 1e9)
}

/// How many answer, and a line for each that does not.
fn standing(fleet: &Fleet, style: &Style) -> String {
    let silent = fleet.hosts.iter().filter(|host| host.state != HostState::Answering);
    let lines = silent.map(|host| {
        let why = match (host.state, &host.reason) {
            (_, Some(reason)) => format!("unreachable: {}", printable(reason)),
            (HostState::Waiting, None) => String::from("no answer yet"),
            (_, None) => String::from("unreachable"),
        };
        let last = match host.snapshot {
            Some(_) => format!("; its rows are of {} ago", age(fleet, host)),
            None => String::new(),
        };
        let line = format!("{}: {why}{last}", printable(&host.name));
        text::painted(&line, Tone::Alarm, style)
    });
    let lines: String = lines.collect();
    let all_answer = fleet.count(HostState::Answering) == fleet.hosts.len();
    let tone = if all_answer { Tone::Faint } else { Tone::Warning };
    format!("\n{}{lines}", text::painted(&answering(fleet), tone, style))
}

/// How many hosts answer.
pub(crate) fn answering(fleet: &Fleet) -> String {
    let (answering, all) = (fleet.count(HostState::Answering), fleet.hosts.len());
    match all {
        1 => format!("{answering} of 1 host answers"),
        _ => format!("{answering} of {all} hosts answer"),
    }
}
