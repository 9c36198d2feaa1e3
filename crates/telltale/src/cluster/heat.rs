//! The matrix of latencies as a heat map of characters.
//!
//! How hot a cell is can be read without colour: from its number, or where there is no room for
//! numbers, from its character. Colours go from dark blue to yellow, which those who see few colours
//! distinguish, and by their brightness on paper too.

use telltale_control_plane::view::MatrixView;
use telltale_schema::text::printable;
use telltale_smi::{Style, Tone, paragraph};

use super::lists;

/// A step of heat: the least multiple of what is usual, its character, and its colours as xterm
/// numbers them (background, text).
struct Heat {
    least: f64,
    mark: char,
    colours: (u8, u8),
}

/// The steps, the coolest first. A quarter more than usual is where detection begins.
const HEATS: [Heat; 6] = [
    Heat { least: 0.0, mark: '.', colours: (17, 15) },
    Heat { least: 1.1, mark: '-', colours: (60, 15) },
    Heat { least: 1.25, mark: '+', colours: (102, 16) },
    Heat { least: 1.5, mark: 'o', colours: (143, 16) },
    Heat { least: 2.0, mark: '#', colours: (185, 16) },
    Heat { least: 4.0, mark: '@', colours: (227, 16) },
];

/// What stands for a pair of which nothing is known, or nothing is usual yet.
const NOTHING: char = ' ';
const NO_USUAL: char = '?';
/// Behind a number: slower than usual beyond doubt.
const SLOW: char = '!';

/// How a cell is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// As a number, in six columns.
    Metrics,
    /// As a character, with one before it.
    Spaced,
    /// As a character.
    Tight,
}

