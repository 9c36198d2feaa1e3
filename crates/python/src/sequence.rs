//! What Python's sequences have in common: an index counts from either end, and a slice chooses
//! several.

use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

/// What stood in brackets.
pub(crate) enum Chosen {
    One(usize),
    Several(Vec<usize>),
}

/// The places of a sequence of `length` items that an index or a slice chooses. An item is called
/// `what`.
pub(crate) fn chosen(index: &Bound<'_, PyAny>, length: usize, what: &str) -> PyResult<Chosen> {
    let signed = isize::try_from(length).unwrap_or(isize::MAX);
    if let Ok(slice) = index.cast::<PySlice>() {
        let part = slice.indices(signed)?;
        let places = (0..part.slicelength).scan(part.start, |at, _| {
            let here = *at;
            *at = at.saturating_add(part.step);
            usize::try_from(here).ok()
        });
        return Ok(Chosen::Several(places.collect()));
    }
    let number = match index.extract::<isize>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(index.py()) => isize::MAX,
        other => other?,
    };
    let at = if number < 0 { number.saturating_add(signed) } else { number };
    match usize::try_from(at) {
        Ok(at) if at < length => Ok(Chosen::One(at)),
        _ => Err(PyIndexError::new_err(format!("{what} {index} of {length}"))),
    }
}

/// Calls a method of `collections.abc.Sequence` for an object that is one, such as `index`.
pub(crate) fn inherited<'py>(
    sequence: &Bound<'py, PyAny>,
    method: &str,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = sequence.py();
    let class = py.import("collections.abc")?.getattr("Sequence")?;
    let mut all = vec![sequence.clone()];
    all.extend(arguments.iter());
    class.call_method1(method, PyTuple::new(py, all)?)
}
