//! Whether a training in which a node was killed has come to the weights of an undisturbed one:
//! as a last line, as JSON, and as an exit status. It compares what it is given and runs nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::exit::Status;

/// What both trainings have come to.
#[derive(Debug, Clone)]
pub(super) struct TrainingComparison {
    /// How many steps each took.
    pub(super) steps: u64,
    /// The weights with a node killed; nothing where ranks have different ones.
    pub(super) with: Option<String>,
    /// The weights without, likewise.
    pub(super) without: Option<String>,
    /// How long after the kill the node was given up, all workers ran and a step was done.
    pub(super) recovery: Option<[Duration; 3]>,
}

// === impl TrainingComparison ===

impl TrainingComparison {
    /// Whether there are weights, and the same.
    fn is_same(&self) -> bool {
        self.with.is_some() && self.with == self.without
    }

    /// The exit status: fine only where the weights are the same.
    pub(super) fn status(&self) -> Status {
        if self.is_same() { Status::Fine } else { Status::Partial }
    }

    /// One object.
    pub(super) fn json(&self) -> Value {
        let [given_up, ran, stepped] = self.seconds().map_or([None; 3], |times| times.map(Some));
        json!({"event": "compared", "steps": self.steps, "identical": self.is_same(),
            "weights_digest": self.with, "weights_digest_undisturbed": self.without,
            "seconds_to_give_up": given_up, "seconds_to_run": ran, "seconds_to_step": stepped})
    }

    /// For a person; the verdict comes last.
    pub(super) fn text(&self) -> String {
        let times = self.seconds().map_or_else(String::new, |[given_up, ran, stepped]| {
            format!(
                "The dead node was given up after {given_up:.1} s, all workers ran again after \
                 {ran:.1} s,\nand the first step was done after {stepped:.1} s.\n"
            )
        });
        let steps = self.steps;
        if self.is_same() {
            return format!(
                "{times}The weights after {steps} steps are identical, bit for bit, in both runs.\n"
            );
        }
        let [with, without] = [&self.with, &self.without]
            .map(|digest| digest.as_deref().unwrap_or("not even the same on all ranks"));
        format!(
            "{times}With a node killed they are {with},\nwithout {without}.\n\
             The weights after {steps} steps DIFFER between the two runs.\n"
        )
    }

    fn seconds(&self) -> Option<[f64; 3]> {
        self.recovery.map(|times| times.map(|time| time.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTICAL: &str =
        "The weights after 160 steps are identical, bit for bit, in both runs.\n";

    const NO_ONE: &str = "not even the same on all ranks";

    fn differ(with: &str, without: &str) -> String {
        format!(
            "With a node killed they are {with},\nwithout {without}.\n\
             The weights after 160 steps DIFFER between the two runs.\n"
        )
    }

    #[test]
    fn only_the_same_weights_on_all_ranks_of_both_are_identical() {
        let cases = [
            (Some("a1"), Some("a1"), true, IDENTICAL),
            (Some("a1"), Some("b2"), false, &differ("a1", "b2")),
            (None, Some("b2"), false, &differ(NO_ONE, "b2")),
            (Some("a1"), None, false, &differ("a1", NO_ONE)),
            (None, None, false, &differ(NO_ONE, NO_ONE)),
        ];
        for (with, without, is_identical, text) in cases {
            let [owned_with, owned_without] = [with, without].map(|it| it.map(str::to_owned));
            let comparison = TrainingComparison {
                steps: 160,
                with: owned_with,
                without: owned_without,
                recovery: None,
            };
            assert_eq!(comparison.text(), text);
            let expected = json!({"event": "compared", "steps": 160, "identical": is_identical,
                "weights_digest": with, "weights_digest_undisturbed": without,
                "seconds_to_give_up": null, "seconds_to_run": null, "seconds_to_step": null});
            assert_eq!(comparison.json(), expected);
            let status = if is_identical { Status::Fine } else { Status::Partial };
            assert_eq!(comparison.status(), status, "{text}");
        }
    }

    #[test]
    fn what_recovery_took_stands_before_the_verdict() {
        let times = [4600, 5250, 6125].map(Duration::from_millis);
        let digest = Some(String::from("a1"));
        let comparison = TrainingComparison {
            steps: 160,
            with: digest.clone(),
            without: digest,
            recovery: Some(times),
        };
        let expected = "The dead node was given up after 4.6 s, all workers ran again after 5.2 s,\n\
                        and the first step was done after 6.1 s.\n";
        assert_eq!(comparison.text(), format!("{expected}{IDENTICAL}"));
        let json = comparison.json();
        let seconds = ["seconds_to_give_up", "seconds_to_run", "seconds_to_step"];
        assert_eq!(seconds.map(|name| json[name].as_f64()), [Some(4.6), Some(5.25), Some(6.125)]);
    }
}
