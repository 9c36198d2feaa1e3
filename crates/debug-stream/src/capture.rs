//! Captures: events that were kept, read back for a person or a program.
//!
//! Three forms are read: a directory as the default consumer writes it (Neuron's own dumps have
//! the same files), lines of JSON, and an event file. All of it is a stranger's: every size is
//! bounded, what cannot be read becomes an [`Item`] that says so, and reading goes on behind it.
//! Nothing here prints, and no file is read as a whole but the data of one event.

mod directory;
mod event_file;
mod index;
mod lines;
mod metadata;
mod safe_file;
mod sequential;
mod watch;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::{EventKind, Losses, Malformed, Statistics, Tensor};

pub use directory::{Directory, MAX_EVENTS};
pub use event_file::{EVENT_FILE_VERSION, write_event_file_start, write_event_record};
pub use index::{
    CaptureIndex, EventFacts, Gap, IndexError, IndexLimits, MAX_FORMS, MAX_GAPS, MAX_INDEXED_EVENTS,
};
pub use lines::{MAX_LINE_BYTES, write_item_line};
pub use sequential::Sequential;
pub use watch::DirectoryWatch;

/// The most bytes of one event's data that are read.
pub const MAX_DATA_BYTES: u64 = 256 << 20;

/// What a capture holds, in the order of its events.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// An event.
    Event(Box<CapturedEvent>),
    /// So many events were lost here before they could be kept, as the stream reported.
    Lost(Losses),
    /// So many events of a core are not in the capture, by their sequence numbers.
    Missing {
        /// The core.
        core: Option<u32>,
        /// How many.
        events: u64,
    },
    /// Something that is no event.
    Unreadable(Unreadable),
}

/// A place of a capture that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The line, the byte or the path.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

/// An event as a capture tells it, which may be less than the stream did.
#[derive(Debug, Clone, PartialEq)]
pub struct CapturedEvent {
    /// What it is.
    pub kind: EventKind,
    /// See [`crate::EventView::sequence`].
    pub sequence: Option<u64>,
    /// See [`crate::EventView::time_ns`].
    pub time_ns: Option<u64>,
    /// See [`crate::Event::iteration`].
    pub iteration: Option<u64>,
    /// The logical core that it comes from.
    pub core: Option<u32>,
    /// See [`crate::EventView::pipe`].
    pub pipe: u32,
    /// What the kernel's author called it.
    pub prefix: String,
    /// The name of its data type; empty where there is none.
    pub dtype: String,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// How many bytes of data it had.
    pub bytes: u64,
    /// Its data.
    pub payload: Payload,
}

/// Where the data of a captured event is.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// Here.
    Held(Vec<u8>),
    /// In a file that has nothing else.
    File(PathBuf),
    /// Nowhere: the capture tells at most what they had in common.
    LeftOut(Option<Statistics>),
}

/// Why an event's tensor cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoTensor {
    /// It is none.
    #[error("it is no tensor")]
    OtherKind,
    /// The capture does not have its numbers.
    #[error("the capture does not have its numbers")]
    LeftOut,
    /// Its parts do not fit together.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Why a capture cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It could not be opened.
    #[error("cannot open {}", .0.display())]
    Open(PathBuf, #[source] io::Error),
    /// It is something else than a file or a directory.
    #[error("{} is neither a file nor a directory", .0.display())]
    OtherKind(PathBuf),
}

/// Why reading cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CaptureReadError {
    /// The operating system would not.
    #[error("cannot read on")]
    Read(#[from] io::Error),
    /// The bytes are neither lines of JSON nor an event file.
    #[error(
        "this is no capture; give a directory that events were dumped to, lines of JSON, or an \
         event file"
    )]
    NoCapture,
    /// The event file is of a later version.
    #[error("the event file has version {0}, and this program reads version 1; use a later one")]
    Version(u32),
}

/// A capture opened from its path.
#[derive(Debug)]
pub enum Capture {
    /// A directory of events.
    Directory(Box<Directory>),
    /// A file with one event behind the other.
    File(Sequential<File>),
}

// === impl Capture ===

impl Capture {
    /// Opens a directory or a file; a directory is gone through at once. Symbolic links below a
    /// directory are not followed.
    ///
    /// # Errors
    /// When it cannot be opened or is neither.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let cannot = |error| OpenError::Open(path.to_owned(), error);
        let kind = std::fs::metadata(path).map_err(cannot)?.file_type();
        if kind.is_dir() {
            return Directory::open(path).map(Box::new).map(Self::Directory).map_err(cannot);
        }
        let file = safe_file::open_following(path).map_err(cannot)?;
        let Some(file) = file else { return Err(OpenError::OtherKind(path.to_owned())) };
        Ok(Self::File(Sequential::new(file)))
    }

    /// What is next; none at the end of what is there now.
    ///
    /// # Errors
    /// When reading cannot go on.
    pub fn next_item(&mut self) -> Result<Option<Item>, CaptureReadError> {
        match self {
            Self::Directory(directory) => Ok(directory.next_item()),
            Self::File(file) => file.next_item(),
        }
    }

    /// What is left at the end once nothing will be added, such as half an event; to be called
    /// until there is none.
    pub fn next_left(&mut self) -> Option<Item> {
        match self {
            Self::Directory(_) => None,
            Self::File(file) => file.next_left(),
        }
    }
}

// === impl CapturedEvent ===

impl CapturedEvent {
    /// Brings data from its file here.
    ///
    /// # Errors
    /// When the file cannot be read, is longer than [`MAX_DATA_BYTES`], or is not as long as the
    /// event says.
    pub fn load(&mut self) -> io::Result<()> {
        let Payload::File(path) = &self.payload else { return Ok(()) };
        let file = safe_file::open(path)?.ok_or_else(|| io::Error::other("it is no file"))?;
        if self.bytes > MAX_DATA_BYTES {
            let most = MAX_DATA_BYTES >> 20;
            return Err(io::Error::other(format!("it has more than the {most} MiB that are read")));
        }
        let mut data = Vec::new();
        // One more shows that there is more.
        file.take(self.bytes + 1).read_to_end(&mut data)?;
        if u64::try_from(data.len()).ok() != Some(self.bytes) {
            return Err(io::Error::other("its length has changed"));
        }
        self.payload = Payload::Held(data);
        Ok(())
    }

    /// Its data, where that is here.
    #[must_use]
    pub fn data(&self) -> Option<&[u8]> {
        match &self.payload {
            Payload::Held(data) => Some(data),
            Payload::File(_) | Payload::LeftOut(_) => None,
        }
    }

    /// The tensor, where its data is here.
    ///
    /// # Errors
    /// When it is none, is not here, or its parts do not fit together.
    pub fn tensor(&self) -> Result<Tensor<'_>, NoTensor> {
        if self.kind != EventKind::Tensor {
            return Err(NoTensor::OtherKind);
        }
        let data = self.data().ok_or(NoTensor::LeftOut)?;
        Ok(Tensor::new(&self.dtype, &self.shape, data)?)
    }

    /// What the elements have in common: counted, or as the capture reports.
    #[must_use]
    pub fn statistics(&self) -> Option<Statistics> {
        match &self.payload {
            Payload::LeftOut(reported) => *reported,
            _ => self.tensor().ok().map(|tensor| tensor.statistics()),
        }
    }
}
