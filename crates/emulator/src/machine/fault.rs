//! What can be made to go wrong, and how it is written on a command line.

mod forms;
mod part;

use std::fmt;
use std::str::FromStr;

pub(crate) use part::FailingKind;
pub use part::PartFailure;

use super::aer::{self, AerSeverity};
use super::link::{LinkSpeed, LinkWidth, SPEEDS, WIDTHS};

/// Something wrong with the machine, injected with [`super::Machine::inject`]. Ordinals are
/// those of the driver's `tenstorrent!N`; attributes are file names such as `tt_aiclk`,
/// `temp1_input`, `slv_rd_data_word_sent0` or `pids`.
///
/// As text (`FromStr` and `Display`): `missing:0:tt_aiclk`, `error:0:tt_aiclk:EIO`, `reset:0`,
/// `garbage:0:power1_input` (or with a kind: `garbage:0:tt_aiclk:binary`), `hang:0:temp1_input`,
/// `vanish:0` (`vanish:0:7` comes back as 7), `old-driver`, `pids:0:zero`, `link:0:8:4`, `stop:0`,
/// `trip:0`, `raise:0:aer_dev_fatal` (`raise:0:aer_dev_fatal:3` counts three), and of the host's parts
/// `fan:nct6798/fan1:stopped`, `port:mlx5_0/1:recovered:5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A file is not there, as with firmware that does not report it.
    Missing {
        /// The chip.
        ordinal: u32,
        /// The file.
        attribute: String,
    },
    /// Reading a file gives an error.
    Error {
        /// The chip.
        ordinal: u32,
        /// The file.
        attribute: String,
        /// The error.
        errno: InjectedErrno,
    },
    /// The chip is being reset: whatever its firmware reports cannot be read (`ENODATA`). Its
    /// counters start again at zero when the fault is cleared.
    Reset {
        /// The chip.
        ordinal: u32,
    },
    /// A file holds nonsense.
    Garbage {
        /// The chip.
        ordinal: u32,
        /// The file.
        attribute: String,
        /// Which nonsense.
        garbage: Garbage,
    },
    /// Reading a file never returns.
    Hang {
        /// The chip.
        ordinal: u32,
        /// The file.
        attribute: String,
    },
    /// The chip falls off the bus: all its files go away, open descriptors lose it.
    Vanish {
        /// The chip.
        ordinal: u32,
        /// The ordinal under which it comes back when the fault is cleared; none for the same.
        returns_as: Option<u32>,
    },
    /// The driver is 2.4.1, which lists no pids and has fewer attributes.
    OldDriver,
    /// The list of processes has lines that belong to no process.
    Pids {
        /// The chip.
        ordinal: u32,
        /// Which lines.
        lines: PidsFault,
    },
    /// The chip's PCIe link trained slower or narrower than its slot can; never faster or wider.
    Link {
        /// The chip.
        ordinal: u32,
        /// The speed of each lane.
        speed: LinkSpeed,
        /// The number of lanes.
        width: LinkWidth,
    },
    /// The chip's firmware stops: its heartbeat stands still, and what it reports keeps its values.
    Stop {
        /// The chip.
        ordinal: u32,
    },
    /// The chip was too hot, and its firmware has counted one more thermal trip. The counter keeps it
    /// when the fault is cleared.
    Trip {
        /// The chip.
        ordinal: u32,
    },
    /// The kernel has counted more errors of the chip's PCI function. The counter keeps them when the
    /// fault is cleared.
    Raise {
        /// The chip.
        ordinal: u32,
        /// Which counter.
        severity: AerSeverity,
        /// How many.
        count: u32,
    },
    /// A part of the host that is no chip fails.
    Part {
        /// The part: `nct6798/fan1`, `pmbus-7-0058`, `nct6798/in0`, `eth0`, `mlx5_0/1` or `mc0`.
        name: String,
        /// How, and which kind of part.
        failure: PartFailure,
        /// How much a failure adds to a counter, where it does.
        count: u32,
    },
}

/// An error that a file can be made to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedErrno {
    /// No data, as the driver says between reset and re-initialisation.
    NoData,
    /// Input/output error.
    Io,
    /// No such device, as the driver says after a hot unplug.
    NoDevice,
    /// Permission denied.
    Access,
}

