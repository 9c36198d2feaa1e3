//! A sequence of rows of one kind, which prints as a table and becomes columns.

use std::sync::Arc;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PySlice};
use telltale_query::Field;
use telltale_schema::snapshot::Snapshot;

use super::{attribute, object};
use crate::columns::{PartColumn, RowKind, RowPlace};
use crate::package::package;
use crate::{display, value};

/// Rows of one kind: a sequence that prints as a table, in a terminal and in a notebook.
#[pyclass(frozen, sequence, module = "telltale")]
pub(crate) struct Table {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) kind: RowKind,
    pub(crate) rows: Vec<RowPlace>,
}

impl Table {
    pub(crate) fn of(snapshot: &Arc<Snapshot>, kind: RowKind, rows: Vec<RowPlace>) -> Self {
        Self { snapshot: Arc::clone(snapshot), kind, rows }
    }

    fn object(&self, py: Python<'_>, at: usize) -> PyResult<Py<PyAny>> {
        object(py, &self.snapshot, &self.rows[at])
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let length = isize::try_from(self.rows.len()).unwrap_or(isize::MAX);
            let chosen = slice.indices(length)?;
            let places = (0..chosen.slicelength).scan(chosen.start, |at, _| {
                let here = *at;
                *at += chosen.step;
                usize::try_from(here).ok()
            });
            let rows = places.map(|at| self.rows[at]).collect();
            return Ok(Py::new(py, Self::of(&self.snapshot, self.kind, rows))?.into_any());
        }
        let index: isize = index.extract()?;
        let length = isize::try_from(self.rows.len()).unwrap_or(isize::MAX);
        let at = if index < 0 { index + length } else { index };
        match usize::try_from(at) {
            Ok(at) if at < self.rows.len() => self.object(py, at),
            _ => Err(PyIndexError::new_err(format!("row {index} of {length}"))),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let rows = (0..self.rows.len()).map(|at| self.object(py, at));
        PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?.try_iter()
    }

    /// The values by column, in the order of the columns: lists of one length, with `None` where a value is absent.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let add = |name: &str, of: &dyn Fn(&RowPlace) -> PyResult<Py<PyAny>>| {
            let values: PyResult<Vec<_>> = self.rows.iter().map(of).collect();
            columns.set_item(name, values?)
        };
        let snapshot = &self.snapshot;
        if self.kind == RowKind::Memory {
            for column in PartColumn::ALL {
                add(column.name(), &|place| match place {
                    RowPlace::Memory(part) => column.value(py, snapshot, part),
                    _ => Ok(py.None()),
                })?;
            }
            return Ok(columns);
        }
        for field in self.fields() {
            add(attribute(field), &|place| match *place {
                RowPlace::Device(at) => {
                    value::object(py, field, field.read(None, None, Some(&snapshot.devices[at])))
                }
                RowPlace::Process(at) => {
                    value::object(py, field, field.total(&snapshot.processes[at]))
                }
                RowPlace::Memory(_) => Ok(py.None()),
            })?;
        }
        Ok(columns)
    }

    /// An Arrow table of the columns. Needs pyarrow.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        package(py, "pyarrow")?.call_method1("table", (self.to_dict(py)?,))
    }

    /// A data frame of the columns. Needs pandas.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        package(py, "pandas")?.call_method1("DataFrame", (self.to_dict(py)?,))
    }

    fn __repr__(&self) -> String {
        display::text(&self.snapshot, self.kind, &self.rows)
    }

    fn _repr_html_(&self) -> String {
        display::html(&self.snapshot, self.kind, &self.rows)
    }
}

impl Table {
    /// The fields of its rows.
    fn fields(&self) -> impl Iterator<Item = &'static Field> {
        let is_of_devices = self.kind == RowKind::Devices;
        let is_ours =
            move |field: &&Field| (field.owner == telltale_query::Owner::Device) == is_of_devices;
        Field::all().iter().filter(is_ours)
    }
}
