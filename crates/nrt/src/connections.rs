//! The table of descriptors: which connection a number stands for.
//!
//! The number that a client gets is a duplicate; the stream keeps a descriptor of its own, so that
//! whatever a client does to its number, no foreign file is read, written or closed. A connection
//! is found again by number and by the table's generation, without a lock. Whether the number
//! still is what it was is asked of the kernel at a kernel's tick, after so many reads, when no
//! event waits, and whenever it is closed or reconnected.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, clock_gettime};
use telltale_debug_stream::{ConnectError, EventReader};

use crate::abi::{Made, make};
use crate::cores::{self, Core};
use crate::identity::is_same_file;
use crate::status::Status;

/// Reads between two questions whether a number is what it was, if events keep waiting.
const READS_BEFORE_CHECK: u32 = 64;
/// Connections that a thread remembers.
const REMEMBERED: usize = 16;

/// Changes whenever the table does.
static GENERATION: AtomicU64 = AtomicU64::new(0);
static TABLE: Mutex<ConnectionTable> =
    Mutex::new(ConnectionTable { closed: false, connections: BTreeMap::new() });

thread_local! {
    static MEMORY: [Cell<Option<Remembered>>; REMEMBERED] =
        const { [const { Cell::new(None) }; REMEMBERED] };
}

struct ConnectionTable {
    /// Whether `nrt_close` was called after the last `nrt_init`.
    closed: bool,
    connections: BTreeMap<RawFd, Arc<CoreConnection>>,
}

/// What a thread found in the table.
struct Remembered {
    generation: u64,
    number: RawFd,
    connection: Arc<CoreConnection>,
}

/// One client of one core.
struct CoreConnection {
    core: &'static Core,
    number: RawFd,
    state: Mutex<ConnectionState>,
}

struct ConnectionState {
    /// None once the connection has ended.
    reader: Option<EventReader>,
    /// After `nrt_close`, a descriptor by which the client's number is known until it is closed.
    kept: Option<OwnedFd>,
    /// Reads that are left before the number is checked.
    trusted_reads: u32,
    /// When it was last checked.
    checked_tick: (i64, i64),
}

/// Connects to a core and returns the number of the descriptor.
pub(crate) fn connect(index: c_int) -> Result<RawFd, Status> {
    let core = cores::one(index)?;
    let mut table = lock(&TABLE);
    if table.closed {
        return Err(Status::CLOSED);
    }
    let reader = match core.stream.connect_for_events() {
        Err(ConnectError::Occupied) if table.forget_lost(core) => core.stream.connect_for_events(),
        outcome => outcome,
    };
    let reader = reader.map_err(|error| match error {
        ConnectError::Occupied => Status::INVALID,
        ConnectError::Descriptor(_) | ConnectError::Memory => Status::RESOURCE,
    })?;
    // Not below 3: what a program prints must not end up here if it has closed its output.
    let number = rustix::io::fcntl_dupfd_cloexec(reader.as_fd(), 3)
        .map_err(|_| Status::RESOURCE)?
        .into_raw_fd();
    let state = ConnectionState {
        reader: Some(reader),
        kept: None,
        trusted_reads: 0,
        checked_tick: (0, 0),
    };
    let connection = Arc::new(CoreConnection { core, number, state: Mutex::new(state) });
    // The number's former owner has closed it behind our back.
    let before = table.connections.insert(number, connection);
    GENERATION.fetch_add(1, Ordering::Release);
    if let Some(before) = before {
        before.end();
    }
    Ok(number)
}

/// Takes one event.
#[inline]
pub(crate) fn read(number: RawFd) -> Result<Made, Status> {
    // Never a place for the numbers that cannot be.
    let slot = usize::try_from(number).map_err(|_| Status::INVALID)? % REMEMBERED;
    let generation = GENERATION.load(Ordering::Acquire);
    // Taken out for the time of the call, so that a call from inside `malloc` finds nothing here.
    let remembered = MEMORY.try_with(|memory| memory[slot].take()).ok().flatten();
    let remembered = match remembered {
        Some(found) if found.generation == generation && found.number == number => found,
        _ => Remembered { generation, number, connection: find(number)? },
    };
    let outcome = remembered.connection.read();
    if matches!(outcome, Err(Status::INVALID)) {
        forget(&remembered.connection);
        return outcome;
    }
    // While a thread ends there is no place to remember; then it is found in the table each time.
    let _ = MEMORY.try_with(|memory| memory[slot].set(Some(remembered)));
    outcome
}

