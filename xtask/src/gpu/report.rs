//! The rows of a comparison, and the table that they make for a document.

use std::fmt;

/// One value beside what it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedValue {
    /// The GPU's number; none where the row is not of one GPU.
    pub gpu: Option<u64>,
    /// What it is compared with: a field of `nvidia-smi`, a call of PyTorch, NCCL.
    pub theirs: String,
    /// Its value there, from before to after.
    pub their_value: String,
    /// What Telltale calls it.
    pub ours: String,
    /// Its value there.
    pub our_value: String,
    /// Whether both agree.
    pub verdict: Verdict,
}

/// How a comparison ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Both say the same, or both that there is no such thing.
    Agrees,
    /// They do not, and how.
    Differs(String),
    /// There is nothing to compare with, and why; nothing is missing on this machine.
    Skipped(String),
    /// Something is missing here, and what.
    NotChecked(String),
}

/// All rows, and what they are of.
#[derive(Debug)]
pub struct Report {
    /// Programs, driver, GPUs and date, for a person.
    pub heading: String,
    /// The rows: those of one field side by side.
    pub rows: Vec<ComparedValue>,
    /// What is in no row, and why: lines of Markdown.
    pub not_compared: String,
}

/// How all of it ended, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// All rows agree, or have nothing to be compared with.
    Agrees,
    /// What could be checked agrees.
    NotAllChecked,
    /// Some row differs.
    Differs,
}

// === impl Report ===

impl Report {
    /// The worst of its rows.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let of = |row: &ComparedValue| match row.verdict {
            Verdict::Agrees | Verdict::Skipped(_) => Outcome::Agrees,
            Verdict::NotChecked(_) => Outcome::NotAllChecked,
            Verdict::Differs(_) => Outcome::Differs,
        };
        self.rows.iter().map(of).max().unwrap_or(Outcome::NotAllChecked)
    }

    /// The rows that a person must look at, one line each.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        let is_remark = |row: &&ComparedValue| {
            matches!(row.verdict, Verdict::Differs(_) | Verdict::NotChecked(_))
        };
        self.rows.iter().filter(is_remark).map(|row| {
            let gpu = row.gpu.map(|gpu| format!("GPU {gpu}: ")).unwrap_or_default();
            let ComparedValue { theirs, their_value, ours, our_value, verdict, .. } = row;
            format!("{gpu}{theirs} {their_value}, {ours} {our_value}: {verdict}")
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(to, "{}\n", self.heading)?;
        writeln!(to, "| GPU | compared with | its value | Telltale | its value | |")?;
        writeln!(to, "|---|---|---|---|---|---|")?;
        let mut rows = self.rows.as_slice();
        while let Some(first) = rows.first() {
            let count = rows
                .iter()
                .take_while(|row| row.theirs == first.theirs && row.ours == first.ours)
                .count();
            let (alike, rest) = rows.split_at(count);
            rows = rest;
            let agrees = alike.iter().all(|row| row.verdict == first.verdict);
            // The first stands for all of them where none is remarkable.
            let shown =
                if agrees && !matches!(first.verdict, Verdict::Differs(_)) { 1 } else { count };
            for row in &alike[..shown] {
                let gpu = row.gpu.map(|gpu| gpu.to_string()).unwrap_or_default();
                let gpu =
                    if shown < count { format!("{gpu}, and {} more", count - 1) } else { gpu };
                let ComparedValue { theirs, their_value, ours, our_value, verdict, .. } = row;
                let cells = [&gpu, theirs, their_value, ours, our_value, &verdict.to_string()];
                writeln!(to, "| {} |", cells.map(|cell| cell.replace('|', "/")).join(" | "))?;
            }
        }
        write!(to, "\n{}", self.not_compared)
    }
}

// === impl Verdict ===

impl fmt::Display for Verdict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agrees => to.write_str("agrees"),
            Self::Differs(how) => write!(to, "**differs**: {how}"),
            Self::Skipped(why) => write!(to, "skipped: {why}"),
            Self::NotChecked(why) => write!(to, "**not checked**: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ComparedValue, Outcome, Report, Verdict};

    fn row(gpu: u64, theirs: &str, verdict: Verdict) -> ComparedValue {
        let text = |text: &str| text.to_owned();
        ComparedValue {
            gpu: Some(gpu),
            theirs: text(theirs),
            their_value: text("1"),
            ours: text("ours"),
            our_value: text("a|b"),
            verdict,
        }
    }

    #[test]
    fn gpus_that_agree_are_one_line_and_others_have_their_own() {
        let rows = vec![
            row(0, "index", Verdict::Agrees),
            row(1, "index", Verdict::Agrees),
            row(0, "power", Verdict::Agrees),
            row(1, "power", Verdict::Differs(String::from("by 3"))),
        ];
        let report = Report {
            heading: String::from("Of a test."),
            rows,
            not_compared: String::from("- a\n"),
        };
        assert_eq!(report.outcome(), Outcome::Differs);
        let remarks: Vec<String> = report.remarks().collect();
        assert_eq!(remarks, ["GPU 1: power 1, ours a|b: **differs**: by 3"]);
        assert_eq!(
            report.to_string(),
            "Of a test.\n\n| GPU | compared with | its value | Telltale | its value | |\n\
             |---|---|---|---|---|---|\n\
             | 0, and 1 more | index | 1 | ours | a/b | agrees |\n\
             | 0 | power | 1 | ours | a/b | agrees |\n\
             | 1 | power | 1 | ours | a/b | **differs**: by 3 |\n\n- a\n"
        );
    }

    #[test]
    fn the_outcome_is_that_of_the_worst_row() {
        let outcome = |verdicts: &[Verdict]| {
            let rows = verdicts.iter().map(|verdict| row(0, "x", verdict.clone())).collect();
            Report { heading: String::new(), rows, not_compared: String::new() }.outcome()
        };
        let why = || String::from("why");
        assert_eq!(outcome(&[Verdict::Agrees, Verdict::Skipped(why())]), Outcome::Agrees);
        assert_eq!(outcome(&[Verdict::NotChecked(why()), Verdict::Agrees]), Outcome::NotAllChecked);
        assert_eq!(
            outcome(&[Verdict::NotChecked(why()), Verdict::Differs(why())]),
            Outcome::Differs
        );
        assert_eq!(outcome(&[]), Outcome::NotAllChecked);
    }
}
