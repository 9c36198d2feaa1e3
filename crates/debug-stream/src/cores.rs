//! The logical cores of this process and the stream of each: the one place where publishers
//! and readers find each other.
//!
//! A logical core is one core of a device on which kernels run. Its number is the process's own,
//! from 0: a device takes as many numbers in a row as it has cores, the lowest that are free, and
//! counts its cores row by row. A number that was given back keeps its stream, with its counters
//! and its consumer, for the device that takes it next. Nothing here publishes or reads.

use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub use crate::filter::MAX_CORES;

use crate::filter::Filter;
use crate::options::{FILTER_VARIABLE, StreamOptions};
use crate::stream::Stream;

/// Streams that get their places together: a process with few cores has few places.
const BLOCK: usize = 64;
const BLOCKS: usize = MAX_CORES as usize / BLOCK;

static STREAMS: [OnceLock<Box<[OnceLock<Stream>]>>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];
/// Those below this number have a stream. It only grows.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// The numbers that devices have, in ascending order.
static TAKEN: Mutex<Vec<Range<u32>>> = Mutex::new(Vec::new());

/// The numbers of one device's cores, given back when dropped.
#[derive(Debug)]
pub struct DeviceCores {
    first: u32,
    count: u32,
}

/// Why a device gets no numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the process has no {wanted} logical cores left in a row, of {MAX_CORES}: open fewer devices"
)]
pub struct NoCoresLeft {
    /// How many were asked for.
    pub wanted: u32,
}

/// How many logical cores the process has: those that devices have or had, and those that
/// [`ensure`] was asked for.
#[must_use]
pub fn count() -> u32 {
    // SYNC: cores
    COUNT.load(Ordering::Acquire)
}

/// The stream of a logical core.
#[must_use]
pub fn stream(core: u32) -> Option<&'static Stream> {
    let core = usize::try_from(core).ok()?;
    STREAMS.get(core / BLOCK)?.get()?[core % BLOCK].get()
}

/// Gives the first `count` numbers, [`MAX_CORES`] at most, a stream each, whether a device has them
/// or not. The first call of all reads the streams' bounds from the environment, and says on
/// standard error what of it cannot be used.
pub fn ensure(count: u32) {
    ensure_held(&mut taken(), count.min(MAX_CORES));
}

/// Takes the lowest free numbers for a device of `count` cores.
///
/// # Errors
/// When there are not so many in a row.
pub fn take(count: u32) -> Result<DeviceCores, NoCoresLeft> {
    let mut taken = taken();
    let mut first = 0;
    let mut place = 0;
    for (index, range) in taken.iter().enumerate() {
        if range.start - first >= count {
            break;
        }
        (first, place) = (range.end, index + 1);
    }
    let end = first.checked_add(count).filter(|end| *end <= MAX_CORES);
    let end = end.ok_or(NoCoresLeft { wanted: count })?;
    ensure_held(&mut taken, end);
    if count > 0 {
        taken.insert(place, first..end);
    }
    Ok(DeviceCores { first, count })
}

fn taken() -> MutexGuard<'static, Vec<Range<u32>>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// [`ensure`], inside the lock.
fn ensure_held(_: &mut MutexGuard<'static, Vec<Range<u32>>>, count: u32) {
    for core in self::count()..count {
        let place = core as usize;
        if let Some(block) = STREAMS.get(place / BLOCK) {
            let block = block.get_or_init(|| (0..BLOCK).map(|_| OnceLock::new()).collect());
            block[place % BLOCK].get_or_init(|| Stream::new(core, options()));
        }
        // SYNC: cores
        COUNT.store(core + 1, Ordering::Release);
    }
}

/// What the environment says of every stream, reported once where it cannot be used.
struct Environment {
    max_events: u64,
    max_bytes: u64,
    /// The text of the filter; each stream has one of its own, which counts for itself.
    filter: Option<String>,
}

