//! What rows have as columns, and as the JSON that `telltale smi --json` prints.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use serde::Serialize;
use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::snapshot::{HeldUsage, Snapshot};

use crate::frame::ColumnType;
use crate::value::count;

/// Who has a part of a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PartHolder {
    /// A living process.
    Process,
    /// It is in a region's total and in none of its rows.
    Unattributed,
    /// Dead processes, whose rows in a region still have it.
    Ghost,
}

/// A part of one kind of memory of a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KindPart {
    pub(crate) device: usize,
    pub(crate) kind: MemoryKind,
    pub(crate) holder: PartHolder,
    pub(crate) bytes: u64,
    /// The process's place, and its usage.
    pub(crate) held: Option<(usize, HeldUsage)>,
}

/// What rows are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    Devices,
    Processes,
    Memory,
}

impl KindPart {
    /// What distinguishes it from the other parts of its snapshot.
    pub(crate) fn place(&self) -> (usize, MemoryKind, PartHolder, Option<usize>) {
        (self.device, self.kind, self.holder, self.held.map(|(process, _)| process))
    }
}

/// Where a row is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowPlace {
    Device(usize),
    Process(usize),
    Memory(KindPart),
}

/// A column of parts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PartColumn {
    DeviceId,
    Kind,
    Space,
    Holder,
    Pid,
    Name,
    Bytes,
    Buffers,
    Peak,
    Allocations,
    AllocatedBytes,
    Failed,
}

impl PartHolder {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Unattributed => "unattributed",
            Self::Ghost => "ghost",
        }
    }
}

impl PartColumn {
    pub(crate) const ALL: [Self; 12] = [
        Self::DeviceId,
        Self::Kind,
        Self::Space,
        Self::Holder,
        Self::Pid,
        Self::Name,
        Self::Bytes,
        Self::Buffers,
        Self::Peak,
        Self::Allocations,
        Self::AllocatedBytes,
        Self::Failed,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::DeviceId => "device_id",
            Self::Kind => "kind",
            Self::Space => "space",
            Self::Holder => "holder",
            Self::Pid => "pid",
            Self::Name => "name",
            Self::Bytes => "bytes",
            Self::Buffers => "buffers",
            Self::Peak => "peak",
            Self::Allocations => "allocations",
            Self::AllocatedBytes => "allocated_bytes",
            Self::Failed => "failed",
        }
    }

    pub(crate) const fn holds(self) -> ColumnType {
        match self {
            Self::DeviceId | Self::Kind | Self::Space | Self::Holder | Self::Name => {
                ColumnType::Text
            }
            Self::Pid
            | Self::Bytes
            | Self::Buffers
            | Self::Peak
            | Self::Allocations
            | Self::AllocatedBytes
            | Self::Failed => ColumnType::Whole,
        }
    }

    pub(crate) fn value(
        self,
        py: Python<'_>,
        snapshot: &Snapshot,
        part: &KindPart,
    ) -> PyResult<Py<PyAny>> {
        let process = part.held.map(|(at, _)| &snapshot.processes[at]);
        let recorded = part.held.and_then(|(_, usage)| usage.recorded().copied());
        let of_recorded = |value: fn(&MemoryUsage) -> u64| {
            recorded.as_ref().map(value).map(count).into_py_any(py)
        };
        match self {
            Self::DeviceId => (&*snapshot.devices[part.device].id).into_py_any(py),
            Self::Kind => part.kind.name().into_py_any(py),
            Self::Space => part.kind.space().name().into_py_any(py),
            Self::Holder => part.holder.name().into_py_any(py),
            Self::Pid => process.and_then(|process| process.pid).into_py_any(py),
            Self::Name => process.map(|process| &*process.name).into_py_any(py),
            Self::Bytes => count(part.bytes).into_py_any(py),
            Self::Buffers => of_recorded(|usage| usage.live_buffers),
            Self::Peak => of_recorded(|usage| usage.peak_bytes),
            Self::Allocations => of_recorded(|usage| usage.allocations),
            Self::AllocatedBytes => of_recorded(|usage| usage.allocated_bytes),
            Self::Failed => of_recorded(|usage| usage.failed_allocations),
        }
    }
}

/// The parts that the memory of all devices adds up from: those of processes, then what no living
/// one accounts for.
pub(crate) fn parts(snapshot: &Snapshot) -> impl Iterator<Item = KindPart> {
    let held = snapshot.processes.iter().enumerate().flat_map(move |(process, row)| {
        row.devices.iter().filter(|held| held.device < snapshot.devices.len()).flat_map(
            move |held| {
                held.kinds.iter().map(move |one| KindPart {
                    device: held.device,
                    kind: one.kind,
                    holder: PartHolder::Process,
                    bytes: one.usage.live_bytes(),
                    held: Some((process, one.usage)),
                })
            },
        )
    });
    let others = snapshot.devices.iter().enumerate().flat_map(|(device, row)| {
        row.kinds.iter().flat_map(move |kind| {
            let others = [
                (PartHolder::Unattributed, kind.unattributed_bytes),
                (PartHolder::Ghost, kind.ghost_bytes),
            ];
            let some = others.into_iter().filter(|(_, bytes)| *bytes > 0);
            some.map(move |(holder, bytes)| KindPart {
                device,
                kind: kind.kind,
                holder,
                bytes,
                held: None,
            })
        })
    });
    held.chain(others)
}

/// Anything of a snapshot as the objects that its JSON has.
pub(crate) fn json(py: Python<'_>, part: &(impl Serialize + ?Sized)) -> PyResult<Py<PyAny>> {
    let value = serde_json::to_value(part).expect("a snapshot has only string keys");
    plain(py, value)
}

/// A JSON value as a dictionary, list, text, number, bool or `None`.
fn plain(py: Python<'_>, value: serde_json::Value) -> PyResult<Py<PyAny>> {
    use serde_json::Value;
    match value {
        Value::Null => Ok(py.None()),
        Value::Bool(value) => value.into_py_any(py),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into_py_any(py),
            (None, Some(number)) => number.into_py_any(py),
            (None, None) => number.as_f64().into_py_any(py),
        },
        Value::String(text) => text.into_py_any(py),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| plain(py, item));
            items.collect::<PyResult<Vec<_>>>()?.into_py_any(py)
        }
        Value::Object(entries) => {
            let dictionary = pyo3::types::PyDict::new(py);
            for (name, value) in entries {
                dictionary.set_item(name, plain(py, value)?)?;
            }
            dictionary.into_py_any(py)
        }
    }
}
