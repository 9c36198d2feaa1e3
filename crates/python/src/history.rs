//! `telltale.history`: series over time.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDict, PyList};
use telltale_collector::clock::SystemClock;
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::history::{HistoryAnswer, HistoryQuery, Series, Subjects};
use telltale_schema::moment::Moment;
use telltale_sources::PastSource;

use crate::error::ErrorClass;
use crate::frame::{ColumnType, Columns};
use crate::moment::{PastMoment, moment};
use crate::place::HostPlace;
use crate::sequence::{self, Chosen};
use crate::signals;
use crate::value::Span;
use crate::{columns, display, value};

/// How far back a question goes that does not say so.
const USUAL: Moment = Moment::Ago(telltale_schema::history::USUAL_SECONDS * 1_000_000_000);

/// Series of devices and processes over a span of time, in steps of one length.
#[pyclass(frozen, module = "telltale")]
pub(crate) struct History {
    inner: HistoryAnswer,
}

/// Series of devices and processes of this host, from `since` to `until`, in steps of `step`
/// seconds.
///
/// `devices` are ids, `processes` pids or names, `metrics` names or parts of them; without, all
/// devices and processes with their temperature, power, AI clock and memory. Without `step` there
/// are about 120 of them.
#[pyfunction]
#[pyo3(signature = (*, devices=Vec::new(), processes=Vec::new(), metrics=Vec::new(), since=None,
    until=None, step=None, root=None, runtime_dir=None, state_dir=None))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword arguments")]
pub(crate) fn history(
    py: Python<'_>,
    devices: Vec<String>,
    processes: Vec<Bound<'_, PyAny>>,
    metrics: Vec<String>,
    since: Option<PastMoment<'_>>,
    until: Option<PastMoment<'_>>,
    step: Option<Span<'_>>,
    root: Option<PathBuf>,
    runtime_dir: Option<PathBuf>,
    state_dir: Option<PathBuf>,
) -> PyResult<History> {
    let now = SystemClock.now();
    let from = since.map(|since| moment(py, &since)).transpose()?.unwrap_or(USUAL).at(now);
    let to = until.map(|until| moment(py, &until)).transpose()?.map_or(now, |until| until.at(now));
    if from >= to {
        return Err(ErrorClass::Query.of(py, "since is not before until; swap them", None));
    }
    let choice = |process: &Bound<'_, PyAny>| {
        let text = process.str()?.to_string();
        text.parse().map_err(|refused: String| {
            ErrorClass::Query.of(py, &format!("{text:?} names no process"), Some(&refused))
        })
    };
    let query = HistoryQuery {
        from,
        to,
        step_ms: step.map(|step| step.milliseconds(py)).transpose()?,
        subjects: Subjects::All,
        devices,
        processes: processes.iter().map(choice).collect::<PyResult<_>>()?,
        metrics,
    };
    let place = HostPlace::named(root, runtime_dir).past(state_dir);
    let question = move || PastSource::find(&place).and_then(|past| past.query(&query));
    let answer = signals::wait_for(py, question)?;
    let inner = answer.map_err(|error| ErrorClass::History.because(py, &error))?;
    Ok(History { inner })
}

/// A column of the rows that the steps of all series are.
type SeriesColumn = (&'static str, ColumnType, fn(&Series, usize) -> SeriesValue<'_>);

/// What is in it.
#[derive(IntoPyObject)]
enum SeriesValue<'a> {
    Text(Option<&'a str>),
    Whole(Option<u32>),
    Number(Option<f64>),
}

const COLUMNS: [SeriesColumn; 9] = [
    ("metric", ColumnType::Text, |series, _| SeriesValue::Text(Some(&series.metric))),
    ("unit", ColumnType::Text, |series, _| SeriesValue::Text(Some(&series.unit))),
    ("label", ColumnType::Text, |series, _| {
        SeriesValue::Text(series.label.as_ref().map(|(_, value)| &**value))
    }),
    ("device", ColumnType::Text, |series, _| SeriesValue::Text(series.device.as_deref())),
    ("pid", ColumnType::Whole, |series, _| {
        SeriesValue::Whole(series.process.as_ref().and_then(|one| one.pid))
    }),
    ("name", ColumnType::Text, |series, _| {
        SeriesValue::Text(series.process.as_ref().map(|one| &*one.name))
    }),
    ("min", ColumnType::Number, |series, at| number(&series.least, at)),
    ("mean", ColumnType::Number, |series, at| number(&series.mean, at)),
    ("max", ColumnType::Number, |series, at| number(&series.greatest, at)),
];

fn number(values: &[Option<f64>], at: usize) -> SeriesValue<'_> {
    SeriesValue::Number(values.get(at).copied().flatten())
}

impl History {
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Columns<'py>> {
        let mut columns = Columns::new();
        let times = self.times(py)?;
        let every = self.inner.series.iter().flat_map(|_| times.iter().cloned());
        let every = PyList::new(py, every.collect::<Vec<_>>())?;
        columns.push("time", ColumnType::Moment, every);
        for (name, holds, of) in COLUMNS {
            let steps = |series| (0..self.inner.points).map(move |at| of(series, at));
            let values: Vec<_> = self.inner.series.iter().flat_map(steps).collect();
            columns.push(name, holds, PyList::new(py, values)?);
        }
        Ok(columns)
    }
}

#[pymethods]
impl History {
    /// When each step begins.
    #[getter]
    fn times<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDateTime>>> {
        let answer = &self.inner;
        let step = answer.step_ms.saturating_mul(1_000_000);
        let begin = |at: u64| Timestamp(answer.from.0.saturating_add(step.saturating_mul(at)));
        let points = u64::try_from(answer.points).unwrap_or(u64::MAX);
        (0..points).map(|at| value::moment(py, begin(at))).collect()
    }

    /// The steps of all series as columns: `time`, the series' own, and `min`, `mean` and `max`,
    /// with `None` where there was no value.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.rows(py)?.to_dict(py)
    }

    /// An Arrow table of these columns. Needs pyarrow.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.rows(py)?.to_arrow(py)
    }

    /// A data frame of these columns. Needs pandas.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.rows(py)?.to_pandas(py)
    }

    /// Everything, as `telltale history --json` prints it.
    fn to_json(&self) -> String {
        serde_json::to_string(&self.inner).expect("it has only string keys")
    }

    /// The series, as in that JSON.
    #[getter]
    fn series(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        columns::json(py, &self.inner.series)
    }

    fn __len__(&self) -> usize {
        self.inner.series.len()
    }

    /// A series, or those of a slice.
    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match sequence::chosen(index, self.inner.series.len(), "series")? {
            Chosen::One(at) => columns::json(py, &self.inner.series[at]),
            Chosen::Several(part) => {
                let chosen: Vec<_> = part.places().map(|at| &self.inner.series[at]).collect();
                columns::json(py, &chosen)
            }
        }
    }

    fn __repr__(&self) -> String {
        telltale_smi::history(&self.inner, &display::STYLE).trim_end().to_owned()
    }
}
