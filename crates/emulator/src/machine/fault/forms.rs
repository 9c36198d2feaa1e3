//! How each fault is written, for people: the one list behind error messages and help texts.
//!
//! What a text means to a program is in the file above; a test holds the two together.

use super::{ERRNOS, Fault, GARBAGE, PIDS, SPEEDS, WIDTHS};

impl Fault {
    /// Each way to write a fault, and what is wrong with the machine then. In the first, words in
    /// capitals stand for something (N and M for ordinals as in `tenstorrent!N`, FILE for a
    /// file's name), and what is in square brackets may be left out.
    #[must_use]
    pub fn forms() -> [(&'static str, String); 9] {
        let one_of = |before: &str, names: String| format!("{before}: {names}");
        [
            ("missing:N:FILE", "the firmware does not report it".to_owned()),
            ("error:N:FILE:ERRNO", one_of("reading it fails", alternatives(&ERRNOS))),
            ("garbage:N:FILE[:KIND]", one_of("it holds nonsense", alternatives(&GARBAGE))),
            ("hang:N:FILE", "reading it never returns".to_owned()),
            ("reset:N", "the chip is being reset".to_owned()),
            ("vanish:N[:M]", "the chip fell off the bus, and would come back as M".to_owned()),
            ("old-driver", "tt-kmd 2.4.1, which does not list who holds a chip".to_owned()),
            ("pids:N:LINES", one_of("that list has odd lines", alternatives(&PIDS))),
            (
                "link:N:SPEED:WIDTH",
                format!(
                    "a PCIe link of {} GT/s, {} lanes",
                    alternatives(&SPEEDS),
                    alternatives(&WIDTHS)
                ),
            ),
        ]
    }
}

/// All forms, and what may stand for their words, as the end of a sentence.
pub(super) fn in_one_line() -> String {
    let forms = joined(&Fault::forms().map(|(form, _)| form));
    let words = [
        ("ERRNO", alternatives(&ERRNOS)),
        ("KIND", alternatives(&GARBAGE)),
        ("LINES", alternatives(&PIDS)),
        ("SPEED", alternatives(&SPEEDS) + " GT/s"),
        ("WIDTH", alternatives(&WIDTHS) + " lanes"),
    ];
    let words = words.map(|(word, names)| format!("; {word} is {names}"));
    forms + &words.concat()
}

fn alternatives<T>(table: &[(T, &str)]) -> String {
    joined(&table.iter().map(|(_, name)| *name).collect::<Vec<_>>())
}

/// `a, b or c`.
fn joined(names: &[&str]) -> String {
    match names {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        few => few.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ERRNOS, Fault, GARBAGE, PIDS, SPEEDS};

    /// `form` with every word replaced, for each name that may stand for its last one.
    fn examples(form: &str) -> Vec<String> {
        let numbered = form
            .replace(":N", ":0")
            .replace("FILE", "tt_aiclk")
            .replace(":M", ":7")
            .replace("WIDTH", "4");
        let names: Vec<&str> = match form {
            _ if form.contains("ERRNO") => ERRNOS.iter().map(|(_, name)| *name).collect(),
            _ if form.contains("KIND") => GARBAGE.iter().map(|(_, name)| *name).collect(),
            _ if form.contains("LINES") => PIDS.iter().map(|(_, name)| *name).collect(),
            _ if form.contains("SPEED") => SPEEDS.iter().map(|(_, name)| *name).collect(),
            _ => vec![""],
        };
        let named = |name| {
            ["ERRNO", "KIND", "LINES", "SPEED"]
                .iter()
                .fold(numbered.clone(), |text, word| text.replace(word, name))
        };
        let whole = names.into_iter().map(named).map(|text| text.replace(['[', ']'], ""));
        let short = numbered.split_once('[').map(|(short, _)| short.to_owned());
        whole.chain(short).collect()
    }

    #[test]
    fn every_form_that_is_shown_is_understood_and_every_fault_is_shown() {
        let mut seen = std::collections::BTreeSet::new();
        for (form, effect) in Fault::forms() {
            for text in examples(form) {
                let fault: Fault = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
                // The variant's name.
                let debug = format!("{fault:?}");
                seen.insert(debug.split(' ').next().unwrap_or_default().to_owned());
            }
            assert!(!effect.is_empty());
        }
        assert_eq!(seen.len(), 9, "{seen:?}");
    }

    #[test]
    fn a_text_that_is_no_fault_is_answered_with_all_forms() {
        let reported = "vanish:x".parse::<Fault>().unwrap_err().to_string();
        for (form, _) in Fault::forms() {
            assert!(reported.contains(form), "{form}: {reported}");
        }
        assert!(
            reported.contains("; LINES is zero, duplicates or junk; SPEED is 2.5,"),
            "{reported}"
        );
    }
}
