//! The pane of the cluster: how the job stands, its nodes, latencies between them as its coordinator
//! has them, and those that the agents of this machine tell.

use ratatui_core::layout::Rect;

use super::beside::{Agent, Availability, JobNode, JobView, Latency, Matrix};
use super::canvas::{Canvas, cells};
use super::lines::{Lines, Scroll, Span, wrapped};
use super::theme::Role;
use crate::text;

/// Columns of the nodes.
const COLUMNS: [(&str, u16); 8] = [
    ("NODE", 16),
    ("STATE", 10),
    ("SLOT", 4),
    ("RANKS", 7),
    ("WORKERS", 12),
    ("HEARD", 7),
    ("CPU", 5),
    ("DEVICES", 12),
];
/// Cells of a name of a fact, and of a name in front of a matrix's row at most.
const FACT: u16 = 10;
const MOST_NAME: u16 = 16;
/// The steps of heat, the coolest first: the least multiple of what is usual, and its character.
const HEATS: [(f64, char); 6] =
    [(0.0, '.'), (1.1, '-'), (1.25, '+'), (1.5, 'o'), (2.0, '#'), (4.0, '@')];
const LEGEND: &str = ". under 1.1  - from 1.1  + from 1.25  o from 1.5  # from 2  @ from 4  ? \
                      nothing usual yet";
const LEGEND_OF_NUMBERS: &str = "! is slower than usual beyond doubt, ? is nothing usual yet.";

type Line = Vec<Span>;

/// The pane, with what coordinator and agents tell.
#[derive(Debug, Default)]
pub(super) struct ClusterPane {
    pub(super) job: Availability<JobView>,
    pub(super) agents: Availability<Vec<Agent>>,
}

impl ClusterPane {
    pub(super) fn paint(&self, scroll: &mut Scroll, canvas: &mut Canvas<'_>, area: Rect) {
        let mut lines: Vec<Line> = Vec::new();
        match &self.job {
            Availability::Awaited => lines.push(faint("The coordinator has not answered yet.")),
            Availability::Absent(why) => paragraph(&mut lines, why, area.width, Role::Faint),
            Availability::Known(job) => of_job(&mut lines, job, area.width),
        }
        match &self.agents {
            Availability::Awaited => {}
            Availability::Absent(why) => paragraph(&mut lines, why, area.width, Role::Faint),
            Availability::Known(agents) => {
                agents.iter().for_each(|agent| of_agent(&mut lines, agent, area.width));
            }
        }
        let line = |at: usize| lines[at].clone();
        scroll.lines(canvas, area, &Lines { heading: Vec::new(), count: lines.len(), line: &line });
    }

    /// What is wrong with the job, for the tab.
    pub(super) fn note(&self) -> Option<String> {
        match &self.job {
            Availability::Known(job) if !job.is_well => Some(String::from("!")),
            _ => None,
        }
    }
}

fn faint(words: &str) -> Line {
    vec![Span::rest(words, Role::Faint)]
}

fn paragraph(lines: &mut Vec<Line>, words: &str, width: u16, role: Role) {
    lines.extend(wrapped(words, width).into_iter().map(|row| vec![Span::rest(row, role)]));
}

fn of_job(lines: &mut Vec<Line>, job: &JobView, width: u16) {
    let role = if job.is_well { Role::Heading } else { Role::Alarm };
    paragraph(lines, &job.heading, width, role);
    for (name, words) in &job.facts {
        for (at, row) in wrapped(words, width.saturating_sub(FACT + 1)).into_iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            lines.push(vec![Span::left(name, FACT, Role::Faint), Span::rest(row, Role::Plain)]);
        }
    }
    if job.nodes.is_empty() {
        lines.push(faint("No node has registered."));
    } else {
        let titles = COLUMNS.map(|(title, cells)| Span::left(title, cells, Role::Heading));
        lines.push(titles.to_vec());
        lines.extend(job.nodes.iter().map(of_node));
    }
    match &job.matrix {
        Some(matrix) => of_matrix(lines, matrix, width),
        None => lines.push(faint("No latencies: they come with an incident that has any.")),
    }
}

