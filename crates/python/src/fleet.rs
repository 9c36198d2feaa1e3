//! Several hosts at one moment.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDict, PyIterator, PyList};
use telltale_schema::fleet::{self, HostState};
use telltale_schema::snapshot::Snapshot as HostSnapshot;

use crate::columns::{self, RowKind};
use crate::error::{ErrorClass, in_python};
use crate::frame::{ColumnType, Columns};
use crate::row::Table;
use crate::sequence::{self, Chosen};
use crate::snapshot::Snapshot;
use crate::{display, value};

/// What rows have as `host`, the memory of the host that they use, beside the names of hosts.
const HOST_MEMORY: &str = "host_memory";

/// Several hosts at one moment, in the order in which they were named. Iterating gives the hosts;
/// brackets take the name of one, its place, or a slice; `in` takes a name, or a host.
#[pyclass(frozen, mapping, module = "telltale")]
pub(crate) struct Fleet {
    pub(crate) inner: Arc<fleet::Fleet>,
}

/// A host and what it said.
#[pyclass(frozen, eq, hash, module = "telltale")]
pub(crate) struct Host {
    fleet: Arc<fleet::Fleet>,
    at: usize,
}

impl Fleet {
    fn host(&self, at: usize) -> Host {
        Host { fleet: Arc::clone(&self.inner), at }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.inner.hosts.iter().position(|host| host.name == name)
    }

    /// The rows of all hosts by column, of which `host` is the first.
    fn rows<'py>(&self, py: Python<'py>, rows: &str) -> PyResult<Columns<'py>> {
        let (kind, of): (_, fn(&Snapshot) -> Table) = match rows {
            "devices" => (RowKind::Devices, Snapshot::devices),
            "processes" => (RowKind::Processes, Snapshot::processes),
            "memory" => (RowKind::Memory, Snapshot::memory),
            _ => {
                let message = format!("{rows:?} is none of devices, processes and memory");
                return Err(ErrorClass::Query.of(py, &message, None));
            }
        };
        let nothing = Arc::new(HostSnapshot::empty(self.inner.taken_at));
        let mut all = Table::of(&nothing, kind, Vec::new()).columns(py)?;
        let names = PyList::empty(py);
        for host in self.hosts() {
            let Some(snapshot) = host.snapshot() else { continue };
            let table = of(&snapshot);
            for _ in &table.rows {
                names.append(host.name())?;
            }
            all.extend(table.columns(py)?)?;
        }
        all.put_first("host", ColumnType::Text, names, HOST_MEMORY);
        Ok(all)
    }
}

#[pymethods]
impl Fleet {
    /// The hosts, in the order in which they were named.
    #[getter]
    fn hosts(&self) -> Vec<Host> {
        (0..self.inner.hosts.len()).map(|at| self.host(at)).collect()
    }

    fn __len__(&self) -> usize {
        self.inner.hosts.len()
    }

    /// The host with this name or at this place, or those of a slice.
    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if let Ok(name) = index.extract::<String>() {
            let at = self.place(&name).ok_or_else(|| PyKeyError::new_err(name))?;
            return self.host(at).into_py_any(py);
        }
        match sequence::chosen(index, self.inner.hosts.len(), "host")? {
            Chosen::One(at) => self.host(at).into_py_any(py),
            Chosen::Several(part) => {
                part.places().map(|at| self.host(at)).collect::<Vec<_>>().into_py_any(py)
            }
        }
    }

    /// Whether a host has this name, or is this one.
    fn __contains__(&self, item: &Bound<'_, PyAny>) -> bool {
        if let Ok(name) = item.extract::<String>() {
            return self.place(&name).is_some();
        }
        let host = item.cast::<Host>();
        host.is_ok_and(|host| Arc::ptr_eq(&host.get().fleet, &self.inner))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.hosts())?.try_iter()
    }

    /// The host with this name; without one, `default`.
    #[pyo3(signature = (name, default=None))]
    fn get(&self, py: Python<'_>, name: &str, default: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        match self.place(name) {
            Some(at) => self.host(at).into_py_any(py),
            None => Ok(default.unwrap_or_else(|| py.None())),
        }
    }

    /// Everything, as `telltale smi --hosts … --json` prints it.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        columns::json(py, &*self.inner)
    }

    /// The rows of all hosts by column, of which `host` is the first, the host's name. What rows
    /// have by that name is in `host_memory`. `rows` are devices, processes or memory.
    #[pyo3(signature = (rows="devices"))]
    fn columns<'py>(&self, py: Python<'py>, rows: &str) -> PyResult<Bound<'py, PyDict>> {
        self.rows(py, rows)?.to_dict(py)
    }

    /// An Arrow table of these columns. Needs pyarrow.
    #[pyo3(signature = (rows="devices"))]
    fn to_arrow<'py>(&self, py: Python<'py>, rows: &str) -> PyResult<Bound<'py, PyAny>> {
        self.rows(py, rows)?.to_arrow(py)
    }

    /// A data frame of these columns. Needs pandas.
    #[pyo3(signature = (rows="devices"))]
    fn to_pandas<'py>(&self, py: Python<'py>, rows: &str) -> PyResult<Bound<'py, PyAny>> {
        self.rows(py, rows)?.to_pandas(py)
    }

    fn _repr_html_(&self) -> String {
        let host = |host: Host| {
            let name = display::escaped(host.name());
            let said = host.snapshot().map(|snapshot| snapshot._repr_html_());
            let reason = || host.reason().map(|it| display::escaped(&it)).unwrap_or_default();
            format!("<h4>{name}</h4>{}", said.unwrap_or_else(|| format!("<p>{}</p>", reason())))
        };
        self.hosts().into_iter().map(host).collect()
    }

    fn __repr__(&self) -> String {
        telltale_smi::fleet(&self.inner, &display::STYLE).trim_end().to_owned()
    }
}

// === impl Host ===

impl Host {
    fn row(&self) -> &fleet::Host {
        &self.fleet.hosts[self.at]
    }
}

impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.fleet, &other.fleet) && self.at == other.at
    }
}

impl Hash for Host {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.fleet), self.at).hash(state);
    }
}

#[pymethods]
impl Host {
    /// As it was named.
    #[getter]
    fn name(&self) -> &str {
        &self.row().name
    }

    /// What it said last; `None` where it has said nothing.
    #[getter]
    fn snapshot(&self) -> Option<Snapshot> {
        self.row().snapshot.as_ref().map(|inner| Snapshot { inner: Arc::clone(inner) })
    }

    /// When it answered last.
    #[getter]
    fn answered_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDateTime>>> {
        self.row().answered_at.map(|at| value::moment(py, at)).transpose()
    }

    /// Why it does not answer; `None` where it does.
    #[getter]
    fn reason(&self) -> Option<String> {
        let host = self.row();
        match (&host.reason, host.state) {
            (Some(reason), _) => Some(in_python(reason)),
            (None, HostState::Waiting) => Some(String::from("no answer yet")),
            (None, _) => None,
        }
    }

    fn __repr__(&self) -> String {
        match self.reason() {
            Some(reason) => format!("<Host {}: {reason}>", self.name()),
            None => format!("<Host {}>", self.name()),
        }
    }
}
