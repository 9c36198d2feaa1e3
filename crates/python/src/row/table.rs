//! A sequence of rows of one kind, which prints as a table and becomes columns.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyTuple};
use telltale_query::{Field, Owner};
use telltale_schema::snapshot::Snapshot;

use super::{attribute, object};
use crate::columns::{PartColumn, RowKind, RowPlace};
use crate::frame::{ColumnType, Columns};
use crate::sequence::{self, Chosen};
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

    /// The values by column, in the order of the columns.
    pub(crate) fn columns<'py>(&self, py: Python<'py>) -> PyResult<Columns<'py>> {
        let mut columns = Columns::new();
        let list = |of: &dyn Fn(&RowPlace) -> PyResult<Py<PyAny>>| {
            let values: PyResult<Vec<_>> = self.rows.iter().map(of).collect();
            PyList::new(py, values?)
        };
        let snapshot = &self.snapshot;
        if self.kind == RowKind::Memory {
            for column in PartColumn::ALL {
                let values = list(&|place| match place {
                    RowPlace::Memory(part) => column.value(py, snapshot, part),
                    _ => Ok(py.None()),
                });
                columns.push(column.name(), column.holds(), values?);
            }
            return Ok(columns);
        }
        for field in self.fields() {
            let values = list(&|place| match *place {
                RowPlace::Device(at) => {
                    value::object(py, field, field.read(None, None, Some(&snapshot.devices[at])))
                }
                RowPlace::Process(at) => {
                    value::object(py, field, field.total(&snapshot.processes[at]))
                }
                RowPlace::Memory(_) => Ok(py.None()),
            });
            columns.push(attribute(field), ColumnType::of(field), values?);
        }
        Ok(columns)
    }

    /// The fields of its rows.
    fn fields(&self) -> impl Iterator<Item = &'static Field> {
        let is_of_devices = self.kind == RowKind::Devices;
        let is_ours = move |field: &&Field| (field.owner == Owner::Device) == is_of_devices;
        Field::all().iter().filter(is_ours)
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match sequence::chosen(index, self.rows.len(), "row")? {
            Chosen::One(at) => self.object(py, at),
            Chosen::Several(part) => {
                let rows = part.places().map(|at| self.rows[at]).collect();
                Ok(Py::new(py, Self::of(&self.snapshot, self.kind, rows))?.into_any())
            }
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let rows = (0..self.rows.len()).map(|at| self.object(py, at));
        PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?.try_iter()
    }

    /// The place of the first row that is this one.
    #[pyo3(signature = (*arguments))]
    fn index<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        sequence::inherited(slf.as_any(), "index", arguments)
    }

    /// How many rows are this one.
    #[pyo3(signature = (*arguments))]
    fn count<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        sequence::inherited(slf.as_any(), "count", arguments)
    }

    /// The values by column, in the order of the columns: lists of one length, with `None` where a
    /// value is absent.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.columns(py)?.to_dict(py)
    }

    /// An Arrow table of the columns. Needs pyarrow.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.columns(py)?.to_arrow(py)
    }

    /// A data frame of the columns. Needs pandas.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.columns(py)?.to_pandas(py)
    }

    fn __repr__(&self) -> String {
        display::text(&self.snapshot, self.kind, &self.rows)
    }

    fn _repr_html_(&self) -> String {
        display::html(&self.snapshot, self.kind, &self.rows)
    }
}
