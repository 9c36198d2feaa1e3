//! `telltale record`: what `telltale smi` shows, periodically into a file.

use std::time::Instant;

use telltale_collector::Collector;
use telltale_schema::quantity;
use telltale_sources::{RecordError, Recorder};

use crate::arguments::RecordArguments;
use crate::exit::{self, Failure, Status};
use crate::interrupt::Interrupt;
use crate::smi::{self, OutputFormat, SnapshotView};

/// Runs the command.
pub(crate) fn run(arguments: &RecordArguments) -> Result<Status, Failure> {
    let max_bytes = arguments.max_mebibytes << 20;
    let view = SnapshotView::whole(OutputFormat::Json);
    let options = arguments.hardware.limit(smi::configured(&arguments.place, view));
    let mut collector = Collector::new(options).map_err(|error| Failure::because(&error))?;
    let mut recorder =
        Recorder::open(&arguments.file, max_bytes).map_err(|error| Failure::because(&error))?;
    let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    let until = arguments.duration.map(|span| Instant::now() + span);
    let before = recorder.frames();
    let mut due = Instant::now();
    let outcome = loop {
        match recorder.add(&collector.collect()) {
            Ok(()) => {}
            Err(error @ RecordError::Full { .. }) => {
                exit::tell(&format!("telltale: {error}"));
                break Ok(Status::Partial);
            }
            Err(error) => break Err(Failure::because(&error)),
        }
        // A late one is skipped, not made up for.
        due = (due + arguments.every).max(Instant::now());
        let over = until.is_some_and(|until| due >= until);
        let wait = until.map_or(due, |until| due.min(until));
        if interrupt.sleep(wait.saturating_duration_since(Instant::now())) || over {
            break Ok(Status::Fine);
        }
    };
    let count = |frames: usize| quantity::count(u64::try_from(frames).unwrap_or(u64::MAX));
    let added = recorder.frames() - before;
    let snapshots = if added == 1 { "snapshot" } else { "snapshots" };
    let added = count(added);
    let earlier = match before {
        0 => String::new(),
        before => format!(" to {} of before", count(before)),
    };
    exit::tell(&format!("{added} {snapshots} recorded{earlier} in {}", arguments.file.display()));
    outcome
}
