//! The logical cores of this process as C numbers them: those of its devices, and as many as the
//! environment says. Their streams are those of `telltale_debug_stream::cores`.

use std::ffi::c_int;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use telltale_debug_stream::{Publisher, Stream, StreamCounters, cores};
use telltale_runtime::debug_output;

use crate::status::Status;
use crate::{forks, glance};

/// The cores that the process may use, as Neuron documents it: `3`, `0-3` or `3,4`.
const VISIBLE_VARIABLE: &str = "NEURON_RT_VISIBLE_CORES";
/// How many it may use; [`VISIBLE_VARIABLE`] goes before it.
const NUMBER_VARIABLE: &str = "NEURON_RT_NUM_CORES";
/// The cores of a process without a configured number.
const DEFAULT_CORES: u32 = 1;
/// More cores than any machine of Neuron's has: the largest published one has 64 devices of 8.
const MAX_CORES: u32 = 4096;
const SLOTS: usize = cores::MAX_CORES as usize;

/// One logical core.
pub(crate) struct Core {
    pub(crate) stream: &'static Stream,
    pub(crate) publisher: Publisher,
    /// Events that the C client did not get for want of memory.
    pub(crate) unallocated: AtomicU64,
}

/// Those that C has asked for.
static CORES: [OnceLock<Core>; SLOTS] = [const { OnceLock::new() }; SLOTS];

/// How many there are. The first call reads the environment and says once what is wrong with it.
pub(crate) fn count() -> u32 {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(|| {
        forks::watch();
        let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
        let (wanted, problems) = wanted(variable);
        for problem in problems {
            // Without stderr it cannot be reported.
            let _ = writeln!(std::io::stderr(), "telltale: {problem}");
        }
        cores::ensure(wanted);
        debug_output::start();
    });
    cores::count()
}

/// The core of a number from C.
#[inline]
pub(crate) fn one(index: c_int) -> Result<&'static Core, Status> {
    let number = u32::try_from(index).map_err(|_| Status::INVALID)?;
    let slot = slot(index).ok_or(Status::INVALID)?;
    if let Some(core) = slot.get() {
        return Ok(core);
    }
    count();
    let stream = cores::stream(number).ok_or(Status::INVALID)?;
    let core = slot.get_or_init(|| Core::new(stream));
    if let Ok(index) = usize::try_from(number) {
        glance::allow(index, &core.publisher);
    }
    Ok(core)
}

/// The cores that were used so far, with their counters and the events that C clients did not get
/// for want of memory. Begins nothing.
pub(crate) fn used() -> impl Iterator<Item = (u32, StreamCounters, u64)> {
    let streams = (0..cores::count()).filter_map(cores::stream);
    let found = streams.map(|stream| {
        let index = usize::try_from(stream.core()).ok();
        let slot = index.and_then(|index| CORES.get(index)).and_then(OnceLock::get);
        let unallocated = slot.map_or(0, |core| core.unallocated.load(Ordering::Relaxed));
        (stream.core(), stream.counters(), unallocated)
    });
    found.filter(|(_, counters, _)| counters.is_used())
}

/// Whether it is known, at a glance, that this core's events have no reader.
#[inline(always)]
pub(crate) fn is_idle(index: c_int) -> bool {
    slot(index).and_then(OnceLock::get).is_some_and(|core| !core.publisher.is_connected())
}

#[inline(always)]
fn slot(index: c_int) -> Option<&'static OnceLock<Core>> {
    CORES.get(usize::try_from(index).ok()?)
}

/// How many cores the variables say, and what is wrong with them.
fn wanted(variable: impl Fn(&str) -> Option<String>) -> (u32, Vec<String>) {
    let mut problems = Vec::new();
    for (name, read) in [(VISIBLE_VARIABLE, visible as fn(&str) -> _), (NUMBER_VARIABLE, number)] {
        let Some(value) = variable(name) else { continue };
        if let Some(cores) = read(&value) {
            return (cores, problems);
        }
        problems.push(format!(
            "{name} is {value:?}, which is not {} of at most {MAX_CORES} cores; it is not used",
            if name == VISIBLE_VARIABLE { "an unbroken ascending range" } else { "a number" },
        ));
    }
    (DEFAULT_CORES, problems)
}

fn number(value: &str) -> Option<u32> {
    value.trim().parse().ok().filter(|cores| (1..=MAX_CORES).contains(cores))
}

/// The length of an unbroken range such as `3,4` or `0-3`.
fn visible(value: &str) -> Option<u32> {
    let mut found: Option<(u32, u32)> = None;
    for part in value.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        found = match found {
            _ if first > last => return None,
            None => Some((first, last)),
            Some((start, end)) if end.checked_add(1) == Some(first) => Some((start, last)),
            Some(_) => return None,
        };
    }
    let (first, last) = found?;
    let cores = (last - first).checked_add(1)?;
    (cores <= MAX_CORES).then_some(cores)
}

impl Core {
    fn new(stream: &'static Stream) -> Self {
        Self { stream, publisher: stream.publisher(), unallocated: AtomicU64::new(0) }
    }

    /// Counts an event that the C client did not get for want of memory.
    #[cold]
    pub(crate) fn count_unallocated(&self) {
        self.unallocated.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_how_many_cores_there_are() {
        for (visible, number, expected, problems) in [
            (None, None, 1, 0),
            (None, Some("4"), 4, 0),
            (Some("3,4"), Some("8"), 2, 0),
            (Some("0-3"), None, 4, 0),
            (Some("2"), None, 1, 0),
            (Some("0-1,2,3-5"), None, 6, 0),
            (Some("0,2"), Some("3"), 3, 1),
            (Some("4-2"), None, 1, 1),
            (Some(""), None, 1, 1),
            (Some("0-4096"), Some("x"), 1, 2),
            (Some("4294967295,0"), None, 1, 1),
            (None, Some("0"), 1, 1),
            (None, Some("-1"), 1, 1),
        ] {
            let lookup = |name: &str| {
                let value = if name == VISIBLE_VARIABLE { visible } else { number };
                value.map(str::to_owned)
            };
            let (cores, found) = wanted(lookup);
            assert_eq!((cores, found.len()), (expected, problems), "{visible:?} {number:?}");
        }
    }
}
