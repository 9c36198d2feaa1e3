//! Errors as Python has them: one family, whose classes are in `python/telltale/errors.py`.

use std::error::Error;
use std::io;

use pyo3::prelude::*;
use telltale_schema::text::with_causes;

/// A class of `python/telltale/errors.py`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ErrorClass {
    /// An argument that cannot be used, or a text that is no query.
    Query,
    /// A place that cannot be read: a root, a directory, a device.
    Collect,
    /// A service that does not answer, refuses, or lies.
    Service,
    /// A recording or capture that is damaged or something else.
    File,
    /// A history that is not kept, or does not go as far.
    History,
    /// Fewer devices than a job wants.
    Selection,
    /// An operation on an emulated chip that was not done.
    Operation,
    /// A package that is not installed.
    Package,
    /// A debug stream that cannot be connected to or read.
    Stream,
}

/// Options of the program `telltale` that errors of its crates name, and what Python has for them.
/// Of two that begin alike, the longer one is first.
const OPTIONS: [(&str, &str); 13] = [
    ("--hosts a,b", "host=[\"a\", \"b\"]"),
    ("--hosts", "host="),
    ("--root", "root="),
    ("--runtime-dir", "runtime_dir="),
    ("--state-dir", "state_dir="),
    ("--token-file", "token="),
    ("--authority", "authority="),
    ("--certificate", "certificate="),
    ("--key", "key="),
    ("--timeout", "timeout="),
    ("--min-free", "min_free="),
    ("--max-processes", "max_processes="),
    ("--filter", "filter="),
];

impl ErrorClass {
    const fn name(self) -> &'static str {
        match self {
            Self::Query => "QueryError",
            Self::Collect => "CollectError",
            Self::Service => "ServiceError",
            Self::File => "FileError",
            Self::History => "HistoryError",
            Self::Selection => "SelectionError",
            Self::Operation => "OperationError",
            Self::Package => "MissingPackageError",
            Self::Stream => "StreamError",
        }
    }

    /// The exception for an error and its causes.
    pub(crate) fn because(self, py: Python<'_>, error: &dyn Error) -> PyErr {
        let message = error.to_string();
        let whole = with_causes(error);
        let causes = whole.strip_prefix(&message).and_then(|rest| rest.strip_prefix(": "));
        self.made(py, &message, causes, system_number(error.source()))
    }

    /// The exception with this message, whose part after the last semicolon says what to do.
    pub(crate) fn of(self, py: Python<'_>, message: &str, cause: Option<&str>) -> PyErr {
        self.made(py, message, cause, None)
    }

    fn made(
        self,
        py: Python<'_>,
        message: &str,
        cause: Option<&str>,
        number: Option<i32>,
    ) -> PyErr {
        let arguments = (in_python(message), cause.map(in_python), number);
        let made = py
            .import("telltale.errors")
            .and_then(|module| module.getattr(self.name()))
            .and_then(|class| class.call1(arguments));
        // What Python itself has to say then, such as that memory is out, comes first.
        made.map_or_else(|error| error, PyErr::from_value)
    }
}

/// The system's number of the first of these causes that is the system's.
fn system_number(mut next: Option<&(dyn Error + 'static)>) -> Option<i32> {
    while let Some(error) = next {
        let of_system = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        let number = of_system.or_else(|| {
            error.downcast_ref::<rustix::io::Errno>().map(|number| number.raw_os_error())
        });
        if number.is_some() {
            return number;
        }
        next = error.source();
    }
    None
}

/// A text with arguments of Python in place of the options of `telltale`, but for the commands
/// between backticks.
pub(crate) fn in_python(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(number, part)| match number % 2 {
        0 => with_arguments(part),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

fn with_arguments(text: &str) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, option) = rest.split_at(at);
        done.push_str(before);
        let is_it = |(name, _): &&(&str, &str)| {
            let goes_on = |next: char| next.is_ascii_alphanumeric() || next == '-';
            option.strip_prefix(name).is_some_and(|after| !after.starts_with(goes_on))
        };
        let (length, argument) = match OPTIONS.iter().find(is_it) {
            Some((name, argument)) => (name.len(), *argument),
            None => (2, "--"),
        };
        done.push_str(argument);
        rest = &option[length..];
    }
    done + rest
}
