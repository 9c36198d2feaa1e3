//! XID errors of GPUs, which NVIDIA's driver reports as events (`nvmlEventTypeXidCriticalError`).
//!
//! One thread asks for them twice a second, and writes down what there was; a reader takes what is
//! written there and never waits. The thread ends with the source, or stays in a call that hangs. Each
//! GPU has an event set of its own, as a GPU that fell off the bus can no longer be asked which it is.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, EventSet};
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::reading::{Absence, Reading};

use super::library::{MAX_GPUS, Said, absence_of};
use crate::timeout::FOREIGN_STACK_BYTES;

/// The time between two rounds of the thread.
const ROUND: Duration = Duration::from_millis(500);
/// How long one call may wait for an event, in milliseconds; the least that is a wait.
const WAIT_MS: u32 = 1;
/// Events of one GPU that are taken in one round.
const MAX_EVENTS: usize = 256;
/// A thread that has written nothing for so long hangs.
const SILENCE_NS: u64 = 10_000_000_000;
/// Larger than any number of an XID error.
const MAX_XID: u64 = 9_999;

const HANGS: &str = "NVML did not come back when it was asked for events";

/// What the thread is asked to follow: a GPU, and where to write its events down.
type Followed = (Arc<Device<'static>>, Weak<Mutex<XidCount>>);

/// The thread's end that a source has.
#[derive(Default)]
pub(super) struct XidEvents {
    gpus: Option<SyncSender<Followed>>,
}

/// The XID errors of one GPU.
#[derive(Debug, Default)]
pub(super) struct XidErrors {
    count: Arc<Mutex<XidCount>>,
    collections: u32,
}

#[derive(Debug, Default)]
struct XidCount {
    total: u64,
    /// Of the last error; none where the driver did not report it.
    last: Option<u64>,
    state: State,
}

/// Whether events of a GPU are followed.
#[derive(Debug, Default)]
enum State {
    /// Not before a second collection: who collects once waits for no event.
    #[default]
    Unasked,
    /// The thread was asked to follow them, by a clock that never goes back.
    Asked { since_ns: u64 },
    /// The thread last looked then.
    Followed { at: Timestamp, looked_ns: u64 },
    /// NVML does not report them.
    Refused(Absence, String),
}

// === impl XidEvents ===

impl XidEvents {
    /// Sees to it that events of a GPU are followed, from its second collection on.
    pub(super) fn follow(
        &mut self,
        device: &Arc<Device<'static>>,
        errors: &mut XidErrors,
        clock: &Arc<dyn Clock>,
    ) {
        errors.collections = errors.collections.saturating_add(1);
        let mut count = errors.count();
        let is_wanted = match &count.state {
            State::Unasked => errors.collections > 1,
            State::Refused(reason, _) => *reason != Absence::Unsupported,
            State::Asked { .. } | State::Followed { .. } => false,
        };
        if !is_wanted {
            return;
        }
        let gpus = self.gpus.take().or_else(|| start(Arc::clone(clock)));
        let asked = (Arc::clone(device), Arc::downgrade(&errors.count));
        count.state = match gpus.as_ref().map(|gpus| gpus.try_send(asked)) {
            // A reason stands until the next one, or events.
            Some(Ok(())) if matches!(count.state, State::Refused(..)) => {
                std::mem::take(&mut count.state)
            }
            Some(Ok(())) => State::Asked { since_ns: clock.monotonic_ns() },
            // It hangs with as many to do as there can be.
            Some(Err(TrySendError::Full(_))) => {
                State::Refused(Absence::TimedOut, String::from(HANGS))
            }
            Some(Err(TrySendError::Disconnected(_))) | None => {
                State::Refused(Absence::Failed, String::from("there is no thread to wait for them"))
            }
        };
        drop(count);
        self.gpus = gpus;
    }
}

/// Starts the thread; none where the system gives none.
fn start(clock: Arc<dyn Clock>) -> Option<SyncSender<Followed>> {
    let most = usize::try_from(MAX_GPUS).unwrap_or(usize::MAX);
    let (gpus, asked) = sync_channel(most);
    let thread = thread::Builder::new().name("telltale-xid".to_owned());
    let started = thread.stack_size(FOREIGN_STACK_BYTES).spawn(move || run(&asked, &*clock));
    started.is_ok().then_some(gpus)
}

/// What the thread does, until the source is gone.
fn run(asked: &Receiver<Followed>, clock: &dyn Clock) {
    let mut sets: Vec<(EventSet<'static>, Weak<Mutex<XidCount>>)> = Vec::new();
    loop {
        match asked.recv_timeout(ROUND) {
            Ok((device, errors)) => {
                sets.retain(|(_, known)| !known.ptr_eq(&errors));
                match event_set(&device) {
                    Ok(set) => sets.push((set, errors)),
                    Err(error) => note(&errors, |count| count.refuse(&error)),
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        sets.retain(|(_, errors)| errors.strong_count() > 0);
        for (set, errors) in &sets {
            let (events, end) = take(set);
            note(errors, |count| count.take(&events, end, clock));
        }
    }
}

/// Changes what is written of a GPU that is still there.
fn note(errors: &Weak<Mutex<XidCount>>, change: impl FnOnce(&mut XidCount)) {
    if let Some(count) = errors.upgrade() {
        change(&mut locked(&count));
    }
}

/// A set with the XID errors of one GPU.
fn event_set(device: &Device<'static>) -> Said<EventSet<'static>> {
    let nvml = device.nvml();
    // The wrapper frees a set without asking whether the library can.
    if nvml.lib().nvmlEventSetFree.is_err() {
        return Err(NvmlError::FunctionNotFound);
    }
    let set = nvml.create_event_set()?;
    let registered = device.register_events(EventTypes::CRITICAL_XID_ERROR, set);
    registered.map_err(|error| error.error)
}

/// The numbers of the errors that wait in a set, and what there was instead of one more.
fn take(set: &EventSet<'static>) -> (Vec<Option<u64>>, Said<()>) {
    let mut numbers = Vec::new();
    while numbers.len() < MAX_EVENTS {
        match set.wait(WAIT_MS) {
            Ok(event) => match event.event_data {
                Some(XidError::Value(number)) => numbers.push(Some(number)),
                Some(XidError::Unknown) => numbers.push(None),
                // An event of another kind, which was not asked for.
                None => return (numbers, Ok(())),
            },
            Err(NvmlError::Timeout) => return (numbers, Ok(())),
            Err(error) => return (numbers, Err(error)),
        }
    }
    (numbers, Ok(()))
}

// === impl XidCount ===

impl XidCount {
    fn take(&mut self, events: &[Option<u64>], end: Said<()>, clock: &dyn Clock) {
        let more = u64::try_from(events.len()).unwrap_or(u64::MAX);
        self.total = self.total.saturating_add(more);
        if let Some(last) = events.last() {
            self.last = *last;
        }
        match end {
            Ok(()) => {
                let (at, looked_ns) = (clock.now(), clock.monotonic_ns());
                self.state = State::Followed { at, looked_ns };
            }
            Err(error) => self.refuse(&error),
        }
    }

    /// The number of the last error as a reading at the time of the look.
    fn last(&self, at: Timestamp) -> Reading<u64> {
        match self.last {
            Some(last) => Reading::new(last, at).keep_if(|last| *last <= MAX_XID),
            None if self.total == 0 => Reading::absent(Absence::NotYet, "there was none"),
            None => Reading::absent(Absence::NotUnderstood, "the driver did not report its number"),
        }
    }

    fn with_last(&self, detail: &str) -> String {
        match self.last {
            Some(last) => format!("{detail}; the last XID error was {last}"),
            None => detail.to_owned(),
        }
    }

    fn refuse(&mut self, error: &NvmlError) {
        self.state = State::Refused(absence_of(error), error.to_string());
    }
}

// === impl XidErrors ===

impl XidErrors {
    fn count(&self) -> MutexGuard<'_, XidCount> {
        locked(&self.count)
    }

    /// How many there were, and the number of the last.
    pub(super) fn readings(&self, monotonic_ns: u64) -> (Reading<u64>, Reading<u64>) {
        let count = self.count();
        let is_silent = |since_ns: u64| monotonic_ns.saturating_sub(since_ns) > SILENCE_NS;
        let (reason, detail) = match &count.state {
            State::Unasked => (Absence::NotYet, "counted from the second collection on"),
            State::Asked { since_ns } if is_silent(*since_ns) => (Absence::TimedOut, HANGS),
            State::Followed { looked_ns, .. } if is_silent(*looked_ns) => {
                (Absence::TimedOut, HANGS)
            }
            State::Asked { .. } => (Absence::NotYet, "NVML is being asked for events"),
            State::Refused(reason, detail) => (*reason, detail.as_str()),
            State::Followed { at, .. } => {
                return (Reading::new(count.total, *at), count.last(*at));
            }
        };
        let detail = count.with_last(detail);
        (Reading::absent(reason, detail.as_str()), Reading::absent(reason, detail.as_str()))
    }

    /// NVML gave no handle for the GPU: the set of the one that it had may be of no use any more.
    pub(super) fn doubt(&self, reason: Absence, detail: &str) {
        let mut count = self.count();
        if !matches!(count.state, State::Unasked | State::Refused(..)) {
            count.state = State::Refused(reason, detail.to_owned());
        }
    }

    /// Why a GPU does not answer, with the last that was heard of it, which may be the reason.
    pub(super) fn with_last(&self, detail: &str) -> String {
        self.count().with_last(detail)
    }
}

/// The guard of a lock whose holder cannot leave it half-changed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
