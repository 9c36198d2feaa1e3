//! What came of jobs, added up.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::baselines::Baseline;

/// What came of some jobs, by one rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Who was named.
    pub named: u32,
    /// Of these, those that were at fault.
    pub right: u32,
    /// Faults that had to be named.
    pub due: u32,
    /// Of these, those that were.
    pub found: u32,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.named += other.named;
        self.right += other.right;
        self.due += other.due;
        self.found += other.found;
    }

    /// Of those who were named, the part that was at fault.
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.right, self.named)
    }

    /// Of the faults that had to be named, the part that was.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.found, self.due)
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 1.0 } else { f64::from(part) / f64::from(whole) }
}

/// What came of some jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Score {
    /// Jobs.
    pub jobs: u32,
    /// What is shipped.
    pub ours: Tally,
    /// The usual rules.
    pub baselines: BTreeMap<Baseline, Tally>,
    /// After how many seconds each fault was named that had to be.
    pub seconds: Vec<f64>,
    /// Verdicts by the tenth of confidence that they had, and how many of them were right.
    pub confidence: BTreeMap<u32, (u32, u32)>,
    /// Jobs with something wrong: what was the case, and what was said.
    pub notes: Vec<String>,
}

impl Score {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.jobs += other.jobs;
        self.ours.add(other.ours);
        for (baseline, tally) in &other.baselines {
            self.baselines.entry(*baseline).or_default().add(*tally);
        }
        self.seconds.extend(&other.seconds);
        for (tenth, (all, right)) in &other.confidence {
            let known = self.confidence.entry(*tenth).or_default();
            *known = (known.0 + all, known.1 + right);
        }
        self.notes.extend_from_slice(&other.notes);
    }
}

/// The scores as a table in Markdown.
#[must_use]
pub fn table(scores: &[(String, Score)]) -> String {
    let mut text =
        String::from("| jobs | runs | faults | precision | recall | seconds, median and most |");
    for baseline in Baseline::ALL {
        let _ = write!(text, " {} |", baseline.name());
    }
    text.push_str("\n|---|---|---|---|---|---|---|---|---|\n");
    for (name, score) in scores {
        let mut seconds = score.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        let at = |one: Option<&f64>| one.map_or("-".to_owned(), |one| format!("{one:.0}"));
        let (median, most) = (at(seconds.get(seconds.len() / 2)), at(seconds.last()));
        let ours = score.ours;
        let _ = write!(
            text,
            "| {name} | {} | {} | {:.3} | {:.3} | {median}, {most} |",
            score.jobs,
            ours.due,
            ours.precision(),
            ours.recall()
        );
        for baseline in Baseline::ALL {
            let tally = score.baselines.get(&baseline).copied().unwrap_or_default();
            let _ = write!(text, " {:.2}, {:.2} |", tally.precision(), tally.recall());
        }
        text.push('\n');
    }
    text
}
