//! Text that people read: which characters of a stranger's must not reach a terminal (what becomes
//! of them is for each reader to say), and an error with its causes. Nothing here prints.

use std::error::Error;

/// Whether `character` could steer what shows it: control characters, and those that change what
/// is seen without being seen (marks that turn the direction of writing, separators of lines,
/// spaces without width, tags).
pub fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Text from outside with whatever could move the cursor, change colours or turn the direction
/// of writing replaced by `?`.
pub fn printable(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        // Nearly always, and many times faster for a long command line.
        return text.to_owned();
    }
    text.chars().map(|c| if steers(c) { '?' } else { c }).collect()
}

/// An error with all its causes, the outermost first, in one line if each of them is. Errors of
/// other libraries often end with their cause's words already; nothing is said twice.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !says(&text, &words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    text
}

/// Whether a cause is said already: as a part between colons, or as the last words.
fn says(text: &str, cause: &str) -> bool {
    cause.is_empty()
        || text.match_indices(cause).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + cause.len()..]);
            let is_part = before.is_empty() || before.ends_with(": ");
            let is_last = after.is_empty() && !before.ends_with(char::is_alphanumeric);
            is_last || is_part && after.starts_with(": ")
        })
}

#[cfg(test)]
mod tests {
    use super::{printable, steers, with_causes};

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Link(&'static str, #[source] Option<Box<Link>>);

    #[test]
    fn no_cause_is_left_out() {
        let root = Link("the disk is full", None);
        assert_eq!(with_causes(&root), "the disk is full");
        let middle = Link("cannot write x", Some(Box::new(root)));
        let whole = Link("nothing is recorded", Some(Box::new(middle)));
        assert_eq!(with_causes(&whole), "nothing is recorded: cannot write x: the disk is full");
    }

    #[test]
    fn a_cause_that_is_said_already_is_not_repeated() {
        let cases: [(&[&str], &str); 7] = [
            (&["it timed out", "it timed out"], "it timed out"),
            (&["cannot open x: denied", "denied"], "cannot open x: denied"),
            (&["cannot open x, denied", "denied"], "cannot open x, denied"),
            (&["a: b: c", "b", "c"], "a: b: c"),
            (&["a", "", "b"], "a: b"),
            // A word that happens to end, or to begin, in the same letters says something else.
            (&["cannot read x12", "2"], "cannot read x12: 2"),
            (&["denied by a rule: a", "denied"], "denied by a rule: a: denied"),
        ];
        for (words, expected) in cases {
            let links = words.iter().rev().fold(None, |cause, words| {
                let link: Box<Link> = Box::new(Link(words, cause));
                Some(link)
            });
            assert_eq!(with_causes(&*links.unwrap()), expected, "{words:?}");
        }
    }

    #[test]
    fn every_control_and_direction_mark_steers_and_no_letter_does() {
        // The characters with the property Bidi_Control, by Unicode's PropList.txt.
        let directions = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\
                          \u{2066}\u{2067}\u{2068}\u{2069}";
        for one in
            "\0\t\n\r\x1b\x7f\u{9b}\u{2028}\u{2029}\u{feff}".chars().chain(directions.chars())
        {
            assert!(steers(one), "{one:?}");
        }
        for one in "az09 ~é訓ğ€…אع".chars() {
            assert!(!steers(one), "{one:?}");
        }
    }

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\nc\u{202e}d\u{9b}e"), "a?[2Jb?c?d?e");
        assert_eq!(printable("zażółć 訓練"), "zażółć 訓練");
    }
}
