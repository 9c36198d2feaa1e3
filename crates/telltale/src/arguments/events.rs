//! The command line of `telltale events`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use telltale_debug_stream::{Dtype, EventKind, TextStyle};

/// The most events that `--last` holds back.
const MOST_LAST: u64 = 1_000_000;

pub(super) const HELP: &str = "\
Each line is an event: seconds since the first, core, prefix#iteration, type, shape, bytes, and
min, mean and max of the finite numbers. Lost events are shown in their place. Malformed events are
shown and counted. Names are cut to the terminal's width.

CAPTURE is a directory of dumped events (ours or of Neuron's consumers), a file of JSON lines, an
event file (--convert raw), or - for either file on stdin.

Exit status: 0 complete, or --follow ended by Ctrl-C; 1 partial, or --diff found a difference; 2 no
data, or the output failed; 64 usage error. Lost events are not a failure.

Examples:
  telltale events dumps                              all events in order
  telltale events dumps --prefix 'layer.*.attn' --core 0-3 --last 20
  telltale events dumps -f --print                   numbers as they come, until Ctrl-C
  telltale events dumps --summary                    per core and prefix
  telltale events dumps --json | jq 'select(.statistics.nan > 0)'
  telltale events good --diff bad --tolerance 1e-3   which events differ, by how much, and where
  telltale events dumps --convert npy -o arrays      arrays/<prefix>/core_<n>/<iteration>.npy
  telltale events dumps --convert raw -o run.events  one file with every byte";

#[derive(Debug, Args)]
pub(crate) struct EventsArguments {
    /// Directory or file of events, or - for stdin
    #[arg(value_name = "CAPTURE")]
    pub(crate) capture: PathBuf,
    /// Follow new events until Ctrl-C; wait for a missing capture
    #[arg(short, long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) wanted: EventSelection,
    #[command(flatten)]
    pub(crate) shown: DisplayArguments,
    #[command(flatten)]
    pub(crate) comparison: ComparisonArguments,
    #[command(flatten)]
    pub(crate) conversion: ConversionArguments,
}

/// What events are compared to.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparing")]
pub(crate) struct ComparisonArguments {
    /// Compare with the events of this capture, by core, prefix and iteration
    #[arg(long, value_name = "CAPTURE")]
    #[arg(conflicts_with_all = ["follow", "summary", "print", "stats", "convert", "last"])]
    pub(crate) diff: Option<PathBuf>,
    /// Maximum distance of equal elements
    #[arg(long, value_name = "DISTANCE", default_value_t = 0.0, requires = "diff")]
    #[arg(value_parser = positive)]
    pub(crate) tolerance: f64,
}

/// Which events are wanted.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which events (all conditions must hold)")]
pub(crate) struct EventSelection {
    /// Cores: 0, 2-5, 8-, or a list separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) core: Vec<Numbers>,
    /// Prefix pattern: * matches any characters, ? one; repeatable
    #[arg(long, value_name = "PATTERN")]
    pub(crate) prefix: Vec<String>,
    /// Data types
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = dtypes())]
    pub(crate) dtype: Vec<String>,
    /// Iterations of a core and prefix: 7, 10-20, 100-, -5
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) iteration: Vec<Numbers>,
    /// Event types: tensor, text, breakpoint, user, unknown, or a number
    #[arg(long = "type", value_name = "TYPES", value_delimiter = ',')]
    pub(crate) kind: Vec<WantedKind>,
    /// From this second on, as in the first column
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub(crate) since: Option<f64>,
    /// Every Nth event of each core and prefix
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) every: Option<u64>,
    /// The last N events; with --follow, then new ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MOST_LAST))]
    pub(crate) last: Option<u64>,
}

/// How events are shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is shown")]
pub(crate) struct DisplayArguments {
    /// Also print the numbers of each tensor, as NumPy does
    #[arg(short, long)]
    pub(crate) print: bool,
    /// Also print standard deviation and counts of zero, NaN and infinite
    #[arg(long)]
    pub(crate) stats: bool,
    /// Print one line per core and prefix
    #[arg(long, conflicts_with_all = ["stats", "print"])]
    pub(crate) summary: bool,
    /// Print JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Maximum digits after the point
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = small(17))]
    precision: u64,
    /// Abbreviate tensors with more than N elements; JSON has the first N
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    threshold: u64,
    /// Elements at each end of abbreviated tensors
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = small(1_000))]
    edge_items: u64,
    /// Columns of a line of numbers
    #[arg(long, value_name = "N", default_value_t = 75, value_parser = small(10_000))]
    width: u64,
}

