//! Packages that are used where they are installed.

use pyo3::prelude::*;

use crate::error::ErrorClass;

/// A package that is not ours.
pub(crate) fn package<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(name).map_err(|error| {
        let message = format!("{name} cannot be imported; `pip install {name}`");
        ErrorClass::Package.of(py, &message, Some(&error.to_string()))
    })
}
