//! What was recorded, in every form that the present has.

use std::path::Path;

use telltale_schema::calendar;
use telltale_schema::clock::Timestamp;
use telltale_schema::quantity;
use telltale_schema::snapshot::Snapshot;
use telltale_sources::Recording;

use super::{OutputFormat, SnapshotView, page, status};
use crate::arguments::SmiArguments;
use crate::exit::{self, Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::StandardOutput;

/// Shows one moment of a recording, the last where none is asked for; with --watch all of them, one
/// after another: tables at that pace, what is for programs at once.
pub(super) fn show(
    arguments: &SmiArguments,
    path: &Path,
    view: SnapshotView<'_>,
    output: &StandardOutput,
) -> Result<Status, Failure> {
    let recording = Recording::open(path).map_err(|error| Failure::because(&error))?;
    if recording.torn_bytes() > 0 {
        exit::tell(&format!(
            "telltale: the last {} bytes of {} are no whole snapshot: a crash left them, the file is \
             damaged, or one is being written",
            recording.torn_bytes(),
            path.display()
        ));
    }
    let last = recording.frames().len() - 1;
    let Some(period) = arguments.period() else {
        // Spans are counted back from the recording's end, not from today.
        let end = recording.frames()[last].at;
        let place = arguments.at.map_or(last, |moment| recording.place_at(moment.at(end)));
        let snapshot = recording.snapshot(place).map_err(|error| Failure::because(&error))?;
        check_usage(&snapshot, view)?;
        view.check([&snapshot]).map_err(|error| Failure::because(&error))?;
        output.print(&view.heading())?;
        output.print(&titled(&recording, place, &snapshot, view, output))?;
        return Ok(status(&snapshot));
    };
    // One that is damaged is reported when its turn comes.
    recording.snapshot(last).map_or(Ok(()), |snapshot| check_usage(&snapshot, view))?;
    let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    let is_for_people = matches!(view.form, OutputFormat::Tables { .. });
    output.print(&view.heading())?;
    if is_for_people {
        output.begin_repainting()?;
    }
    let mut worst = Status::Fine;
    for place in 0..=last {
        match recording.snapshot(place) {
            Err(error) => {
                exit::tell(&format!("telltale: {}", telltale_schema::text::with_causes(&error)));
                worst = Status::Partial;
            }
            Ok(snapshot) => {
                let page = titled(&recording, place, &snapshot, view, output);
                match is_for_people {
                    true => output.repaint(&page)?,
                    false => output.print(&page)?,
                }
            }
        }
        let is_over = match is_for_people && place < last {
            true => interrupt.sleep(period),
            false => interrupt.asked(),
        };
        if is_over {
            break;
        }
    }
    if is_for_people {
        output.end_repainting()?;
    }
    Ok(worst)
}

/// Whether the snapshot has what was asked of what processes use.
///
/// # Errors
/// When it was recorded without: a filter would find no row, as if no process used any.
fn check_usage(snapshot: &Snapshot, view: SnapshotView<'_>) -> Result<(), Failure> {
    if !view.names_usage() || snapshot.host.is_some() {
        return Ok(());
    }
    let text = "this recording does not have what processes use of the host (cpu, rss, threads, \
                disk_read, disk_write); leave these fields out";
    Err(Failure::Usage(String::from(text)))
}

/// A snapshot's page, which says for a person of when it is.
fn titled(
    recording: &Recording,
    place: usize,
    snapshot: &Snapshot,
    view: SnapshotView<'_>,
    output: &StandardOutput,
) -> String {
    let page = page(snapshot, None, view, output.rows_of_a_page(), output);
    if !matches!(view.form, OutputFormat::Tables { .. }) {
        return page;
    }
    let frames = recording.frames();
    let number = |number: usize| quantity::count(u64::try_from(number).unwrap_or(u64::MAX));
    let title = format!(
        "As of {}, recorded: {} of {}, from {} to {}",
        calendar::format(snapshot.taken_at),
        number(place + 1),
        number(frames.len()),
        time(frames[0].at),
        time(frames[frames.len() - 1].at),
    );
    format!("{}\n{page}", telltale_smi::title(&title, &output.style()))
}

fn time(at: Timestamp) -> String {
    calendar::format(at)
}
