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

/// Drops what may wait for its end, without the interpreter. What a handler raised meanwhile is reported as Python
/// reports what a finalizer raises, as a drop cannot raise it.
pub(super) fn drop_detached<T: Send>(value: T) {
    // Without an interpreter it is dropped with the closure.
    let _ = Python::try_attach(move |py| {
        // An exception may be on its way through the function whose variable this was.
        let under_way = PyErr::take(py);
        py.detach(move || drop(value));
        if let Err(raised) = taken() {
            raised.write_unraisable(py, None);
        }
        if let Some(under_way) = under_way {
            under_way.restore(py);
        }
    });
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