/// A stream's options, as the environment sets them.
fn options() -> StreamOptions {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    let Environment { max_events, max_bytes, filter } = ENVIRONMENT.get_or_init(|| {
        let (environment, problems) = environment(|name| {
            let value = std::env::var_os(name)?;
            Some(value.to_string_lossy().into_owned())
        });
        for problem in problems {
            // Without stderr it cannot be reported.
            let _ = writeln!(std::io::stderr(), "telltale: {problem}");
        }
        environment
    });
    let filter = filter.as_ref().and_then(|text| text.parse().ok());
    StreamOptions { max_events: *max_events, max_bytes: *max_bytes, filter }
}

fn environment(variable: impl Fn(&str) -> Option<String>) -> (Environment, Vec<String>) {
    let (options, misread) = StreamOptions::from_variables(&variable);
    let mut problems: Vec<String> = misread.iter().map(ToString::to_string).collect();
    let text = variable(FILTER_VARIABLE);
    let filter = text.filter(|text| match text.parse::<Filter>() {
        Ok(_) => !text.trim().is_empty(),
        Err(error) => {
            problems.push(format!("{FILTER_VARIABLE}: {error}; nothing is filtered"));
            false
        }
    });
    let StreamOptions { max_events, max_bytes, .. } = options;
    (Environment { max_events, max_bytes, filter }, problems)
}

// === impl DeviceCores ===

impl DeviceCores {
    /// The number of its first core.
    #[must_use]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// How many it has.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The streams of its cores, in order.
    pub fn streams(&self) -> impl Iterator<Item = &'static Stream> + use<> {
        (self.first..self.first + self.count)
            .map(|core| stream(core).expect("numbers that were taken have streams"))
    }
}

impl Drop for DeviceCores {
    fn drop(&mut self) {
        if self.count > 0 {
            taken().retain(|range| range.start != self.first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_cannot_be_read_is_reported_and_filters_nothing() {
        for (text, filter, reported) in [
            (None, None, None),
            (Some(" "), None, None),
            (Some("core=1;every=2"), Some("core=1;every=2"), None),
            (
                Some("every=0"),
                None,
                Some(
                    "TELLTALE_DEBUG_FILTER: every=\"0\" is not a positive whole number; nothing is \
                     filtered",
                ),
            ),
        ] {
            let lookup = |name: &str| text.filter(|_| name == FILTER_VARIABLE).map(str::to_owned);
            let (environment, problems) = environment(lookup);
            assert_eq!(environment.filter.as_deref(), filter);
            assert_eq!(problems.first().map(String::as_str), reported);
        }
    }

    /// One test for all, because the numbers are the process's.
    #[test]
    fn devices_get_the_lowest_free_numbers_and_give_them_back() {
        ensure(3);
        assert_eq!(count(), 3);
        let [first, second, third] = [4, 2, 3].map(|count| take(count).unwrap());
        let firsts = [&first, &second, &third].map(DeviceCores::first);
        assert_eq!((firsts, count()), ([0, 4, 6], 9));
        let cores: Vec<u32> = second.streams().map(Stream::core).collect();
        assert_eq!(cores, [4, 5]);
        let reader = stream(4).unwrap().connect().unwrap();
        drop(second);
        assert_eq!(take(3).unwrap().first(), 9, "the gap of two is too small");
        let again = take(1).unwrap();
        assert_eq!((again.first(), count()), (4, 12));
        assert!(again.streams().all(|one| one.publisher().is_connected()), "its stream is kept");
        drop((reader, first, third, again));
        assert_eq!(take(MAX_CORES).unwrap().count(), MAX_CORES);
        let error = take(MAX_CORES + 1).unwrap_err();
        assert!(error.to_string().starts_with("the process has no 16385 logical cores left"));
        assert!(stream(MAX_CORES).is_none());
        let none = take(0).unwrap();
        let one = take(1).unwrap();
        drop(none);
        assert_eq!((one.first(), take(1).unwrap().first()), (0, 1));
    }
}
