//! Rows of a snapshot: devices, processes, what a process has on one device, and the parts that a
//! device's memory adds up from. Each is a place in a snapshot that is shared; its attributes are
//! the fields of the query language.

mod table;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use telltale_query::{Field, Owner, nearest};
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{self, Snapshot};

use crate::columns::{KindPart, PartColumn, RowKind, RowPlace, json, parts};
use crate::error::in_python;
use crate::value;

pub(crate) use table::Table;

/// What names a device's own memory, to distinguish it from a process's, in the query language;
/// here the object does.
const OF_DEVICE: &str = "device.";

/// A device. Its attributes are fields of the query language (`docs/query.md`), `None` where the
/// value is absent.
#[pyclass(frozen, eq, hash, module = "telltale")]
pub(crate) struct Device {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) at: usize,
}

/// A process. What differs by device is added up over its devices, where that makes sense.
#[pyclass(frozen, eq, hash, module = "telltale")]
pub(crate) struct Process {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) at: usize,
}

/// What a process has on one device.
#[pyclass(frozen, eq, hash, module = "telltale")]
pub(crate) struct Holding {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) process: usize,
    /// Its place in the process's devices.
    pub(crate) at: usize,
}

/// A part of one kind of memory on a device: a process's, or what no living process accounts for.
/// The parts of a device and kind add up to all that is in use.
#[pyclass(frozen, eq, hash, module = "telltale")]
pub(crate) struct MemoryPart {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) part: KindPart,
}

/// Rows are equal that have the same place in the same snapshot: not in two that are alike.
macro_rules! same_place {
    ($($class:ident: |$row:ident| $place:expr;)*) => {$(
        impl PartialEq for $class {
            fn eq(&self, other: &Self) -> bool {
                let place = |$row: &Self| $place;
                Arc::ptr_eq(&self.snapshot, &other.snapshot) && place(self) == place(other)
            }
        }

        impl Hash for $class {
            fn hash<H: Hasher>(&self, state: &mut H) {
                let place = |$row: &Self| $place;
                (Arc::as_ptr(&self.snapshot), place(self)).hash(state);
            }
        }
    )*};
}

same_place! {
    Device: |row| row.at;
    Process: |row| row.at;
    Holding: |row| (row.process, row.at);
    MemoryPart: |row| row.part.place();
}

/// The field that an attribute of a device names.
pub(crate) fn of_device(name: &str) -> Option<&'static Field> {
    let is_it = |field: &&Field| {
        field.owner == Owner::Device
            && (field.name == name || field.name.strip_prefix(OF_DEVICE) == Some(name))
    };
    Field::all().iter().find(is_it)
}

/// The field that an attribute of a process names.
pub(crate) fn of_process(name: &str) -> Option<&'static Field> {
    Field::all().iter().find(|field| field.owner == Owner::Process && field.name == name)
}

/// A field's name as an attribute.
pub(crate) fn attribute(field: &Field) -> &'static str {
    field.name.strip_prefix(OF_DEVICE).unwrap_or(field.name)
}

/// The error of an attribute that there is not.
fn no_attribute(class: &str, name: &str, owner: Owner) -> PyErr {
    let names = Field::all().iter().filter(|field| field.owner == owner).map(attribute);
    let meant = nearest(name, names).map(|near| format!("; did you mean {near:?}?"));
    PyAttributeError::new_err(format!(
        "a {class} has no attribute {name:?}{}",
        meant.unwrap_or_default()
    ))
}

/// A reason and what happened, as a text; `None` where there is a value.
fn reason(absence: Option<(Absence, &str)>) -> Option<String> {
    absence.map(|(reason, detail)| match detail {
        "" => reason.words().to_owned(),
        detail => format!("{}: {}", reason.words(), in_python(detail)),
    })
}

// === impl Device ===

impl Device {
    pub(crate) fn row(&self) -> &snapshot::Device {
        &self.snapshot.devices[self.at]
    }
}

