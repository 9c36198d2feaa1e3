//! XID errors of GPUs, which NVIDIA's driver reports as events (`nvmlEventTypeXidCriticalError`).
//!
//! One thread asks for them twice a second, and writes down what there was; a reader takes what is
//! written there and never waits. The thread ends with the source, or stays in a call that hangs. Each
//! GPU has an event set of its own, as a GPU that fell off the bus can no longer be asked which it is.
//!
//! Errors that mean the hardware are counted by themselves: a program's error often follows one of them
//! at once, and the number of the last error is then the program's.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, EventSet};
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::health::FaultKind;
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

/// What the thread is asked to follow: a GPU, where to write its events down, and the number of the
/// event set that is asked for.
type Followed = (Arc<Device<'static>>, Weak<Mutex<XidCount>>, u64);

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

/// How many errors a GPU had, and the number of the last.
#[derive(Debug)]
pub(super) struct XidReadings {
    /// All of them.
    pub(super) any: [Reading<u64>; 2],
    /// Those that mean the hardware, since the GPU was reset.
    pub(super) hardware: [Reading<u64>; 2],
}

#[derive(Debug, Default)]
struct XidCount {
    any: Errors,
    hardware: Errors,
    state: State,
    /// The number of the event set whose waits are believed: the last that was asked for.
    set: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Errors {
    total: u64,
    /// Of the last error; none where the driver did not report it.
    last: Option<u64>,
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
    /// NVML does not report them. The thread was asked once more then, by such a clock.
    Refused { reason: Absence, detail: String, asked_ns: Option<u64> },
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
            // Once is enough: a set that replaces another one loses what waits in that.
            State::Refused { reason, asked_ns, .. } => {
                *reason != Absence::Unsupported && asked_ns.is_none()
            }
            State::Asked { .. } | State::Followed { .. } => false,
        };
        if !is_wanted {
            return;
        }
        if self.gpus.is_none() {
            self.gpus = start(Arc::clone(clock));
        }
        count.set += 1;
        let asked = (Arc::clone(device), Arc::downgrade(&errors.count), count.set);
        let since_ns = clock.monotonic_ns();
        match self.gpus.as_ref().map(|gpus| gpus.try_send(asked)) {
            Some(Ok(())) => count.state.ask(since_ns),
            // It hangs with as many to do as there can be.
            Some(Err(TrySendError::Full(_))) => {
                count.state = State::refused(Absence::TimedOut, HANGS);
            }
            Some(Err(TrySendError::Disconnected(_))) | None => {
                count.state =
                    State::refused(Absence::Failed, "there is no thread to wait for them");
            }
        }
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
    let mut sets: Vec<(EventSet<'static>, Weak<Mutex<XidCount>>, u64)> = Vec::new();
    loop {
        match asked.recv_timeout(ROUND) {
            Ok((device, errors, number)) => {
                sets.retain(|(_, known, _)| !known.ptr_eq(&errors));
                match event_set(&device) {
                    Ok(set) => sets.push((set, errors, number)),
                    Err(error) => note(&errors, |count| count.found(number, Err(error), clock)),
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        sets.retain(|(_, errors, _)| errors.strong_count() > 0);
        for (set, errors, number) in &sets {
            let (events, end) = take(set);
            note(errors, |count| {
                events.into_iter().for_each(|event| count.add(event));
                count.found(*number, end, clock);
            });
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

/// Whether an error of this number means the hardware: the rule of health names those that do.
fn is_of_hardware(number: u64) -> bool {
    let numbers = FaultKind::XidError.rule().only_by.map_or(&[][..], |(_, numbers)| numbers);
    numbers.iter().any(|one| one.parse() == Ok(number))
}

// === impl State ===

impl State {
    fn refused(reason: Absence, detail: impl Into<String>) -> Self {
        Self::Refused { reason, detail: detail.into(), asked_ns: None }
    }

    /// The thread is asked now. A reason stands until the next one, or events.
    fn ask(&mut self, now_ns: u64) {
        match self {
            Self::Refused { asked_ns, .. } => *asked_ns = Some(now_ns),
            other => *other = Self::Asked { since_ns: now_ns },
        }
    }
}

// === impl Errors ===

impl Errors {
    fn add(&mut self, number: Option<u64>) {
        *self = Self { total: self.total.saturating_add(1), last: number };
    }

    /// Both as readings at the time of the look.
    fn readings(self, at: Timestamp) -> [Reading<u64>; 2] {
        let last = match self.last {
            Some(last) => Reading::new(last, at).keep_if(|last| *last <= MAX_XID),
            None if self.total == 0 => Reading::absent(Absence::NotYet, "there was none"),
            None => Reading::absent(Absence::NotUnderstood, "the driver did not report its number"),
        };
        [Reading::new(self.total, at), last]
    }
}

// === impl XidCount ===

impl XidCount {
    fn add(&mut self, number: Option<u64>) {
        self.any.add(number);
        if number.is_some_and(is_of_hardware) {
            self.hardware.add(number);
        }
    }

    /// How a set was made, or a wait for its events ended. One that was replaced has no say.
    fn found(&mut self, number: u64, end: Said<()>, clock: &dyn Clock) {
        if number != self.set {
            return;
        }
        self.state = match end {
            Ok(()) => State::Followed { at: clock.now(), looked_ns: clock.monotonic_ns() },
            Err(error) => State::refused(absence_of(&error), error.to_string()),
        };
    }

    fn with_last(&self, detail: &str) -> String {
        match self.any.last {
            Some(last) => format!("{detail}; the last XID error was {last}"),
            None => detail.to_owned(),
        }
    }
}

// === impl XidErrors ===

impl XidErrors {
    fn count(&self) -> MutexGuard<'_, XidCount> {
        locked(&self.count)
    }

    /// What is known of them.
    pub(super) fn readings(&self, monotonic_ns: u64) -> XidReadings {
        let count = self.count();
        let is_silent = |since_ns: u64| monotonic_ns.saturating_sub(since_ns) > SILENCE_NS;
        let (reason, detail) = match &count.state {
            State::Unasked => (Absence::NotYet, "counted from the second collection on"),
            State::Asked { since_ns }
            | State::Followed { looked_ns: since_ns, .. }
            | State::Refused { asked_ns: Some(since_ns), .. }
                if is_silent(*since_ns) =>
            {
                (Absence::TimedOut, HANGS)
            }
            State::Asked { .. } => (Absence::NotYet, "NVML is being asked for events"),
            State::Refused { reason, detail, .. } => (*reason, detail.as_str()),
            State::Followed { at, .. } => {
                let (any, hardware) = (count.any.readings(*at), count.hardware.readings(*at));
                return XidReadings { any, hardware };
            }
        };
        let detail = count.with_last(detail);
        let absent = || [Reading::absent(reason, &*detail), Reading::absent(reason, &*detail)];
        XidReadings { any: absent(), hardware: absent() }
    }

    /// NVML gave no handle for the GPU: the set of the one that it had may be of no use any more.
    pub(super) fn doubt(&self, reason: Absence, detail: &str) {
        let mut count = self.count();
        if !matches!(count.state, State::Unasked | State::Refused { .. }) {
            count.state = State::refused(reason, detail);
            count.set += 1;
        }
    }

    /// The GPU was reset: what its hardware had before is over.
    pub(super) fn restart(&self) {
        self.count().hardware = Errors::default();
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
