//! The history as a part of the service: each publication is offered to the writer, until the end.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use tracing::warn;

use super::writer::HistoryWriter;
use crate::service::{Control, HistoryMetrics, Tally};

/// What is reported of the history beside the log, as counts of what was dropped.
struct Tallies {
    /// Snapshots that were not recorded.
    snapshots: Tally,
    /// Blocks of some seconds that were recorded and never written.
    blocks: Tally,
    /// Processes and devices for which there was no room.
    left_out: Tally,
    /// What was reported so far.
    reported: HistoryMetrics,
}

/// Keeps the history of what is published until `stop`; then writes what is left.
///
/// # Errors
/// None: a history that cannot be written is reported and tried again.
pub async fn serve(
    writer: HistoryWriter,
    control: Control,
    stop: impl Future<Output = ()>,
) -> Result<(), Infallible> {
    let view = control.view();
    let mut published = view.subscribe();
    let mut tallies = Tallies {
        snapshots: control.tally("history"),
        blocks: control.tally("history_blocks"),
        left_out: control.tally("history_left_out"),
        reported: HistoryMetrics::default(),
    };
    let mut stop = std::pin::pin!(stop);
    published.mark_changed();
    loop {
        tokio::select! {
            () = &mut stop => break,
            changed = published.changed() => {
                if changed.is_err() {
                    // The collecting thread has ended, which its own part of the service reports.
                    stop.await;
                    break;
                }
                let snapshot = Arc::clone(&published.borrow_and_update().snapshot);
                // The configuration may have been read again.
                writer.set_interval(view.interval());
                writer.offer(snapshot);
                let metrics = writer.metrics();
                control.note_history(metrics.clone());
                tallies.tell(metrics);
            }
        }
    }
    // The last seconds are written now, which may take the disk a moment.
    let ended = tokio::task::spawn_blocking(move || drop(writer)).await;
    if ended.is_err() {
        warn!("the last seconds of the history were not written");
    }
    Ok(())
}

impl Tallies {
    fn tell(&mut self, metrics: HistoryMetrics) {
        self.snapshots.add(metrics.missed.saturating_sub(self.reported.missed));
        self.blocks.add(metrics.lost_blocks.saturating_sub(self.reported.lost_blocks));
        self.left_out.add(metrics.left_out.saturating_sub(self.reported.left_out));
        self.reported = metrics;
    }
}
