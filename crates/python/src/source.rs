//! `telltale.snapshot`: where a snapshot comes from.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use telltale_client::Tls;
use telltale_collector::clock::SystemClock;
use telltale_collector::{CollectOptions, Collector, EndpointUse, HostUse, Sensors};
use telltale_node::kubelet::list_allocated;
use telltale_query::Query;
use telltale_schema::clock::Clock;
use telltale_schema::fleet;
use telltale_schema::snapshot::Snapshot as HostSnapshot;
use telltale_sources::{
    HostItem, Inquiry, PastPlace, PastSource, Question, Recording, ReplayError, Terms, read_all,
};

use crate::error::ErrorClass;
use crate::fleet::Fleet;
use crate::moment::{PastMoment, moment};
use crate::place::HostPlace;
use crate::snapshot::Snapshot;
use crate::value;

/// What a host's own deadline gets beyond itself, so that its reason comes first.
const GRACE: Duration = Duration::from_millis(500);

/// How long a signal may wait, such as that of Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(100);

/// How often the service of this host is asked what one look cannot find, such as a heartbeat that stands still.
const ASKED_EVERY: Duration = Duration::from_secs(1);

thread_local! {
    /// The collector that this thread used last. What it opened stays open, and rates have a beginning.
    static LAST: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// A collector, and what it was made for.
struct Kept {
    place: LocalPlace,
    /// A child of `fork` has none of the threads that its parent's collector has.
    pid: u32,
    collector: Collector,
    /// When the service of this host was asked last what one look cannot find.
    asked: Option<Instant>,
}

/// What is collected here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalPlace {
    host: HostPlace,
    usage: bool,
    metrics: bool,
    with_host: bool,
}

impl LocalPlace {
    /// What is of devices alone.
    pub(crate) const fn of(host: HostPlace) -> Self {
        Self { host, usage: false, metrics: false, with_host: false }
    }
}

/// One host, or several.
#[derive(FromPyObject)]
pub(crate) enum HostNames {
    One(String),
    Several(Vec<String>),
}

/// A host at one moment, or several hosts.
///
/// Without arguments, this host: what its drivers, ledgers and endpoints say now. `root` reads the files below a
/// directory instead, `host` asks the service of another host, or of several at the same time, and `recording` reads
/// a file of `telltale record`. `at` is a past moment, of the history or of the recording.
///
/// `filter` leaves only the rows that a query wants. `usage` reads what processes use of the host, `metrics` asks each
/// process for the metrics that its program registered, `with_host` shows the host as a device. `timeout` is in seconds. `token`, `authority`, `certificate` and `key` are for services of
/// other hosts: the token, and files of TLS.
#[pyfunction]
#[pyo3(signature = (*, root=None, runtime_dir=None, host=None, recording=None, at=None, state_dir=None, filter=None,
    usage=false, metrics=false, with_host=false, timeout=2.0, token=None, authority=None, certificate=None, key=None))]
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
    timeout: f64,
    token: Option<String>,
    authority: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> PyResult<Py<PyAny>> {
    let query = filter.map(Query::parse).transpose();
    let query = query.map_err(|error| ErrorClass::Query.because(py, &error))?;
    let select = |taken: HostSnapshot| match &query {
        Some(query) => query.select(&taken),
        None => taken,
    };
    if let Some(path) = recording {
        let taken = recorded(py, &path, at.as_ref()).map(select)?;
        return Snapshot::new(taken).into_py_any(py);
    }
    if let Some(host) = host {
        let terms = Terms {
            tls: tls(py, authority, certificate, key)?,
            token,
            filter: query.clone(),
            usage,
            chooses_by_usage: query.as_ref().is_some_and(Query::asks_for_usage),
            timeout: value::seconds(py, timeout)?,
            period: None,
        };
        return match host {
            HostNames::One(name) => Snapshot::new(of_host(py, name, terms)?).into_py_any(py),
            HostNames::Several(names) => {
                Fleet { inner: Arc::new(asked(py, &names, terms)?) }.into_py_any(py)
            }
        };
    }
    let host_place = HostPlace::named(root, runtime_dir);
    let taken = match at {
        Some(at) => past(py, &host_place.past(state_dir), &at)?,
        None => {
            let place = LocalPlace { host: host_place, usage, metrics, with_host };
            let taken = py.detach(|| collect(&place));
            taken.map_err(|error| ErrorClass::Collect.because(py, &error))?
        }
    };
    Snapshot::new(py.detach(|| select(taken))).into_py_any(py)
}

/// A moment of a recording; without `at` its last.
fn recorded(py: Python<'_>, path: &Path, at: Option<&PastMoment<'_>>) -> PyResult<HostSnapshot> {
    let moment = at.map(|at| moment(py, at)).transpose()?;
    let taken = py.detach(|| {
        let recording = Recording::open(path)?;
        let frames = recording.frames();
        let last = frames.len() - 1;
        let end = frames[last].at;
        recording.snapshot(moment.map_or(last, |moment| recording.place_at(moment.at(end))))
    });
    taken.map_err(|error: ReplayError| ErrorClass::File.because(py, &error))
}