fn of_node(node: &JobNode) -> Line {
    let texts = [
        &node.name,
        &node.state,
        &node.slot,
        &node.ranks,
        &node.workers,
        &node.heard,
        &node.busy,
        &node.devices,
    ];
    let role = if node.is_ill { Role::Alarm } else { Role::Plain };
    let parts = texts.into_iter().zip(COLUMNS).enumerate();
    parts
        .map(|(at, (text, (_, cells)))| {
            Span::left(text.as_str(), cells, if at == 1 { role } else { Role::Plain })
        })
        .collect()
}

/// The matrix with numbers, or with characters where these have no room.
fn of_matrix(lines: &mut Vec<Line>, matrix: &Matrix, width: u16) {
    let count = matrix.nodes.len();
    paragraph(lines, &matrix.about, width, Role::Heading);
    let digits = count.saturating_sub(1).to_string().len();
    let longest = matrix.nodes.iter().map(|node| text::width(node)).max().unwrap_or(0);
    let name = cells(longest + digits + 1).min(MOST_NAME);
    let room = usize::from(width.saturating_sub(name + 1));
    let has_shown_values = count * 6 <= room;
    let mut headings = vec![Span::left("", name, Role::Plain)];
    match has_shown_values {
        true => headings.extend((0..count).map(|to| Span::right(to.to_string(), 5, Role::Faint))),
        false => {
            // The last digit alone: rows have the whole number.
            let ends: String = (0..count).map(|to| (to % 10).to_string()).collect();
            headings.push(Span::rest(ends, Role::Faint));
        }
    }
    lines.push(headings);
    for (from, node) in matrix.nodes.iter().enumerate() {
        let mut line = vec![Span::left(format!("{from:>digits$} {node}"), name, Role::Plain)];
        let row = (0..count).map(|to| matrix.cells.get(from * count + to).copied().flatten());
        match has_shown_values {
            true => line.extend(row.map(|cell| {
                let (words, role) = shown_metric(cell);
                Span::right(words, 5, role)
            })),
            false => {
                let hottest = row.clone().map(|cell| shown_metric(cell).1);
                let role = hottest.fold(Role::Plain, |one, two| match (one, two) {
                    (Role::Alarm, _) | (_, Role::Alarm) => Role::Alarm,
                    (Role::Warning, _) | (_, Role::Warning) => Role::Warning,
                    _ => Role::Plain,
                });
                line.push(Span::rest(row.map(mark).collect::<String>(), role));
            }
        }
        lines.push(line);
    }
    let legend = if has_shown_values { LEGEND_OF_NUMBERS } else { LEGEND };
    paragraph(lines, legend, width, Role::Faint);
}

fn shown_metric(cell: Option<Latency>) -> (String, Role) {
    let Some(cell) = cell else { return (String::new(), Role::Plain) };
    let Some(times) = cell.times else { return (String::from("? "), Role::Faint) };
    let role = match (cell.is_slow, times) {
        (true, _) => Role::Alarm,
        (false, 1.25..) => Role::Warning,
        _ => Role::Plain,
    };
    let shown_metric = match times {
        0.0..10.0 => format!("{times:.2}"),
        10.0..1000.0 => format!("{times:.0}"),
        _ => String::from(">999"),
    };
    (format!("{shown_metric}{}", if cell.is_slow { '!' } else { ' ' }), role)
}

fn mark(cell: Option<Latency>) -> char {
    match cell.map(|cell| cell.times) {
        None => ' ',
        Some(None) => '?',
        Some(Some(times)) => {
            HEATS.iter().rev().find(|(least, _)| times >= *least).map_or('?', |(_, mark)| *mark)
        }
    }
}

fn of_agent(lines: &mut Vec<Line>, agent: &Agent, width: u16) {
    let role = if agent.is_silent { Role::Warning } else { Role::Heading };
    paragraph(lines, &agent.heading, width, role);
    if agent.is_silent {
        return;
    }
    if agent.latencies.is_empty() {
        return lines
            .push(faint("  It has no latency: no collective or transfer was reported to it."));
    }
    let pairs: Vec<String> =
        agent.latencies.iter().map(|(peer, ms)| format!("{peer} {ms:.3} ms")).collect();
    paragraph(lines, &format!("  to {}", pairs.join(", ")), width, Role::Plain);
}