/// Nonsense for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Garbage {
    /// A number far beyond anything physical: 3.21 kV, 4 kW, 3.34 MA (which a driver did show
    /// after a firmware update), 1.6 million degrees, or 2^64 - 1 for other files.
    Implausible,
    /// `-1`.
    MinusOne,
    /// Nothing at all.
    Empty,
    /// Bytes that are no text.
    Binary,
    /// One line of a mebibyte.
    Long,
}

/// Lines that belong to no process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PidsFault {
    /// `0`, as the driver shows for a process of an invisible PID namespace.
    Zero,
    /// Every line three times, as for a process with three open descriptors.
    Duplicates,
    /// Text, a negative number, a number too large, an empty line, a line without an end.
    Junk,
}

/// A text that is no [`Fault`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no fault {0:?}: write {forms}", forms = forms::in_one_line())]
pub struct ParseFaultError(pub String);

/// The longest text of a fault: longer than any file name we have.
const MAX_TEXT: usize = 128;

/// The most that one fault adds to a counter.
const MAX_COUNT: u32 = 1_000_000;

const ERRNOS: [(InjectedErrno, &str); 4] = [
    (InjectedErrno::NoData, "ENODATA"),
    (InjectedErrno::Io, "EIO"),
    (InjectedErrno::NoDevice, "ENODEV"),
    (InjectedErrno::Access, "EACCES"),
];

const GARBAGE: [(Garbage, &str); 5] = [
    (Garbage::Implausible, "implausible"),
    (Garbage::MinusOne, "minus-one"),
    (Garbage::Empty, "empty"),
    (Garbage::Binary, "binary"),
    (Garbage::Long, "long"),
];

const PIDS: [(PidsFault, &str); 3] =
    [(PidsFault::Zero, "zero"), (PidsFault::Duplicates, "duplicates"), (PidsFault::Junk, "junk")];

fn name_of<T: PartialEq>(table: &'static [(T, &'static str)], value: T) -> &'static str {
    table.iter().find(|(entry, _)| *entry == value).expect("the table has every value").1
}

fn value_of<T: Copy>(table: &'static [(T, &'static str)], name: &str) -> Option<T> {
    table.iter().find(|(_, entry)| *entry == name).map(|(value, _)| *value)
}

impl InjectedErrno {
    /// The name in the target of the link that stands for the error.
    pub fn name(self) -> &'static str {
        name_of(&ERRNOS, self)
    }
}

impl Garbage {
    /// The bytes that the file `attribute` shows.
    pub(crate) fn bytes(self, attribute: &str) -> Vec<u8> {
        match self {
            Self::Implausible => {
                let text = match attribute {
                    "in0_input" => "3210000\n",
                    "power1_input" => "4000000000\n",
                    "curr1_input" => "3340000000\n",
                    "temp1_input" => "1600000000\n",
                    _ => "18446744073709551615\n",
                };
                text.as_bytes().to_vec()
            }
            Self::MinusOne => b"-1\n".to_vec(),
            Self::Empty => Vec::new(),
            Self::Binary => (0..=255).rev().collect(),
            Self::Long => [vec![b'7'; 1 << 20], b"\n".to_vec()].concat(),
        }
    }
}

impl PidsFault {
    /// The whole list, given its true lines.
    pub(crate) fn apply(self, true_lines: &str) -> String {
        match self {
            Self::Zero => format!("{true_lines}0\n"),
            Self::Duplicates => {
                true_lines.lines().map(|line| format!("{line}\n{line}\n{line}\n")).collect()
            }
            Self::Junk => format!("-3\nnot a pid\n\n99999999999999999999\n{true_lines}12x"),
        }
    }
}

