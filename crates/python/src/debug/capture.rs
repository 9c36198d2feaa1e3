//! A capture as a sequence of events, of which nothing is read but what is asked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice, PyTuple};
use telltale_debug_stream::capture::{CaptureIndex, Gap, IndexError, Item, OpenError};
use telltale_schema::quantity;
use telltale_schema::text::printable;
use telltale_smi::{Cell, Column, Style};

use super::event::{DebugEvent, OpenCapture, name_of};
use super::filter;
use super::tensor::shape_text;
use crate::error::ErrorClass;

/// How often opening lets Python's signal handlers run.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);
/// Events that are printed; the others are counted.
const MAX_ROWS: usize = 20;
const COLUMNS: [(&str, bool); 6] = [
    ("TIME", true),
    ("CORE", true),
    ("PREFIX#ITERATION", false),
    ("DTYPE", false),
    ("SHAPE", false),
    ("BYTES", true),
];

/// Events of a capture, in order: a sequence whose slices and selections are views.
#[pyclass(frozen, sequence, module = "telltale.debug")]
pub(crate) struct DebugCapture {
    capture: Arc<OpenCapture>,
    rows: Rows,
}

/// Which events of the capture it has.
#[derive(Clone)]
struct Rows {
    /// Numbers to choose from; all events, if there are none.
    chosen: Option<Arc<[u32]>>,
    start: usize,
    step: isize,
    count: usize,
}

/// Events that are not in a capture, and why.
#[pyclass(frozen, get_all, module = "telltale.debug")]
pub(crate) struct DebugGap {
    /// The number of the event behind it, of the whole capture.
    before: usize,
    /// How many events; none where that is not known.
    events: Option<u64>,
    /// Their core, where that is known.
    core: Option<u32>,
    /// Why.
    reason: String,
}

/// Goes through the events of a capture.
#[pyclass(module = "telltale.debug")]
struct DebugCaptureIterator {
    capture: Arc<OpenCapture>,
    rows: Rows,
    next: usize,
}

/// Opens a capture.
#[pyfunction]
#[pyo3(signature = (path, *, filter=None))]
pub(crate) fn debug_open(
    py: Python<'_>,
    path: PathBuf,
    filter: Option<&str>,
) -> PyResult<DebugCapture> {
    let mut raised = None;
    let mut next = Instant::now() + SIGNAL_PERIOD;
    let opened = py.detach(|| {
        CaptureIndex::open(&path, || {
            if Instant::now() < next {
                return true;
            }
            // Without an interpreter, nothing handles them.
            raised = Python::try_attach(|py| py.check_signals().err()).flatten();
            next = Instant::now() + SIGNAL_PERIOD;
            raised.is_none()
        })
    });
    let index = match (opened, raised) {
        (_, Some(raised)) => return Err(raised),
        (Err(error), None) => return Err(cannot_open(py, &path.display().to_string(), &error)),
        (Ok(index), None) => index,
    };
    let rows = Rows { chosen: None, start: 0, step: 1, count: index.len() };
    let capture = DebugCapture { capture: Arc::new(OpenCapture { path, index }), rows };
    match filter {
        Some(text) => capture.filter(py, text),
        None => Ok(capture),
    }
}

/// Says what to do as `telltale events` does.
fn cannot_open(py: Python<'_>, path: &str, error: &IndexError) -> PyErr {
    let remedy = match error {
        IndexError::Open(OpenError::Open(_, cause))
            if cause.kind() == std::io::ErrorKind::NotFound =>
        {
            "; give what NEURON_RT_DEBUG_OUTPUT_DIR was set to"
        }
        IndexError::Open(OpenError::Open(..)) => "; run this as a user who may read it",
        IndexError::Open(OpenError::OtherKind(_)) => "; give a file or a directory",
        IndexError::Read(_)
        | IndexError::TooManyEvents(_)
        | IndexError::TooManyForms(_)
        | IndexError::Interrupted => "",
    };
    let cause = std::error::Error::source(error).map(telltale_schema::text::with_causes);
    let place = match error {
        IndexError::Open(_) | IndexError::Interrupted => String::new(),
        _ => format!("{path}: "),
    };
    ErrorClass::File.of(py, &format!("{place}{error}{remedy}"), cause.as_deref())
}

// === impl Rows ===

impl Rows {
    /// The number in the capture of a row.
    fn number(&self, row: usize) -> u32 {
        let at = self.start.wrapping_add_signed(self.step.wrapping_mul(row.cast_signed()));
        match &self.chosen {
            Some(chosen) => chosen[at],
            None => u32::try_from(at).expect("an index has fewer events"),
        }
    }
}

// === impl DebugCapture ===

impl DebugCapture {
    fn event(&self, row: usize) -> DebugEvent {
        DebugEvent::of_capture(&self.capture, self.rows.number(row))
    }

    fn view(&self, rows: Rows) -> Self {
        Self { capture: Arc::clone(&self.capture), rows }
    }

    /// A call of the class that Python's sequences have their methods from.
    fn as_sequence<'py>(
        slf: &Bound<'py, Self>,
        method: &str,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let class = py.import("collections.abc")?.getattr("Sequence")?;
        let whole = std::iter::once(slf.clone().into_any()).chain(arguments.iter());
        class.getattr(method)?.call1(PyTuple::new(py, whole.collect::<Vec<_>>())?)
    }
}

#[pymethods]
impl DebugCapture {
    #[getter]
    fn path(&self) -> PathBuf {
        self.capture.path.clone()
    }

    /// What the whole capture lacks, in its order.
    #[getter]
    fn losses(&self) -> Vec<DebugGap> {
        let index = &self.capture.index;
        let more = (index.more_gaps() > 0).then(|| DebugGap {
            before: index.len(),
            events: None,
            core: None,
            reason: format!("{} more places", index.more_gaps()),
        });
        index.gaps().iter().map(gap).chain(more).collect()
    }

