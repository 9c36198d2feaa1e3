//! Text fitted to the columns there are, by cutting or by wrapping.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::style::{Style, Tone};

/// Wrapped text gets at least so many columns: one wide character and some indentation.
const FEWEST_COLUMNS: usize = 4;
/// The indentation where there is no room for more.
const NARROW_INDENT: usize = 4;

/// Columns that `text` takes, which holds nothing unprintable.
pub(crate) fn width(text: &str) -> usize {
    // Nearly all text is ASCII, and the tables of widths take many times longer.
    if text.is_ascii() { text.len() } else { text.width() }
}

/// `text` in at most `room` columns, with a mark where something is missing.
pub(crate) fn cut(text: &str, room: usize, style: &Style) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mark = if style.unicode { "…" } else { "~" };
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > room {
            break;
        }
        kept.push(c);
    }
    if room > 0 {
        kept.push_str(mark);
    }
    kept
}

/// `text` with spaces behind it, in `width` columns or more.
pub(crate) fn padded(text: &str, width: usize) -> String {
    let spaces = width.saturating_sub(self::width(text));
    text.to_owned() + &" ".repeat(spaces)
}

/// `text` in as many lines as the width asks for, a line feed after each; lines after the first
/// begin with `indent` spaces, or fewer where that would be more than half the width.
pub(crate) fn wrapped(text: &str, indent: usize, style: &Style) -> String {
    let width = style.width.map_or(usize::MAX, |width| width.max(FEWEST_COLUMNS));
    let indent = if indent <= width / 2 { indent } else { NARROW_INDENT.min(width / 2) };
    let mut lines = String::new();
    let mut rest = text;
    let mut room = width;
    // No more of the text is measured than a line has: one of a megabyte may come from a stranger.
    loop {
        let fitting = fitting(rest, room);
        if fitting.len() == rest.len() {
            break;
        }
        let at_space = fitting.rfind(' ').filter(|at| !fitting[..*at].trim().is_empty());
        let line = at_space.map_or(fitting, |at| &fitting[..at]);
        lines.push_str(line.trim_end());
        lines.push('\n');
        lines.push_str(&" ".repeat(indent));
        rest = rest[line.len()..].trim_start();
        room = width - indent;
    }
    lines.push_str(rest);
    lines.push('\n');
    lines
}

/// `text` wrapped, each line in `tone`.
pub(crate) fn painted(text: &str, tone: Tone, style: &Style) -> String {
    let wrapped = wrapped(text, 2, style);
    wrapped.lines().map(|line| tone.paint(line, style) + "\n").collect()
}

/// The longest beginning of `text` that takes at most `room` columns, and at least a character.
fn fitting(text: &str, room: usize) -> &str {
    let mut used = 0;
    let over = text.char_indices().find(|(at, c)| {
        used += c.width().unwrap_or(0);
        used > room && *at > 0
    });
    over.map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::wrapped;
    use crate::style::Style;

    #[test]
    fn long_text_goes_on_below_and_loses_nothing() {
        let wrap = |text, width| wrapped(text, 4, &Style { width, ..Style::PLAIN });
        assert_eq!(wrap("name  a value", None), "name  a value\n");
        assert_eq!(wrap("name  a value", Some(13)), "name  a value\n");
        assert_eq!(wrap("name  a value", Some(12)), "name  a\n    value\n");
        assert_eq!(
            wrap("/a/long/path/of/one/word", Some(12)),
            "/a/long/path\n    /of/one/\n    word\n"
        );
        assert_eq!(wrap("訓練訓練訓練", Some(9)), "訓練訓練\n    訓練\n");
        assert_eq!(wrap("  abcdef", Some(0)), "  ab\n  cd\n  ef\n");
        assert_eq!(wrap("", Some(8)), "\n");
    }
}