impl Fault {
    /// The chip it is about; none for the whole machine and its other parts.
    pub fn ordinal(&self) -> Option<u32> {
        match self {
            Self::Missing { ordinal, .. }
            | Self::Error { ordinal, .. }
            | Self::Reset { ordinal }
            | Self::Garbage { ordinal, .. }
            | Self::Hang { ordinal, .. }
            | Self::Vanish { ordinal, .. }
            | Self::Pids { ordinal, .. }
            | Self::Link { ordinal, .. }
            | Self::Stop { ordinal }
            | Self::Trip { ordinal }
            | Self::Raise { ordinal, .. } => Some(*ordinal),
            Self::OldDriver | Self::Part { .. } => None,
        }
    }

    /// The file without which there is no such fault.
    pub(crate) fn needs(&self) -> Option<&str> {
        match self {
            Self::Stop { .. } => Some("tt_heartbeat"),
            Self::Trip { .. } => Some("tt_therm_trip_count"),
            _ => self.attribute(),
        }
    }

    /// The file of which it decides what it shows, where it is about one.
    pub(crate) fn attribute(&self) -> Option<&str> {
        match self {
            Self::Missing { attribute, .. }
            | Self::Error { attribute, .. }
            | Self::Garbage { attribute, .. }
            | Self::Hang { attribute, .. } => Some(attribute),
            Self::Pids { .. } => Some("pids"),
            Self::Reset { .. }
            | Self::Vanish { .. }
            | Self::OldDriver
            | Self::Link { .. }
            | Self::Stop { .. }
            | Self::Trip { .. }
            | Self::Raise { .. }
            | Self::Part { .. } => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { ordinal, attribute } => write!(to, "missing:{ordinal}:{attribute}"),
            Self::Error { ordinal, attribute, errno } => {
                write!(to, "error:{ordinal}:{attribute}:{}", errno.name())
            }
            Self::Reset { ordinal } => write!(to, "reset:{ordinal}"),
            Self::Garbage { ordinal, attribute, garbage } => {
                write!(to, "garbage:{ordinal}:{attribute}:{}", name_of(&GARBAGE, *garbage))
            }
            Self::Hang { ordinal, attribute } => write!(to, "hang:{ordinal}:{attribute}"),
            Self::Vanish { ordinal, returns_as: None } => write!(to, "vanish:{ordinal}"),
            Self::Vanish { ordinal, returns_as: Some(new) } => write!(to, "vanish:{ordinal}:{new}"),
            Self::OldDriver => to.write_str("old-driver"),
            Self::Pids { ordinal, lines } => {
                write!(to, "pids:{ordinal}:{}", name_of(&PIDS, *lines))
            }
            Self::Link { ordinal, speed, width } => {
                let (speed, width) = (name_of(&SPEEDS, *speed), name_of(&WIDTHS, *width));
                write!(to, "link:{ordinal}:{speed}:{width}")
            }
            Self::Stop { ordinal } => write!(to, "stop:{ordinal}"),
            Self::Trip { ordinal } => write!(to, "trip:{ordinal}"),
            Self::Raise { ordinal, severity, count } => {
                write!(to, "raise:{ordinal}:{}:{count}", name_of(&aer::FILES, *severity))
            }
            Self::Part { name, failure, count } => {
                write!(to, "{}:{name}:{}", failure.kind().name(), failure.written(*count))
            }
        }
    }
}

impl FromStr for Fault {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| ParseFaultError(text.chars().take(MAX_TEXT).collect()))
    }
}