#[pymethods]
impl Device {
    /// Its place in the snapshot's devices.
    #[getter]
    fn index(&self) -> usize {
        self.at
    }

    /// How it is named: the id that other commands take.
    #[getter]
    fn id(&self) -> &str {
        &self.row().id
    }

    /// The processes that have it open or have recorded memory there.
    #[getter]
    fn processes(&self) -> Table {
        let held =
            |process: &snapshot::Process| process.devices.iter().any(|it| it.device == self.at);
        let processes = self.snapshot.processes.iter().enumerate();
        let rows = processes.filter(|(_, one)| held(one)).map(|(at, _)| RowPlace::Process(at));
        Table::of(&self.snapshot, RowKind::Processes, rows.collect())
    }

    /// The parts of its memory, which add up to all that is in use.
    #[getter]
    fn memory(&self) -> Table {
        let parts = parts(&self.snapshot).filter(|part| part.device == self.at);
        Table::of(&self.snapshot, RowKind::Memory, parts.map(RowPlace::Memory).collect())
    }

    /// Why an attribute is `None`; `None` where it has a value.
    fn absence(&self, name: &str) -> PyResult<Option<String>> {
        let field = of_device(name).ok_or_else(|| no_attribute("Device", name, Owner::Device))?;
        Ok(reason(field.absence(None, None, Some(self.row()))))
    }

    /// Everything that is known of it, as in the JSON of `telltale smi --json`.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        json(py, self.row())
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let field = of_device(name).ok_or_else(|| no_attribute("Device", name, Owner::Device))?;
        value::object(py, field, field.read(None, None, Some(self.row())))
    }

    fn __dir__(&self) -> Vec<&'static str> {
        let own = ["absence", "id", "index", "memory", "processes", "to_dict"];
        let fields = Field::all().iter().filter(|field| field.owner == Owner::Device);
        own.into_iter().chain(fields.map(attribute)).collect()
    }

    fn __repr__(&self) -> String {
        let device = self.row();
        format!("<Device {}: {} {}>", self.at, device.id, device.identity.product())
    }
}

// === impl Process ===

impl Process {
    pub(crate) fn row(&self) -> &snapshot::Process {
        &self.snapshot.processes[self.at]
    }
}

#[pymethods]
impl Process {
    /// What it has on each device that it holds.
    #[getter]
    fn devices(&self) -> Vec<Holding> {
        let holding = |at| Holding { snapshot: Arc::clone(&self.snapshot), process: self.at, at };
        (0..self.row().devices.len()).map(holding).collect()
    }

    /// What else its endpoint reports, by name: counters and gauges that the program registered, as
    /// in JSON.
    #[getter]
    fn metrics(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        json(py, &*self.row().metrics)
    }

    /// Why an attribute is `None`; `None` where it has a value.
    fn absence(&self, name: &str) -> PyResult<Option<String>> {
        let field =
            of_process(name).ok_or_else(|| no_attribute("Process", name, Owner::Process))?;
        let process = self.row();
        if field.total(process) != telltale_query::Value::Absent {
            return Ok(None);
        }
        let of_one = process.devices.iter().filter(|_| field.is_by_device());
        let found = of_one.filter_map(|held| field.absence(Some(process), Some(held), None)).next();
        Ok(match (found, field.is_by_device()) {
            (None, true) if process.devices.len() > 1 => {
                Some(String::from("it differs by device: ask the holdings in `devices`"))
            }
            (found, _) => reason(found.or_else(|| field.absence(Some(process), None, None))),
        })
    }

