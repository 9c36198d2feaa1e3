//! The log on standard error: a line for each event of ours, as text or as JSON.
//!
//! A message is a whole sentence, with what it is about; JSON has that in fields of their own too. Text begins with the
//! moment and the level. systemd's journal has moments of its own, and takes levels from a prefix (sd-daemon(3)). Nothing
//! of a caller's choosing reaches a line unescaped.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::str::FromStr;
use std::sync::OnceLock;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::{Layer, Registry};

/// The longest line; the rest of it is cut off.
const MAX_LINE_BYTES: usize = 2048;

/// The beginning of what our own code is called by; what libraries say is theirs.
const OURS: &str = "telltale";

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something does not work, and needs action.
    Error,
    /// Something does not work as it should; the service goes on.
    Warn,
    /// What an operator wants to know: starts, stops, changes.
    #[default]
    Info,
    /// What only helps to find a fault.
    Debug,
}

/// What lines look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// An object a line: `time`, `level`, `message`, and the event's fields.
    Json,
}

/// Which events are written.
static UP_TO: OnceLock<Handle<Targets, Registry>> = OnceLock::new();

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

    fn of(level: tracing::Level) -> Self {
        match level {
            tracing::Level::ERROR => Self::Error,
            tracing::Level::WARN => Self::Warn,
            tracing::Level::INFO => Self::Info,
            _ => Self::Debug,
        }
    }

    fn targets(self) -> Targets {
        Targets::new().with_target(OURS, self.filter())
    }

    fn filter(self) -> LevelFilter {
        match self {
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
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

// === impl Format ===

impl Format {
    /// Its name, as in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Self::Text, Self::Json].into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| String::from("not one of text, json"))
    }
}

/// From now on events of ours up to this level are lines on standard error. A second time, only the level is taken.
pub fn start(level: Level, format: Format) {
    let (filter, handle) = reload::Layer::new(level.targets());
    if UP_TO.set(handle).is_err() {
        return set_level(level);
    }
    let look = match format {
        Format::Json => LineFormat::Json,
        // systemd tells so that it has connected standard error to its journal.
        Format::Text if std::env::var_os("JOURNAL_STREAM").is_some() => LineFormat::Journal,
        Format::Text => LineFormat::Text,
    };
    let subscriber = Registry::default().with(Lines(look).with_filter(filter));
    // Only tests set another one, which then has the events.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// From now on events of these modules alone are lines on standard error, of each up to its level: for a program whose
/// parts run in one process, and that says most of it itself.
pub fn start_for(modules: &[(&str, Level)]) {
    start(Level::Error, Format::Text);
    if let Some(handle) = UP_TO.get() {
        let targets = modules.iter().map(|(module, level)| (*module, level.filter()));
        let _gone = handle.reload(targets.collect::<Targets>());
    }
}

/// From now on lines up to this level are written.
pub fn set_level(level: Level) {
    if let Some(handle) = UP_TO.get() {
        let _gone = handle.reload(level.targets());
    }
}

/// How lines look.
#[derive(Debug, Clone, Copy)]
enum LineFormat {
    Text,
    Journal,
    Json,
}

/// Writes events.
struct Lines(LineFormat);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut said = Said::default();
        event.record(&mut said);
        let level = Level::of(*event.metadata().level());
        let line = said.line(level, self.0, Timestamp::now());
        // A failure has nowhere to go. One write, so that lines stay whole.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// What an event says.
#[derive(Debug, Default)]
struct Said {
    message: String,
    fields: Map<String, Value>,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.message = text;
        } else {
            // Numbers of epochs and ranks are types of their own, which are shown as numbers.
            let value = text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from);
            self.fields.insert(field.name().to_owned(), value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

impl Said {
    /// The line of one event: one line, whatever is in it.
    fn line(self, level: Level, look: LineFormat, now: Timestamp) -> String {
        let mut line = String::with_capacity(self.message.len() + 48);
        match look {
            LineFormat::Json => {
                let mut object = self.fields;
                object.insert("time".to_owned(), format!("{now:.3}").into());
                object.insert("level".to_owned(), level.name().into());
                object.insert("message".to_owned(), cut(&self.message).into());
                line.push_str(&Value::Object(object).to_string());
                line.push('\n');
                return line;
            }
            LineFormat::Journal => line.push_str(level.prefix()),
            LineFormat::Text => {
                write!(line, "{now:.3} {}: ", level.name()).expect("it takes any text")
            }
        }
        push(&mut line, &self.message);
        line.push('\n');
        line
    }
}

/// The beginning of a message that is too long.
fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(MAX_LINE_BYTES)]
}

fn push(line: &mut String, text: &str) {
    for character in text.chars() {
        if line.len() >= MAX_LINE_BYTES {
            line.push('…');
            return;
        }
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &str, fields: &[(&str, Value)]) -> Said {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Said { message: message.to_owned(), fields: fields.collect() }
    }

    #[test]
    fn an_event_is_one_line_with_its_level() {
        let now = Timestamp::from_millisecond(1_795_000_000_250).unwrap();
        let line = |said: Said, level, look| said.line(level, look, now);
        let text = line(
            said("a b", &[("node", "n1".into()), ("epoch", 3.into())]),
            Level::Warn,
            LineFormat::Text,
        );
        assert_eq!(text, "2026-11-18T11:06:40.250Z warn: a b\n");
        assert_eq!(line(said("a b", &[]), Level::Warn, LineFormat::Journal), "<4>a b\n");
        let hostile = "a\n<0>b\x1b[2J";
        assert_eq!(
            line(said(hostile, &[]), Level::Info, LineFormat::Journal),
            "<6>a\\n<0>b\\u{1b}[2J\n"
        );
        let long = "é".repeat(5000);
        let text = line(said(&long, &[]), Level::Info, LineFormat::Journal);
        assert!(text.len() < MAX_LINE_BYTES + 8 && text.ends_with("…\n"));
        let json = line(said(hostile, &[("epoch", 3.into())]), Level::Error, LineFormat::Json);
        let object: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(object["level"], "error");
        assert_eq!((&object["message"], &object["epoch"]), (&hostile.into(), &3.into()));
        assert_eq!(json.matches('\n').count(), 1);
    }

    #[test]
    fn levels_have_names_and_an_order() {
        for level in [Level::Error, Level::Warn, Level::Info, Level::Debug] {
            assert_eq!(level.name().parse(), Ok(level));
        }
        assert!(Level::Error < Level::Debug && "loud".parse::<Level>().is_err());
        assert!(
            Format::Json.name().parse() == Ok(Format::Json) && "xml".parse::<Format>().is_err()
        );
    }
}
