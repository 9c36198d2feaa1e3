//! One incident as text: what was seen, what it was taken for, why, and what is done.

use telltale_control_plane::view::{ExplanationView, HangView, IncidentView, duration};
use telltale_schema::text::printable;
use telltale_smi::{Style, Tone, paragraph};

use super::{heat, lists, report};

/// Events that are listed; those in between are counted.
const MAX_EVENTS: usize = 20;
/// Ranks of a stack that are named, and lines of it that are shown.
const MAX_RANKS: usize = 8;
const MAX_FRAMES: usize = 12;
/// What stands where the map would be.
const NO_MAP: &str =
    "There is no map of latencies: by then workers had reported no transfers between two nodes.";

/// All that is known of an incident.
pub(super) fn text(explanation: &ExplanationView, style: &Style) -> String {
    let incident = &explanation.incident;
    let lasted_ms = incident.last_sign_unix_ms.saturating_sub(incident.opened_unix_ms);
    let lasted = match lasted_ms {
        0 => String::new(),
        _ => format!("; events came for {}", duration(lasted_ms.saturating_mul(1_000_000))),
    };
    let heading = format!(
        "Incident {} of epoch {}, {}{lasted}",
        printable(&incident.id),
        incident.epoch,
        lists::moment(incident.opened_unix_ms),
    );
    let mut text = Tone::Heading.paint(&heading, style) + "\n";
    text.push_str(&paragraph(&capital(&incident.text), 0, style));
    text.push('\n');
    if let Some(sentence) = &incident.hang {
        text.push_str(&hang(sentence, explanation.hang.as_ref(), style));
    }
    text.push_str(&events(incident, style));
    if !explanation.verdicts.is_empty() {
        text.push('\n');
        text.push_str(&(Tone::Heading.paint("What it was taken for", style) + "\n"));
    }
    for verdict in &explanation.verdicts {
        text.push_str(&paragraph(&format!("  {}", verdict.text), 4, style));
        for evidence in &verdict.evidence {
            text.push_str(&paragraph(&format!("    - {}", evidence.text), 6, style));
        }
    }
    text.push('\n');
    match &explanation.matrix {
        Some(matrix) => text.push_str(&heat::map(matrix, style)),
        None => text.push_str(&paragraph(NO_MAP, 0, style)),
    }
    if let Some(steps) = &explanation.steps {
        text.push_str(&format!("\n{}\n", Tone::Heading.paint("Training steps now", style)));
        text.push_str(&report::summary(steps, style));
    }
    text
}

/// Why the job hung: the sentence, and the stacks that it is made of.
fn hang(sentence: &str, stacks: Option<&HangView>, style: &Style) -> String {
    let mut text = Tone::Heading.paint("Why it hung", style) + "\n";
    text.push_str(&paragraph(&format!("  {}", capital(sentence)), 2, style));
    for folded in stacks.iter().flat_map(|hang| &hang.stacks) {
        let ranks: Vec<String> = folded.ranks.iter().take(MAX_RANKS).map(u32::to_string).collect();
        let ranks = match (folded.count, &ranks[..]) {
            (1, [rank]) => format!("rank {rank}"),
            (count, ranks) if usize::try_from(count) == Ok(ranks.len()) => {
                format!("ranks {}", ranks.join(", "))
            }
            (count, ranks) => format!("{count} ranks, from {} on", ranks.join(", ")),
        };
        text.push_str(&paragraph(&format!("  {ranks}:"), 4, style));
        for line in folded.stack.iter().take(MAX_FRAMES) {
            text.push_str(&paragraph(&format!("    {line}"), 6, style));
        }
    }
    for missing in stacks.iter().flat_map(|hang| &hang.missing) {
        text.push_str(&paragraph(&format!("  not taken: {missing}"), 4, style));
    }
    text.push('\n');
    text
}

fn events(incident: &IncidentView, style: &Style) -> String {
    let mut text = Tone::Heading.paint("Events, in the order they came", style) + "\n";
    let shown = incident.events.len().min(MAX_EVENTS);
    for event in &incident.events[..shown] {
        let after_ms = event.at_unix_ms.map(|at| at.saturating_sub(incident.opened_unix_ms));
        let after = after_ms
            .filter(|after_ms| *after_ms > 0)
            .map(|after_ms| format!(" (after {})", duration(after_ms.saturating_mul(1_000_000))));
        let line = format!("  {}{}", event.text, after.unwrap_or_default());
        text.push_str(&paragraph(&line, 4, style));
    }
    let listed = u64::try_from(incident.events.len() - shown).unwrap_or(u64::MAX);
    let more = listed.saturating_add(incident.dropped_events);
    if more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
    text.push_str(&finished(incident, style));
    text
}

/// Who had left before, which others may have missed.
fn finished(incident: &IncidentView, style: &Style) -> String {
    let shown = incident.finished.iter().take(MAX_EVENTS);
    let mut workers: Vec<_> = shown
        .map(|worker| format!("rank {} on {}", worker.rank, printable(&worker.node)))
        .collect();
    let more = incident.finished.len() - workers.len();
    if more > 0 {
        workers.push(format!("{more} more"));
    }
    match workers.is_empty() {
        true => String::new(),
        false => {
            let line = format!("  ended with exit code 0 before that: {}", workers.join(", "));
            paragraph(&line, 4, style)
        }
    }
}

/// A sentence with a capital at its beginning.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
