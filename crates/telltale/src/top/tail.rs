//! The end of a capture of debug events, followed on a thread of its own.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use telltale_debug_stream::capture::Item;
use telltale_smi::screen::{Availability, Tail, TailLine};

use super::Wake;
use crate::events::{Follower, describe, facts_heading, follow};
use crate::exit::Failure;

/// Events that are kept.
const MAX_LINES: usize = 500;
/// Data that is read for its statistics, of one event.
const MAX_READ_BYTES: u64 = 1 << 20;
/// How long events are gathered before they are shown: a frame a batch is enough.
const BATCH: Duration = Duration::from_millis(200);

const NO_CAPTURE: &str = "No capture: none was named. Open the view with --events CAPTURE, which is \
    what NEURON_RT_DEBUG_OUTPUT_DIR is set to for the processes.";

/// Starts the thread, where there is a capture to follow.
pub(super) fn start(capture: Option<&Path>, wakes: SyncSender<Wake>) -> std::io::Result<()> {
    let Some(capture) = capture.map(PathBuf::from) else {
        // A view that has ended need not be notified.
        let _ = wakes.send(Wake::Tail(Availability::Absent(String::from(NO_CAPTURE))));
        return Ok(());
    };
    let thread = thread::Builder::new().name(String::from("events"));
    thread.spawn(move || {
        let mut following = Following { wakes, kept: VecDeque::new(), came: 0, started_ns: None };
        let why = match follow(&capture, &mut following) {
            Ok(()) => format!("No capture: {} is gone.", capture.display()),
            Err(failure) => format!("No capture: {failure}"),
        };
        let _ = following.wakes.send(Wake::Tail(Availability::Absent(why)));
    })?;
    Ok(())
}

/// The last items, as they come.
struct Following {
    wakes: SyncSender<Wake>,
    /// A line is made of an item when it is clear that it will be shown.
    kept: VecDeque<TailState>,
    came: u64,
    started_ns: Option<u64>,
}

enum TailState {
    New(Box<Item>),
    Line(TailLine),
}

impl Follower for Following {
    fn take(&mut self, item: Item) -> Result<(), Failure> {
        if let Item::Event(event) = &item
            && let Some(time_ns) = event.time_ns
        {
            self.started_ns.get_or_insert(time_ns);
        }
        self.came += 1;
        if self.kept.len() == MAX_LINES {
            self.kept.pop_front();
        }
        self.kept.push_back(TailState::New(Box::new(item)));
        Ok(())
    }

    fn catch_up(&mut self) -> Result<(), Failure> {
        let started_ns = self.started_ns;
        for kept in &mut self.kept {
            if let TailState::New(item) = kept {
                *kept = TailState::Line(line(item, started_ns));
            }
        }
        let lines: Vec<TailLine> = self
            .kept
            .iter()
            .filter_map(|kept| match kept {
                TailState::Line(line) => Some(line.clone()),
                TailState::New(_) => None,
            })
            .collect();
        let shown = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        let earlier = self.came.saturating_sub(shown);
        let tail = Tail { heading: facts_heading(), lines, earlier };
        let sent = self.wakes.send(Wake::Tail(Availability::Known(tail)));
        sent.map_err(|_| Failure::Message(String::from("the view has ended")))
    }

    fn tell(&mut self, words: &str) {
        let line = TailLine { facts: words.to_owned(), ..TailLine::default() };
        self.kept.push_back(TailState::Line(line));
        self.came += 1;
        // What cannot be sent is reported at the end.
        let _ = self.catch_up();
    }

    fn wait_for(&mut self, other: Option<BorrowedFd<'_>>, most: Option<Duration>) -> bool {
        thread::sleep(BATCH);
        let timeout = most.and_then(|most| Timespec::try_from(most).ok());
        match other {
            Some(other) => {
                let mut descriptors = [PollFd::from_borrowed_fd(other, PollFlags::IN)];
                // EINTR and everything else: the caller checks again.
                let _ = rustix::event::poll(&mut descriptors, timeout.as_ref());
            }
            None => thread::sleep(most.unwrap_or(BATCH)),
        }
        false
    }
}

fn line(item: &mut Item, started_ns: Option<u64>) -> TailLine {
    if let Item::Event(event) = item
        && event.bytes <= MAX_READ_BYTES
        && let Err(error) = event.load()
    {
        let facts = format!("its data cannot be read: {error}");
        return TailLine { facts, ..TailLine::default() };
    }
    let (name, facts) = describe(item);
    let Item::Event(event) = item else {
        return TailLine { facts, ..TailLine::default() };
    };
    let since = started_ns.zip(event.time_ns);
    // Spans of time are shown to the millisecond.
    let seconds = since.map(|(started, now)| now.saturating_sub(started) as f64 / 1e9);
    TailLine { seconds, core: event.core, name, facts }
}
