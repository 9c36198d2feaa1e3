//! The pane of alerts: what fires first, the worst at the top, then what is pending.

use ratatui_core::layout::Rect;
use telltale_schema::quantity;

use super::beside::{Alert, Alerts, Availability};
use super::canvas::Canvas;
use super::lines::{Lines, Scroll, Span, wrapped};
use super::theme::Role;
use super::view::View;

/// Cells of state, severity, the time it holds, and the rule.
const CELLS: [u16; 4] = [7, 8, 6, 26];
/// Cells before the text: those above, and one after each.
const BEFORE: u16 = CELLS[0] + CELLS[1] + CELLS[2] + CELLS[3] + 4;
/// From so many cells on the text stands beside the rule, else below it.
const WIDE: u16 = 110;
/// Spaces before a text that stands below.
const INDENT: u16 = 8;

/// The pane, with what the service reports.
#[derive(Debug, Default)]
pub(super) struct AlertPane {
    alerts: Availability<Alerts>,
}

impl AlertPane {
    /// Tells what the rules of the service find.
    pub(super) fn set(&mut self, alerts: Availability<Alerts>) {
        self.alerts = match alerts {
            Availability::Known(mut known) => {
                // Stable: among equals, the service's order is kept.
                known.alerts.sort_by_key(|alert| (!alert.fires, rank(alert.severity)));
                Availability::Known(known)
            }
            other => other,
        };
    }

    /// How many alerts fire, for the tab.
    pub(super) fn note(&self) -> Option<String> {
        let Availability::Known(known) = &self.alerts else { return None };
        match known.alerts.iter().filter(|alert| alert.fires).count() {
            0 => None,
            firing => Some(firing.to_string()),
        }
    }

    pub(super) fn paint(
        &self,
        view: &View,
        scroll: &mut Scroll,
        canvas: &mut Canvas<'_>,
        area: Rect,
    ) {
        match &self.alerts {
            Availability::Awaited => {
                scroll.reason(canvas, area, "The service has not sent its alerts yet.")
            }
            Availability::Absent(why) => scroll.reason(canvas, area, why),
            Availability::Known(known) if known.alerts.is_empty() => {
                let words = format!("No alert is pending or fires.{}", withheld(known));
                scroll.reason(canvas, area, &words);
            }
            Availability::Known(known) => {
                let mut rows: Vec<Vec<Span>> = known
                    .alerts
                    .iter()
                    .flat_map(|alert| alert_rows(view, alert, area.width))
                    .collect();
                if known.withheld > 0 {
                    let words = withheld(known);
                    rows.push(vec![Span::rest(words.trim_start(), Role::Faint)]);
                }
                let now = if view.past_words().is_some() { "WHAT (NOW)" } else { "WHAT" };
                let titles = ["STATE", "SEVERITY", "FOR", "RULE"];
                let mut heading = line(titles.map(String::from), [Role::Heading; 2]);
                if area.width >= WIDE {
                    heading.push(Span::rest(now, Role::Heading));
                }
                let line = |at: usize| rows[at].clone();
                scroll.lines(canvas, area, &Lines { heading, count: rows.len(), line: &line });
            }
        }
    }
}

fn alert_rows(view: &View, alert: &Alert, room: u16) -> Vec<Vec<Span>> {
    // Spans of time are shown to the second.
    let held = quantity::span(view.now.since_ns(alert.since) as f64 / 1e9);
    let state = if alert.fires { "FIRING" } else { "pending" };
    let role = match (alert.fires, alert.severity) {
        (false, _) => Role::Plain,
        (true, "info") => Role::Warning,
        (true, _) => Role::Alarm,
    };
    let parts = [state.to_owned(), alert.severity.to_owned(), held, alert.rule.clone()];
    let mut first = line(parts, [role, Role::Plain]);
    let (indent, begin) = match room >= WIDE {
        true => (BEFORE, 0),
        false => (INDENT, 1),
    };
    let texts = wrapped(&alert.text, room - indent);
    let mut rows = Vec::new();
    for (at, text) in texts.into_iter().enumerate() {
        let text = Span::rest(text, Role::Plain);
        if at == 0 && begin == 0 {
            first.push(text);
        } else {
            rows.push(vec![Span::left("", indent - 1, Role::Plain), text]);
        }
    }
    rows.insert(0, first);
    rows
}

fn line([state, severity, held, rule]: [String; 4], [first, others]: [Role; 2]) -> Vec<Span> {
    vec![
        Span::left(state, CELLS[0], first),
        Span::left(severity, CELLS[1], others),
        Span::right(held, CELLS[2], others),
        Span::left(rule, CELLS[3], others),
    ]
}

/// The worst first.
fn rank(severity: &str) -> usize {
    ["critical", "warning", "info"].iter().position(|it| *it == severity).unwrap_or(usize::MAX)
}

fn withheld(known: &Alerts) -> String {
    match known.withheld {
        0 => String::new(),
        1 => String::from(" 1 about a process of another user is not shown."),
        many => format!(" {} about processes of other users are not shown.", quantity::count(many)),
    }
}
