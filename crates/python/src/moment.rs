//! Moments as Python's users write them.

use pyo3::prelude::*;
use telltale_schema::clock::Timestamp;
use telltale_schema::moment::Moment;

use crate::error::ErrorClass;
use crate::value::span_seconds;

/// A past moment, as text (`3m ago`, `2026-11-21T10:00:00Z`), a `datetime`, or a `timedelta` before
/// now.
#[derive(FromPyObject)]
pub(crate) enum PastMoment<'py> {
    Text(String),
    Object(Bound<'py, PyAny>),
}

/// When that is, before it is known when now is.
pub(crate) fn moment(py: Python<'_>, at: &PastMoment<'_>) -> PyResult<Moment> {
    match at {
        PastMoment::Text(text) => text
            .parse()
            .map_err(|refused| ErrorClass::Query.of(py, &format!("{text:?} is {refused}"), None)),
        PastMoment::Object(object) => {
            if let Some(seconds) = span_seconds(object)? {
                return Ok(Moment::Ago(nanoseconds(seconds.abs())));
            }
            let seconds = object.call_method0("timestamp").and_then(|it| it.extract());
            let seconds: f64 = seconds.map_err(|error: PyErr| {
                let message = format!(
                    "{object} is no moment; give text such as `3m ago`, a datetime or a timedelta"
                );
                ErrorClass::Query.of(py, &message, Some(&error.to_string()))
            })?;
            Ok(Moment::At(Timestamp(nanoseconds(seconds))))
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}
