//! The writing thread: takes from every stream that no client reads, and writes.
//!
//! It sleeps on one descriptor, which events, clients and requests to flush ring. A client that
//! wants a stream gets it at once: what waits there is taken into memory first and written after.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use telltale_debug_stream::sink::{DefaultConsumer, TakeError};
use telltale_debug_stream::{ConnectError, Consumer, NextEvent, Stream, TextStyle, cores};
use telltale_schema::text::with_causes;

use super::environment::{DIRECTORY_VARIABLE, OutputSettings};
use super::flush;
use super::standard::{Standard, tell};

/// Events taken from one stream before the next one has its turn.
const EVENTS_A_TURN: usize = 64;
/// How long an event that is still being copied is waited for: copies take microseconds, and the
/// thread of one that takes longer may have crashed.
const COPYING: Duration = Duration::from_millis(100);

/// What the thread has.
pub(super) struct OutputWriter {
    wake_up: Arc<OwnedFd>,
    files: DefaultConsumer,
    output: Standard,
    error: Standard,
    /// The connection of each core that no client reads.
    held: Vec<Option<Consumer>>,
    has_reported_unsaved: bool,
    has_reported_unconnected: bool,
}

/// Tells that the thread has ended, however it did.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        flush::ended();
    }
}

impl OutputWriter {
    pub(super) fn new(settings: OutputSettings, wake_up: Arc<OwnedFd>) -> Self {
        Self {
            wake_up,
            files: DefaultConsumer::new(settings.directory, settings.saved, TextStyle::default()),
            output: Standard::output(),
            error: Standard::error(),
            held: Vec::new(),
            has_reported_unsaved: false,
            has_reported_unconnected: false,
        }
    }

    /// Connects to all cores there are now.
    pub(super) fn connect(&mut self) {
        let count = usize::try_from(cores::count()).unwrap_or(0);
        self.held.resize_with(count.max(self.held.len()), || None);
        for (core, place) in (0..).zip(&mut self.held) {
            if place.is_some() {
                continue;
            }
            let Some(stream) = cores::stream(core).filter(|one| !one.is_connected()) else {
                continue;
            };
            match stream.connect_standby(&self.wake_up) {
                Ok(consumer) => *place = Some(consumer),
                Err(ConnectError::Occupied) => {}
                Err(error) if !self.has_reported_unconnected => {
                    self.has_reported_unconnected = true;
                    let error = with_causes(&error);
                    tell(&format!("events of some cores are not written to files: {error}"));
                }
                Err(_) => {}
            }
        }
    }

    /// Writes until asked to end.
    pub(super) fn run(mut self) {
        let _ended = Ended;
        // A caller may have asked before the thread ran.
        let mut met = flush::last_met();
        loop {
            // Whatever comes after this signals again.
            self.connect();
            let asked = flush::asked();
            let is_busy = self.take_turns();
            if asked != met {
                self.take_what_waits();
                // Before the caller goes on: it may want to connect.
                if flush::is_to_end() {
                    self.held.clear();
                    return;
                }
                flush::met(asked);
                met = asked;
            } else if !is_busy && !self.sleep() {
                return;
            }
        }
    }

    /// Waits for the eventfd; whether it is still open.
    fn sleep(&self) -> bool {
        loop {
            match rustix::io::read(&*self.wake_up, &mut [0; 8]) {
                Ok(_) => return true,
                Err(Errno::INTR) => {}
                // It was closed by other code.
                Err(_) => return false,
            }
        }
    }

    /// Takes some events of each stream; whether there may be more.
    fn take_turns(&mut self) -> bool {
        let mut is_busy = false;
        self.make_room();
        for index in 0..self.held.len() {
            let mut taken = 0;
            while taken < EVENTS_A_TURN
                && let Some(next) = self.next(index)
            {
                self.write(index, next);
                taken += 1;
            }
            if taken > 0 {
                // Writing may have taken a while.
                self.make_room();
            }
            is_busy |= taken == EVENTS_A_TURN;
        }
        is_busy
    }

    /// Leaves the streams that clients want.
    fn make_room(&mut self) {
        for index in 0..self.held.len() {
            let is_wanted = stream(index).is_some_and(Stream::is_wanted);
            let Some(mut leaving) = self.held[index].take_if(|_| is_wanted) else { continue };
            let mut waiting = Vec::new();
            // What cannot be taken is counted as unread.
            let _ = leaving.drain_within(COPYING, |next| waiting.push(next));
            drop(leaving);
            for next in waiting {
                self.write(index, next);
            }
        }
    }

    /// Takes all that was published before this call. First what can be had without a lock: the
    /// thread that holds it may be the one that waits for this.
    fn take_what_waits(&mut self) {
        let now_ns = coarse_time_ns();
        for index in 0..self.held.len() {
            while let Some(next) = self.next(index) {
                let is_newer = matches!(&next, NextEvent::Event(event) if event.time_ns > now_ns);
                self.write(index, next);
                if is_newer {
                    break;
                }
            }
        }
        for index in 0..self.held.len() {
            let Some(consumer) = &mut self.held[index] else { continue };
            let mut late = Vec::new();
            let _ = consumer.drain_within(COPYING, |next| late.push(next));
            for next in late {
                self.write(index, next);
            }
        }
    }

    /// Takes the next event or loss of a core.
    fn next(&mut self, index: usize) -> Option<NextEvent> {
        self.held.get_mut(index)?.as_mut()?.try_next().ok().flatten()
    }

    fn write(&mut self, index: usize, next: NextEvent) {
        let taken = self.files.take(next, &mut self.output, &mut self.error);
        flush::wrote_one();
        let Err(error) = taken else { return };
        if let Some(stream) = stream(index) {
            stream.count_unsaved(1);
        }
        if matches!(error, TakeError::Unsaved { .. }) && !self.has_reported_unsaved {
            self.has_reported_unsaved = true;
            let error = with_causes(&error);
            tell(&format!(
                "{error}; make room there, or choose another directory with {DIRECTORY_VARIABLE}; \
                 what cannot be saved later on is counted only"
            ));
        }
    }
}

fn stream(index: usize) -> Option<&'static Stream> {
    cores::stream(u32::try_from(index).ok()?)
}

/// The time that events carry.
fn coarse_time_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let [seconds, nanoseconds] =
        [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + nanoseconds
}
