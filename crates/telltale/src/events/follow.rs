//! Going on with what is added to a capture, until Ctrl-C. Half an event waits for its other half.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use telltale_debug_stream::capture::{Capture, Directory, DirectoryWatch, Item, Sequential};

use super::Events;
use super::source::{STANDARD_INPUT, Source, cannot_open, cannot_read};
use super::words::plural;
use crate::exit::{self, Failure};
use crate::interrupt::Interrupt;

/// How often a capture that is not there is searched for.
const ABSENT: Duration = Duration::from_millis(200);
/// How often a file is checked although no event says that it changed: other machines may.
const UNTOLD: Duration = Duration::from_secs(1);
/// Likewise a directory of which not everything could be watched.
const UNWATCHED: Duration = Duration::from_secs(2);

/// The receiver of what a capture has, and what is added to it.
pub(crate) trait Follower {
    /// Takes the next item.
    fn take(&mut self, item: Item) -> Result<(), Failure>;

    /// All that is there now was taken.
    fn catch_up(&mut self) -> Result<(), Failure>;

    /// Tells a person something about the capture.
    fn tell(&mut self, words: &str);

    /// Waits until `other` is readable, or for `most`; true when it is over.
    fn wait_for(&mut self, other: Option<BorrowedFd<'_>>, most: Option<Duration>) -> bool;
}

/// The command, until Ctrl-C.
struct FollowCommand<'a, 'arguments> {
    interrupt: &'a Interrupt,
    events: &'a mut Events<'arguments>,
}

impl Follower for FollowCommand<'_, '_> {
    fn take(&mut self, item: Item) -> Result<(), Failure> {
        self.events.take(item)
    }

    fn catch_up(&mut self) -> Result<(), Failure> {
        self.events.catch_up()
    }

    fn tell(&mut self, words: &str) {
        exit::tell(&format!("telltale: {words}"));
    }

    fn wait_for(&mut self, other: Option<BorrowedFd<'_>>, most: Option<Duration>) -> bool {
        match other {
            Some(other) => self.interrupt.wait_for(other, most),
            None => self.interrupt.sleep(most.unwrap_or(ABSENT)),
        }
    }
}

/// Takes what there is and what comes, until interrupted or gone.
pub(super) fn run(
    path: &Path,
    interrupt: &Interrupt,
    events: &mut Events<'_>,
) -> Result<(), Failure> {
    if path.as_os_str() == STANDARD_INPUT {
        return standard_input(path, interrupt, events);
    }
    follow(path, &mut FollowCommand { interrupt, events })
}

/// Gives what there is and what comes, until it is over or the capture gone.
pub(crate) fn follow(path: &Path, follower: &mut impl Follower) -> Result<(), Failure> {
    let mut is_reported = false;
    while !path.exists() {
        if !is_reported {
            follower.tell(&format!("waiting for {} to be made", path.display()));
            is_reported = true;
        }
        if follower.wait_for(None, Some(ABSENT)) {
            return Ok(());
        }
    }
    if path.is_dir() { directory(path, follower) } else { file(path, follower) }
}

fn directory(path: &Path, follower: &mut impl Follower) -> Result<(), Failure> {
    let cannot = |step: &str, error: io::Error| {
        Failure::Message(format!("{step} {} failed: {error}", path.display()))
    };
    let mut directory =
        Directory::follow(path).map_err(|error| cannot("following the directory", error))?;
    let mut is_reported = false;
    loop {
        while let Some(item) = directory.next_item() {
            follower.take(item)?;
        }
        follower.catch_up()?;
        let Some(watch) = directory.watch().filter(|_| !directory.is_gone()) else {
            follower.tell(&format!("{} is gone", path.display()));
            return Ok(());
        };
        let is_incomplete = watch.is_incomplete();
        if is_incomplete && !is_reported {
            follower.tell(
                "not all directories can be watched, so they are looked through every two \
                 seconds; the limit is fs.inotify.max_user_watches",
            );
            is_reported = true;
        }
        if follower.wait_for(Some(watch.as_fd()), is_incomplete.then_some(UNWATCHED)) {
            let unfinished = directory.unfinished();
            if unfinished > 0 {
                let events = plural(u64::try_from(unfinished).unwrap_or(u64::MAX), "event");
                follower.tell(&format!("{events} not whole yet, and not shown"));
            }
            return Ok(());
        }
        directory.look_again().map_err(|error| cannot("looking again at", error))?;
    }
}

fn file(path: &Path, follower: &mut impl Follower) -> Result<(), Failure> {
    let mut watch = DirectoryWatch::new().map_err(|error| Failure::because(&error))?;
    watch.add(path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new(".")));
    let mut reader = open(path)?;
    loop {
        // Before reading, so that what is written afterwards wakes us.
        watch.clear().map_err(|error| Failure::because(&error))?;
        watch.add(path);
        take_all(path, &mut reader, follower)?;
        match what_became_of(path, &reader) {
            Became::Same => {}
            Became::Other(words) => {
                // What was added in between, then half an event that is never completed.
                take_all(path, &mut reader, follower)?;
                while let Some(item) = reader.next_left() {
                    follower.take(item)?;
                }
                follower.tell(&format!("{} {words}; reading it again", path.display()));
                reader = open(path)?;
                continue;
            }
        }
        follower.catch_up()?;
        if follower.wait_for(Some(watch.as_fd()), Some(UNTOLD)) {
            return Ok(());
        }
    }
}

/// What a file became since it was opened.
enum Became {
    Same,
    Other(&'static str),
}

fn what_became_of(path: &Path, reader: &Sequential<File>) -> Became {
    let (Ok(there), Ok(ours)) = (path.metadata(), reader.input().metadata()) else {
        // Moved away: another one may come.
        return Became::Same;
    };
    if (there.dev(), there.ino()) != (ours.dev(), ours.ino()) {
        Became::Other("was replaced")
    } else if ours.len() < reader.position() {
        Became::Other("was truncated")
    } else {
        Became::Same
    }
}

fn open(path: &Path) -> Result<Sequential<File>, Failure> {
    match Capture::open(path).map_err(cannot_open)? {
        Capture::File(reader) => Ok(reader),
        Capture::Directory(_) => {
            Err(Failure::Message(format!("{} became a directory; restart", path.display())))
        }
    }
}

fn standard_input(
    path: &Path,
    interrupt: &Interrupt,
    events: &mut Events<'_>,
) -> Result<(), Failure> {
    let mut source = Source::open(path, Some(interrupt))?;
    while let Some(item) = source.next_item()? {
        // Its writer may wait for an answer.
        events.take(item)?;
        events.flush()?;
    }
    while let Some(item) = source.next_left() {
        events.take(item)?;
    }
    Ok(())
}

fn take_all<R: Read>(
    path: &Path,
    reader: &mut Sequential<R>,
    follower: &mut impl Follower,
) -> Result<(), Failure> {
    loop {
        let item = reader.next_item().map_err(|error| cannot_read(path, &error))?;
        let Some(item) = item else { return Ok(()) };
        follower.take(item)?;
    }
}
