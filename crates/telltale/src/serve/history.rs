//! The service's history: where it is, that a service without one goes on, and that one whose state
//! another service has does not.

use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

use telltale_collector::clock::SystemClock;
use telltale_node::configuration::Configuration;
use telltale_node::history::{
    DirectoryError, HistoryError, HistoryWriter, SharedReader, directory_for,
};
use telltale_node::parts::ServiceParts;
use telltale_node::service::{Control, HistoryMetrics};
use telltale_schema::clock::Clock;
use telltale_schema::snapshot::Snapshot;
use telltale_schema::text::with_causes;

/// Keeps a history, if that is wanted and possible; if not, says why. Gives the servers what they
/// answer questions about the past from.
///
/// # Errors
/// When another service has the state directory, or it was named and cannot be used: a user who names
/// one wants a history there.
pub(super) fn start(
    parts: &mut ServiceParts,
    configuration: &Configuration,
    control: &Control,
) -> Result<Option<SharedReader>, DirectoryError> {
    let options = &configuration.history;
    if !options.enabled {
        return Ok(None);
    }
    let reported = configuration.state_dir.as_deref();
    let Some(directory) = directory_for(reported, &configuration.root) else {
        return Ok(failed(control, "there is no home directory; give one with --state-dir"));
    };
    let interval = Duration::from_secs_f64(configuration.interval_seconds);
    match HistoryWriter::start(&directory, options, interval, Arc::new(SystemClock)) {
        Ok(writer) => {
            info!("history directory: {}", directory.display());
            let (reader, stopped) = (writer.reader(), parts.stopped());
            parts.run("history", telltale_node::history::serve(writer, control.clone(), stopped));
            Ok(Some(reader))
        }
        // Another service is there: two that collect are one too many.
        Err(HistoryError::Directory(error @ DirectoryError::Taken { .. })) => Err(error),
        Err(HistoryError::Directory(error)) if reported.is_some() => Err(error),
        Err(error) => Ok(failed(control, &with_causes(&error))),
    }
}

/// What was wrong when the service that kept this history ended, where that was lately.
pub(super) fn known_faults(configuration: &Configuration) -> Option<Snapshot> {
    let directory = directory_for(configuration.state_dir.as_deref(), &configuration.root);
    let directory = directory.filter(|_| configuration.history.enabled)?;
    let now = SystemClock.now();
    telltale_node::history::known_faults(&directory, now)
}

/// A history is wanted and there is none: said in the log and in the metrics.
fn failed(control: &Control, why: &str) -> Option<SharedReader> {
    warn!("no history is kept: {why}");
    let problem = Some(why.to_owned());
    control.note_history(HistoryMetrics { failures: 1, problem, ..HistoryMetrics::default() });
    None
}
