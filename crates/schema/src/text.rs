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

/// An error with all its causes, the outermost first, in one line if each of them is.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
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
