//! The report as text for a terminal or an issue.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::AutopsyReport;
use crate::evidence::ProcessEvidence;
use crate::explanation::{Folded, plural};

/// Frames of a folded stack that are printed.
const FRAMES: usize = 16;

impl AutopsyReport {
    /// The sentence, the folded stacks, and what could not be taken.
    #[must_use]
    pub fn text(&self) -> String {
        let sentence = self.explanation.as_ref().map(|explanation| explanation.sentence.as_str());
        let nothing = "Nothing stands still: every process moved between the samples.";
        format!("{}\n{}", sentence.unwrap_or(nothing), self.details())
    }

    /// The same without the sentence.
    pub(super) fn details(&self) -> String {
        let mut text = String::new();
        for folded in self.explanation.iter().flat_map(|explanation| &explanation.folded) {
            self.add_folded(&mut text, folded);
        }
        for process in &self.processes {
            add_connections(&mut text, process);
        }
        self.add_missing(&mut text);
        text
    }

    fn add_folded(&self, text: &mut String, folded: &Folded) {
        let has_ranks = self.processes.iter().any(|process| process.rank.is_some());
        let noun = match (has_ranks, folded.processes.len()) {
            (true, 1) => "rank",
            (true, _) => "ranks",
            (false, 1) => "process",
            (false, _) => "processes",
        };
        let verb = folded.activity.words();
        let verb = if folded.processes.len() == 1 { verb.to_owned() } else { plural(verb) };
        let _ = writeln!(text, "\n{noun} {} {verb}:", ranges(&folded.processes));
        for line in folded.stack.iter().take(FRAMES) {
            let _ = writeln!(text, "    {line}");
        }
        if folded.stack.len() > FRAMES {
            let _ = writeln!(text, "    … {} more", folded.stack.len() - FRAMES);
        }
    }

    fn add_missing(&self, text: &mut String) {
        let mut by_reason: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for process in &self.processes {
            for missing in &process.missing {
                by_reason.entry(missing.to_string()).or_default().push(process.pid);
            }
        }
        for refused in &self.refused {
            by_reason.entry(refused.why.clone()).or_default().push(refused.pid);
        }
        if !by_reason.is_empty() {
            text.push_str("\nNot taken:\n");
        }
        for (reason, mut pids) in by_reason {
            pids.dedup();
            let _ = writeln!(text, "  {reason} (process {})", ranges(&pids));
        }
    }
}

fn add_connections(text: &mut String, process: &ProcessEvidence) {
    let Some(sample) = process.samples.last() else { return };
    for connection in &sample.connections {
        let whose = match process.rank {
            Some(rank) => format!("rank {rank}"),
            None => format!("process {}", process.pid),
        };
        let _ = writeln!(
            text,
            "\n{whose}: {} to {}: {} bytes not acknowledged, {} not read",
            connection.local,
            connection.remote,
            connection.unacknowledged_bytes,
            connection.unread_bytes
        );
    }
}

/// `0-2, 5` of 0, 1, 2 and 5, which are sorted.
fn ranges(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let words = ranges.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 3, 5, 7, 8]), "0-3, 5, 7, 8");
        assert_eq!(ranges(&[]), "");
    }
}