/// Ends a connection and closes its descriptor, if that still is what it was.
pub(crate) fn close(number: RawFd) {
    let Ok(connection) = find(number) else { return };
    let is_ours = lock(&connection.state).is_genuine(number);
    // The table forgets it first, so that the number's next owner is not mistaken for it, and
    // of two threads that close it only one goes on.
    if forget(&connection) && is_ours {
        // SAFETY: the number was given out by `connect` and still is the client's duplicate, which
        // the client asks to be closed. Nothing in this library uses it.
        unsafe { libc::close(number) };
    }
}

/// Ends all connections, and refuses others until [`open_table`]. Descriptors stay open until
/// their clients close them.
pub(crate) fn close_table() {
    let mut table = lock(&TABLE);
    table.closed = true;
    for connection in table.connections.values() {
        let mut state = lock(&connection.state);
        if let Some(reader) = state.reader.take() {
            // Without it the number is left open, for the client cannot be distinguished from others.
            state.kept = reader.as_fd().try_clone_to_owned().ok();
        }
        state.trusted_reads = 0;
    }
}

/// Allows connections.
pub(crate) fn open_table() {
    lock(&TABLE).closed = false;
}

#[cold]
fn find(number: RawFd) -> Result<Arc<CoreConnection>, Status> {
    lock(&TABLE).connections.get(&number).map(Arc::clone).ok_or(Status::INVALID)
}

/// Ends a connection and takes it out of the table; whether it was there.
#[cold]
fn forget(connection: &Arc<CoreConnection>) -> bool {
    let mut table = lock(&TABLE);
    let known = table.connections.get(&connection.number);
    let is_known = known.is_some_and(|known| Arc::ptr_eq(known, connection));
    if is_known {
        table.connections.remove(&connection.number);
        GENERATION.fetch_add(1, Ordering::Release);
    }
    connection.end();
    is_known
}

/// A lock that a panic does not spoil: what it guards is whole between any two calls.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernel's last tick: a few nanoseconds to know, 1 to 10 ms old.
fn tick() -> (i64, i64) {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    (now.tv_sec, now.tv_nsec)
}

// === impl ConnectionTable ===

impl ConnectionTable {
    /// Ends the connection of a core whose client has closed its descriptor by itself; whether
    /// there was one.
    #[cold]
    fn forget_lost(&mut self, core: &'static Core) -> bool {
        let of_core = |connection: &&Arc<CoreConnection>| {
            std::ptr::eq(connection.core, core) && lock(&connection.state).reader.is_some()
        };
        let Some(connection) = self.connections.values().find(of_core).map(Arc::clone) else {
            return false;
        };
        if lock(&connection.state).is_genuine(connection.number) {
            return false;
        }
        self.connections.remove(&connection.number);
        GENERATION.fetch_add(1, Ordering::Release);
        connection.end();
        true
    }
}

// === impl CoreConnection ===

impl CoreConnection {
    #[inline]
    fn read(&self) -> Result<Made, Status> {
        let mut state = lock(&self.state);
        let just_checked = state.check_when_due(self.number)?;
        loop {
            let reader = state.reader.as_mut().ok_or(Status::CLOSED)?;
            match reader.read(make) {
                // Passed over.
                Ok(Some(Made::Unpublished)) => {}
                Ok(Some(Made::NoMemory)) => {
                    self.core.count_unallocated();
                    return Ok(Made::NoMemory);
                }
                Ok(Some(payload)) => return Ok(payload),
                Ok(None) if just_checked || state.is_genuine(self.number) => {
                    return Err(Status::QUEUE_EMPTY);
                }
                Ok(None) | Err(_) => return Err(Status::INVALID),
            }
        }
    }

    /// Ends it, whatever its number stands for.
    fn end(&self) {
        let mut state = lock(&self.state);
        (state.reader, state.kept) = (None, None);
    }
}

// === impl ConnectionState ===

impl ConnectionState {
    /// Checks the number if it has not been for so many reads or since the last tick; whether it
    /// was.
    #[inline]
    fn check_when_due(&mut self, number: RawFd) -> Result<bool, Status> {
        let tick = tick();
        if self.trusted_reads > 0 && self.checked_tick == tick {
            self.trusted_reads -= 1;
            return Ok(false);
        }
        if !self.is_genuine(number) {
            return Err(Status::INVALID);
        }
        (self.trusted_reads, self.checked_tick) = (READS_BEFORE_CHECK - 1, tick);
        Ok(true)
    }

    /// Whether the number still stands for this connection.
    fn is_genuine(&self, number: RawFd) -> bool {
        let kept = self.kept.as_ref().map(AsFd::as_fd);
        let ours: Option<BorrowedFd<'_>> = self.reader.as_ref().map(AsFd::as_fd).or(kept);
        ours.is_some_and(|ours| is_same_file(ours, number))
    }
}
