//! A core's stream in this process: of a runtime that uses this module, or of a library with Neuron's
//! calls.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use telltale_debug_stream::{
    EventReader, EventView, Filter, Losses, MAX_COUNTED_PREFIXES, Stream, cores,
};
use telltale_schema::clock::Timestamp;

use super::event::{DebugEvent, LiveEvent};
use super::filter;
use super::library::{Library, LibraryConnection, LibraryEvent, LibraryLosses};
use crate::error::ErrorClass;
use crate::value;

/// How long one waits at most until signals are looked at.
const MAX_WAIT: Duration = Duration::from_millis(100);
/// Unwanted events that are passed over until signals are looked at.
const MAX_UNWANTED: usize = 4_096;
/// How often so many are passed over once the time is over: more events than wait in a queue. What waited by then is
/// looked through to its end, and a publisher that goes on publishing does not hold up the call without end.
const MAX_LATE_BATCHES: usize = 256;

/// The client of one core's stream.
#[pyclass(frozen, module = "telltale.debug")]
pub(crate) struct DebugStream {
    core: u32,
    pid: u32,
    losses: LossCounts,
    /// None once it is closed.
    connection: Mutex<Option<ClientConnection>>,
}

struct ClientConnection {
    provider: Provider,
    filter: Option<Filter>,
    /// Readable while an event waits. A thread that waits has a share.
    ready: Arc<OwnedFd>,
    iterations: HashMap<String, u64>,
}

enum Provider {
    Here(EventReader),
    Library(LibraryConnection),
}

/// Where losses are counted, and what there was before.
enum LossCounts {
    Here(&'static Stream, Losses),
    Library(Library, Option<LibraryLosses>),
}

/// What a look into the stream gave.
enum Taken {
    Event(Box<LiveEvent>),
    Nothing(Arc<OwnedFd>),
    /// Nothing wanted so far.
    Unwanted,
    Closed,
    Failed(String),
}

/// Connects to a core's stream.
#[pyfunction]
#[pyo3(signature = (core=0, *, filter=None, library=None))]
pub(crate) fn debug_connect(
    py: Python<'_>,
    core: u32,
    filter: Option<&str>,
    library: Option<PathBuf>,
) -> PyResult<DebugStream> {
    let wanted = filter.map(|text| self::filter(py, text)).transpose()?;
    let connected = py.detach(|| match cores::stream(core) {
        Some(stream) if library.is_none() => connect_here(stream),
        _ => connect_library(core, library.as_deref()),
    });
    let (provider, ready, losses) = connected
        .map_err(|(message, cause)| ErrorClass::Stream.of(py, &message, cause.as_deref()))?;
    let (ready, iterations) = (Arc::new(ready), HashMap::new());
    let connection = ClientConnection { provider, filter: wanted, ready, iterations };
    let connection = Mutex::new(Some(connection));
    Ok(DebugStream { core, pid: std::process::id(), losses, connection })
}

/// What is connected, or a message and its cause.
type Connected = Result<(Provider, OwnedFd, LossCounts), (String, Option<String>)>;

fn connect_here(stream: &'static Stream) -> Connected {
    let cannot = |cause: String| {
        (format!("cannot connect to the debug stream of core {}", stream.core()), Some(cause))
    };
    let before = stream.counters().lost;
    let reader = stream.connect_for_events();
    let reader = reader.map_err(|error| cannot(telltale_schema::text::with_causes(&error)))?;
    let ready = reader.as_fd().try_clone_to_owned().map_err(|error| cannot(error.to_string()))?;
    Ok((Provider::Here(reader), ready, LossCounts::Here(stream, before)))
}

fn connect_library(core: u32, path: Option<&std::path::Path>) -> Connected {
    let library = Library::find(path).map_err(|cause| {
        let name = path.map_or_else(String::new, |path| path.display().to_string());
        (format!("cannot load {name}; give a library with Neuron's debug stream"), Some(cause))
    })?;
    let Some(library) = library else {
        let message = format!(
            "core {core} has no debug stream in this process; open a device first, or load a library \
             with Neuron's debug stream"
        );
        return Err((message, None));
    };
    let cannot =
        |cause| (format!("cannot connect to the debug stream of core {core}"), Some(cause));
    let before = library.losses(core);
    let connection = library.connect(core).map_err(cannot)?;
    let ready = connection.ready().map_err(|error| cannot(error.to_string()))?;
    Ok((Provider::Library(connection), ready, LossCounts::Library(library, before)))
}

#[pymethods]
impl DebugStream {
    #[getter]
    fn core(&self) -> u32 {
        self.core
    }

