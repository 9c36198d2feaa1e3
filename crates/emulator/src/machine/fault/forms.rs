//! How each fault is written, for people: the one list behind error messages and help texts.
//!
//! What a text means to a program is in the file above; a test holds the two together.

use super::{ERRNOS, Fault, GARBAGE, PIDS, SPEEDS, WIDTHS, aer, part};

impl Fault {
    /// Each way to write a fault, and what is wrong with the machine then. In the first, words in
    /// capitals stand for something (N and M for ordinals as in `tenstorrent!N`, FILE for a
    /// file's name), a bar is between alternatives, and what is in square brackets may be left out.
    #[must_use]
    pub fn forms() -> Vec<(String, String)> {
        let one_of = |before: &str, names: String| format!("{before}: {names}");
        let link = format!(
            "a PCIe link of {} GT/s, {} lanes",
            alternatives(&SPEEDS),
            alternatives(&WIDTHS)
        );
        let of_chips = [
            ("missing:N:FILE", "the firmware does not report it".to_owned()),
            ("error:N:FILE:ERRNO", one_of("reading it fails", alternatives(&ERRNOS))),
            ("garbage:N:FILE[:KIND]", one_of("it holds nonsense", alternatives(&GARBAGE))),
            ("hang:N:FILE", "reading it never returns".to_owned()),
            ("reset:N", "the chip is being reset".to_owned()),
            ("vanish:N[:M]", "the chip fell off the bus, and would come back as M".to_owned()),
            ("old-driver", "tt-kmd 2.4.1, which does not list who holds a chip".to_owned()),
            ("pids:N:LINES", one_of("that list has odd lines", alternatives(&PIDS))),
            ("link:N:SPEED:WIDTH", link),
            ("stop:N", "the firmware stopped, and its heartbeat with it".to_owned()),
            ("trip:N", "the chip was too hot: one more thermal trip".to_owned()),
            (
                "raise:N:AER[:COUNT]",
                "more errors in aer_dev_correctable, aer_dev_nonfatal or _fatal".to_owned(),
            ),
        ];
        let of_chips = of_chips.map(|(form, effect)| (form.to_owned(), effect));
        let of_parts = part::forms().map(|(form, effect)| (form, effect.to_owned()));
        of_chips.into_iter().chain(of_parts).collect()
    }
}

/// All forms, and what may stand for their words, as the end of a sentence.
pub(super) fn in_one_line() -> String {
    let forms = Fault::forms();
    let forms = joined(&forms.iter().map(|(form, _)| form.as_str()).collect::<Vec<_>>());
    let words = [
        ("ERRNO", alternatives(&ERRNOS)),
        ("KIND", alternatives(&GARBAGE)),
        ("LINES", alternatives(&PIDS)),
        ("SPEED", alternatives(&SPEEDS) + " GT/s"),
        ("WIDTH", alternatives(&WIDTHS) + " lanes"),
        ("AER", alternatives(&aer::FILES)),
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
    use super::super::{ERRNOS, Fault, GARBAGE, PIDS, SPEEDS, aer};

    /// `form` with every word replaced, for each name that may stand for its last one.
    fn examples(form: &str) -> Vec<String> {
        if let Some((part, failures)) = form.split_once(":NAME:") {
            let whole = |failure: &str| format!("{part}:mc0:{failure}");
            return failures.split('|').flat_map(|one| optional(&whole(one), "7")).collect();
        }
        let numbered = form.replace(":N", ":0").replace("FILE", "tt_aiclk").replace("WIDTH", "4");
        let words: [(&str, Vec<&str>); 5] = [
            ("ERRNO", ERRNOS.iter().map(|(_, name)| *name).collect()),
            ("KIND", GARBAGE.iter().map(|(_, name)| *name).collect()),
            ("LINES", PIDS.iter().map(|(_, name)| *name).collect()),
            ("SPEED", SPEEDS.iter().map(|(_, name)| *name).collect()),
            ("AER", aer::FILES.iter().map(|(_, name)| *name).collect()),
        ];
        let Some((word, names)) = words.into_iter().find(|(word, _)| numbered.contains(word))
        else {
            return optional(&numbered, "7");
        };
        names.iter().flat_map(|name| optional(&numbered.replace(word, name), "7")).collect()
    }

    /// A text without what is in square brackets, and with it: there `number` for the word.
    fn optional(text: &str, number: &str) -> Vec<String> {
        let Some((short, rest)) = text.split_once('[') else { return vec![text.to_owned()] };
        let rest = rest.replace(']', "").replace("COUNT", number).replace(":M", ":7");
        vec![short.to_owned(), format!("{short}{rest}")]
    }

    #[test]
    fn every_form_that_is_shown_is_understood_and_every_fault_is_shown() {
        let mut seen = std::collections::BTreeSet::new();
        for (form, effect) in Fault::forms() {
            for text in examples(&form) {
                let fault: Fault = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
                let debug = match fault {
                    Fault::Part { failure, .. } => format!("{failure:?}"),
                    other => format!("{other:?}"),
                };
                // The variant's name.
                seen.insert(debug.split(' ').next().unwrap_or_default().to_owned());
            }
            assert!(!effect.is_empty());
        }
        assert_eq!(seen.len(), 12 + 12, "{seen:?}");
    }

    #[test]
    fn a_text_that_is_no_fault_is_answered_with_all_forms() {
        let reported = "vanish:x".parse::<Fault>().unwrap_err().to_string();
        for (form, _) in Fault::forms() {
            assert!(reported.contains(&form), "{form}: {reported}");
        }
        assert!(
            reported.contains("; LINES is zero, duplicates or junk; SPEED is 2.5,"),
            "{reported}"
        );
    }
}
