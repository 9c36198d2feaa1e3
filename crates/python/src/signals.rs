//! Ctrl-C while a call waits: Python's handlers run, and what they raise ends the wait.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::ErrorClass;

/// How long a signal waits at most for its handler.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

/// Calls `step`, which waits for no longer than it is given, until it has a result. Other Python
/// threads run meanwhile.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    mut step: impl FnMut(Duration) -> Option<T> + Send,
) -> PyResult<T> {
    loop {
        if let Some(result) = py.detach(|| step(PERIOD)) {
            return Ok(result);
        }
        py.check_signals()?;
    }
}

/// The result of `work`, which runs on a thread of its own: it cannot be stopped, so that it is
/// left alone when a handler raises something. It must have a limit.
pub(crate) fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (done, result) = sync_channel(1);
    let thread = thread::Builder::new().name(String::from("telltale wait"));
    let started = thread.spawn(move || {
        // Without a receiver, the call has ended.
        let _ = done.send(work());
    });
    let started = started.map_err(|error| {
        let message = "cannot start a thread to wait on; end other threads of this program";
        ErrorClass::Collect.of(py, message, Some(&error.to_string()))
    })?;
    let received = wait(py, move |period| match result.recv_timeout(period) {
        Err(RecvTimeoutError::Timeout) => None,
        received => Some(received),
    })?;
    match received {
        Ok(result) => Ok(result),
        Err(_) => match py.detach(|| started.join()) {
            Err(panic) => resume_unwind(panic),
            Ok(()) => unreachable!("a thread that ends has sent its result"),
        },
    }
}
