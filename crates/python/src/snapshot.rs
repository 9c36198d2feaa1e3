//! A host at one moment.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyType};
use telltale_query::Query;
use telltale_schema::snapshot;

use crate::columns::{self, RowKind, RowPlace};
use crate::error::ErrorClass;
use crate::row::Table;
use crate::{display, value};

/// A host at one moment, which does not change. Printing it gives what `telltale smi` prints.
#[pyclass(frozen, module = "telltale")]
pub(crate) struct Snapshot {
    pub(crate) inner: Arc<snapshot::Snapshot>,
}

impl Snapshot {
    pub(crate) fn new(inner: snapshot::Snapshot) -> Self {
        Self { inner: Arc::new(inner) }
    }
}

#[pymethods]
impl Snapshot {
    /// When collecting began.
    #[getter]
    fn taken_at<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDateTime>> {
        value::moment(py, self.inner.taken_at)
    }

    /// How many seconds collecting took.
    #[getter]
    fn collected_in(&self) -> f64 {
        self.inner.collected_in_ns as f64 / 1e9
    }

    /// The devices, in a stable order.
    #[getter]
    pub(crate) fn devices(&self) -> Table {
        let rows = (0..self.inner.devices.len()).map(RowPlace::Device).collect();
        Table::of(&self.inner, RowKind::Devices, rows)
    }

    /// The processes that have a device open or have recorded memory.
    #[getter]
    pub(crate) fn processes(&self) -> Table {
        let rows = (0..self.inner.processes.len()).map(RowPlace::Process).collect();
        Table::of(&self.inner, RowKind::Processes, rows)
    }

    /// The parts of the devices' memory, by kind and holder.
    #[getter]
    pub(crate) fn memory(&self) -> Table {
        let rows = columns::parts(&self.inner).map(RowPlace::Memory).collect();
        Table::of(&self.inner, RowKind::Memory, rows)
    }

    /// What is wrong with parts of the host and with what reports of it, as in JSON.
    #[getter]
    fn faults(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        columns::json(py, &self.inner.faults)
    }

    /// What was asked, how long each took, and what went wrong, as in JSON.
    #[getter]
    fn sources(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        columns::json(py, &self.inner.sources)
    }

    /// The same with only the rows that a query of `docs/query.md` wants.
    fn filter(&self, py: Python<'_>, query: &str) -> PyResult<Self> {
        let query = Query::parse(query).map_err(|error| ErrorClass::Query.because(py, &error))?;
        Ok(Self::new(py.detach(|| query.select(&self.inner))))
    }

    /// Everything, as `telltale smi --json` prints it.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        columns::json(py, &*self.inner)
    }

    /// The same as a text of JSON, in one line.
    fn to_json(&self) -> String {
        serde_json::to_string(&*self.inner).expect("a snapshot has only string keys")
    }

    /// The snapshot in such a text.
    #[classmethod]
    fn from_json(_class: &Bound<'_, PyType>, py: Python<'_>, text: &str) -> PyResult<Self> {
        let inner = py.detach(|| telltale_sources::snapshot_in(text.as_bytes()));
        let inner = inner.map_err(|error| ErrorClass::File.because(py, &error))?;
        Ok(Self::new(inner))
    }

    /// For `pickle` and `copy`: the JSON, and what makes a snapshot of it.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let from_json = py.get_type::<Self>().getattr("from_json")?;
        Ok((from_json, (self.to_json(),)))
    }

    fn __repr__(&self) -> String {
        telltale_smi::overview(&self.inner, &display::STYLE).trim_end().to_owned()
    }

    pub(crate) fn _repr_html_(&self) -> String {
        let tables = [self.devices(), self.processes()];
        let tables = tables.iter().filter(|table| !table.rows.is_empty());
        tables.map(|table| display::html(&self.inner, table.kind, &table.rows)).collect()
    }
}
