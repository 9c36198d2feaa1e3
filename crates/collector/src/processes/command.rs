//! A process's command line as text that a terminal can show. Pure, except for one read, which
//! may hang.

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::text::steers;

use crate::tree::{Directory, Unreadable};

/// The most of a command line that is shown, in bytes.
pub(crate) const MAX_COMMAND_BYTES: usize = 4096;

/// The bytes of the command line of the process whose directory this is. May hang.
pub(crate) fn read(directory: &Directory) -> Result<Vec<u8>, Unreadable> {
    directory.beginning("cmdline", MAX_COMMAND_BYTES + 1)
}

/// What a read gave, as it is shown; nothing means that it hung.
pub(crate) fn shown(bytes: Option<Result<Vec<u8>, Unreadable>>, at: Timestamp) -> Reading<String> {
    match bytes {
        Some(Ok(bytes)) if bytes.is_empty() => Reading::absent(
            Absence::Unknown,
            "a kernel thread or a process that is ending has none",
        ),
        Some(Ok(bytes)) => Reading::new(arguments(&bytes, MAX_COMMAND_BYTES), at),
        Some(Err(error)) if error.is_missing() => Reading::absent(Absence::Gone, ""),
        Some(Err(error)) => error.reading(),
        None => Reading::absent(Absence::TimedOut, "the process holds its memory locked"),
    }
}

/// Arguments separated by spaces, what cannot be printed escaped, an ellipsis where there are more than
/// `most` bytes.
pub(crate) fn arguments(bytes: &[u8], most: usize) -> String {
    let cut = bytes.len() > most;
    let bytes = &bytes[..bytes.len().min(most)];
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let spaced: Vec<u8> =
        bytes[..end].iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    let mut text = printable(&spaced);
    if cut {
        text.push('…');
    }
    text
}

/// `bytes` as text, with characters that could steer a terminal and bytes that are no text
/// escaped: what a process calls itself must not drive the terminal that shows it.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if steers(character) {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{MAX_COMMAND_BYTES, arguments};
    use proptest::prelude::*;

    #[test]
    fn what_cannot_be_printed_is_escaped() {
        let cases: [(&[u8], &str); 6] = [
            (b"python\0train.py\0--lr\0.5\0", "python train.py --lr .5"),
            (b"a\0\0b\0\0\0", "a  b"),
            (b"\x1b[31mred", "\\u{1b}[31mred"),
            (b"\xff\xfe", "\\xff\\xfe"),
            ("gr\u{fc}n \u{202e}x".as_bytes(), "gr\u{fc}n \\u{202e}x"),
            (b"", ""),
        ];
        for (bytes, text) in cases {
            assert_eq!(arguments(bytes, MAX_COMMAND_BYTES), text);
        }
        let long = arguments(&[b'x'; MAX_COMMAND_BYTES + 1], MAX_COMMAND_BYTES);
        assert!(long.ends_with("x…") && long.chars().count() == MAX_COMMAND_BYTES + 1);
    }

    proptest! {
        #[test]
        fn nothing_drives_the_terminal(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(!arguments(&bytes, MAX_COMMAND_BYTES).chars().any(char::is_control));
        }
    }
}
