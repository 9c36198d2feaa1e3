//! Why a file could not be read, and what that means for the reading it should have given.

use std::fmt;

use rustix::io::Errno;
use telltale_schema::reading::{Absence, Reading};

/// A file could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// The kernel said why.
    Errno(Errno),
    /// It has more than anyone should write there.
    TooLong {
        /// The most that is read.
        limit: usize,
    },
    /// The read hangs in the kernel, or was not begun in time.
    Hung,
}

/// The errors that an emulated tree can stand for.
const NAMES: [(&str, Errno); 11] = [
    ("EACCES", Errno::ACCESS),
    ("EAGAIN", Errno::AGAIN),
    ("EBUSY", Errno::BUSY),
    ("EINVAL", Errno::INVAL),
    ("EIO", Errno::IO),
    ("ENODATA", Errno::NODATA),
    ("ENODEV", Errno::NODEV),
    ("ENOENT", Errno::NOENT),
    ("ENXIO", Errno::NXIO),
    ("EPERM", Errno::PERM),
    ("ETIMEDOUT", Errno::TIMEDOUT),
];

/// The error of this name.
pub(super) fn named(name: &str) -> Option<Errno> {
    NAMES.iter().find(|(known, _)| *known == name.trim()).map(|(_, errno)| *errno)
}

impl Unreadable {
    /// What the error means. The driver gives ENODATA between a reset and re-initialisation and
    /// ENODEV when it has let go of the device (tt-kmd); an attribute whose tag the firmware lacks
    /// does not exist.
    pub fn absence(self) -> Absence {
        match self {
            Self::TooLong { .. } => Absence::Implausible,
            Self::Hung => Absence::TimedOut,
            Self::Errno(errno) => match errno {
                Errno::NOENT | Errno::NOTDIR | Errno::OPNOTSUPP => Absence::Unsupported,
                Errno::NODATA => Absence::Resetting,
                Errno::NODEV | Errno::NXIO | Errno::SRCH => Absence::Gone,
                Errno::ACCESS | Errno::PERM => Absence::Permission,
                Errno::AGAIN | Errno::BUSY => Absence::NotYet,
                Errno::TIMEDOUT => Absence::TimedOut,
                _ => Absence::Failed,
            },
        }
    }

    /// The absent reading this leads to. What merely does not exist needs no more words.
    pub fn reading<T>(self) -> Reading<T> {
        match self {
            Self::Errno(Errno::NOENT) => Reading::absent(Absence::Unsupported, ""),
            other => Reading::absent(other.absence(), other.to_string()),
        }
    }

    /// Whether there simply is no such file.
    pub fn is_missing(self) -> bool {
        matches!(self, Self::Errno(Errno::NOENT | Errno::NOTDIR))
    }
}

impl std::error::Error for Unreadable {}

impl fmt::Display for Unreadable {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errno(errno) => std::io::Error::from(*errno).fmt(to),
            Self::TooLong { limit } => write!(to, "more than {limit} bytes"),
            Self::Hung => write!(to, "the kernel did not answer in time"),
        }
    }
}
