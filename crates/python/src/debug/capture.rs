//! A capture as a sequence of events, of which nothing is read but what is asked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use telltale_debug_stream::capture::{CaptureIndex, Gap, IndexError, Item, OpenError};
use telltale_schema::quantity;
use telltale_schema::text::printable;
use telltale_smi::{Cell, Column};

use super::event::{DebugEvent, OpenCapture, name_of};
use super::filter;
use super::tensor::shape_text;
use crate::display::STYLE;
use crate::error::ErrorClass;
use crate::sequence::{self, Chosen};
use crate::signals::PERIOD;

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
    let mut next = Instant::now() + PERIOD;
    let opened = py.detach(|| {
        CaptureIndex::open(&path, || {
            if Instant::now() < next {
                return true;
            }
            // Without an interpreter, nothing handles them.
            raised = Python::try_attach(|py| py.check_signals().err()).flatten();
            next = Instant::now() + PERIOD;
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
        match sequence::chosen(index, rows.count, "event")? {
            Chosen::One(row) => self.event(row).into_py_any(py),
            Chosen::Several(part) => {
                let start = rows.step.wrapping_mul(part.start);
                let rows = Rows {
                    chosen: rows.chosen.clone(),
                    start: rows.start.wrapping_add_signed(start),
                    step: rows.step.wrapping_mul(part.step),
                    count: part.count,
                };
                self.view(rows).into_py_any(py)
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
        sequence::inherited(slf.as_any(), "index", arguments)
    }

    #[pyo3(signature = (*arguments))]
    fn count<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        sequence::inherited(slf.as_any(), "count", arguments)
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
        let mut text = table.render(&STYLE);
        if self.rows.count > MAX_ROWS {
            text.push_str(&format!("and {} more\n", self.rows.count - MAX_ROWS));
        }
        if !index.gaps().is_empty() {
            text.push_str(&format!("{} gaps, see losses\n", index.gaps().len()));
        }
        text.trim_end().to_owned()
    }
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
