//! An event, of a capture or of a stream.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDateTime, PyTuple};
use telltale_debug_stream::capture::{CaptureIndex, CapturedEvent, EventFacts, Payload};
use telltale_debug_stream::{EventKind, Tensor};
use telltale_schema::clock::Timestamp;
use telltale_schema::quantity;
use telltale_schema::text::printable;

use super::tensor::{DebugTensor, shape_text};
use crate::error::ErrorClass;
use crate::value;

/// A capture that was opened.
pub(super) struct OpenCapture {
    pub(super) path: PathBuf,
    pub(super) index: CaptureIndex,
}

/// An event that was taken from a stream.
pub(super) struct LiveEvent {
    pub(super) kind: EventKind,
    pub(super) core: u32,
    pub(super) pipe: u32,
    pub(super) prefix: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<u64>,
    pub(super) sequence: Option<u64>,
    pub(super) time_ns: Option<u64>,
    pub(super) time: Option<Timestamp>,
    pub(super) iteration: Option<u64>,
    pub(super) data: Vec<u8>,
}

/// What a kernel printed: a tensor, a text, or something of the runtime's own.
#[pyclass(frozen, module = "telltale.debug")]
pub(crate) struct DebugEvent {
    origin: EventOrigin,
    tensor: PyOnceLock<Option<Py<DebugTensor>>>,
}

enum EventOrigin {
    Capture(Arc<OpenCapture>, u32),
    Stream(Box<LiveEvent>),
}

impl DebugEvent {
    /// An event of a capture, whose data is read when it is asked for.
    pub(super) fn of_capture(capture: &Arc<OpenCapture>, number: u32) -> Self {
        let origin = EventOrigin::Capture(Arc::clone(capture), number);
        Self { origin, tensor: PyOnceLock::new() }
    }

    /// An event of a stream.
    pub(super) fn of_stream(event: LiveEvent) -> Self {
        Self { origin: EventOrigin::Stream(Box::new(event)), tensor: PyOnceLock::new() }
    }

    fn facts(&self) -> EventFacts<'_> {
        match &self.origin {
            EventOrigin::Capture(capture, number) => {
                capture.index.facts(*number as usize).expect("numbers are those of the index")
            }
            EventOrigin::Stream(event) => EventFacts {
                kind: event.kind,
                core: Some(event.core),
                pipe: event.pipe,
                prefix: &event.prefix,
                dtype: &event.dtype,
                shape: &event.shape,
                bytes: u64::try_from(event.data.len()).unwrap_or(u64::MAX),
                sequence: event.sequence,
                time_ns: event.time_ns,
                iteration: event.iteration,
            },
        }
    }

    /// Does something with the data, which a capture is read for.
    fn with_data<R>(&self, py: Python<'_>, read: impl FnOnce(&[u8]) -> PyResult<R>) -> PyResult<R> {
        match &self.origin {
            EventOrigin::Stream(event) => read(&event.data),
            EventOrigin::Capture(capture, number) => {
                let event = load(py, capture, *number as usize)?;
                match &event.payload {
                    Payload::Held(data) => read(data),
                    _ => Err(self.refused(py, "the capture does not have its data")),
                }
            }
        }
    }

    /// The exception for an event whose data is not what it says.
    fn refused(&self, py: Python<'_>, reason: &str) -> PyErr {
        match &self.origin {
            EventOrigin::Capture(capture, number) => {
                let message =
                    format!("event {number} of {} cannot be read", capture.path.display());
                ErrorClass::File.of(py, &message, Some(reason))
            }
            EventOrigin::Stream(event) => {
                let message = format!("event {:?} is no tensor that can be read", event.prefix);
                ErrorClass::Stream.of(py, &message, Some(reason))
            }
        }
    }

    fn read_tensor(&self, py: Python<'_>) -> PyResult<Option<Py<DebugTensor>>> {
        let facts = self.facts();
        if facts.kind != EventKind::Tensor {
            return Ok(None);
        }
        self.with_data(py, |data| {
            let tensor = Tensor::new(facts.dtype, facts.shape, data)
                .map_err(|error| self.refused(py, &error.to_string()))?;
            Py::new(py, DebugTensor::of(&tensor)).map(Some)
        })
    }
}