    /// Takes the next event; waits for it, if there is none, so many seconds or without end.
    #[pyo3(signature = (timeout=None))]
    fn read(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<DebugEvent>> {
        let timeout = timeout.map(|seconds| value::seconds(py, seconds)).transpose()?;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut late_batches = 0;
        loop {
            self.refuse_child(py)?;
            let taken = py.detach(|| self.take());
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let is_over = left.is_some_and(|left| left.is_zero());
            match taken {
                Taken::Event(event) => return Ok(Some(DebugEvent::of_stream(*event))),
                Taken::Closed => return Err(PyValueError::new_err("the stream is closed")),
                Taken::Failed(cause) => {
                    let message = format!("cannot read the debug stream of core {}", self.core);
                    return Err(ErrorClass::Stream.of(py, &message, Some(&cause)));
                }
                // There may be a wanted one behind those.
                Taken::Unwanted if is_over && late_batches >= MAX_LATE_BATCHES => return Ok(None),
                Taken::Unwanted => late_batches += usize::from(is_over),
                Taken::Nothing(_) if is_over => return Ok(None),
                Taken::Nothing(ready) => {
                    py.detach(|| wait(&ready, left.unwrap_or(MAX_WAIT).min(MAX_WAIT)));
                }
            }
            py.check_signals()?;
        }
    }

    /// The descriptor, readable while an event waits.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        self.refuse_child(py)?;
        let descriptor = py.detach(|| self.connection().as_ref().map(|it| it.ready.as_raw_fd()));
        descriptor.ok_or_else(|| PyValueError::new_err("the stream is closed"))
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.pid != std::process::id() || py.detach(|| self.connection().is_none())
    }

    /// Events that were lost since this connected, by cause.
    #[getter]
    fn lost<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.refuse_child(py)?;
        let counts = match &self.losses {
            LossCounts::Here(stream, before) => {
                let now = stream.counters().lost;
                Some([
                    now.events.saturating_sub(before.events),
                    now.bytes.saturating_sub(before.bytes),
                    now.memory.saturating_sub(before.memory),
                ])
            }
            LossCounts::Library(library, before) => {
                let now = library.losses(self.core).zip(*before);
                now.map(|(now, before)| {
                    std::array::from_fn(|cause| now[cause].saturating_sub(before[cause]))
                })
            }
        };
        let Some([events, bytes, memory]) = counts else { return Ok(None) };
        let lost = PyDict::new(py);
        lost.set_item("events", events)?;
        lost.set_item("bytes", bytes)?;
        lost.set_item("memory", memory)?;
        Ok(Some(lost))
    }

    /// Ends the connection. Another thread that waits for an event stops.
    fn close(&self, py: Python<'_>) {
        if self.pid == std::process::id() {
            py.detach(|| {
                let connection = self.connection().take();
                // Without the lock: a library may take its time.
                drop(connection);
            });
        }
    }
}

impl DebugStream {
    /// A child of `fork` has the parent's connection, and maybe its lock as another thread held it.
    fn refuse_child(&self, py: Python<'_>) -> PyResult<()> {
        if self.pid == std::process::id() {
            return Ok(());
        }
        let message = "a debug stream is its process's own; read it in the process that connected";
        Err(ErrorClass::Stream.of(py, message, None))
    }

