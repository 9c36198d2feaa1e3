//! What a person or a program says to a running machine, a line at a time, and what it answers.

use std::str::FromStr;
use std::time::Duration;

use crate::emulator::{Emulator, FaultError};
use crate::machine::{Fault, ParseFaultError};

/// What an [`Emulator`] does at a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmulatorCommand {
    /// Breaks something.
    Inject(Fault),
    /// Mends it.
    Clear(Fault),
    /// Mends everything.
    ClearAll,
    /// Says what is broken.
    List,
    /// Says what can be said.
    Help,
}

/// A fault, and when it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedFault {
    /// The fault.
    pub fault: Fault,
    /// When it begins, from the start of the machine on; zero where the text does not say.
    pub from: Duration,
    /// When it is cleared; never where there is none.
    pub until: Option<Duration>,
}

/// A text that is no [`TimedFault`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseTimedFaultError {
    /// The part before the times is no fault.
    #[error(transparent)]
    Fault(#[from] ParseFaultError),
    /// The times are none.
    #[error(
        "no time: write FAULT@SECONDS or FAULT@FROM..TO, in seconds from 0 to {MAX_SECONDS}, TO \
         after FROM"
    )]
    Time,
}

/// The commands in one line.
pub const COMMAND_FORMS: &str = "FAULT, `clear FAULT`, `clear`, `list` or `help`";

/// The latest time of a fault: a year.
const MAX_SECONDS: f64 = 31_536_000.0;

const NOTHING: &str = "nothing is broken";

// === impl EmulatorCommand ===

impl FromStr for EmulatorCommand {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("clear"), None, _) => Ok(Self::ClearAll),
            (Some("clear"), Some(fault), None) => Ok(Self::Clear(fault.parse()?)),
            (Some("list"), None, _) => Ok(Self::List),
            (Some("help"), None, _) => Ok(Self::Help),
            _ => Ok(Self::Inject(text.trim().parse()?)),
        }
    }
}

// === impl Emulator ===

impl Emulator {
    /// Does what a line says, and answers in one line. What is not understood or not possible changes
    /// nothing.
    pub fn command(&self, line: &str) -> String {
        let refused = |reason: &dyn std::error::Error| {
            format!("refused: {}", telltale_schema::text::with_causes(reason))
        };
        match line.parse() {
            Ok(command) => self.answer(command).unwrap_or_else(|error| refused(&error)),
            Err(error) => {
                let error: ParseFaultError = error;
                format!("{}; commands: {COMMAND_FORMS}", refused(&error))
            }
        }
    }

    fn answer(&self, command: EmulatorCommand) -> Result<String, FaultError> {
        match command {
            EmulatorCommand::Inject(fault) => {
                let text = fault.to_string();
                self.inject(fault)?;
                Ok(format!("injected {text}"))
            }
            EmulatorCommand::Clear(fault) => {
                self.clear(&fault)?;
                // One that was injected several times is over all the same.
                while self.faults().contains(&fault) {
                    self.clear(&fault)?;
                }
                Ok(format!("cleared {fault}"))
            }
            EmulatorCommand::ClearAll => {
                let before = self.listed();
                self.clear_all()?;
                Ok(before.map_or_else(|| NOTHING.to_owned(), |all| format!("cleared {all}")))
            }
            EmulatorCommand::List => {
                Ok(self.listed().map_or_else(|| NOTHING.to_owned(), |all| format!("broken: {all}")))
            }
            EmulatorCommand::Help => {
                let forms = Fault::forms();
                let forms: Vec<&str> = forms.iter().map(|(form, _)| form.as_str()).collect();
                Ok(format!("commands: {COMMAND_FORMS}; FAULT is {}", forms.join(", ")))
            }
        }
    }

    /// What is broken, each once and the oldest first; none where nothing is.
    fn listed(&self) -> Option<String> {
        let mut texts: Vec<String> = Vec::new();
        for text in self.faults().iter().map(ToString::to_string) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        (!texts.is_empty()).then(|| texts.join(", "))
    }
}

// === impl TimedFault ===

impl FromStr for TimedFault {
    type Err = ParseTimedFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((fault, times)) = text.rsplit_once('@') else {
            return Ok(Self { fault: text.parse()?, from: Duration::ZERO, until: None });
        };
        let fault = fault.parse()?;
        let (from, until) = match times.split_once("..") {
            Some((from, until)) => (seconds(from)?, Some(seconds(until)?)),
            None => (seconds(times)?, None),
        };
        match until {
            Some(until) if until <= from => Err(ParseTimedFaultError::Time),
            _ => Ok(Self { fault, from, until }),
        }
    }
}

fn seconds(text: &str) -> Result<Duration, ParseTimedFaultError> {
    let number = text.parse().ok().filter(|number| (0.0..=MAX_SECONDS).contains(number));
    number.map(Duration::from_secs_f64).ok_or(ParseTimedFaultError::Time)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{EmulatorCommand, TimedFault};
    use crate::machine::Fault;

    #[test]
    fn a_line_is_a_fault_or_one_of_a_few_words() {
        let fault = || Fault::Stop { ordinal: 3 };
        for (line, expected) in [
            (" stop:3 \r\n", Some(EmulatorCommand::Inject(fault()))),
            ("clear  stop:3", Some(EmulatorCommand::Clear(fault()))),
            ("clear\n", Some(EmulatorCommand::ClearAll)),
            ("list", Some(EmulatorCommand::List)),
            ("help", Some(EmulatorCommand::Help)),
            ("", None),
            ("clear stop:3 stop:4", None),
            ("stop:3 stop:4", None),
            ("list stop:3", None),
            ("clear all", None),
            ("stop:3@5", None),
        ] {
            assert_eq!(line.parse().ok(), expected, "{line:?}");
        }
    }

    #[test]
    fn times_are_seconds_from_the_start() {
        let seconds = |number: f64| Duration::from_secs_f64(number);
        for (text, expected) in [
            ("stop:3", Some((0.0, None))),
            ("stop:3@5", Some((5.0, None))),
            ("stop:3@0.5..1.25", Some((0.5, Some(1.25)))),
            ("stop:3@0..5", Some((0.0, Some(5.0)))),
            ("stop:3@", None),
            ("stop:3@5..", None),
            ("stop:3@5..5", None),
            ("stop:3@-1", None),
            ("stop:3@nan", None),
            ("stop:3@inf", None),
            ("stop:3@1e9", None),
            ("@5", None),
        ] {
            let expected = expected.map(|(from, until)| TimedFault {
                fault: Fault::Stop { ordinal: 3 },
                from: seconds(from),
                until: until.map(seconds),
            });
            assert_eq!(text.parse().ok(), expected, "{text}");
        }
    }
}
