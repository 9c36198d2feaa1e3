//! What was, over a span of time: a row a series with its min, mean, max and change, and a line
//! of little bars.

use std::collections::HashMap;

use telltale_schema::calendar;
use telltale_schema::clock::Timestamp;
use telltale_schema::history::{HistoryAnswer, PastProcess, Series};
use telltale_schema::quantity;
use telltale_schema::text::printable;

use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Table};
use crate::text;

/// The most columns that a line of bars takes.
const MOST_BARS: usize = 40;
/// The fewest that are worth showing.
const FEWEST_BARS: usize = 8;
/// Columns of a terminal that a row's other cells take at least.
const OTHER_COLUMNS: usize = 67;

/// Bars of growing height.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same for terminals that know ASCII alone.
const ASCII_BARS: [char; 8] = ['_', '.', ',', '-', '=', '+', '*', '#'];

/// Tables of devices and of processes.
pub fn history(answer: &HistoryAnswer, style: &Style) -> String {
    let mut page = span(answer, style);
    let (processes, devices): (Vec<&Series>, Vec<&Series>) =
        answer.series.iter().filter(|one| one.has_values()).partition(|one| one.process.is_some());
    if devices.is_empty() && processes.is_empty() {
        page.push_str(&text::painted(
            "Nothing was recorded of this in that time.",
            Tone::Faint,
            style,
        ));
        return page;
    }
    if !devices.is_empty() {
        page.push('\n');
        page.push_str(&device_table(&devices, style));
    }
    if !processes.is_empty() {
        page.push('\n');
        page.push_str(&process_table(&processes, style));
    }
    if answer.series_left_out > 0 {
        let words = format!(
            "{} more series are left out; name devices, processes or metrics",
            quantity::count(answer.series_left_out)
        );
        page.push_str(&text::painted(&words, Tone::Faint, style));
    }
    page
}

/// The line that says which time this is of.
fn span(answer: &HistoryAnswer, style: &Style) -> String {
    let points = u64::try_from(answer.points).unwrap_or(u64::MAX);
    let length_ns = points.saturating_mul(answer.step_ms).saturating_mul(1_000_000);
    let to = Timestamp(answer.from.0.saturating_add(length_ns));
    let words = format!(
        "From {} to {}, in steps of {}",
        calendar::format(answer.from),
        calendar::format(to),
        step(answer.step_ms)
    );
    text::painted(&words, Tone::Faint, style)
}

fn step(step_ms: u64) -> String {
    match step_ms % 1_000 {
        0 => quantity::span((step_ms / 1_000) as f64),
        _ => format!("{step_ms} ms"),
    }
}

fn device_table(series: &[&Series], style: &Style) -> String {
    let mut columns = vec![Column::left("DEVICE", 0), Column::left("METRIC", 0)];
    columns.extend(shown_metrics(style));
    let mut table = Table::new(columns);
    for one in series {
        let mut row = vec![Cell::new(device(one)), Cell::new(shown_metric(one))];
        row.extend(cells(one, style));
        table.push(row);
    }
    table.render(style)
}

/// Series of processes, those of the process that grew most first.
fn by_growth<'a>(series: &[&'a Series]) -> Vec<&'a Series> {
    let key = |one: &'a Series| one.process.as_ref().map(|process| process.key.as_str());
    let mut growths: HashMap<Option<&str>, f64> = HashMap::new();
    for one in series.iter().filter(|one| one.unit == "bytes") {
        let Some(change) = one.change() else { continue };
        let most = growths.entry(key(one)).or_insert(change);
        *most = most.max(change);
    }
    let growth = |one: &&'a Series| growths.get(&key(one)).copied().unwrap_or(0.0);
    let mut sorted = series.to_vec();
    // Those that grew alike stay as they are.
    sorted.sort_by(|one, other| growth(other).total_cmp(&growth(one)));
    sorted
}

fn process_table(series: &[&Series], style: &Style) -> String {
    let mut columns = vec![
        Column::right("PID", 0),
        Column::left("USER", 3),
        Column::left("DEVICE", 2),
        Column::left("METRIC", 0),
    ];
    columns.extend(shown_metrics(style));
    columns.push(Column::left("COMMAND", 4));
    let mut table = Table::new(columns);
    for one in by_growth(series) {
        let Some(process) = &one.process else { continue };
        let pid = crate::processes::pid(process.pid);
        let mut row = vec![
            Cell::new(pid),
            owner(process),
            Cell::new(device(one)),
            Cell::new(shown_metric(one)),
        ];
        row.extend(cells(one, style));
        row.push(Cell::new(command(process)));
        table.push(row);
    }
    table.render(style)
}