    /// Another thread may have the lock for as long as a library takes: only without the interpreter.
    fn connection(&self) -> MutexGuard<'_, Option<ClientConnection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Taken {
        match &mut *self.connection() {
            Some(connection) => connection.take(self.core),
            None => Taken::Closed,
        }
    }
}

// === impl ClientConnection ===

impl ClientConnection {
    fn take(&mut self, core: u32) -> Taken {
        let Self { provider, filter, ready, iterations } = self;
        for _ in 0..MAX_UNWANTED {
            let wants = |core: u32, prefix: &str, dtype: &str, bytes: usize| {
                filter.as_ref().is_none_or(|filter| filter.wants_event(core, prefix, dtype, bytes))
            };
            let found = match provider {
                Provider::Here(reader) => {
                    let read = reader.read(|view| {
                        let prefix = String::from_utf8_lossy(view.prefix);
                        let dtype = String::from_utf8_lossy(view.dtype);
                        let iteration = count(iterations, &prefix);
                        wants(view.core, &prefix, &dtype, view.data.len())
                            .then(|| of_view(view, &prefix, &dtype, iteration))
                    });
                    read.map_err(|error| telltale_schema::text::with_causes(&error))
                }
                Provider::Library(connection) => connection.read().map(|read| {
                    read.map(|event| {
                        let iteration = count(iterations, &event.prefix);
                        let from = event.core.unwrap_or(core);
                        wants(from, &event.prefix, &event.dtype, event.data.len())
                            .then(|| of_library(event, from, iteration))
                    })
                }),
            };
            match found {
                Ok(Some(Some(event))) => return Taken::Event(Box::new(event)),
                Ok(Some(None)) => {}
                Ok(None) => return Taken::Nothing(Arc::clone(ready)),
                Err(cause) => return Taken::Failed(cause),
            }
        }
        Taken::Unwanted
    }
}

/// How often a prefix was seen before; none if it is one too many to count.
fn count(iterations: &mut HashMap<String, u64>, prefix: &str) -> Option<u64> {
    if let Some(seen) = iterations.get_mut(prefix) {
        *seen += 1;
        return Some(*seen - 1);
    }
    (iterations.len() < MAX_COUNTED_PREFIXES).then(|| {
        iterations.insert(prefix.to_owned(), 1);
        0
    })
}

fn of_view(view: &EventView<'_>, prefix: &str, dtype: &str, iteration: Option<u64>) -> LiveEvent {
    LiveEvent {
        kind: view.kind,
        core: view.core,
        pipe: view.pipe,
        prefix: prefix.to_owned(),
        dtype: dtype.to_owned(),
        shape: view.shape[..view.rank].to_vec(),
        sequence: Some(view.sequence),
        time_ns: Some(view.time_ns),
        time: Some(wall_time(view.time_ns)),
        iteration,
        data: view.data.to_vec(),
    }
}

fn of_library(event: LibraryEvent, core: u32, iteration: Option<u64>) -> LiveEvent {
    LiveEvent {
        kind: event.kind,
        core,
        pipe: event.pipe,
        prefix: event.prefix,
        dtype: event.dtype,
        shape: event.shape,
        sequence: None,
        time_ns: None,
        time: None,
        iteration,
        data: event.data,
    }
}

/// The time since 1970 of a moment of `CLOCK_MONOTONIC` in this boot.
fn wall_time(monotonic_ns: u64) -> Timestamp {
    let [now, monotonic] = [ClockId::Realtime, ClockId::Monotonic].map(|clock| {
        let time = clock_gettime(clock);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    });
    let at = now - monotonic + i128::from(monotonic_ns);
    Timestamp(u64::try_from(at).unwrap_or(0))
}

/// Waits until the descriptor is readable, or so long.
fn wait(descriptor: &OwnedFd, timeout: Duration) {
    let timeout = Timespec::try_from(timeout).ok();
    // A signal or an error is looked at by the caller, who reads again.
    let _ =
        poll(&mut [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)], timeout.as_ref());
}
