//! The machine at a past moment, in every form that the present has.

use std::time::Duration;

use telltale_collector::clock::SystemClock;
use telltale_node::history::{Past, USAGE_NOT_KEPT};
use telltale_schema::calendar;
use telltale_schema::clock::Clock;
use telltale_schema::moment::Moment;
use telltale_schema::quantity;
use telltale_sources::PastSource;

use super::{OutputFormat, SnapshotView, page};
use crate::arguments::SmiArguments;
use crate::exit::{Failure, Status};
use crate::output::StandardOutput;

/// A moment that was asked for and the one that is shown may be so far apart without a note.
const NEAR: Duration = Duration::from_secs(2);

/// Shows the machine as it was.
pub(super) fn show(
    arguments: &SmiArguments,
    moment: Moment,
    view: SnapshotView<'_>,
    output: &StandardOutput,
) -> Result<Status, Failure> {
    let now = SystemClock.now();
    let asked = moment.at(now);
    if asked > now {
        let text = "--at names a moment that has not come yet; give a past one";
        return Err(Failure::Usage(String::from(text)));
    }
    if view.names_usage() {
        return Err(Failure::Usage(String::from(USAGE_NOT_KEPT)));
    }
    let past = PastSource::find(&arguments.history.of(&arguments.place))
        .and_then(|past| past.snapshot_at(asked))
        .map_err(|error| Failure::because(&error))?;
    view.check([&past.snapshot]).map_err(|error| Failure::because(&error))?;
    let mut text = view.heading();
    if matches!(view.form, OutputFormat::Tables { .. }) {
        let late_ns = asked.since_ns(past.snapshot.taken_at);
        let is_far =
            Duration::from_nanos(late_ns) > NEAR.max(Duration::from_millis(past.resolution_ms));
        let title = title(&past, now.since_ns(past.snapshot.taken_at), is_far);
        text.push_str(&telltale_smi::title(&title, &output.style()));
        text.push('\n');
    }
    text.push_str(&page(&past.snapshot, None, view, None, output));
    output.print(&text)?;
    Ok(Status::Fine)
}

/// Which moment the tables are of.
fn title(past: &Past, ago_ns: u64, is_far: bool) -> String {
    let at = calendar::format(past.snapshot.taken_at);
    // Spans of time are shown to the second.
    #[allow(clippy::cast_precision_loss)]
    let ago = quantity::span(ago_ns as f64 / 1e9);
    let mut title = format!("As of {at} ({ago} ago), from the history");
    if past.resolution_ms > 0 {
        title.push_str(&format!(", means over {} s", past.resolution_ms / 1000));
    }
    if is_far {
        title.push_str("; nothing nearer was recorded");
    }
    title
}