fn shown_metrics(style: &Style) -> Vec<Column> {
    let mut columns = vec![
        Column::right("MIN", 5),
        Column::right("MEAN", 1),
        Column::right("MAX", 0),
        Column::right("CHANGE", 0),
    ];
    if bars(style) > 0 {
        columns.push(Column::left("OVER TIME", 6));
    }
    columns
}

fn cells(series: &Series, style: &Style) -> Vec<Cell> {
    let cell = |value: Option<f64>| {
        value.map_or_else(Cell::absent, |value| Cell::new(amount(value, &series.unit)))
    };
    let whole = &series.whole;
    let change = series.change().map(|by| change(by, &series.unit));
    let change = change.map_or_else(Cell::absent, Cell::new);
    let mut cells = vec![cell(whole.least), cell(whole.mean), cell(whole.greatest), change];
    if bars(style) > 0 {
        cells.push(Cell::new(line(series, bars(style), style)));
    }
    cells
}

/// A change with its sign, which none at all has not.
fn change(by: f64, unit: &str) -> String {
    let size = amount(by.abs(), unit);
    match by {
        _ if size == amount(0.0, unit) => size,
        _ if by < 0.0 => format!("-{size}"),
        _ => format!("+{size}"),
    }
}

/// How many bars there is room for; none where the output is no terminal.
fn bars(style: &Style) -> usize {
    let room = style.width.map_or(0, |width| width.saturating_sub(OTHER_COLUMNS));
    if room < FEWEST_BARS { 0 } else { room.min(MOST_BARS) }
}

/// A bar for each so many spans: the greatest of their values, from 0 for what cannot be below it,
/// else from the least there is. A space where nothing is known.
fn line(series: &Series, bars: usize, style: &Style) -> String {
    let marks = if style.unicode { BARS } else { ASCII_BARS };
    let most = series.whole.greatest.unwrap_or(0.0);
    let least = match series.unit.as_str() {
        "bytes" | "watts" | "" => 0.0_f64.min(series.whole.least.unwrap_or(0.0)),
        _ => series.whole.least.unwrap_or(0.0),
    };
    let of_bar = series.greatest.len().div_ceil(bars).max(1);
    series
        .greatest
        .chunks(of_bar)
        .map(|spans| {
            let Some(value) = spans.iter().flatten().copied().reduce(f64::max) else { return ' ' };
            let share = if most > least { (value - least) / (most - least) } else { 0.0 };
            // Shares are from 0 to 1, up to the rounding of floats.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let place = (share * 7.0).round().clamp(0.0, 7.0) as usize;
            marks[place]
        })
        .collect()
}

