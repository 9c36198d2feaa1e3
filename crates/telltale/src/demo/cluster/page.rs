//! The page that a terminal shows: a row for each node, and below what happened.

use std::time::Duration;

use telltale_smi::{Style, Tone};
use telltale_wire::cluster::message::NodeState;

use super::story::{NodeStory, Story};

/// Characters of a bar.
const BAR: usize = 20;
/// Rows that are not for events: heading, nodes and what is between.
const ROWS_BESIDE_EVENTS: usize = 6;
/// Events that are always shown.
const LEAST_EVENTS: usize = 4;

/// How far the training that nobody disturbs has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Undisturbed {
    pub(super) step: u64,
}

/// The page of a moment, in at most `rows` rows if it can be.
pub(super) fn page(
    story: &Story,
    undisturbed: Option<Undisturbed>,
    rows: Option<usize>,
    style: &Style,
) -> String {
    let mut lines = vec![(Tone::Faint, title(story))];
    let heading = format!(
        "{:8} {:9} {:>4} {:>5} {:>9}  {:BAR$}  {:>6}  {:>7}",
        "NODE", "IS", "RANK", "EPOCH", "STEP", "", "LOSS", "HEARD"
    );
    lines.push((Tone::Heading, heading));
    lines.extend((0..story.nodes.len()).map(|place| row(story, place, style)));
    if let Some(Undisturbed { step }) = undisturbed {
        let of = format!("{step}/{}", story.steps);
        let text = format!("{:29} {of:>9}  {}", "undisturbed, to compare", bar(step, story, style));
        lines.push((Tone::Plain, text));
    }
    lines.push((Tone::Plain, String::new()));
    let room = rows.map_or(usize::MAX, |rows| {
        rows.saturating_sub(story.nodes.len() + ROWS_BESIDE_EVENTS).max(LEAST_EVENTS)
    });
    let first = story.events.len().saturating_sub(room);
    for event in &story.events[first..] {
        let tone = if event.what.is_trouble() { Tone::Warning } else { Tone::Plain };
        lines.push((tone, event.line()));
    }
    let width = style.width.unwrap_or(usize::MAX);
    let cut = |text: String| text.chars().take(width).collect::<String>();
    let painted = lines.into_iter().map(|(tone, text)| tone.paint(&cut(text), style) + "\n");
    painted.collect()
}

fn title(story: &Story) -> String {
    let epoch = story.view.epoch;
    format!("Ctrl-C ends this demo: one GPT on four nodes, of which one dies (epoch {epoch})")
}

fn row(story: &Story, place: usize, style: &Style) -> (Tone, String) {
    let node = &story.nodes[place];
    let seen = story.view.nodes.iter().find(|seen| seen.name == node.name);
    let slot = story.view.holders.iter().position(|holder| *holder == node.name);
    let (is, tone) = match seen.map(|seen| seen.state) {
        _ if story.is_killed(place) => ("killed", Tone::Alarm),
        None | Some(NodeState::Unspecified) => ("starts", Tone::Faint),
        Some(NodeState::Active) if node.digest.is_some() => ("done", Tone::Plain),
        Some(NodeState::Active) if !story.view.runs => ("prepares", Tone::Plain),
        Some(NodeState::Active) => ("runs", Tone::Plain),
        Some(NodeState::Standby) => ("spare", Tone::Faint),
        Some(NodeState::Silent) => ("silent", Tone::Alarm),
        Some(NodeState::Barred) => ("kept out", Tone::Warning),
    };
    let rank = slot.map_or_else(|| String::from("-"), |slot| slot.to_string());
    let heard = seen.and_then(|seen| seen.heard_ago).map(|ago| format!("{:.1} s", seconds(ago)));
    let (epoch, step, bar, loss) = match node {
        NodeStory { rank: None, .. } => (String::from("-"), String::new(), String::new(), None),
        NodeStory { epoch, step, loss, .. } => {
            let of = format!("{step}/{}", story.steps);
            (epoch.to_string(), of, bar(*step, story, style), *loss)
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

fn bar(step: u64, story: &Story, style: &Style) -> String {
    let (full, empty) = if style.unicode { ("█", "░") } else { ("#", ".") };
    let share = step.min(story.steps) as f64 / story.steps.max(1) as f64;
    let done = (share * BAR as f64) as usize;
    full.repeat(done) + &empty.repeat(BAR - done)
}

fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use telltale_smi::Style;

    use super::super::story::tests::swapped;
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
        let narrow = Style { width: Some(30), ..Style::PLAIN };
        let page = super::page(&swapped(), None, None, &narrow);
        assert!(page.lines().all(|line| line.chars().count() <= 30), "{page}");
    }
}
