//! Where events are read from: a path, or standard input.

use std::io::{self, Stdin};
use std::path::Path;

use telltale_debug_stream::capture::{Capture, Item, OpenError, ReadError, Sequential};

use crate::exit::Failure;

/// The path that stands for standard input.
pub(super) const STANDARD_INPUT: &str = "-";

/// A capture that is read to its end.
pub(super) enum Source {
    Capture(Capture),
    StandardInput(Sequential<Stdin>),
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == STANDARD_INPUT {
            return Ok(Self::StandardInput(Sequential::new(io::stdin())));
        }
        Ok(Self::Capture(Capture::open(path).map_err(cannot_open)?))
    }

    pub(super) fn next_item(&mut self) -> Result<Option<Item>, Failure> {
        match self {
            Self::Capture(capture) => capture.next_item(),
            Self::StandardInput(input) => input.next_item(),
        }
        .map_err(cannot_read)
    }

    /// What is left at the end, such as half an event.
    pub(super) fn next_left(&mut self) -> Option<Item> {
        match self {
            Self::Capture(capture) => capture.next_left(),
            Self::StandardInput(input) => input.next_left(),
        }
    }
}

/// Why a path is no capture, and what to do.
pub(super) fn cannot_open(error: OpenError) -> Failure {
    let text = telltale_schema::text::with_causes(&error);
    let remedy = match &error {
        OpenError::Open(_, source) if source.kind() == io::ErrorKind::NotFound => {
            "; give what NEURON_RT_DEBUG_OUTPUT_DIR was set to, or wait for it with --follow"
        }
        OpenError::Open(..) => "; run this as a user who may read it",
        OpenError::OtherKind(_) => "; give what is read as - on standard input",
    };
    Failure::Told(text + remedy)
}

/// Why reading cannot go on.
pub(super) fn cannot_read(error: ReadError) -> Failure {
    Failure::because(&error)
}
