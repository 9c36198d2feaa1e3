//! `telltale.snapshot`: where a snapshot comes from.

use std::path::{Path, PathBuf};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use telltale_collector::clock::SystemClock;
use telltale_query::Query;
use telltale_schema::clock::Clock;
use telltale_schema::moment::Moment;
use telltale_schema::snapshot::Snapshot as HostSnapshot;
use telltale_sources::{FOR_A_LOOK, PastPlace, PastSource, Recording, ReplayError};

use crate::error::ErrorClass;
use crate::local::{LocalPlace, collect};
use crate::moment::{PastMoment, moment};
use crate::place::HostPlace;
use crate::remote::{self, Asking, HostNames};
use crate::signals;
use crate::snapshot::Snapshot;

/// What a snapshot is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// This host now.
    Here,
    /// This host at a past moment.
    Past,
    Recording,
    /// Other hosts.
    Hosts,
}

/// Which arguments go with which sources. `filter` goes with all.
const TOGETHER: [(&str, &[Source]); 14] = [
    ("root", &[Source::Here, Source::Past]),
    ("runtime_dir", &[Source::Here, Source::Past]),
    ("host", &[Source::Hosts]),
    ("recording", &[Source::Recording]),
    ("at", &[Source::Past, Source::Recording]),
    ("state_dir", &[Source::Past]),
    ("usage", &[Source::Here, Source::Hosts]),
    ("metrics", &[Source::Here]),
    ("with_host", &[Source::Here]),
    ("timeout", &[Source::Hosts]),
    ("token", &[Source::Hosts]),
    ("authority", &[Source::Hosts]),
    ("certificate", &[Source::Hosts]),
    ("key", &[Source::Hosts]),
];

// === impl Source ===

impl Source {
    /// The argument that chooses it.
    const fn argument(self) -> Option<&'static str> {
        match self {
            Self::Here => None,
            Self::Past => Some("at"),
            Self::Recording => Some("recording"),
            Self::Hosts => Some("host"),
        }
    }

    /// Whether all given arguments go with the source that they choose; else the error of the first
    /// that does not.
    fn check(py: Python<'_>, is_given: impl Fn(&str) -> bool) -> PyResult<()> {
        let chosen = [Self::Hosts, Self::Recording, Self::Past];
        let is_chosen = |source: &Self| source.argument().is_some_and(&is_given);
        let source = chosen.into_iter().find(is_chosen).unwrap_or(Self::Here);
        let mut given = TOGETHER.iter().filter(|(name, _)| is_given(name));
        let Some((name, sources)) = given.find(|(_, sources)| !sources.contains(&source)) else {
            return Ok(());
        };
        let message = match source.argument() {
            Some(by) => format!("{name}= does not go with {by}=; leave one of them out"),
            None => {
                let by = sources.iter().find_map(|source| source.argument()).unwrap_or_default();
                format!("{name}= goes with {by}= alone; give that too, or leave it out")
            }
        };
        Err(ErrorClass::Query.of(py, &message, None))
    }
}

/// A host at one moment, or several hosts.
///
/// Without arguments, this host: what its drivers, ledgers and endpoints say now. `root` reads the
/// files below a directory instead, `host` asks the service of another host, or of several at the
/// same time, and `recording` reads a file of `telltale record`. `at` is a past moment, of the
/// history or of the recording.
///
/// `filter` leaves only the rows that a query wants. `usage` reads what processes use of the host,
/// `metrics` asks each process for the metrics that its program registered, `with_host` shows the
/// host as a device. `timeout` is in seconds, 2 without. `token`, `authority`, `certificate` and
/// `key` are for services of other hosts: the token, and files of TLS. Arguments of two sources are
/// refused.
#[pyfunction]
#[pyo3(signature = (*, root=None, runtime_dir=None, host=None, recording=None, at=None,
    state_dir=None, filter=None, usage=false, metrics=false, with_host=false, timeout=None,
    token=None, authority=None, certificate=None, key=None))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword arguments")]
pub(crate) fn snapshot(
    py: Python<'_>,
    root: Option<PathBuf>,
    runtime_dir: Option<PathBuf>,
    host: Option<HostNames>,
    recording: Option<PathBuf>,
    at: Option<PastMoment<'_>>,
    state_dir: Option<PathBuf>,
    filter: Option<&str>,
    usage: bool,
    metrics: bool,
    with_host: bool,
    timeout: Option<f64>,
    token: Option<String>,
    authority: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> PyResult<Py<PyAny>> {
    let given = [
        ("root", root.is_some()),
        ("runtime_dir", runtime_dir.is_some()),
        ("host", host.is_some()),
        ("recording", recording.is_some()),
        ("at", at.is_some()),
        ("state_dir", state_dir.is_some()),
        ("usage", usage),
        ("metrics", metrics),
        ("with_host", with_host),
        ("timeout", timeout.is_some()),
        ("token", token.is_some()),
        ("authority", authority.is_some()),
        ("certificate", certificate.is_some()),
        ("key", key.is_some()),
    ];
    Source::check(py, |name| given.contains(&(name, true)))?;
    let query = filter.map(Query::parse).transpose();
    let query = query.map_err(|error| ErrorClass::Query.because(py, &error))?;
    if let Some(host) = host {
        let asking = Asking { query, usage, timeout, token, authority, certificate, key };
        return remote::snapshot(py, host, asking);
    }
    let at = at.map(|at| moment(py, &at)).transpose()?;
    let place = HostPlace::named(root, runtime_dir);
    let taken = match (recording, at) {
        (Some(path), at) => recorded(py, path, at)?,
        (None, Some(at)) => past(py, place.past(state_dir), at)?,
        (None, None) => {
            let place = LocalPlace { host: place, usage, metrics, with_host };
            let taken = py.detach(|| collect(&place, FOR_A_LOOK));
            taken.map_err(|error| ErrorClass::Collect.because(py, &error))?
        }
    };
    let selected = py.detach(|| match query {
        Some(query) => query.select(&taken),
        None => taken,
    });
    Snapshot::new(selected).into_py_any(py)
}

/// A moment of a recording; without `at` its last.
fn recorded(py: Python<'_>, path: PathBuf, at: Option<Moment>) -> PyResult<HostSnapshot> {
    let taken = signals::wait_for(py, move || frame(&path, at))?;
    taken.map_err(|error| ErrorClass::File.because(py, &error))
}

fn frame(path: &Path, at: Option<Moment>) -> Result<HostSnapshot, ReplayError> {
    let recording = Recording::open(path)?;
    let frames = recording.frames();
    let last = frames.len() - 1;
    match at {
        Some(at) => recording.snapshot_at(at.at(frames[last].at)),
        None => recording.snapshot(last),
    }
}

/// A moment of the history.
fn past(py: Python<'_>, place: PastPlace, at: Moment) -> PyResult<HostSnapshot> {
    let at = at.at(SystemClock.now());
    let question = move || PastSource::find(&place).and_then(|past| past.snapshot_at(at));
    let past = signals::wait_for(py, question)?;
    past.map(|past| past.snapshot).map_err(|error| ErrorClass::History.because(py, &error))
}