    /// Everything that is known of it, as in the JSON of `telltale smi --json`.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        json(py, self.row())
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let field =
            of_process(name).ok_or_else(|| no_attribute("Process", name, Owner::Process))?;
        value::object(py, field, field.total(self.row()))
    }

    fn __dir__(&self) -> Vec<&'static str> {
        let own = ["absence", "devices", "metrics", "to_dict"];
        let fields = Field::all().iter().filter(|field| field.owner == Owner::Process);
        own.into_iter().chain(fields.map(attribute)).collect()
    }

    fn __repr__(&self) -> String {
        let process = self.row();
        match process.pid {
            Some(pid) => format!("<Process {pid}: {}>", process.name),
            None => format!("<Process not visible from here: {}>", process.name),
        }
    }
}

// === impl Holding ===

impl Holding {
    fn of(&self) -> (&snapshot::Process, &snapshot::HeldDevice) {
        let process = &self.snapshot.processes[self.process];
        (process, &process.devices[self.at])
    }
}

#[pymethods]
impl Holding {
    /// The device.
    #[getter]
    fn device(&self) -> Device {
        Device { snapshot: Arc::clone(&self.snapshot), at: self.of().1.device }
    }

    /// The process.
    #[getter]
    fn process(&self) -> Process {
        Process { snapshot: Arc::clone(&self.snapshot), at: self.process }
    }

    /// Why an attribute is `None`; `None` where it has a value.
    fn absence(&self, name: &str) -> PyResult<Option<String>> {
        let field =
            of_process(name).ok_or_else(|| no_attribute("Holding", name, Owner::Process))?;
        let (process, held) = self.of();
        Ok(reason(field.absence(Some(process), Some(held), None)))
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let field =
            of_process(name).ok_or_else(|| no_attribute("Holding", name, Owner::Process))?;
        let (process, held) = self.of();
        value::object(py, field, field.read(Some(process), Some(held), None))
    }

    fn __repr__(&self) -> String {
        let (process, held) = self.of();
        let device = self.snapshot.devices.get(held.device).map_or("?", |device| &device.id);
        format!("<Holding of {} on {device}>", process.name)
    }
}

// === impl MemoryPart ===

#[pymethods]
impl MemoryPart {
    /// The device.
    #[getter]
    fn device(&self) -> Device {
        Device { snapshot: Arc::clone(&self.snapshot), at: self.part.device }
    }

    /// The process that accounts for it; `None` for what no living process does.
    #[getter]
    fn process(&self) -> Option<Process> {
        let (process, _) = self.part.held?;
        Some(Process { snapshot: Arc::clone(&self.snapshot), at: process })
    }

    /// All its values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = PyDict::new(py);
        for column in PartColumn::ALL {
            values.set_item(column.name(), column.value(py, &self.snapshot, &self.part)?)?;
        }
        Ok(values)
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        match PartColumn::ALL.iter().find(|column| column.name() == name) {
            Some(column) => column.value(py, &self.snapshot, &self.part),
            None => {
                Err(PyAttributeError::new_err(format!("a MemoryPart has no attribute {name:?}")))
            }
        }
    }

    fn __dir__(&self) -> Vec<&'static str> {
        let own = ["device", "process", "to_dict"];
        own.into_iter().chain(PartColumn::ALL.iter().map(|column| column.name())).collect()
    }

    fn __repr__(&self) -> String {
        let device = &self.snapshot.devices[self.part.device].id;
        let kind = self.part.kind.name();
        format!(
            "<MemoryPart {kind} of {device}: {} bytes, {}>",
            self.part.bytes,
            self.part.holder.name()
        )
    }
}

/// A row as a Python object.
pub(crate) fn object(
    py: Python<'_>,
    snapshot: &Arc<Snapshot>,
    place: &RowPlace,
) -> PyResult<Py<PyAny>> {
    let snapshot = Arc::clone(snapshot);
    match *place {
        RowPlace::Device(at) => Device { snapshot, at }.into_py_any(py),
        RowPlace::Process(at) => Process { snapshot, at }.into_py_any(py),
        RowPlace::Memory(part) => MemoryPart { snapshot, part }.into_py_any(py),
    }
}
