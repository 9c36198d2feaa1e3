//! A job's training steps as text: how long they take, where the time goes, and by whom.

use telltale_control_plane::view::{AnalysisView, JobStepsView, duration};
use telltale_schema::text::printable;
use telltale_smi::{Cell, Column, Style, Table, Tone, paragraph};

/// What is said where there is nothing to show.
pub(super) const NONE: &str = "No training steps are known yet. They are reported by the Python module (`telltale agent \
                    --shim`, docs/cluster-clients.md) or by records with `step`, and shown after ten steps, or \
                    two of 100 operations a rank.";
/// Columns of the line of step times.
const TIMES: usize = 64;
/// Waits that are listed; the page has more.
const MAX_WAITS: usize = 10;

/// All that is known of a job's steps.
pub(super) fn text(steps: &JobStepsView, style: &Style) -> String {
    let (Some(latest), Some(all)) = (&steps.latest, &steps.all) else {
        return paragraph(NONE, 0, style) + &left_out(steps, style);
    };
    let mut text = summary(steps, style);
    text.push('\n');
    text.push_str(&Tone::Heading.paint("Where the time goes, of one step", style));
    text.push('\n');
    text.push_str(&shares(latest, all).render(style));
    for (heading, table) in [
        ("Slow ranks", ranks(latest)),
        ("Slow links", links(latest)),
        ("Stages", stages(latest)),
        ("Who waits for whom, of one step", waits(steps)),
    ] {
        if let Some(table) = table {
            text.push_str(&format!("\n{}\n", Tone::Heading.paint(heading, style)));
            text.push_str(&table.render(style));
        }
    }
    text + &left_out(steps, style)
}

fn left_out(steps: &JobStepsView, style: &Style) -> String {
    match steps.left_out {
        0 => String::new(),
        count => {
            let line = format!("{count} steps were left out, since operations were missing");
            Tone::Faint.paint(&line, style) + "\n"
        }
    }
}

/// What is slow and why, in sentences, and how long the latest steps took.
pub(super) fn summary(steps: &JobStepsView, style: &Style) -> String {
    let mut text: String =
        steps.text.iter().map(|one| paragraph(&printable(one), 0, style)).collect();
    if let Some(times) = steps.times_in_blocks(TIMES) {
        text.push_str(&format!("\n{}\n", Tone::Faint.paint(&format!("  {times}"), style)));
    }
    text
}

fn shares(latest: &AnalysisView, all: &AnalysisView) -> Table {
    let mut table = Table::new(vec![
        Column::left("", 0),
        Column::right("LATEST", 0),
        Column::right("SHARE", 1),
        Column::right("ALL STEPS", 2),
    ]);
    let lost = |of: &AnalysisView| of.lost_seconds;
    let rows = [
        ("slow ranks", lost(latest).ranks, lost(all).ranks),
        ("stages that differ", lost(latest).stages, lost(all).stages),
        ("data that varies", lost(latest).data, lost(all).data),
        ("noise of hosts", lost(latest).noise, lost(all).noise),
        ("communication", lost(latest).links, lost(all).links),
    ];
    let even = [latest.even_seconds, all.even_seconds].map(seconds);
    let [even_latest, even_all] = even;
    table.push(vec![
        Cell::new("if all were even"),
        Cell::new(even_latest),
        Cell::new(""),
        Cell::new(even_all),
    ]);
    for (name, latest_seconds, all_seconds) in rows {
        let part = latest_seconds / latest.lost().max(f64::MIN_POSITIVE);
        let part =
            if latest.lost() > 0.0 { format!("{:.0}%", 100.0 * part) } else { String::new() };
        table.push(vec![
            Cell::new(name),
            Cell::new(seconds(latest_seconds)),
            Cell::new(part),
            Cell::new(seconds(all_seconds)),
        ]);
    }
    table.push(vec![
        Cell::new("a step takes"),
        Cell::new(seconds(latest.actual_seconds)),
        Cell::new(format!("S {:.3}", latest.slowdown)),
        Cell::new(seconds(all.actual_seconds)),
    ]);
    table
}

fn ranks(latest: &AnalysisView) -> Option<Table> {
    let mut table = Table::new(vec![
        Column::right("RANK", 0),
        Column::left("NODE", 0),
        Column::right("TIMES", 0),
        Column::right("COST", 1),
        Column::right("STEPS", 2),
    ]);
    for one in &latest.ranks {
        table.push(vec![
            Cell::new(one.rank.to_string()),
            Cell::new(printable(&one.node)),
            Cell::new(format!("{:.2}", one.ratio)),
            Cell::new(seconds(one.cost_seconds)),
            Cell::new(format!("{} of {}", one.slow_steps, one.steps)),
        ]);
    }
    (!latest.ranks.is_empty()).then_some(table)
}

fn links(latest: &AnalysisView) -> Option<Table> {
    let mut table = Table::new(vec![
        Column::right("FROM", 0),
        Column::left("NODE", 1),
        Column::right("TO", 0),
        Column::left("NODE", 1),
        Column::right("TIMES", 0),
        Column::right("COST", 2),
        Column::right("STEPS", 3),
    ]);
    for one in &latest.links {
        table.push(vec![
            Cell::new(one.from.to_string()),
            Cell::new(printable(&one.from_node)),
            Cell::new(one.to.to_string()),
            Cell::new(printable(&one.to_node)),
            Cell::new(format!("{:.1}", one.ratio)),
            Cell::new(seconds(one.cost_seconds)),
            Cell::new(format!("{} of {}", one.slow_steps, one.steps)),
        ]);
    }
    (!latest.links.is_empty()).then_some(table)
}

fn stages(latest: &AnalysisView) -> Option<Table> {
    let mut table = Table::new(vec![
        Column::right("STAGE", 0),
        Column::right("TIMES", 0),
        Column::left("BY KIND", 1),
        Column::left("RANKS", 2),
    ]);
    let mut stages: Vec<_> = latest.stages.iter().collect();
    stages.sort_by_key(|one| one.stage);
    for one in stages {
        let kinds: Vec<String> =
            one.kinds.iter().map(|(name, ratio)| format!("{name} {ratio:.2}")).collect();
        let mut ranks: Vec<String> = one.ranks.iter().take(8).map(u32::to_string).collect();
        if usize::try_from(one.rank_count).is_ok_and(|count| count > ranks.len()) {
            ranks.push(format!("… {} in all", one.rank_count));
        }
        table.push(vec![
            Cell::new(one.stage.to_string()),
            Cell::new(format!("{:.2}", one.ratio)),
            Cell::new(printable(&kinds.join(", "))),
            Cell::new(ranks.join(" ")),
        ]);
    }
    (!latest.stages.is_empty()).then_some(table)
}

fn waits(steps: &JobStepsView) -> Option<Table> {
    let mut table = Table::new(vec![
        Column::right("RANK", 0),
        Column::left("NODE", 1),
        Column::right("FOR", 0),
        Column::left("NODE", 1),
        Column::right("WAITS", 0),
    ]);
    for one in steps.waits.iter().take(MAX_WAITS) {
        table.push(vec![
            Cell::new(one.rank.to_string()),
            Cell::new(printable(&one.node)),
            Cell::new(one.awaited.to_string()),
            Cell::new(printable(&one.awaited_node)),
            Cell::new(seconds(one.seconds)),
        ]);
    }
    (!steps.waits.is_empty()).then_some(table)
}

/// Seconds with the unit that fits; below 0 what replays differ by is chance.
fn seconds(seconds: f64) -> String {
    duration((seconds.max(0.0) * 1e9) as u64)
}
