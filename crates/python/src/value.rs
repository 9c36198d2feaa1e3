//! Values of fields as Python objects.

use std::time::Duration;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDateTime;
use telltale_query::{Field, Value};
use telltale_schema::clock::Timestamp;

use crate::error::ErrorClass;

/// A value of `field`; `None` where it is absent.
pub(crate) fn object(py: Python<'_>, field: &Field, value: Value<'_>) -> PyResult<Py<PyAny>> {
    match value {
        Value::Absent => Ok(py.None()),
        Value::Text(text) => text.into_py_any(py),
        Value::Number(number) if field.is_whole() => whole(number).into_py_any(py),
        Value::Number(number) => number.into_py_any(py),
    }
}

/// A number that the table of fields declares to be a whole one, and to be no less than 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn whole(number: f64) -> u64 {
    number as u64
}

/// A moment as a `datetime` in UTC.
pub(crate) fn moment(py: Python<'_>, at: Timestamp) -> PyResult<Bound<'_, PyDateTime>> {
    let utc = pyo3::types::PyTzInfo::utc(py)?;
    PyDateTime::from_timestamp(py, unix_seconds(at), Some(&*utc))
}

/// A span that Python has in seconds.
pub(crate) fn seconds(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| {
        let message = format!("{seconds} is no number of seconds");
        ErrorClass::Query.of(py, &message, Some(&error.to_string()))
    })
}

/// The same in milliseconds.
pub(crate) fn milliseconds(py: Python<'_>, span: f64) -> PyResult<u64> {
    let span = seconds(py, span)?;
    Ok(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

/// Seconds since 1970.
fn unix_seconds(at: Timestamp) -> f64 {
    at.0 as f64 / 1e9
}
