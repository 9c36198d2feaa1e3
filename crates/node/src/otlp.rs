//! Export to a receiver of OpenTelemetry's protocol (OTLP), by gRPC or as protobuf over HTTP.
//!
//! Each message is made from what was published last, so that a series which has gone is in no
//! message. Nothing waits in a queue: values are cumulative, so what could not be sent until the
//! next ones are due is dropped and counted, and the next ones have it all.

mod message;
mod options;
mod send;
mod waiting;
mod wishes;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

use telltale_schema::text::with_causes;

use crate::samples::Sampler;
use crate::service::Control;
use message::Messages;
use send::{SendError, Sender};
use waiting::ExportWaits;

pub use options::{OptionsError, OtlpOptions, Protocol};

/// Sends what is published until `stop` ends. Nothing that a receiver does or leaves undone ends it.
/// Needs a tokio runtime from the call on, so that options are checked before anything is sent.
///
/// # Errors
/// When the options make no sense.
pub fn serve(
    options: OtlpOptions,
    control: Control,
    stop: impl Future<Output = ()>,
) -> Result<impl Future<Output = Result<(), Infallible>>, OptionsError> {
    let sender = Sender::new(&options)?;
    let exporting = export(options, control, sender);
    Ok(async move {
        tokio::select! {
            () = stop => Ok(()),
            never = exporting => match never {},
        }
    })
}

/// Whether something can be sent with these options, as the files are that they name.
///
/// # Errors
/// When the options make no sense, or a file cannot be used.
pub(crate) fn check(options: &OtlpOptions) -> Result<(), OptionsError> {
    // A channel belongs to a runtime, even one that is never used.
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(OptionsError::Runtime)?;
    let _within = runtime.enter();
    Sender::new(options).map(drop)
}

async fn export(options: OtlpOptions, control: Control, mut sender: Sender) -> Infallible {
    let interval = Duration::from_secs_f64(options.interval_seconds);
    let (mut sampler, mut messages) = (Sampler::new(options.series), Messages::new(&options));
    let (view, dropped) = (control.view(), control.tally("otlp"));
    let mut is_reported = false;
    let mut due = tokio::time::interval(interval);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        let published = view.latest();
        let snapshot = Arc::clone(&published.snapshot);
        let requests = messages.make(&sampler.sample(&published, &snapshot, None), &published);
        let mut waiting = ExportWaits::new(interval);
        for request in requests {
            let points = message::points(&request);
            loop {
                match sender.send(&request).await {
                    Ok(rejected) => {
                        dropped.add(rejected);
                        is_reported = false;
                        break;
                    }
                    Err(error) => {
                        // Once for each time that it begins to fail.
                        if !std::mem::replace(&mut is_reported, true) {
                            warn!("OTLP: {}", with_causes(&error));
                        }
                        match waiting.next(&error) {
                            Some(pause) => tokio::time::sleep(pause).await,
                            None => {
                                dropped.add(points);
                                // A receiver that wants more time than an export has is given it.
                                tokio::time::sleep(error.wish().unwrap_or_default()).await;
                                break;
                            }
                        }
                    }
                }
            }
        }
    }
}

impl SendError {
    /// Whether the same message may be taken another time.
    fn is_worth_a_try(&self) -> bool {
        match self {
            Self::Refused { again, .. } => *again,
            Self::TimedOut(_) | Self::Unreachable(_) => true,
        }
    }

    /// How long the receiver wants to be left alone.
    fn wish(&self) -> Option<Duration> {
        match self {
            Self::Refused { after, .. } => *after,
            Self::TimedOut(_) | Self::Unreachable(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
