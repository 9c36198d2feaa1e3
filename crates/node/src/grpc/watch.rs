//! The messages of one Watch: each state once, the newest if several came, and a sign of life while
//! nothing comes. Nothing is queued for a reader: the next message is made when there is room.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use telltale_query::Query;
use telltale_wire::telemetry::{Payload, encode};
use tokio::time::{Instant, Sleep};
use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;
use tonic::Status;
use tonic::codegen::Bytes;

use super::{Serving, filter};
use crate::access::Visibility;
use crate::service::{Published, UsageWatch};

/// After this time without a new state, a message says that there is none.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// The longest time between two messages that a caller may ask for.
pub(super) const MOST_INTERVAL: Duration = Duration::from_secs(3600);

/// What one caller watches.
pub(super) struct Watching {
    serving: Arc<Serving>,
    visibility: Visibility,
    states: WatchStream<Arc<Published>>,
    least_interval: Duration,
    filter: Option<Query>,
    /// No new state is checked before.
    rest: Pin<Box<Sleep>>,
    heartbeat: Pin<Box<Sleep>>,
    last: Option<u64>,
    usage: Option<UsageWatch>,
}

impl Watching {
    pub(super) fn new(
        serving: Arc<Serving>,
        visibility: Visibility,
        least_interval: Duration,
        filter: Option<Query>,
    ) -> Self {
        let states = WatchStream::new(serving.view.subscribe());
        let now = Instant::now();
        Self {
            serving,
            visibility,
            states,
            least_interval: least_interval.min(MOST_INTERVAL),
            filter,
            rest: Box::pin(tokio::time::sleep_until(now)),
            heartbeat: Box::pin(tokio::time::sleep_until(now + HEARTBEAT)),
            last: None,
            usage: None,
        }
    }

    /// Has the service read what processes and the host use as long as this stream is open.
    pub(super) fn watch_usage(&mut self) {
        self.usage = Some(self.serving.view.watch_usage());
    }

    fn message(&mut self, published: &Arc<Published>) -> Result<Payload, Status> {
        let sequence = published.sequence;
        let skipped = self.last.map_or(0, |last| sequence.saturating_sub(last).saturating_sub(1));
        self.last = Some(sequence);
        self.serving.skipped.add(if self.least_interval.is_zero() { skipped } else { 0 });
        let now = Instant::now();
        self.rest.as_mut().reset(now + self.least_interval);
        self.heartbeat.as_mut().reset(now + self.least_interval.max(HEARTBEAT));
        let Serving { encodings, policy, .. } = &*self.serving;
        let bytes = match &self.filter {
            None => encodings.of(published, policy, self.visibility),
            Some(query) => {
                let rows = policy.chosen(&published.snapshot, self.visibility, query);
                encode::snapshot(&rows.map_err(filter::too_slow)?)
            }
        };
        Ok(encode::watch_message(bytes, sequence, skipped))
    }
}

impl Stream for Watching {
    type Item = Result<Payload, Status>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Payload, Status>>> {
        let rested = self.least_interval.is_zero() || self.rest.as_mut().poll(context).is_ready();
        if rested && let Poll::Ready(next) = Pin::new(&mut self.states).poll_next(context) {
            return Poll::Ready(Some(match next {
                Some(published) => self.message(&published),
                None => Err(Status::unavailable("the service has stopped collecting")),
            }));
        }
        ready!(self.heartbeat.as_mut().poll(context));
        self.heartbeat.as_mut().reset(Instant::now() + HEARTBEAT);
        let last = self.last.unwrap_or_default();
        Poll::Ready(Some(Ok(encode::watch_message(Bytes::new(), last, 0))))
    }
}
