//! Alerts and rules as tables. What they are is their owner's business; here they are rows.

use telltale_schema::text::printable;

use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Table};

/// An alert, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertRow<'a> {
    /// `firing` or `pending`.
    pub state: &'a str,
    /// How bad it is.
    pub severity: &'a str,
    /// Its rule.
    pub rule: &'a str,
    /// How long its condition has held.
    pub held: String,
    /// What is wrong.
    pub text: &'a str,
}

/// A rule, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow<'a> {
    /// Its name.
    pub rule: &'a str,
    /// How bad it is.
    pub severity: &'a str,
    /// What it searches for.
    pub condition: String,
    /// How long that must hold, and how long it must be over.
    pub times: [String; 2],
    /// Where it comes from.
    pub origin: String,
}

/// An alert that fired or was resolved, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionRow<'a> {
    /// When.
    pub at: String,
    /// Whether it fired; else it was resolved.
    pub fired: bool,
    /// How bad it is.
    pub severity: &'a str,
    /// Its rule.
    pub rule: &'a str,
    /// What was wrong.
    pub text: &'a str,
}

/// Alerts, one a line; a sentence where there is none.
pub fn alerts(rows: &[AlertRow<'_>], style: &Style) -> String {
    if rows.is_empty() {
        return String::from("No alert is pending or fires.\n");
    }
    let mut table = Table::new(vec![
        Column::left("STATE", 0),
        Column::left("SEVERITY", 2),
        Column::left("RULE", 1),
        Column::right("FOR", 3),
        Column::left("WHAT", 0),
    ]);
    for row in rows {
        let tone = if row.state == "firing" { Tone::Alarm } else { Tone::Plain };
        table.push(vec![
            Cell::toned(row.state, tone),
            Cell::new(row.severity),
            Cell::new(printable(row.rule)),
            Cell::new(row.held.as_str()),
            Cell::new(printable(row.text)),
        ]);
    }
    table.render(style)
}

/// What fired and what was resolved, one a line, in the order in which it happened; a sentence where
/// nothing did.
pub fn transitions(rows: &[TransitionRow<'_>], style: &Style) -> String {
    if rows.is_empty() {
        return String::from("No alert fired.\n");
    }
    let mut table = Table::new(vec![
        Column::left("WHEN", 0),
        Column::left("EVENT", 0),
        Column::left("SEVERITY", 2),
        Column::left("RULE", 1),
        Column::left("WHAT", 0),
    ]);
    for row in rows {
        let (event, tone) =
            if row.fired { ("fired", Tone::Alarm) } else { ("resolved", Tone::Plain) };
        table.push(vec![
            Cell::new(row.at.as_str()),
            Cell::toned(event, tone),
            Cell::new(row.severity),
            Cell::new(printable(row.rule)),
            Cell::new(printable(row.text)),
        ]);
    }
    table.render(style)
}

/// Rules, one a line.
pub fn rules(rows: &[RuleRow<'_>], style: &Style) -> String {
    let mut table = Table::new(vec![
        Column::left("RULE", 0),
        Column::left("SEVERITY", 3),
        Column::right("HOLDS", 2),
        Column::right("CLEAR", 4),
        Column::left("FROM", 1),
        Column::left("CONDITION", 0),
    ]);
    for row in rows {
        let [holds, clear] = &row.times;
        table.push(vec![
            Cell::new(printable(row.rule)),
            Cell::new(row.severity),
            Cell::new(holds.as_str()),
            Cell::new(clear.as_str()),
            Cell::new(printable(&row.origin)),
            Cell::new(row.condition.as_str()),
        ]);
    }
    table.render(style)
}

#[cfg(test)]
mod tests {
    use super::{AlertRow, alerts};
    use crate::style::Style;

    #[test]
    fn alerts_are_lines_and_their_text_steers_no_terminal() {
        assert_eq!(alerts(&[], &Style::PLAIN), "No alert is pending or fires.\n");
        let row = AlertRow {
            state: "firing",
            severity: "warning",
            rule: "device_hot",
            held: "40 s".to_owned(),
            text: "it \x1b[2J burns",
        };
        let expected = "\
STATE   SEVERITY  RULE         FOR  WHAT
firing  warning   device_hot  40 s  it ?[2J burns
";
        assert_eq!(alerts(&[row], &Style::PLAIN), expected);
    }
}
