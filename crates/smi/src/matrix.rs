//! The matrix of `telltale smi topo`: what is between each two devices, and which processors are
//! near, as `nvidia-smi topo -m` has it.

use telltale_schema::text::printable;
use telltale_schema::topology::{Connection, Topology};

use crate::style::{Style, Tone};
use crate::text::{painted, width, wrapped};

/// From so many devices on, those that are connected alike share a row and a column.
const FOLDED_FROM: usize = 9;

const ETHERNET: &str = "Ethernet links between boards and trays are not shown: no file of the \
                        driver reports them.";

/// The matrix with its legend.
pub fn matrix(topology: &Topology, style: &Style) -> String {
    let is_folded = topology.devices.len() >= FOLDED_FROM;
    let classes = match is_folded {
        true => topology.classes(),
        false => (0..topology.devices.len()).map(|place| vec![place]).collect(),
    };
    let mut rows = vec![headings(&classes)];
    rows.extend(classes.iter().map(|class| row(topology, class, &classes)));
    let mut page = aligned(&rows, style);
    page.push('\n');
    let folded = classes.len() < topology.devices.len();
    if folded {
        let words = "Devices in one row are connected alike; the entry of their own column is \
                     what is between each two of them.";
        page.push_str(&wrapped(words, 0, style));
    }
    page.push_str(&legend(topology, style));
    page
}

/// Numbers of devices as a range: `0`, `0-7`, `0-3,8`.
fn numbers(class: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for place in class {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *place => *last = *place,
            _ => ranges.push((*place, *place)),
        }
    }
    let range = |(first, last): (usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(",")
}

fn headings(classes: &[Vec<usize>]) -> Vec<String> {
    let first = ["#", "DEVICE"].map(str::to_owned).into_iter();
    let last = ["CPU AFFINITY", "NUMA AFFINITY"].map(str::to_owned);
    first.chain(classes.iter().map(|class| numbers(class))).chain(last).collect()
}

fn row(topology: &Topology, class: &[usize], classes: &[Vec<usize>]) -> Vec<String> {
    let first = class[0];
    let device = &topology.devices[first];
    let name = match class {
        [.., last] if *last != first => format!("{}..{}", device.id, topology.devices[*last].id),
        _ => device.id.clone(),
    };
    let entry = |other: &Vec<usize>| {
        // Of a class itself, what is between two of it.
        let there = other.iter().copied().find(|place| *place != first).unwrap_or(first);
        let there = if other[0] == first { there } else { other[0] };
        topology.connections[first][there].name().to_owned()
    };
    let absent = || String::from("n/a");
    let cpus = device.cpus.value().cloned().unwrap_or_else(absent);
    let node = device.numa_node.value().map_or_else(absent, u32::to_string);
    let begin = [numbers(class), printable(&name)].into_iter();
    begin.chain(classes.iter().map(entry)).chain([cpus, node]).collect()
}

/// Rows with their columns below one another, the first as a heading.
fn aligned(rows: &[Vec<String>], style: &Style) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widest = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let mut page = String::new();
    for (place, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths);
        let line: String = cells
            .map(|(cell, room)| format!("{cell}{}", " ".repeat(room - width(cell) + 2)))
            .collect();
        let tone = if place == 0 { Tone::Heading } else { Tone::Plain };
        page.push_str(&painted(line.trim_end(), tone, style));
    }
    page
}

/// What the entries that are there mean.
fn legend(topology: &Topology, style: &Style) -> String {
    let mut page = painted("Legend:", Tone::Heading, style);
    let is_there = |one: &Connection| topology.connections.iter().flatten().any(|it| it == one);
    for connection in Connection::ALL.iter().filter(|one| is_there(one)) {
        let line = format!("  {:<4} = {}", connection.name(), connection.words());
        page.push_str(&wrapped(&line, 9, style));
    }
    page + &wrapped(ETHERNET, 0, style)
}
