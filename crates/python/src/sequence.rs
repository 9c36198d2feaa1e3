//! What Python's sequences have in common: an index counts from either end, and a slice chooses
//! several.

use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice, PyTuple};

/// What stood in brackets.
pub(crate) enum Chosen {
    One(usize),
    Several(Stride),
}

/// Places from one on, each so far behind the one before, or before it.
pub(crate) struct Stride {
    pub(crate) start: isize,
    pub(crate) step: isize,
    pub(crate) count: usize,
}

impl Stride {
    /// Each of them.
    pub(crate) fn places(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |number| {
            self.start.wrapping_add(self.step.wrapping_mul(number.cast_signed())).cast_unsigned()
        })
    }
}

/// The places of a sequence of `length` items that an index or a slice chooses. An item is called `what`.
pub(crate) fn chosen(index: &Bound<'_, PyAny>, length: usize, what: &str) -> PyResult<Chosen> {
    let signed = isize::try_from(length).unwrap_or(isize::MAX);
    if let Ok(slice) = index.cast::<PySlice>() {
        let part = slice.indices(signed)?;
        let (start, step, count) = (part.start, part.step, part.slicelength);
        return Ok(Chosen::Several(Stride { start, step, count }));
    }
    let index = whole_number(index)?;
    let number = match index.extract::<isize>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(index.py()) => isize::MAX,
        other => other?,
    };
    let at = if number < 0 { number.saturating_add(signed) } else { number };
    match usize::try_from(at) {
        Ok(at) if at < length => Ok(Chosen::One(at)),
        _ => Err(PyIndexError::new_err(format!("{what} {index} is not among {length}"))),
    }
}

/// The integer that an index stands for, as `operator.index` gives it. What that raises is raised as it is.
fn whole_number<'py>(index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if index.is_instance_of::<PyInt>() {
        return Ok(index.clone());
    }
    index.py().import("operator")?.call_method1("index", (index,))
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
