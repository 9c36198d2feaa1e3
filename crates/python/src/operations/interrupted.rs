//! Ctrl-C while a call waits: Python's handlers run, and what they raise is raised by the call.

use std::cell::RefCell;
use std::error::Error;

use pyo3::prelude::*;

use crate::error::ErrorClass;

thread_local! {
    /// What a handler of a signal raised while this thread waited.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Has what waits below this module call Python's handlers of signals.
pub(super) fn watch_signals() {
    telltale_emulator::interrupt_waits(is_pending);
}

/// Whether a handler raised something, for the call on this thread to raise.
pub(super) fn is_pending() -> bool {
    let raised = |py: Python<'_>| match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            RAISED.replace(Some(error));
            true
        }
    };
    // Without an interpreter, nothing handles them.
    Python::try_attach(raised).unwrap_or(false)
}

/// What a handler raised on this thread since the last time.
pub(super) fn taken() -> PyResult<()> {
    RAISED.take().map_or(Ok(()), Err)
}

/// The result of something that waited, without the interpreter.
pub(super) fn waited<T, E: Error + Send>(
    py: Python<'_>,
    wait: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T>
where
    T: Send,
{
    let result = py.detach(wait);
    taken()?;
    result.map_err(|error| ErrorClass::Operation.because(py, &error))
}