/// A moment of the history.
fn past(py: Python<'_>, place: &PastPlace, at: &PastMoment<'_>) -> PyResult<HostSnapshot> {
    let asked = moment(py, at)?.at(SystemClock.now());
    let past = py.detach(|| PastSource::find(place).and_then(|past| past.snapshot_at(asked)));
    past.map(|past| past.snapshot).map_err(|error| ErrorClass::History.because(py, &error))
}

/// What one host says.
fn of_host(py: Python<'_>, name: String, terms: Terms) -> PyResult<HostSnapshot> {
    let asked = asked(py, &[name], terms)?;
    let host = asked.hosts.into_iter().next();
    let host = host.ok_or_else(|| ErrorClass::Service.of(py, "no host is named", None))?;
    match host.snapshot {
        Some(taken) => Ok((*taken).clone()),
        None => {
            let message = format!("{} does not answer", host.name);
            Err(ErrorClass::Service.of(py, &message, host.reason.as_deref()))
        }
    }
}

/// This host now.
pub(crate) fn collect(
    place: &LocalPlace,
) -> Result<HostSnapshot, telltale_collector::tree::OpenTreeError> {
    LAST.with_borrow_mut(|last| {
        let pid = std::process::id();
        if let Some(kept) = last.take_if(|kept| kept.pid != pid) {
            // Its end would wait for threads that are the parent's.
            let _ = std::mem::ManuallyDrop::new(kept);
        }
        if last.as_ref().is_none_or(|kept| kept.place != *place) {
            let collector = Collector::new(options(place))?;
            *last = Some(Kept { place: place.clone(), pid, collector, asked: None });
        }
        let kept = last.as_mut().expect("it was made");
        if kept.asked.is_none_or(|asked| asked.elapsed() >= ASKED_EVERY) {
            Question::ask(place.host.sockets()).teach(&mut kept.collector);
            kept.asked = Some(Instant::now());
        }
        Ok(kept.collector.collect())
    })
}

fn options(place: &LocalPlace) -> CollectOptions {
    let endpoints = if place.metrics { EndpointUse::Always } else { EndpointUse::WhereNeeded };
    let mut options = CollectOptions {
        sensors: Sensors::All,
        endpoints,
        usage: place.usage,
        list_allocated: Some(list_allocated),
        runtime_dir: place.host.runtime_dir.clone(),
        ..CollectOptions::default()
    };
    if let Some(root) = &place.host.root {
        options.root = root.clone();
    }
    if place.with_host {
        options.host = HostUse::Always;
    }
    options
}

/// What several hosts say.
fn asked(py: Python<'_>, names: &[String], terms: Terms) -> PyResult<fleet::Fleet> {
    let refused = |error: &dyn std::error::Error| ErrorClass::Service.because(py, error);
    let items: Result<Vec<HostItem>, _> = names.iter().map(|name| name.parse()).collect();
    let addresses = read_all(&items.map_err(|error| refused(&error))?);
    let addresses = addresses.map_err(|error| refused(&error))?;
    if let Some(address) = terms.exposed(&addresses) {
        let message = format!(
            "the token would be sent to {} for anyone on the network to read; give authority=, or \
             reach it by ssh://",
            address.name
        );
        return Err(ErrorClass::Service.of(py, &message, None));
    }
    let begun = Instant::now();
    let most = terms.timeout + GRACE;
    let inquiry =
        py.detach(|| Inquiry::start(addresses, terms)).map_err(|error| refused(&error))?;
    loop {
        let left = most.saturating_sub(begun.elapsed());
        if py.detach(|| inquiry.wait(left.min(SIGNALS))) || left <= SIGNALS {
            break;
        }
        if let Err(interrupted) = py.check_signals() {
            py.detach(|| drop(inquiry));
            return Err(interrupted);
        }
    }
    Ok(py.detach(move || inquiry.now()))
}

/// What the files of TLS say, where any is named.
fn tls(
    py: Python<'_>,
    authority: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> PyResult<Option<Tls>> {
    let read = |path: PathBuf| {
        std::fs::read(&path).map_err(|error| {
            let message = format!("{} cannot be read", path.display());
            ErrorClass::Service.of(py, &message, Some(&error.to_string()))
        })
    };
    let Some(authority) = authority else { return Ok(None) };
    let tls = Tls::with_authority(read(authority)?);
    match (certificate, key) {
        (Some(certificate), Some(key)) => {
            Ok(Some(tls.with_identity(read(certificate)?, read(key)?)))
        }
        (None, None) => Ok(Some(tls)),
        _ => {
            Err(ErrorClass::Service.of(py, "certificate and key belong together; give both", None))
        }
    }
}
