//! What was wrong, and for how long: a row a fault, the newest last as in a log.

use telltale_schema::calendar;
use telltale_schema::health::HealthState;
use telltale_schema::history::{HistoryAnswer, PastFault};
use telltale_schema::quantity;
use telltale_schema::text::printable;

use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Table};
use crate::text;

/// Faults and events, one a line; a sentence where there was none.
pub fn past_faults(answer: &HistoryAnswer, style: &Style) -> String {
    if answer.faults.is_empty() {
        return text::painted("No fault was recorded in that time.", Tone::Faint, style);
    }
    let mut table = Table::new(vec![
        Column::left("SINCE", 0),
        Column::right("LASTED", 0),
        Column::left("STATE", 2),
        Column::left("WHAT", 0),
        Column::left("RULE", 1),
        Column::left("CAUSE", 0),
    ]);
    for past in answer.faults.iter().rev() {
        let state = past.fault.kind.state();
        table.push(vec![
            Cell::new(calendar::format(past.fault.since)),
            Cell::new(lasted(past)),
            Cell::toned(state.name(), tone(state)),
            Cell::new(printable(past.subject())),
            Cell::new(past.fault.kind.name()),
            Cell::new(printable(&past.fault.detail)),
        ]);
    }
    let mut page = table.render(style);
    if answer.faults_left_out > 0 {
        let words = format!(
            "{} older faults are left out; give a later --since or --until",
            quantity::count(answer.faults_left_out)
        );
        page.push_str(&text::painted(&words, Tone::Faint, style));
    }
    page
}

/// For how long it was so; with a plus where its end is not recorded.
fn lasted(past: &PastFault) -> String {
    let span = quantity::span(past.lasted_ns() as f64 / 1e9);
    if past.until.is_some() { span } else { format!("{span}+") }
}

const fn tone(state: HealthState) -> Tone {
    match state {
        HealthState::Ok => Tone::Plain,
        HealthState::Unknown => Tone::Faint,
        HealthState::Warning => Tone::Warning,
        HealthState::Failed => Tone::Alarm,
    }
}

#[cfg(test)]
mod tests {
    use super::past_faults;
    use crate::csv;
    use crate::style::Style;
    use telltale_schema::clock::Timestamp;
    use telltale_schema::health::{Fault, FaultKind};
    use telltale_schema::history::{HistoryAnswer, PastFault};

    const BEGIN_NS: u64 = 1_795_255_200_000_000_000;

    fn answer(faults: Vec<PastFault>) -> HistoryAnswer {
        HistoryAnswer {
            from: Timestamp(BEGIN_NS),
            step_ms: 30_000,
            points: 4,
            series: Vec::new(),
            series_left_out: 0,
            faults,
            faults_left_out: 0,
        }
    }

    fn after(seconds: u64) -> Timestamp {
        Timestamp(BEGIN_NS + seconds * 1_000_000_000)
    }

    #[test]
    fn faults_are_lines_with_their_length_the_newest_last() {
        let tripped = Fault::new(FaultKind::ThermalTrip, after(60), String::from("too hot"));
        let mut down = Fault::new(FaultKind::NetworkLinkDown, after(0), String::from("no link"));
        down.part = String::from("eth\u{1b}0");
        let answer = answer(vec![
            PastFault {
                device: Some(String::from("251732099")),
                fault: tripped,
                until: None,
                last_seen: after(75),
            },
            PastFault { device: None, fault: down, until: Some(after(9)), last_seen: after(9) },
        ]);
        assert_eq!(
            past_faults(&answer, &Style::PLAIN),
            "SINCE                 LASTED  STATE   WHAT       RULE               CAUSE\n\
             2026-11-21T10:00:00Z      9s  failed  eth?0      network_link_down  no link\n\
             2026-11-21T10:01:00Z    15s+  failed  251732099  thermal_trip       too hot\n"
        );
        let csv = csv::past_faults(&answer);
        let rows: Vec<&str> = csv.lines().collect();
        assert_eq!(
            rows[0],
            "since_unix_ns,until_unix_ns,last_seen_unix_ns,state,device,part,rule,cause"
        );
        assert_eq!(
            rows[2],
            "1795255260000000000,,1795255275000000000,failed,251732099,,thermal_trip,too hot"
        );
    }

    #[test]
    fn nothing_is_a_sentence() {
        let page = past_faults(&answer(Vec::new()), &Style::PLAIN);
        assert_eq!(page, "No fault was recorded in that time.\n");
    }
}
