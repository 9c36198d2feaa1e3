//! The debug stream's default consumer: with `NEURON_RT_DEBUG_OUTPUT_DIR` set, one thread reads the
//! streams of all logical cores that no client reads, writes each event's files and prints it.
//!
//! What waits is written before the process ends, by whatever way can be noticed: exit, and
//! every deadly signal but SIGKILL. The thread never ends the workload: what cannot be written is
//! reported once and counted.

mod environment;
mod flush;
mod standard;
mod writer;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use telltale_debug_stream::cores;
use telltale_schema::text::with_causes;

pub use environment::{DIRECTORY_VARIABLE, SAVE_BINARY_VARIABLE};
pub(crate) use flush::before_death;

use crate::process_hooks;
use environment::OutputSettings;
use standard::tell;
use writer::OutputWriter;

/// Stack of the thread: events and their texts are on the heap.
const STACK_BYTES: usize = 256 << 10;

/// Whether there is a default consumer, and what it was made from.
static STATE: Mutex<OutputState> = Mutex::new(OutputState::Unread);

enum OutputState {
    /// The environment has not been checked.
    Unread,
    /// It asks for none.
    Unwanted,
    /// It asks for one, which may run.
    Wanted(OutputSettings),
}

/// Why there is no default consumer.
#[derive(Debug, thiserror::Error)]
enum ConsumerStartError {
    #[error("cannot make its event descriptor; raise the limit on open files (ulimit -n)")]
    Event(#[source] std::io::Error),
    #[error("cannot start its thread; raise the limit on processes (ulimit -u)")]
    Spawn(#[source] std::io::Error),
}

/// Starts the default consumer if the environment asks for one, and has it search for logical cores
/// that are new. To be called whenever there are new ones; whether it runs. A child of `fork` has
/// none.
pub fn start() -> bool {
    if flush::is_foreign() {
        return false;
    }
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if let OutputState::Unread = &*state {
        *state = OutputState::of(|name| std::env::var_os(name));
    }
    let OutputState::Wanted(settings) = &*state else { return false };
    if flush::is_running() {
        return flush::ring();
    }
    match begin(settings.clone()) {
        Ok(()) => true,
        Err(error) => {
            let error = with_causes(&error);
            tell(&format!("debug events are not written to files: {error}"));
            *state = OutputState::Unwanted;
            false
        }
    }
}

/// Asks for a default consumer that writes below `directory`, whatever the environment says of
/// that. Only before [`start`] is called first, for which files would be in two places; whether it
/// was not.
pub fn write_below(directory: &Path) -> bool {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let OutputState::Unread = &*state else { return false };
    *state = OutputState::of(|name| match name {
        DIRECTORY_VARIABLE => Some(directory.into()),
        _ => std::env::var_os(name),
    });
    true
}

/// Waits until what was published before this call, on any core, has been taken by its client or
/// written by the default consumer; whether that came to pass in time. Without a reader, nothing
/// is waited for.
#[must_use]
pub fn drain(timeout: Duration) -> bool {
    let deadline = std::time::Instant::now().checked_add(timeout);
    let left = || {
        let left = deadline.map(|at| at.saturating_duration_since(std::time::Instant::now()));
        left.unwrap_or(Duration::MAX)
    };
    let streams = (0..cores::count()).filter_map(cores::stream);
    let taken =
        streams.map(|stream| stream.wait_until_taken(left())).fold(true, |all, one| all & one);
    taken && flush::written_within(left())
}

/// Ends the default consumer after it has written what waits; [`start`] starts it again. Gives up
/// waiting for it when nothing gets written for five seconds.
pub fn stop() {
    if !flush::is_foreign() {
        let _state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        flush::stop();
    }
}

impl OutputState {
    /// What variables ask for. Says what is wrong with them.
    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let (settings, problems) = OutputSettings::read(variable);
        problems.iter().for_each(|problem| tell(problem));
        settings.map_or(Self::Unwanted, Self::Wanted)
    }
}

fn begin(settings: OutputSettings) -> Result<(), ConsumerStartError> {
    let wake_up = match flush::wake_up() {
        Some(wake_up) => wake_up,
        None => {
            let made = eventfd(0, EventfdFlags::CLOEXEC);
            let made: OwnedFd = made.map_err(|error| ConsumerStartError::Event(error.into()))?;
            flush::set_wake_up(Arc::new(made))
        }
    };
    let mut writer = OutputWriter::new(settings, wake_up);
    // Events that the caller publishes next are kept already.
    writer.connect();
    process_hooks::flush_before_death(before_death);
    let builder =
        std::thread::Builder::new().name("telltale debug".to_owned()).stack_size(STACK_BYTES);
    flush::begins();
    let started = process_hooks::with_signals_blocked(|| {
        builder.spawn(move || {
            process_hooks::let_faults_through();
            flush::is_this_thread();
            writer.run();
        })
    });
    started.map(|_| ()).map_err(|error| {
        flush::ended();
        ConsumerStartError::Spawn(error)
    })
}