/// A value in its unit, as the other tables have it.
pub(crate) fn amount(value: f64, unit: &str) -> String {
    match unit {
        // A float that does not fit becomes the nearest whole number.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        "bytes" => quantity::bytes(value.round() as u64),
        "hertz" => format!("{:.0} MHz", value / 1e6),
        "celsius" => format!("{value:.1} C"),
        "watts" => format!("{value:.1} W"),
        "amperes" => format!("{value:.1} A"),
        "volts" => format!("{value:.3} V"),
        "revolutions_per_minute" => format!("{value:.0} rpm"),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

/// What a series is of, in a word or two: the metric without its prefix and unit, and its label.
fn shown_metric(series: &Series) -> String {
    let stem = series.metric.strip_prefix("telltale_").unwrap_or(&series.metric);
    let stem = stem.split_once('_').map_or(stem, |(_, rest)| rest);
    let stem = stem.strip_suffix("_total").unwrap_or(stem);
    let stem = stem.strip_suffix(series.unit.as_str()).unwrap_or(stem).trim_end_matches('_');
    match &series.label {
        Some((_, value)) if value == "asic" => stem.replace('_', " "),
        // A space and a kind may have one name, and the space's bytes are not beside the kind's.
        Some((name, value)) if name == "space" => {
            format!("{} space {value}", stem.replace('_', " "))
        }
        Some((_, value)) => format!("{} {value}", stem.replace('_', " ")),
        None => stem.replace('_', " "),
    }
}

fn device(series: &Series) -> String {
    printable(series.device.as_deref().unwrap_or_default())
}

/// The name of a process's user, or the number of one that has none.
pub(crate) fn owner(process: &PastProcess) -> Cell {
    match (&process.user, process.uid) {
        (Some(user), _) => Cell::new(printable(user)),
        (None, Some(uid)) => Cell::new(uid.to_string()),
        (None, None) => Cell::absent(),
    }
}

fn command(process: &PastProcess) -> String {
    let words = process.command.as_deref().filter(|command| !command.is_empty());
    printable(words.unwrap_or(&process.name))
}

#[cfg(test)]
mod tests {
    use super::history;
    use crate::style::Style;
    use telltale_schema::clock::Timestamp;
    use telltale_schema::history::{DenseSeries, HistoryAnswer, PastProcess, Series};
    use telltale_schema::process::ProcessIdentity;

    fn answer() -> HistoryAnswer {
        let values = vec![Some(0.0), Some(512.0), None, Some(1024.0)];
        let one = Series {
            metric: String::from("telltale_device_memory_used_bytes"),
            unit: String::from("bytes"),
            label: Some((String::from("space"), String::from("dram"))),
            device: Some(String::from("251732099")),
            process: None,
            whole: DenseSeries { least: Some(0.0), mean: Some(512.0), greatest: Some(1024.0) },
            least: values.clone(),
            mean: values.clone(),
            greatest: values,
            absent: Vec::new(),
        };
        let from = Timestamp(1_795_255_200 * 1_000_000_000);
        HistoryAnswer {
            from,
            step_ms: 30_000,
            points: 4,
            series: vec![one],
            series_left_out: 2,
            faults: Vec::new(),
            faults_left_out: 0,
        }
    }

    #[test]
    fn a_terminal_gets_bars_and_a_file_does_not() {
        let file = history(&answer(), &Style::PLAIN);
        assert_eq!(
            file,
            "From 2026-11-21T10:00:00Z to 2026-11-21T10:02:00Z, in steps of 30s\n\n\
             DEVICE     METRIC                  MIN   MEAN      MAX    CHANGE\n\
             251732099  memory used space dram  0 B  512 B  1.0 KiB  +1.0 KiB\n\
             2 more series are left out; name devices, processes or metrics\n"
        );
        let style = Style { width: Some(96), color: false, unicode: true };
        assert!(
            history(&answer(), &style).contains("+1.0 KiB  ▁▅ █\n"),
            "{}",
            history(&answer(), &style)
        );
        let plain = history(&answer(), &Style { unicode: false, ..style });
        assert!(plain.contains("1.0 KiB  _= #\n"), "{plain}");
    }

    #[test]
    fn the_process_that_grew_most_is_first_with_all_that_it_has() {
        let of = |pid: u32, mean: &[f64]| {
            let identity =
                ProcessIdentity { boot_id: [7; 16], pid, start_time_ticks: 9, pid_namespace: 1 };
            let key = pid.to_string();
            let (name, command) = (format!("it-{pid}"), None);
            let process =
                PastProcess { identity, key, pid: Some(pid), name, command, uid: None, user: None };
            let mean: Vec<Option<f64>> = mean.iter().copied().map(Some).collect();
            let mut one = answer().series.remove(0);
            one.process = Some(process);
            Series { least: mean.clone(), greatest: mean.clone(), mean, ..one }
        };
        let series = vec![
            of(7, &[9.0, 5.0]),
            of(8, &[1.0, 1.0]),
            of(9, &[2.0]),
            of(10, &[0.0, 8.0, 6.0]),
            of(8, &[0.0, 2.0]),
        ];
        let page = history(&HistoryAnswer { series, ..answer() }, &Style::PLAIN);
        let rows = page.lines().filter(|line| line.contains("it-"));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split_whitespace().collect()).collect();
        let found: Vec<(&str, String)> =
            rows.iter().map(|row| (row[0], row[row.len() - 3..row.len() - 1].join(" "))).collect();
        let expected =
            [("10", "+6 B"), ("8", "0 B"), ("8", "+2 B"), ("9", "KiB n/a"), ("7", "-4 B")];
        assert_eq!(found, expected.map(|(pid, change)| (pid, change.to_owned())), "{page}");
    }

    #[test]
    fn nothing_recorded_is_said() {
        let empty = HistoryAnswer { series: Vec::new(), ..answer() };
        assert!(
            history(&empty, &Style::PLAIN)
                .ends_with("Nothing was recorded of this in that time.\n")
        );
    }
}
