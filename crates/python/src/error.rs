//! Errors as Python has them: one family, whose classes are in `python/telltale/errors.py`.

use std::error::Error;

use pyo3::prelude::*;
use pyo3::types::PyString;

/// A class of `python/telltale/errors.py`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ErrorClass {
    /// A text that is no query, or names no field or device.
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
        let mut causes = Vec::new();
        let mut next = error.source();
        while let Some(cause) = next {
            causes.push(cause.to_string());
            next = cause.source();
        }
        let cause = (!causes.is_empty()).then(|| causes.join(": "));
        self.of(py, &error.to_string(), cause.as_deref())
    }

    /// The exception with this message, whose part after the last semicolon says what to do.
    pub(crate) fn of(self, py: Python<'_>, message: &str, cause: Option<&str>) -> PyErr {
        let made = py
            .import("telltale.errors")
            .and_then(|module| module.getattr(self.name()))
            .and_then(|class| class.call1((PyString::new(py, message), cause)));
        // What Python itself has to say then, such as that memory is out, comes first.
        made.map_or_else(|error| error, PyErr::from_value)
    }
}
