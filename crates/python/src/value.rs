//! Values of fields as Python objects.

use std::time::Duration;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDateTime;
use telltale_query::{Field, Value};
use telltale_schema::clock::Timestamp;

use crate::error::ErrorClass;

/// The largest whole number: columns have them in 64 bits with a sign.
const MAX_WHOLE: u64 = i64::MAX.cast_unsigned();

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
pub(crate) fn whole(number: f64) -> u64 {
    count(number as u64)
}

/// A count that a column can have. What is above comes from a source that lies.
pub(crate) fn count(number: u64) -> u64 {
    number.min(MAX_WHOLE)
}

/// A moment as a `datetime` in UTC.
pub(crate) fn moment(py: Python<'_>, at: Timestamp) -> PyResult<Bound<'_, PyDateTime>> {
    let utc = pyo3::types::PyTzInfo::utc(py)?;
    PyDateTime::from_timestamp(py, unix_seconds(at), Some(&*utc))
}

/// A span that Python has in seconds, or as a `timedelta`.
#[derive(FromPyObject)]
pub(crate) enum Span<'py> {
    Seconds(f64),
    Object(Bound<'py, PyAny>),
}

impl Span<'_> {
    /// As a whole number of milliseconds.
    pub(crate) fn milliseconds(&self, py: Python<'_>) -> PyResult<u64> {
        let number = match self {
            Self::Seconds(number) => *number,
            Self::Object(object) => span_seconds(object)?.ok_or_else(|| {
                let message = format!("{object} is no span; give seconds or a timedelta");
                ErrorClass::Query.of(py, &message, None)
            })?,
        };
        let span = seconds(py, number)?;
        Ok(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }
}

/// The seconds of a `timedelta`; none for another object.
pub(crate) fn span_seconds(object: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let class = object.py().import("datetime")?.getattr("timedelta")?;
    if !object.is_instance(&class)? {
        return Ok(None);
    }
    object.call_method0("total_seconds")?.extract().map(Some)
}

/// A span that Python has in seconds.
pub(crate) fn seconds(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| {
        let message = format!("{seconds} is no number of seconds; give 0 or more");
        ErrorClass::Query.of(py, &message, Some(&error.to_string()))
    })
}

/// Seconds since 1970.
fn unix_seconds(at: Timestamp) -> f64 {
    at.0 as f64 / 1e9
}