    /// A view of the events that a filter wants.
    fn filter(&self, py: Python<'_>, text: &str) -> PyResult<Self> {
        let filter = filter(py, text)?;
        let numbers = (0..self.rows.count).map(|row| self.rows.number(row));
        let chosen: Arc<[u32]> = py.detach(|| self.capture.index.select(&filter, numbers)).into();
        let count = chosen.len();
        Ok(self.view(Rows { chosen: Some(chosen), start: 0, step: 1, count }))
    }

    fn __len__(&self) -> usize {
        self.rows.count
    }

    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let rows = &self.rows;
        let length = isize::try_from(rows.count).unwrap_or(isize::MAX);
        if let Ok(slice) = index.cast::<PySlice>() {
            let part = slice.indices(length)?;
            let start = rows.step.wrapping_mul(part.start);
            let rows = Rows {
                chosen: rows.chosen.clone(),
                start: rows.start.wrapping_add_signed(start),
                step: rows.step.wrapping_mul(part.step),
                count: part.slicelength,
            };
            return self.view(rows).into_py_any(py);
        }
        let index = whole_number(index)?;
        let row = match index.extract::<isize>() {
            Ok(index) if index < 0 => index.checked_add(length),
            Ok(index) => Some(index),
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => None,
            Err(error) => return Err(error),
        };
        match row.and_then(|row| usize::try_from(row).ok()) {
            Some(row) if row < rows.count => self.event(row).into_py_any(py),
            _ => {
                let message = format!("event {index} is not among {length} events");
                Err(PyIndexError::new_err(message))
            }
        }
    }

    fn __iter__(&self) -> DebugCaptureIterator {
        let capture = Arc::clone(&self.capture);
        DebugCaptureIterator { capture, rows: self.rows.clone(), next: 0 }
    }

    #[pyo3(signature = (*arguments))]
    fn index<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::as_sequence(slf, "index", arguments)
    }

    #[pyo3(signature = (*arguments))]
    fn count<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::as_sequence(slf, "count", arguments)
    }

    fn __repr__(&self) -> String {
        let columns = COLUMNS.iter().map(|(title, is_number)| match is_number {
            true => Column::right(title, 0),
            false => Column::left(title, 0),
        });
        let mut table = telltale_smi::Table::new(columns.collect());
        let index = &self.capture.index;
        let start = (0..index.len()).find_map(|number| index.facts(number)?.time_ns);
        for row in 0..self.rows.count.min(MAX_ROWS) {
            let number = self.rows.number(row) as usize;
            let facts = index.facts(number).expect("numbers are those of the index");
            let time = facts.time_ns.zip(start).map(|(at, start)| {
                let since = i128::from(at) - i128::from(start);
                format!("{:.3}", since as f64 / 1e9)
            });
            let is_tensor = facts.kind == telltale_debug_stream::EventKind::Tensor;
            let what =
                if is_tensor { printable(facts.dtype) } else { facts.kind.name().to_owned() };
            let shape = if is_tensor { shape_text(facts.shape) } else { String::new() };
            let cells = [
                time.unwrap_or_else(|| String::from("-")),
                facts.core.map_or_else(|| String::from("-"), |core| core.to_string()),
                name_of(&facts),
                what,
                shape,
                quantity::bytes(facts.bytes),
            ];
            table.push(cells.into_iter().map(Cell::new).collect());
        }
        let style = Style { width: None, color: false, unicode: true };
        let mut text = table.render(&style);
        if self.rows.count > MAX_ROWS {
            text.push_str(&format!("and {} more\n", self.rows.count - MAX_ROWS));
        }
        if !index.gaps().is_empty() {
            text.push_str(&format!("{} gaps, see losses\n", index.gaps().len()));
        }
        text.trim_end().to_owned()
    }
}

/// The integer that an index stands for, as `operator.index` gives it. What that raises is raised as it is.
fn whole_number<'py>(index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if index.is_instance_of::<PyInt>() {
        return Ok(index.clone());
    }
    index.py().import("operator")?.call_method1("index", (index,))
}

fn gap(gap: &Gap) -> DebugGap {
    let (events, core, reason) = match &gap.item {
        Item::Lost(losses) => {
            let causes = [
                (losses.events, "full"),
                (losses.bytes, "too many bytes"),
                (losses.memory, "no memory"),
            ];
            let causes = causes.iter().filter(|(number, _)| *number > 0);
            let causes: Vec<String> =
                causes.map(|(number, cause)| format!("{number} {cause}")).collect();
            (Some(losses.sum()), None, format!("lost: {}", causes.join(", ")))
        }
        Item::Missing { core, events } => {
            (Some(*events), *core, String::from("not in this capture"))
        }
        Item::Unreadable(place) => (None, None, format!("{}: {}", place.place, place.reason)),
        Item::Event(_) => (None, None, String::new()),
    };
    DebugGap { before: gap.before, events, core, reason }
}

#[pymethods]
impl DebugGap {
    fn __repr__(&self) -> String {
        let events = self.events.map_or_else(String::new, |events| format!(" {events} events,"));
        let core = self.core.map_or_else(String::new, |core| format!(" core {core},"));
        format!("<Gap before {}:{events}{core} {}>", self.before, printable(&self.reason))
    }
}

#[pymethods]
impl DebugCaptureIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self) -> Option<DebugEvent> {
        let row = self.next;
        (row < self.rows.count).then(|| {
            self.next += 1;
            DebugEvent::of_capture(&self.capture, self.rows.number(row))
        })
    }

    fn __length_hint__(&self) -> usize {
        self.rows.count - self.next
    }
}
