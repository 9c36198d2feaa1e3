//! What is recorded in this process, and how that begins.
//!
//! All of it is behind one map that the kernel clears in a forked child, however that was made. So
//! a child finds nothing begun, knows none of its parent's blocks, and begins a ledger of its own at
//! its first event. Threads that meet the beginning of another one wait for it; a signal handler
//! that meets that of its own thread goes unrecorded.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::filter;
use crate::session::Session;
use crate::settings::Settings;
use crate::table::{AddressTable, Inserted};

/// Room for half a million blocks: 8 MiB of address space, touched as used.
const BUCKETS: usize = 1 << 16;

/// Checks a beginning of another thread, each after a turn of the processor.
const MOST_TURNS: u32 = 1_000_000;

const NOT_BEGUN: u64 = 0;
const BEGUN: u64 = 1;
const IMPOSSIBLE: u64 = 2;
/// Beginning, by the thread whose id is added.
const BEGINNING: u64 = 1 << 32;

/// Blocks of the host's memory from this size on are recorded; the largest size means none at all.
static THRESHOLD: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Null where nothing is recorded.
static RECORDING: AtomicPtr<Recording> = AtomicPtr::new(null_mut());
static SETTINGS: AtomicPtr<Settings> = AtomicPtr::new(null_mut());

/// What the kernel clears in a forked child: all zeroes is a valid value.
#[repr(C)]
pub(crate) struct Recording {
    session: AtomicPtr<Session>,
    phase: AtomicU64,
    host_blocks: AddressTable<BUCKETS>,
}

/// The smallest size that is recorded.
#[inline(always)]
pub(crate) fn threshold() -> usize {
    THRESHOLD.load(Ordering::Relaxed)
}

/// The recording, where there is one.
#[inline(always)]
pub(crate) fn current() -> Option<&'static Recording> {
    // SYNC: recording prepared
    let recording = RECORDING.load(Ordering::Acquire);
    // SAFETY: null, or a map that is never unmapped, in which every bit pattern that is ever there
    // (what `Recording`'s own methods store, or zeroes) is valid.
    unsafe { recording.as_ref() }
}

/// Has everything from now on recorded. To be called once, before there are threads.
pub(crate) fn prepare(settings: Settings) {
    let Some(map) = map_cleared_in_children(size_of::<Recording>()) else {
        return settings.complain(
            "cannot map 8 MiB that a forked child finds cleared (Linux 4.14 can; see ulimit -v)",
        );
    };
    let threshold = settings.threshold_bytes;
    SETTINGS.store(Box::leak(Box::new(settings)), Ordering::Release);
    // SYNC: recording prepared
    RECORDING.store(map.cast(), Ordering::Release);
    THRESHOLD.store(threshold, Ordering::Relaxed);
}

/// Removes what a process that is about to end would leave. May be called in a signal handler, and
/// in a child that shares its parent's memory, whose ledger it leaves alone.
pub(crate) fn end() {
    if let Some(session) = current().and_then(Recording::begun) {
        session.remove();
    }
}

/// The session for an event of the driver's, begun if need be.
pub(crate) fn cuda_session() -> Option<&'static Session> {
    current().and_then(Recording::session)
}

impl Session {
    /// This process's session, if it has begun.
    pub(crate) fn begun() -> Option<&'static Self> {
        current().and_then(Recording::begun)
    }
}

impl Recording {
    /// Notes a block of the host's memory that the allocator gave.
    pub(crate) fn allocated(&self, address: usize, bytes: usize) {
        let Some(session) = self.session() else { return };
        match self.host_blocks.insert(address as u64, bytes as u64) {
            Inserted::Fresh => filter::mark(address),
            // Its free was hidden from us.
            Inserted::Replaced(old) => session.host().freed(old),
            Inserted::Full => return session.unrecorded(),
        }
        session.host().allocated(bytes as u64);
    }

    /// Notes a free, and gives the block's size if it was recorded. To be called before the
    /// allocator gets the block, or another thread could be given the address first.
    pub(crate) fn freeing(&self, address: usize) -> Option<usize> {
        // Without a session there are no blocks, so that a free never begins one.
        let session = self.begun()?;
        let bytes = self.host_blocks.remove(address as u64)?;
        filter::unmark(address);
        session.host().freed(bytes);
        usize::try_from(bytes).ok()
    }

    /// Notes a large block that the allocator refused.
    #[cold]
    pub(crate) fn refused(&self) {
        if let Some(session) = self.session() {
            session.host().failed();
        }
    }

    /// This process's session, if it has begun.
    #[inline(always)]
    fn begun(&self) -> Option<&'static Session> {
        // SYNC: session begun
        let session = self.session.load(Ordering::Acquire);
        // SAFETY: null, or a session that `begin` leaked.
        unsafe { session.as_ref() }
    }

    /// This process's session; begins it.
    #[inline(always)]
    fn session(&self) -> Option<&'static Session> {
        self.begun().or_else(|| self.begin())
    }

    #[cold]
    #[inline(never)]
    fn begin(&self) -> Option<&'static Session> {
        // What the program has of the C library's is left as it is.
        let errno = errno();
        let beginning =
            BEGINNING + u64::from(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned());
        let order = (Ordering::Acquire, Ordering::Acquire);
        match self.phase.compare_exchange(NOT_BEGUN, beginning, order.0, order.1) {
            Ok(_) => self.begin_alone(),
            Err(now) if now > IMPOSSIBLE && now != beginning => self.wait(),
            Err(_) => {}
        }
        set_errno(errno);
        self.begun()
    }

    fn begin_alone(&self) {
        // SYNC: recording prepared
        let settings = SETTINGS.load(Ordering::Acquire);
        // SAFETY: stored before RECORDING, which led here, and leaked.
        let settings = unsafe { &*settings };
        let started = std::panic::catch_unwind(|| Session::start(settings))
            .unwrap_or_else(|_| Err(String::from("a panic, which is to be reported")));
        match started {
            Ok(session) => {
                // SYNC: session begun
                self.session.store(Box::leak(Box::new(session)), Ordering::Release);
                self.phase.store(BEGUN, Ordering::Release);
            }
            Err(reason) => {
                self.phase.store(IMPOSSIBLE, Ordering::Release);
                settings.complain(&reason);
            }
        }
    }

    fn wait(&self) {
        for _ in 0..MOST_TURNS {
            if self.phase.load(Ordering::Acquire) <= IMPOSSIBLE {
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// An anonymous map that a forked child finds cleared.
fn map_cleared_in_children(length: usize) -> Option<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new map at an address of the kernel's choice touches nothing that exists.
    let map = unsafe { libc::mmap(null_mut(), length, access, flags, -1, 0) };
    if map == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the range was just mapped and is ours.
    if unsafe { libc::madvise(map, length, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: as above, and nobody else knows of it.
        unsafe { libc::munmap(map, length) };
        return None;
    }
    Some(map.cast())
}

fn errno() -> i32 {
    // SAFETY: the C library gives a valid pointer to this thread's errno.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: i32) {
    // SAFETY: as in `errno`.
    unsafe { *libc::__errno_location() = value };
}