fn load(py: Python<'_>, capture: &OpenCapture, number: usize) -> PyResult<CapturedEvent> {
    let loaded = py.detach(|| capture.index.load(number));
    let event = loaded.map_err(|error| {
        let message = format!("event {number} of {} cannot be read", capture.path.display());
        ErrorClass::File.of(py, &message, Some(&error.to_string()))
    })?;
    Ok(event.expect("numbers are those of the index"))
}

#[pymethods]
impl DebugEvent {
    #[getter]
    fn core(&self) -> Option<u32> {
        self.facts().core
    }

    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDateTime>>> {
        match &self.origin {
            EventOrigin::Stream(event) => event.time.map(|at| value::moment(py, at)).transpose(),
            EventOrigin::Capture(..) => Ok(None),
        }
    }

    #[getter]
    fn time_ns(&self) -> Option<u64> {
        self.facts().time_ns
    }

    #[getter]
    fn prefix(&self) -> &str {
        self.facts().prefix
    }

    #[getter]
    fn iteration(&self) -> Option<u64> {
        self.facts().iteration
    }

    #[getter]
    fn sequence(&self) -> Option<u64> {
        self.facts().sequence
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.facts().kind.name()
    }

    #[getter]
    fn r#type(&self) -> u32 {
        self.facts().kind.code()
    }

    #[getter]
    fn pipe(&self) -> u32 {
        self.facts().pipe
    }

    #[getter]
    fn dtype(&self) -> Option<String> {
        let facts = self.facts();
        (facts.kind == EventKind::Tensor).then(|| facts.dtype.to_owned())
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let facts = self.facts();
        (facts.kind == EventKind::Tensor).then(|| PyTuple::new(py, facts.shape)).transpose()
    }

    #[getter]
    fn nbytes(&self) -> u64 {
        self.facts().bytes
    }

    #[getter]
    fn text(&self, py: Python<'_>) -> PyResult<Option<String>> {
        match self.facts().kind {
            EventKind::Text | EventKind::Breakpoint => {
                self.with_data(py, |data| Ok(String::from_utf8_lossy(data).into_owned())).map(Some)
            }
            _ => Ok(None),
        }
    }

    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.with_data(py, |data| Ok(PyBytes::new(py, data)))
    }

    #[getter]
    fn tensor(&self, py: Python<'_>) -> PyResult<Option<Py<DebugTensor>>> {
        let tensor = self.tensor.get_or_try_init(py, || self.read_tensor(py))?;
        Ok(tensor.as_ref().map(|tensor| tensor.clone_ref(py)))
    }

    fn __eq__(&self, other: &Self) -> bool {
        match (&self.origin, &other.origin) {
            (EventOrigin::Capture(ours, at), EventOrigin::Capture(theirs, there)) => {
                Arc::ptr_eq(ours, theirs) && at == there
            }
            _ => std::ptr::eq(self, other),
        }
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match &self.origin {
            EventOrigin::Capture(capture, number) => {
                (Arc::as_ptr(capture).addr(), number).hash(&mut hasher);
            }
            EventOrigin::Stream(event) => std::ptr::from_ref(&**event).addr().hash(&mut hasher),
        }
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let facts = self.facts();
        let core = facts.core.map_or_else(String::new, |core| format!(" core {core}"));
        format!("<Event{core} {} {}>", name_of(&facts), what_is_it(&facts))
    }
}

/// Its prefix and iteration, as tables have them.
pub(super) fn name_of(facts: &EventFacts<'_>) -> String {
    let iteration = facts.iteration.map_or_else(String::new, |number| format!("#{number}"));
    printable(facts.prefix) + &iteration
}

fn what_is_it(facts: &EventFacts<'_>) -> String {
    match facts.kind {
        EventKind::Tensor => format!("{} {}", printable(facts.dtype), shape_text(facts.shape)),
        kind => format!("{}, {}", kind.name(), quantity::bytes(facts.bytes)),
    }
}
