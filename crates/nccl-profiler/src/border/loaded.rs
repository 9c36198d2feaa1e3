//! The one profiler of the process: made with its first communicator, and there until the process ends.

use std::ffi::{CStr, CString, c_int, c_ulong};
use std::sync::OnceLock;
use std::thread::Thread;

use super::Logger;
use crate::clock::now_ns;
use crate::communicators::Communicator;
use crate::connection::Connection;
use crate::handle::Handle;
use crate::profiler::Profiler;
use crate::reporter;
use crate::settings::{ADDRESS_VARIABLE, EVENTS_VARIABLE, Settings};

/// NCCL's `NCCL_LOG_WARN` and `NCCL_LOG_INFO`, its `NCCL_PROFILE` and the file that is named.
const WARN: c_int = 2;
const INFO: c_int = 3;
const PROFILE: c_ulong = 0x4000;
const HERE: &CStr = c"telltale";

/// What was made of the environment when the library was first used.
struct Loaded {
    profiler: Profiler,
    settings: Settings,
    logger: Option<Logger>,
    /// The thread that reports, if it could be started.
    thread: OnceLock<Option<Thread>>,
}

static LOADED: OnceLock<Loaded> = OnceLock::new();

/// What NCCL says of a communicator.
pub(super) struct Opening {
    pub(super) communicator: u64,
    pub(super) name: String,
    pub(super) ranks: c_int,
    pub(super) rank: c_int,
    pub(super) logger: Option<Logger>,
}

/// The profiler, once there has been a communicator.
pub(super) fn profiler() -> Option<&'static Profiler> {
    LOADED.get().map(|loaded| &loaded.profiler)
}

/// Takes in a communicator. Gives the number of its handle, 0 for none, and the events that NCCL is to
/// tell: none where they could not be passed on.
pub(super) fn open(opening: &Opening) -> (u64, c_int) {
    let loaded = LOADED.get_or_init(|| load(opening.logger));
    let Some(thread) = loaded.thread.get_or_init(|| start(loaded)) else { return (0, 0) };
    let mask = loaded.settings.mask;
    let [rank, size] = [opening.rank, opening.ranks].map(u32::try_from);
    let (Ok(rank), Ok(size)) = (rank, size) else { return (0, mask) };
    let worker = loaded.settings.worker;
    // A communicator of all ranks in their order is what a record without a group means.
    let is_world = worker.world_size == Some(size) && worker.rank == Some(rank);
    let group = if opening.name.is_empty() {
        format!("nccl-{:016x}", opening.communicator)
    } else {
        opening.name.clone()
    };
    let communicator = Communicator { group: (!is_world).then_some(group), rank, size };
    match loaded.profiler.communicators.add(communicator) {
        Some(place) => {
            thread.unpark();
            (Handle::Communicator(place).number(), mask)
        }
        None => {
            loaded.profiler.counts.communicators.add(1);
            (0, mask)
        }
    }
}

/// The program is done with a communicator.
pub(super) fn close(context: u64) {
    let (Some(loaded), Some(Handle::Communicator(place))) =
        (LOADED.get(), Handle::from_number(context))
    else {
        return;
    };
    loaded.profiler.communicators.remove(place);
    if let Some(Some(thread)) = loaded.thread.get() {
        thread.unpark();
    }
    let counts = &loaded.profiler.counts;
    let dropped = loaded.profiler.tasks.dropped() + loaded.profiler.operations.dropped();
    let text = format!(
        "so far {} records were reported to the agent; {} were refused, {} not sent, {} alike left out, \
         {dropped} without a place, {} of other processes, {} not heard of after being queued, {} \
         communicators not followed",
        counts.reported.get(),
        counts.refused.get(),
        counts.unsent.get(),
        counts.left_out.get(),
        counts.foreign.get(),
        counts.unheard.get(),
        counts.communicators.get(),
    );
    log(loaded.logger, INFO, text);
}

fn load(logger: Option<Logger>) -> Loaded {
    let settings = Settings::read(|name| std::env::var(name).ok());
    if let Some(word) = &settings.misread {
        let text = format!(
            "{EVENTS_VARIABLE} names {word:?}, which is none of network, steps, kernels and all; all \
             are used"
        );
        log(logger, WARN, text);
    }
    let process = rustix::process::getpid().as_raw_nonzero().get();
    // Drawn so that handles of two processes are not alike: their generations are far apart.
    let drawn = now_ns() ^ (u64::from(process.cast_unsigned()) << 20);
    let first =
        u32::try_from(drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).expect("half a word");
    Loaded { profiler: Profiler::new(process, first), settings, logger, thread: OnceLock::new() }
}

fn start(loaded: &'static Loaded) -> Option<Thread> {
    let address = match &loaded.settings.address {
        Ok(address) => address.clone(),
        Err(error) => {
            let text = format!("{ADDRESS_VARIABLE} is not used: {error}; nothing is recorded");
            log(loaded.logger, WARN, text);
            return None;
        }
    };
    log(loaded.logger, INFO, format!("collectives are reported to the agent at {address:?}"));
    let connection = Connection::new(address);
    reporter::start(&loaded.profiler, connection, loaded.settings.worker)
        .inspect_err(|error| {
            let text = format!("cannot start a thread: {error}; nothing is recorded");
            log(loaded.logger, WARN, text);
        })
        .ok()
}

/// Says something in NCCL's log. Only on NCCL's own threads.
fn log(logger: Option<Logger>, level: c_int, text: String) {
    let (Some(logger), Ok(text)) = (logger, CString::new(format!("PROFILER/Telltale: {text}")))
    else {
        return;
    };
    // SAFETY: NCCL's function, with a format that names one C string, which is given.
    unsafe { logger(level, PROFILE, HERE.as_ptr(), 0, c"%s".as_ptr(), text.as_ptr()) };
}
