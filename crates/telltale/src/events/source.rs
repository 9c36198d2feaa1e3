//! Where events are read from: a path, or standard input.

use std::borrow::Cow;
use std::io::{self, Read, Stdin};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use telltale_debug_stream::capture::{Capture, CaptureReadError, Item, OpenError, Sequential};

use crate::exit::Failure;
use crate::interrupt::Interrupt;

/// The path that stands for standard input.
pub(super) const STANDARD_INPUT: &str = "-";

/// A capture that is read to its end.
pub(super) struct Source<'interrupt> {
    path: PathBuf,
    input: Input<'interrupt>,
}

enum Input<'interrupt> {
    Capture(Capture),
    StandardInput(Sequential<InputWait<'interrupt>>),
}

/// Standard input, waited for together with Ctrl-C where that does not end the process by itself.
struct InputWait<'interrupt> {
    input: Stdin,
    interrupt: Option<&'interrupt Interrupt>,
}

impl<'interrupt> Source<'interrupt> {
    pub(super) fn open(
        path: &Path,
        interrupt: Option<&'interrupt Interrupt>,
    ) -> Result<Self, Failure> {
        let input = if path.as_os_str() == STANDARD_INPUT {
            let waiting = InputWait { input: io::stdin(), interrupt };
            Input::StandardInput(Sequential::new(waiting))
        } else {
            Input::Capture(Capture::open(path).map_err(cannot_open)?)
        };
        Ok(Self { path: path.to_owned(), input })
    }

    pub(super) fn next_item(&mut self) -> Result<Option<Item>, Failure> {
        match &mut self.input {
            Input::Capture(capture) => capture.next_item(),
            Input::StandardInput(input) => input.next_item(),
        }
        .map_err(|error| cannot_read(&self.path, &error))
    }

    /// What is left at the end, such as half an event.
    pub(super) fn next_left(&mut self) -> Option<Item> {
        match &mut self.input {
            Input::Capture(capture) => capture.next_left(),
            Input::StandardInput(input) => input.next_left(),
        }
    }
}

impl Read for InputWait<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A closed input is readable too, and ends it.
        let input = self.input.as_fd();
        if self.interrupt.is_some_and(|interrupt| interrupt.wait_for(input, None)) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.input.read(buffer)
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
    Failure::Message(text + remedy)
}

/// Why reading cannot go on.
pub(super) fn cannot_read(path: &Path, error: &CaptureReadError) -> Failure {
    Failure::Message(format!("{}: {}", name(path), telltale_schema::text::with_causes(error)))
}

/// What a person calls it.
pub(super) fn name(path: &Path) -> Cow<'_, str> {
    if path.as_os_str() == STANDARD_INPUT {
        Cow::Borrowed("standard input")
    } else {
        path.to_string_lossy()
    }
}
