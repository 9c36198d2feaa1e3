//! Going on with what is added to a capture, until Ctrl-C. Half an event waits for its other half.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use telltale_debug_stream::capture::{Capture, Directory, Sequential, Watch};

use super::Events;
use super::source::{STANDARD_INPUT, Source, cannot_open, cannot_read};
use super::words::plural;
use crate::exit::{self, Failure};
use crate::interrupt::Interrupt;

/// How often a capture that is not there is looked for.
const ABSENT: Duration = Duration::from_millis(200);
/// How often a file is looked at although nobody says that it changed: other machines may.
const UNTOLD: Duration = Duration::from_secs(1);
/// Likewise a directory of which not everything could be watched.
const UNWATCHED: Duration = Duration::from_secs(2);

/// Takes what there is and what comes, until interrupted or gone.
pub(super) fn run(
    path: &Path,
    interrupt: &Interrupt,
    events: &mut Events<'_>,
) -> Result<(), Failure> {
    if path.as_os_str() == STANDARD_INPUT {
        return standard_input(path, interrupt, events);
    }
    let mut is_told = false;
    while !path.exists() {
        if !is_told {
            exit::tell(&format!("telltale: waiting for {} to be made", path.display()));
            is_told = true;
        }
        if interrupt.sleep(ABSENT) {
            return Ok(());
        }
    }
    if path.is_dir() { directory(path, interrupt, events) } else { file(path, interrupt, events) }
}

fn directory(path: &Path, interrupt: &Interrupt, events: &mut Events<'_>) -> Result<(), Failure> {
    let cannot = |step: &str, error: io::Error| {
        Failure::Told(format!("{step} {} failed: {error}", path.display()))
    };
    let mut directory =
        Directory::follow(path).map_err(|error| cannot("following the directory", error))?;
    let mut is_told = false;
    loop {
        while let Some(item) = directory.next_item() {
            events.take(item)?;
        }
        events.catch_up()?;
        let Some(watch) = directory.watch().filter(|_| !directory.is_gone()) else {
            exit::tell(&format!("telltale: {} is gone", path.display()));
            return Ok(());
        };
        let is_incomplete = watch.is_incomplete();
        if is_incomplete && !is_told {
            exit::tell(
                "telltale: not all directories can be watched, so they are looked through every \
                 two seconds; the limit is fs.inotify.max_user_watches",
            );
            is_told = true;
        }
        if interrupt.wait_for(watch.as_fd(), is_incomplete.then_some(UNWATCHED)) {
            let unfinished = directory.unfinished();
            if unfinished > 0 {
                let events = plural(u64::try_from(unfinished).unwrap_or(u64::MAX), "event");
                exit::tell(&format!("telltale: {events} not whole yet, and not shown"));
            }
            return Ok(());
        }
        directory.look_again().map_err(|error| cannot("looking again at", error))?;
    }
}

fn file(path: &Path, interrupt: &Interrupt, events: &mut Events<'_>) -> Result<(), Failure> {
    let mut watch = Watch::new().map_err(|error| Failure::because(&error))?;
    watch.add(path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new(".")));
    let mut reader = open(path)?;
    loop {
        // Before reading, so that what is written afterwards wakes us.
        watch.clear().map_err(|error| Failure::because(&error))?;
        watch.add(path);
        take_all(path, &mut reader, events)?;
        match what_became_of(path, &reader) {
            Became::Same => {}
            Became::Other(words) => {
                // What was added in between, then half an event that nobody will complete.
                take_all(path, &mut reader, events)?;
                while let Some(item) = reader.next_left() {
                    events.take(item)?;
                }
                exit::tell(&format!("telltale: {} {words}; reading it anew", path.display()));
                reader = open(path)?;
                continue;
            }
        }
        events.catch_up()?;
        if interrupt.wait_for(watch.as_fd(), Some(UNTOLD)) {
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
            Err(Failure::Told(format!("{} became a directory; start anew", path.display())))
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
        // Whoever writes it may wait for an answer.
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
    events: &mut Events<'_>,
) -> Result<(), Failure> {
    loop {
        let item = reader.next_item().map_err(|error| cannot_read(path, &error))?;
        let Some(item) = item else { return Ok(()) };
        events.take(item)?;
    }
}