fn parse(text: &str) -> Option<Fault> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let parts: Vec<&str> = text.split(':').collect();
    if parts == ["old-driver"] {
        return Some(Fault::OldDriver);
    }
    if let [kind, name, words @ ..] = &parts[..]
        && let Some((failure, count)) = part::parse(kind, words)
    {
        return Some(Fault::Part { name: (*name).to_owned(), failure, count });
    }
    let ordinal: u32 = parts.get(1)?.parse().ok()?;
    let attribute = || parts.get(2).map(|name| (*name).to_owned());
    let garbage = |garbage| Some(Fault::Garbage { ordinal, attribute: attribute()?, garbage });
    match (parts[0], &parts[2..]) {
        ("missing", [_]) => Some(Fault::Missing { ordinal, attribute: attribute()? }),
        ("error", [_, errno]) => {
            let errno = value_of(&ERRNOS, errno)?;
            Some(Fault::Error { ordinal, attribute: attribute()?, errno })
        }
        ("reset", []) => Some(Fault::Reset { ordinal }),
        ("garbage", [_]) => garbage(Garbage::Implausible),
        ("garbage", [_, kind]) => garbage(value_of(&GARBAGE, kind)?),
        ("hang", [_]) => Some(Fault::Hang { ordinal, attribute: attribute()? }),
        ("vanish", []) => Some(Fault::Vanish { ordinal, returns_as: None }),
        ("vanish", [new]) => Some(Fault::Vanish { ordinal, returns_as: Some(new.parse().ok()?) }),
        ("link", [speed, width]) => {
            let (speed, width) = (value_of(&SPEEDS, speed)?, value_of(&WIDTHS, width)?);
            Some(Fault::Link { ordinal, speed, width })
        }
        ("stop", []) => Some(Fault::Stop { ordinal }),
        ("trip", []) => Some(Fault::Trip { ordinal }),
        ("raise", [file]) => {
            Some(Fault::Raise { ordinal, severity: value_of(&aer::FILES, file)?, count: 1 })
        }
        ("raise", [file, number]) => {
            let (severity, count) = (value_of(&aer::FILES, file)?, count(number)?);
            Some(Fault::Raise { ordinal, severity, count })
        }
        ("pids", [lines]) => Some(Fault::Pids { ordinal, lines: value_of(&PIDS, lines)? }),
        _ => None,
    }
}

/// How much a fault adds to a counter.
fn count(text: &str) -> Option<u32> {
    text.parse().ok().filter(|count| (1..=MAX_COUNT).contains(count))
}

#[cfg(test)]
mod tests {
    use super::Fault;

    #[test]
    fn faults_are_read_from_the_command_line_and_written_back() {
        let cases = [
            ("missing:0:tt_aiclk", "missing:0:tt_aiclk"),
            ("error:12:tt_aiclk:EIO", "error:12:tt_aiclk:EIO"),
            ("reset:0", "reset:0"),
            ("garbage:0:power1_input", "garbage:0:power1_input:implausible"),
            ("garbage:0:tt_aiclk:binary", "garbage:0:tt_aiclk:binary"),
            ("hang:0:temp1_input", "hang:0:temp1_input"),
            ("vanish:0", "vanish:0"),
            ("vanish:0:7", "vanish:0:7"),
            ("old-driver", "old-driver"),
            ("pids:3:junk", "pids:3:junk"),
            ("link:0:2.5:16", "link:0:2.5:16"),
            ("stop:3", "stop:3"),
            ("trip:3", "trip:3"),
            ("raise:0:aer_dev_fatal", "raise:0:aer_dev_fatal:1"),
            ("raise:0:aer_dev_correctable:70", "raise:0:aer_dev_correctable:70"),
            ("fan:nct6798/fan1:slow", "fan:nct6798/fan1:slow"),
            ("port:mlx5_0/1:no-gid", "port:mlx5_0/1:no-gid"),
            ("memory:mc0:uncorrected", "memory:mc0:uncorrected:1"),
            ("port:mlx5_0/1:recovered:9", "port:mlx5_0/1:recovered:9"),
        ];
        for (text, written) in cases {
            let fault: Fault = text.parse().unwrap();
            assert_eq!(fault.to_string(), written);
            assert_eq!(written.parse::<Fault>(), Ok(fault));
        }
        let long = "missing:0:".to_owned() + &"x".repeat(200);
        let links = ["link:0:8", "link:0:9:8", "link:0:8:3", "link:x:8:4"];
        let others = ["", "reset", "reset:x", "reset:0:1", "hang:0", "error:0:a:EPERM", "p:0"];
        let counts = ["raise:0:aer_dev_fatal:0", "raise:0:tt_aiclk", "memory:mc0:uncorrected:x"];
        let parts = ["fan:a", "fan:a:down", "fan:a:slow:2", "nic:eth0", "memory:mc0:uncorrected:0"];
        let texts = links.into_iter().chain(others).chain(counts).chain(parts);
        for bad in texts.chain([&*long]) {
            assert!(bad.parse::<Fault>().is_err(), "{bad}");
        }
    }
}
