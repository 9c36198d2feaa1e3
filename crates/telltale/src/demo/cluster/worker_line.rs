//! A line that a rank of the training prints, as its agent passes it on.

use serde_json::Value;

/// What a rank reports.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WorkerLine {
    /// It begins.
    Begun { rank: u32, epoch: u64, steps_before: u64 },
    /// It has done a step.
    Step { step: u64, loss: Option<f64> },
    /// It has done all steps.
    Ended { steps: u64, digest: String },
}

impl WorkerLine {
    /// What a line reports, with or without the rank that an agent writes in front; nothing where it
    /// is something else.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let object: Value = serde_json::from_str(line.get(line.find('{')?..)?).ok()?;
        let number = |name: &str| object.get(name).and_then(Value::as_u64);
        if let Some(step) = number("step") {
            let loss = object.get("loss").and_then(Value::as_f64);
            return Some(Self::Step { step, loss });
        }
        if let Some(digest) = object.get("weights_digest").and_then(Value::as_str) {
            return Some(Self::Ended { steps: number("steps")?, digest: digest.to_owned() });
        }
        Some(Self::Begun {
            rank: u32::try_from(number("rank")?).ok()?,
            epoch: number("epoch")?,
            steps_before: number("steps_before")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::WorkerLine;

    #[test]
    fn lines_are_read_with_and_without_a_rank_in_front() {
        let begun = WorkerLine::Begun { rank: 2, epoch: 3, steps_before: 60 };
        let step = WorkerLine::Step { step: 61, loss: Some(3.5) };
        let ended = WorkerLine::Ended { steps: 120, digest: "00ff".to_owned() };
        for (line, expected) in [
            (r#"[2] {"chip":"x","rank":2,"ranks":4,"epoch":3,"steps_before":60}"#, Some(begun)),
            (r#"{"step":61,"loss":3.5,"seconds":0.1}"#, Some(step)),
            (r#"[2] {"step":61,"loss":null}"#, Some(WorkerLine::Step { step: 61, loss: None })),
            (r#"[2] {"steps":120,"weights_digest":"00ff"}"#, Some(ended)),
            ("[2] something else {", None),
            ("[2] {\"rank\":-1}", None),
            ("", None),
        ] {
            assert_eq!(WorkerLine::parse(line), expected, "{line}");
        }
    }
}
