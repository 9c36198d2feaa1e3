//! The lines of a monitor as text: columns of a fixed width, so that a line fits those printed before.

use telltale_query::{Dimension, Field, FieldKind, Value};
use telltale_schema::calendar;
use telltale_schema::clock::Timestamp;
use telltale_schema::snapshot::Snapshot;
use telltale_schema::text::printable;

use super::{MomentColumns, Monitor, MonitorRow};
use crate::text;

/// What stands for a value that is not known.
const UNKNOWN: &str = "-";
/// Names of users and pids are seldom longer.
const TEXT_WIDTH: usize = 8;
/// What the date and the time look like, in place of a unit.
const DATE: &str = "YYYYMMDD";
const TIME: &str = "HH:MM:SS";

impl Monitor {
    /// A line of names and one of units, each begun by `#`.
    #[must_use]
    pub fn heading(&self, snapshot: &Snapshot, moment: MomentColumns) -> String {
        let line = |first: [&str; 2], of: &dyn Fn(&Field) -> &'static str| {
            let first = moment.choose(first).map(|text| text::padded(text, DATE.len()));
            let cells = self.fields.iter().map(|field| self.cell(field, of(field), snapshot));
            let cells: Vec<String> = first.chain(cells).collect();
            format!("# {}", cells.join(" ")).trim_end().to_owned() + "\n"
        };
        line(["date", "time"], &title) + &line([DATE, TIME], &|field| unit(field).0)
    }

    /// The lines of a snapshot, without line feeds.
    #[must_use]
    pub fn lines(&self, snapshot: &Snapshot, moment: MomentColumns) -> Vec<String> {
        let [date, time] = date_and_time(snapshot.taken_at);
        let line = |row: &MonitorRow<'_>| {
            let first = moment.choose([&date, &time]).map(str::to_owned);
            let cells = self.fields.iter().map(|field| {
                let is_last = self.fields.last() == Some(field);
                self.cell(field, &text_of(field, &row.value(field), is_last), snapshot)
            });
            let cells: Vec<String> = first.chain(cells).collect();
            format!("  {}", cells.join(" ")).trim_end().to_owned()
        };
        self.rows(snapshot).iter().map(line).collect()
    }

    /// A text on the side where its column has it: numbers at the right, all else at the left.
    fn cell(&self, field: &Field, text: &str, snapshot: &Snapshot) -> String {
        let widest = match field.name {
            // Ids of one machine are alike, and all are known before the first line.
            "device" => snapshot.devices.iter().map(|one| text::width(&one.id)).max().unwrap_or(0),
            _ if matches!(field.kind, FieldKind::Number(_)) => unit(field).1,
            _ => TEXT_WIDTH,
        };
        let width = widest.max(title(field).len()).max(unit(field).0.len());
        match field.kind {
            FieldKind::Number(_) => " ".repeat(width.saturating_sub(text::width(text))) + text,
            _ => text::padded(text, width),
        }
    }
}

impl MomentColumns {
    fn choose(self, [date, time]: [&str; 2]) -> impl Iterator<Item = &str> {
        [self.date.then_some(date), self.time.then_some(time)].into_iter().flatten()
    }
}

/// The field's name; that a device's memory is the device's goes without saying in its line.
fn title(field: &Field) -> &'static str {
    match field.name {
        "name" => "command",
        name => name.strip_prefix("device.").unwrap_or(name),
    }
}

/// The unit in which a column is, how wide its numbers usually are at most, how much of the base unit
/// it is, and how many decimals are shown.
fn unit(field: &Field) -> (&'static str, usize, f64, usize) {
    let FieldKind::Number(dimension) = field.kind else {
        return (if field.name == "device" { "id" } else { "name" }, 0, 1.0, 0);
    };
    match dimension {
        _ if field.name == "pid" => ("#", 8, 1.0, 0),
        Dimension::Bytes => ("MiB", 7, 1_048_576.0, 0),
        Dimension::Rate => ("MiB/s", 8, 1_048_576.0, 1),
        Dimension::Frequency => ("MHz", 5, 1e6, 0),
        Dimension::Share => ("%", 4, 0.01, 0),
        Dimension::Temperature => ("C", 4, 1.0, 0),
        Dimension::Power => ("W", 4, 1.0, 0),
        Dimension::Voltage => ("V", 5, 1.0, 2),
        Dimension::Current => ("A", 4, 1.0, 0),
        Dimension::Time => ("s", 6, 1.0, 0),
        Dimension::Count => ("count", 5, 1.0, 0),
    }
}

/// A value as its column has it. Words of one text are joined, so that a line has as many words as
/// columns; those of the last column stay, which nothing follows.
fn text_of(field: &Field, value: &Value<'_>, is_last: bool) -> String {
    match value {
        Value::Absent => UNKNOWN.to_owned(),
        Value::Text(text) if text.trim().is_empty() => UNKNOWN.to_owned(),
        Value::Text(text) if is_last => printable(text),
        Value::Text(text) => printable(text).replace(char::is_whitespace, "_"),
        Value::Number(number) => {
            let (_, _, scale, decimals) = unit(field);
            format!("{:.decimals$}", number / scale)
        }
    }
}

/// `20261121` and `10:00:00`.
fn date_and_time(moment: Timestamp) -> [String; 2] {
    let text = calendar::format(moment);
    let (date, time) = text.split_once('T').unwrap_or((&text, ""));
    [date.replace('-', ""), time.trim_end_matches('Z').to_owned()]
}
