//! The page that a terminal shows: a row for each node, and below what happened.

use std::time::Duration;

use telltale_smi::{Style, Tone, paragraph};
use telltale_wire::cluster::message::NodeState;

use super::timeline::{NodeProgress, Timeline};

/// Characters of a bar.
const BAR: usize = 20;
/// Rows that are not for events: heading, nodes and what is between.
const ROWS_BESIDE_EVENTS: usize = 6;
/// Lines of events that are always shown.
const LEAST_EVENTS: usize = 4;
/// Where the words of an event begin, behind its times.
const WORDS_OF_AN_EVENT: usize = 19;

/// How far the undisturbed training has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Undisturbed {
    pub(super) step: u64,
}

/// The page of a moment, in at most `rows` rows if it can be.
pub(super) fn page(
    timeline: &Timeline,
    undisturbed: Option<Undisturbed>,
    rows: Option<usize>,
    style: &Style,
) -> String {
    let mut lines = vec![(Tone::Faint, title(timeline))];
    let width = style.width.unwrap_or(usize::MAX);
    let cut = |text: String| text.chars().take(width).collect::<String>();
    let heading = format!(
        "{:8} {:9} {:>4} {:>5} {:>9}  {:BAR$}  {:>6}  {:>7}",
        "NODE", "IS", "RANK", "EPOCH", "STEP", "", "LOSS", "HEARD"
    );
    lines.push((Tone::Heading, heading));
    lines.extend((0..timeline.nodes.len()).map(|place| row(timeline, place, style)));
    if let Some(Undisturbed { step }) = undisturbed {
        let of = format!("{step}/{}", timeline.steps);
        let text =
            format!("{:29} {of:>9}  {}", "undisturbed, to compare", bar(step, timeline, style));
        lines.push((Tone::Plain, text));
    }
    lines.push((Tone::Plain, String::new()));
    let room = rows.map_or(usize::MAX, |rows| {
        rows.saturating_sub(timeline.nodes.len() + ROWS_BESIDE_EVENTS).max(LEAST_EVENTS)
    });
    let lines = lines.into_iter().map(|(tone, text)| (tone, cut(text)));
    let painted = lines.chain(latest(timeline, room, style));
    painted.map(|(tone, text)| tone.paint(&text, style) + "\n").collect()
}

/// The lines of the latest events that fit whole into `room`, each event wrapped below its words.
fn latest(timeline: &Timeline, room: usize, style: &Style) -> Vec<(Tone, String)> {
    let mut shown = Vec::new();
    for event in timeline.events.iter().rev() {
        let tone = if event.what.is_trouble() { Tone::Warning } else { Tone::Plain };
        let text = paragraph(&event.line(), WORDS_OF_AN_EVENT, style);
        let lines: Vec<_> = text.lines().map(|line| (tone, line.to_owned())).collect();
        if shown.len() + lines.len() > room {
            break;
        }
        shown.extend(lines.into_iter().rev());
    }
    shown.reverse();
    shown
}

fn title(timeline: &Timeline) -> String {
    let epoch = timeline.view.epoch;
    let what = "one GPT on four nodes, of which one dies";
    match timeline.has_ended {
        false => format!("Ctrl-C ends this demo: {what} (epoch {epoch})"),
        true => format!("This demo has ended: {what} (epoch {epoch})"),
    }
}

fn row(timeline: &Timeline, place: usize, style: &Style) -> (Tone, String) {
    let node = &timeline.nodes[place];
    let seen = timeline.view.nodes.iter().find(|seen| seen.name == node.name);
    let slot = timeline.view.holders.iter().position(|holder| *holder == node.name);
    let (is, tone) = match seen.map(|seen| seen.state) {
        _ if timeline.is_killed(place) => ("killed", Tone::Alarm),
        None | Some(NodeState::Unspecified) => ("starts", Tone::Faint),
        Some(NodeState::Active) if node.digest.is_some() => ("done", Tone::Plain),
        Some(NodeState::Active) if !timeline.view.runs => ("prepares", Tone::Plain),
        Some(NodeState::Active) => ("runs", Tone::Plain),
        Some(NodeState::Standby) => ("spare", Tone::Faint),
        Some(NodeState::Silent) => ("silent", Tone::Alarm),
        Some(NodeState::Ended) => ("ended", Tone::Plain),
        Some(NodeState::Barred) => ("quarantined", Tone::Warning),
    };
    let rank = slot.map_or_else(|| String::from("-"), |slot| slot.to_string());
    let heard = seen.and_then(|seen| seen.heard_ago).map(|ago| format!("{:.1} s", seconds(ago)));
    let (epoch, step, bar, loss) = match node {
        NodeProgress { rank: None, .. } => (String::from("-"), String::new(), String::new(), None),
        NodeProgress { epoch, step, loss, .. } => {
            let of = format!("{step}/{}", timeline.steps);
            (epoch.to_string(), of, bar(*step, timeline, style), *loss)
        }
    };
    let loss = loss.map_or_else(String::new, |loss| format!("{loss:.3}"));
    let text = format!(
        "{:8} {is:9} {rank:>4} {epoch:>5} {step:>9}  {bar:BAR$}  {loss:>6}  {:>7}",
        node.name,
        heard.unwrap_or_else(|| String::from("n/a"))
    );
    (tone, text)
}

fn bar(step: u64, timeline: &Timeline, style: &Style) -> String {
    let (full, empty) = if style.unicode { ("█", "░") } else { ("#", ".") };
    let share = step.min(timeline.steps) as f64 / timeline.steps.max(1) as f64;
    let done = (share * BAR as f64) as usize;
    full.repeat(done) + &empty.repeat(BAR - done)
}

fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use telltale_smi::Style;

    use super::super::timeline::tests::swapped;
    use super::{Undisturbed, page};

    #[test]
    fn a_page_has_a_row_for_each_node_and_the_latest_events_that_fit() {
        let page = page(&swapped(), Some(Undisturbed { step: 2 }), Some(13), &Style::PLAIN);
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(
            lines[1..7],
            [
                "NODE     IS        RANK EPOCH      STEP                          LOSS    HEARD",
                "a        runs         0     1       4/8  ##########..........   4.250    0.4 s",
                "b        killed       -     1       4/8  ##########..........   4.250    0.4 s",
                "c        runs         1     2       5/8  ############........   4.250    0.4 s",
                "undisturbed, to compare             2/8  #####...............",
                "",
            ]
        );
        assert_eq!(lines.len(), 11, "four events in 13 rows: {page}");
        assert!(lines[10].ends_with("resumed after step 4"), "{page}");
    }

    #[test]
    fn events_are_wrapped_and_only_whole_ones_are_shown() {
        let narrow = Style { width: Some(60), ..Style::PLAIN };
        let page = super::page(&swapped(), None, Some(13), &narrow);
        assert!(page.lines().all(|line| line.chars().count() <= 60), "{page}");
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(
            lines[6..],
            [
                " 11.00 s  +7.00 s  b is not heard any more",
                " 11.00 s  +7.00 s  epoch 2 runs on a, c; no spare is left",
                " 13.00 s  +9.00 s  step 5 is done in epoch 2, resumed after",
                "                   step 4",
            ]
        );
    }

    #[test]
    fn a_demo_that_has_ended_is_not_offered_to_be_ended() {
        let mut timeline = swapped();
        assert!(page(&timeline, None, None, &Style::PLAIN).starts_with("Ctrl-C ends this demo: "));
        timeline.has_ended = true;
        assert!(page(&timeline, None, None, &Style::PLAIN).starts_with("This demo has ended: "));
    }
}