/// The map, with what its rows and columns are and what its characters mean.
pub(super) fn map(matrix: &MatrixView, style: &Style) -> String {
    let nodes: Vec<String> = matrix.nodes.iter().map(|node| printable(node)).collect();
    let width = style.width.unwrap_or(usize::MAX);
    let number = nodes.len().saturating_sub(1).to_string().len();
    let longest = nodes.iter().map(|node| node.chars().count()).max().unwrap_or(0);
    let scale = [Scale::Metrics, Scale::Spaced]
        .into_iter()
        .find(|scale| number + 1 + longest.min(12) + scale.columns() * nodes.len() <= width)
        .unwrap_or(Scale::Tight);
    let gap = usize::from(scale == Scale::Tight);
    let taken = number + 1 + gap + scale.columns() * nodes.len();
    let room = width.saturating_sub(taken).min(longest);
    let mut text = Tone::Heading.paint("Latencies, as multiples of what is usual", style) + "\n";
    let about = format!(
        "Rows send, columns receive; {}.{}",
        lists::moment(matrix.at_unix_ms),
        match matrix.left_out {
            0 => String::new(),
            more => format!(" {more} nodes are left out."),
        }
    );
    text.push_str(&paragraph(&about, 0, style));
    text.push_str(&headings(nodes.len(), number + 1 + room + gap, scale));
    for (from, node) in nodes.iter().enumerate() {
        let name: String = node.chars().take(room).collect();
        text.push_str(&format!("{from:>number$} {name:<room$}{:gap$}", ""));
        for to in 0..nodes.len() {
            text.push_str(&cell(matrix, from, to, scale, style));
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    if room < longest {
        text.push_str(&names(&nodes, style));
    }
    text + &legend(scale, style)
}

/// The numbers of the columns: upright, a digit above the other, where numbers do not fit.
fn headings(nodes: usize, indent: usize, scale: Scale) -> String {
    if scale == Scale::Metrics {
        let numbers: String = (0..nodes).map(|to| format!("{to:>5} ")).collect();
        return format!("{:indent$}{}\n", "", numbers.trim_end());
    }
    let digits = nodes.saturating_sub(1).to_string().len();
    let gap = scale.columns();
    let line = |digit: usize| {
        let column = |to: usize| {
            let number = format!("{to:>digits$}");
            let shown = number.chars().nth(digit).unwrap_or(' ');
            format!("{shown:>gap$}")
        };
        let columns: String = (0..nodes).map(column).collect();
        format!("{:indent$}{}\n", "", columns.trim_end())
    };
    (0..digits).map(line).collect()
}

fn cell(matrix: &MatrixView, from: usize, to: usize, scale: Scale, style: &Style) -> String {
    let known = matrix.cell(from, to);
    let Some(times) = known.and_then(|cell| cell.times) else {
        let mark = if known.is_some() { NO_USUAL } else { NOTHING };
        return match scale {
            Scale::Metrics => format!("{mark:>5} "),
            Scale::Spaced => format!(" {mark}"),
            Scale::Tight => mark.to_string(),
        };
    };
    let is_slow = known.is_some_and(|cell| cell.is_slow);
    let heat = HEATS.iter().rev().find(|heat| times >= heat.least).unwrap_or(&HEATS[0]);
    let metric = match times {
        0.0..10.0 => format!("{times:.2}"),
        10.0..1000.0 => format!("{times:.0}"),
        _ => String::from(">999"),
    };
    let (before, text) = match scale {
        Scale::Metrics => (" ", format!("{metric:>4}{}", if is_slow { SLOW } else { ' ' })),
        Scale::Spaced => (" ", heat.mark.to_string()),
        Scale::Tight => ("", heat.mark.to_string()),
    };
    format!("{before}{}", heat.paint(&text, is_slow, style))
}

/// The names that did not fit beside their rows.
fn names(nodes: &[String], style: &Style) -> String {
    let listed = nodes.iter().enumerate().map(|(number, node)| format!("{number} {node}"));
    paragraph(&listed.collect::<Vec<_>>().join(", "), 0, style)
}

fn legend(scale: Scale, style: &Style) -> String {
    let mut text = String::new();
    let mut used = 0;
    for (place, heat) in HEATS.iter().enumerate() {
        let range = match HEATS.get(place + 1) {
            Some(next) if place == 0 => format!("under {}", next.least),
            _ => format!("from {}", heat.least),
        };
        let (painted, plain) = match scale {
            Scale::Metrics if !style.color => continue,
            Scale::Metrics => (format!(" {range} "), String::new()),
            _ => (heat.mark.to_string(), format!(" {range}")),
        };
        let columns = painted.len() + plain.len();
        let fits = used == 0 || used + 2 + columns <= style.width.unwrap_or(usize::MAX);
        text.push_str(match (used, fits) {
            (0, _) => "",
            (_, true) => "  ",
            (_, false) => "\n",
        });
        used = if fits && used > 0 { used + 2 + columns } else { columns };
        text.push_str(&(heat.paint(&painted, false, style) + &plain));
    }
    if used > 0 {
        text.push('\n');
    }
    let marks = match (scale, style.color) {
        (Scale::Metrics, _) => "! is slower than usual beyond doubt, ? is nothing usual yet.",
        (_, true) => {
            "Underlined is slower than usual beyond doubt, ? is nothing usual yet; --json has the \
              numbers."
        }
        (_, false) => "? is nothing usual yet; --json has the numbers.",
    };
    text + &paragraph(marks, 0, style)
}

// === impl Scale ===

impl Scale {
    const fn columns(self) -> usize {
        match self {
            Self::Metrics => 6,
            Self::Spaced => 2,
            Self::Tight => 1,
        }
    }
}

// === impl Heat ===

impl Heat {
    fn paint(&self, text: &str, is_slow: bool, style: &Style) -> String {
        if !style.color {
            return text.to_owned();
        }
        let (ground, ink) = self.colours;
        let weight = if is_slow { ";1;4" } else { "" };
        format!("\x1b[48;5;{ground};38;5;{ink}{weight}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telltale_control_plane::view::CellView;

    /// Node 1 is slow with everybody; nothing is known of the last pair.
    fn matrix(count: usize) -> MatrixView {
        let mut cells = Vec::new();
        for from in 0..count {
            for to in (0..count).filter(|to| *to != from) {
                let is_slow = from == 1 || to == 1;
                let times = if is_slow { 1.55 } else { 1.0 };
                let now_ns = if is_slow { 1_550 } else { 1_000 };
                let usual_ns = 1_000;
                cells.push(CellView { from, to, usual_ns, now_ns, times: Some(times), is_slow });
            }
        }
        cells.pop();
        let nodes = (0..count).map(|node| format!("node-{node}")).collect();
        MatrixView { nodes, cells, left_out: 0, at_unix_ms: 1_795_219_200_000 }
    }

    #[test]
    fn a_small_map_has_values() {
        let style = Style { width: Some(60), ..Style::PLAIN };
        let expected = "\
Latencies, as multiples of what is usual
Rows send, columns receive; 2026-11-21 00:00:00 UTC.
            0     1     2
0 node-0       1.55! 1.00
1 node-1 1.55!       1.55!
2 node-2 1.00
! is slower than usual beyond doubt, ? is nothing usual yet.
";
        assert_eq!(map(&matrix(3), &style), expected);
    }

    #[test]
    fn a_map_that_is_too_wide_has_characters_and_still_reports_heat_without_colour() {
        let style = Style { width: Some(40), ..Style::PLAIN };
        let text = map(&matrix(11), &style);
        let lines: Vec<&str> = text.lines().collect();
        let expected = [
            "                               1",
            "           0 1 2 3 4 5 6 7 8 9 0",
            " 0 node-0    o . . . . . . . . .",
            " 1 node-1  o   o o o o o o o o o",
        ];
        assert_eq!(lines[3..7], expected, "{text}");
        assert!(text.contains("\no from 1.5  # from 2  @ from 4\n"), "{text}");
        let narrow = map(&matrix(33), &style);
        let row = format!("\n 1 nod o {}\n", "o".repeat(31));
        assert!(narrow.contains(&row), "{narrow}");
        assert!(narrow.contains("0 node-0, 1 node-1, 2 node-2,"), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    }

    #[test]
    fn colour_is_added_to_what_is_there_without_it() {
        let style = Style { width: Some(60), color: true, unicode: true };
        let painted = map(&matrix(3), &style);
        assert!(painted.contains("\x1b[48;5;143;38;5;16;1;4m1.55!\x1b[0m"), "{painted:?}");
        assert!(painted.contains("\x1b[48;5;17;38;5;15m under 1.1 \x1b[0m"), "{painted:?}");
    }
}
