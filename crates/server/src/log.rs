//! What the service tells whoever keeps its standard error: plain lines with a level.
//!
//! systemd's journal gets each line with the prefix that it takes levels from (sd-daemon(3)); a
//! terminal or a file gets the level's name. Nothing of a caller's choosing reaches a line unescaped.

use std::io::Write;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::{Deserialize, Serialize};

/// The longest line; the rest of it is cut off.
const MAX_LINE_BYTES: usize = 2048;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something does not work, and somebody has to do something.
    Error,
    /// Something does not work as it should; the service goes on.
    Warn,
    /// What an operator wants to know: starts, stops, changes.
    #[default]
    Info,
    /// What only helps to find a fault.
    Debug,
}

/// The level up to which lines are written.
static UP_TO: AtomicU8 = AtomicU8::new(Level::Info as u8);

// === impl Level ===

impl Level {
    /// Its name, as in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    /// The prefix that the journal takes it from (syslog(3)).
    fn prefix(self) -> &'static str {
        match self {
            Self::Error => "<3>",
            Self::Warn => "<4>",
            Self::Info => "<6>",
            Self::Debug => "<7>",
        }
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Error, Self::Warn, Self::Info, Self::Debug];
        let found = all.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| String::from("not one of error, warn, info, debug"))
    }
}

/// From now on lines up to this level are written.
pub fn set_level(level: Level) {
    UP_TO.store(level as u8, Ordering::Relaxed);
}

/// Writes a line of level [`Level::Error`].
pub fn error(text: &str) {
    write(Level::Error, text);
}

/// Writes a line of level [`Level::Warn`].
pub fn warn(text: &str) {
    write(Level::Warn, text);
}

/// Writes a line of level [`Level::Info`].
pub fn info(text: &str) {
    write(Level::Info, text);
}

/// Writes a line of level [`Level::Debug`], if anybody wants it.
pub fn debug(text: impl FnOnce() -> String) {
    if is_wanted(Level::Debug) {
        write(Level::Debug, &text());
    }
}

fn is_wanted(level: Level) -> bool {
    level as u8 <= UP_TO.load(Ordering::Relaxed)
}

fn write(level: Level, text: &str) {
    if is_wanted(level) {
        // Nobody is left to be told when that fails. One write, so that lines stay whole.
        let _ = std::io::stderr().write_all(line(level, text, to_journal()).as_bytes());
    }
}

/// Whether systemd has connected standard error to its journal, which it tells by this variable.
fn to_journal() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| std::env::var_os("JOURNAL_STREAM").is_some())
}

/// The line of one message: one line, whatever is in the message.
fn line(level: Level, text: &str, to_journal: bool) -> String {
    let mut line = String::with_capacity(text.len() + 16);
    if to_journal {
        line.push_str(level.prefix());
    } else {
        line.push_str(level.name());
        line.push_str(": ");
    }
    for character in text.chars() {
        if line.len() >= MAX_LINE_BYTES {
            line.push('…');
            break;
        }
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::{Level, MAX_LINE_BYTES, line};

    #[test]
    fn a_message_is_one_line_with_its_level() {
        assert_eq!(line(Level::Warn, "a b", false), "warn: a b\n");
        assert_eq!(line(Level::Warn, "a b", true), "<4>a b\n");
        assert_eq!(line(Level::Info, "a\n<0>b\x1b[2J", false), "info: a\\n<0>b\\u{1b}[2J\n");
        assert!(line(Level::Info, &"é".repeat(5000), false).len() < MAX_LINE_BYTES + 8);
    }

    #[test]
    fn levels_have_names_and_an_order() {
        for level in [Level::Error, Level::Warn, Level::Info, Level::Debug] {
            assert_eq!(level.name().parse(), Ok(level));
        }
        assert!(Level::Error < Level::Debug && "loud".parse::<Level>().is_err());
    }
}
