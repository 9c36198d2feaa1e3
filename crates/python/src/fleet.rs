//! Several hosts at one moment.

use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDict, PyList};
use telltale_schema::fleet;
use telltale_smi::Style;

use crate::package::package;
use crate::snapshot::Snapshot;
use crate::{columns, display, value};

/// Several hosts at one moment: a sequence of hosts, also by name.
#[pyclass(frozen, sequence, module = "telltale")]
pub(crate) struct Fleet {
    pub(crate) inner: Arc<fleet::Fleet>,
}

/// A host and what it said.
#[pyclass(frozen, module = "telltale")]
pub(crate) struct Host {
    inner: fleet::Host,
}

#[pymethods]
impl Fleet {
    /// The hosts, in the order in which they were named.
    #[getter]
    fn hosts(&self) -> Vec<Host> {
        self.inner.hosts.iter().map(|host| Host { inner: host.clone() }).collect()
    }

    fn __len__(&self) -> usize {
        self.inner.hosts.len()
    }

    /// The host with this name.
    fn __getitem__(&self, name: &str) -> PyResult<Host> {
        let found = self.inner.hosts.iter().find(|host| host.name == name);
        let host = found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        Ok(Host { inner: host.clone() })
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyIterator>> {
        pyo3::types::PyList::new(py, self.hosts())?.try_iter()
    }

    /// Everything, as `telltale smi --hosts … --json` prints it.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        columns::json(py, &*self.inner)
    }

    /// The rows of all hosts by column, of which `host` is the first. `rows` are devices, processes or memory.
    #[pyo3(signature = (rows="devices"))]
    fn columns<'py>(&self, py: Python<'py>, rows: &str) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        all.set_item("host", PyList::empty(py))?;
        for host in self.hosts() {
            let Some(snapshot) = host.snapshot() else { continue };
            let table = match rows {
                "devices" => snapshot.devices(),
                "processes" => snapshot.processes(),
                "memory" => snapshot.memory(),
                _ => {
                    let message = format!("{rows:?} is none of devices, processes and memory");
                    return Err(PyValueError::new_err(message));
                }
            };
            let own = table.to_dict(py)?;
            own.set_item("host", vec![host.name(); table.rows.len()])?;
            for (name, values) in own {
                match all.get_item(&name)? {
                    Some(before) => drop(before.call_method1("extend", (values,))?),
                    None => all.set_item(name, values)?,
                }
            }
        }
        Ok(all)
    }

    /// An Arrow table of these columns. Needs pyarrow.
    #[pyo3(signature = (rows="devices"))]
    fn to_arrow<'py>(&self, py: Python<'py>, rows: &str) -> PyResult<Bound<'py, PyAny>> {
        package(py, "pyarrow")?.call_method1("table", (self.columns(py, rows)?,))
    }

    /// A data frame of these columns. Needs pandas.
    #[pyo3(signature = (rows="devices"))]
    fn to_pandas<'py>(&self, py: Python<'py>, rows: &str) -> PyResult<Bound<'py, PyAny>> {
        package(py, "pandas")?.call_method1("DataFrame", (self.columns(py, rows)?,))
    }

    fn _repr_html_(&self) -> String {
        let host = |host: Host| {
            let name = display::escaped(host.name());
            let said = host.snapshot().map(|snapshot| snapshot._repr_html_());
            let reason = || host.reason().map(display::escaped).unwrap_or_default();
            format!("<h4>{name}</h4>{}", said.unwrap_or_else(|| format!("<p>{}</p>", reason())))
        };
        self.hosts().into_iter().map(host).collect()
    }

    fn __repr__(&self) -> String {
        let style = Style { width: None, color: false, unicode: true };
        telltale_smi::fleet(&self.inner, &style).trim_end().to_owned()
    }
}

#[pymethods]
impl Host {
    /// As it was named.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// What it said last; `None` where it has said nothing.
    #[getter]
    fn snapshot(&self) -> Option<Snapshot> {
        self.inner.snapshot.as_ref().map(|inner| Snapshot { inner: Arc::clone(inner) })
    }

    /// When it answered last.
    #[getter]
    fn answered_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDateTime>>> {
        self.inner.answered_at.map(|at| value::moment(py, at)).transpose()
    }

    /// Why it does not answer; `None` where it does.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.inner.reason.as_deref()
    }

    fn __repr__(&self) -> String {
        match &self.inner.reason {
            Some(reason) => format!("<Host {}: {reason}>", self.inner.name),
            None => format!("<Host {}>", self.inner.name),
        }
    }
}