/// What events become.
#[derive(Debug, Args)]
#[command(next_help_heading = "Converting")]
pub(crate) struct ConversionArguments {
    /// Write the events to files
    #[arg(long, value_name = "FORM", value_enum, requires = "output")]
    #[arg(conflicts_with_all = ["follow", "summary", "json"])]
    pub(crate) convert: Option<EventFormat>,
    /// File to create, or directory for npy and safetensors; - for stdout
    #[arg(short, long, value_name = "OUT", requires = "convert")]
    pub(crate) output: Option<PathBuf>,
    /// Replace existing files
    #[arg(long, requires = "convert")]
    pub(crate) force: bool,
}

/// A form that events can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventFormat {
    /// A directory with a NumPy file for each tensor
    Npy,
    /// A directory with a safetensors file for each tensor
    Safetensors,
    /// An event file: every event with its exact bytes
    Raw,
    /// Lines of JSON with all values
    Jsonl,
    /// What --print shows
    Text,
}

/// A range of numbers, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) RangeInclusive<u64>);

/// A type of event that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WantedKind {
    /// All with this name.
    Named(&'static str),
    /// The one with this number.
    Numbered(u32),
}

// === impl DisplayArguments ===

impl DisplayArguments {
    /// How tensors are printed.
    pub(crate) fn style(&self) -> TextStyle {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        TextStyle {
            precision: number(self.precision),
            threshold: number(self.threshold),
            edge_items: number(self.edge_items),
            width: number(self.width),
        }
    }
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || String::from("neither a number nor a range such as 2-5, 8- or -3");
        let number = |text: &str, absent: u64| match text {
            "" => Ok(absent),
            digits => digits.parse::<u64>().map_err(|_| wrong()),
        };
        let range = match text.split_once('-') {
            None => {
                let one = text.parse::<u64>().map_err(|_| wrong())?;
                one..=one
            }
            Some(("", "")) => return Err(wrong()),
            Some((first, last)) => number(first, 0)?..=number(last, u64::MAX)?,
        };
        if range.is_empty() {
            Err(String::from("the range ends before it begins"))
        } else {
            Ok(Self(range))
        }
    }
}

impl FromStr for WantedKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(code) = text.parse() {
            return Ok(Self::Numbered(code));
        }
        let kinds = [
            EventKind::Tensor,
            EventKind::Text,
            EventKind::Breakpoint,
            EventKind::User(0),
            EventKind::Unknown(0),
        ];
        let name = kinds.map(EventKind::name).into_iter().find(|name| *name == text);
        name.map(Self::Named).ok_or_else(|| {
            String::from("none of tensor, text, breakpoint, user, unknown, and no number")
        })
    }
}

/// Parses the name of a data type, and tells shells which there are.
fn dtypes() -> PossibleValuesParser {
    PossibleValuesParser::new(Dtype::ALL.map(Dtype::name))
}

/// A number from 0 to a limit.
fn small(most: u64) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(..=most)
}

/// A number from 0 on.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(String::from("not a number from 0 on")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Numbers, WantedKind};

    #[test]
    fn ranges_have_both_ends_or_one() {
        for (text, expected) in
            [("7", 7..=7), ("2-5", 2..=5), ("8-", 8..=u64::MAX), ("-3", 0..=3), ("0-0", 0..=0)]
        {
            assert_eq!(text.parse(), Ok(Numbers(expected)), "{text}");
        }
        for bad in ["", "-", "a", "5-2", "1-2-3", "1.5", "--3", " 1"] {
            assert!(bad.parse::<Numbers>().is_err(), "{bad}");
        }
    }

    #[test]
    fn types_have_names_and_numbers() {
        assert_eq!("user".parse(), Ok(WantedKind::Named("user")));
        assert_eq!("300".parse(), Ok(WantedKind::Numbered(300)));
        assert!("tensors".parse::<WantedKind>().is_err());
    }
}
