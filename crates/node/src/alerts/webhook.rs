//! Tells others of alerts: posts what fires and what is resolved, as JSON, to one URL.
//!
//! Notices go in their order, a few at a time, and the next ones wait until these are taken or
//! given up; so their reader never sees an alert resolved before it fired. Everything is
//! bounded: the queue, an attempt's time, the number of attempts. Nothing that answers is believed
//! beyond its status, and redirects are not followed.

mod post;
mod secret;

use std::convert::Infallible;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::warn;

use serde::Serialize;
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::text::with_causes;
use tokio::sync::watch;

use super::{AlertState, AlertStates, Notice, NoticeEvent, Notices, WebhookOptions};
use post::{PostError, post};
use telltale_collector::clock::SystemClock;
use telltale_server::tls::{self, TrustError};

pub(super) use post::check;

/// The version of [`Message`]: a change that a reader has to know of makes it larger.
pub const SHAPE_VERSION: u32 = 1;

/// Notices in one message.
const MAX_TOGETHER: usize = 64;

/// Attempts to deliver a message before it is given up: with the pauses, about a minute of a
/// server that refuses at once.
const MAX_ATTEMPTS: u32 = 8;

/// The pause after the first attempt; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Whether the file with the secret and the one with certificates can be used as they are now. Both
/// are read again for each message, so that a service begins without them and says what it misses.
pub(crate) fn check_files(
    options: &WebhookOptions,
) -> (Result<(), Box<dyn std::error::Error>>, Result<(), TrustError>) {
    let secret = options.authorization_file.as_deref().map(secret::read).transpose();
    let is_secured = options.url.as_deref().is_some_and(|url| url.starts_with("https:"));
    let trust = is_secured.then(|| tls::client(options.ca_file.as_deref())).transpose();
    (secret.map(drop).map_err(Into::into), trust.map(drop))
}

/// What is posted.
#[derive(Debug, Serialize)]
pub struct Message<'a> {
    /// [`SHAPE_VERSION`].
    pub version: u32,
    /// The machine's name.
    pub host: &'a str,
    /// When the service started, in nanoseconds since 1970: notices of one start are numbered.
    pub service_started_at: Timestamp,
    /// Notices that were dropped because too many waited, since then.
    pub dropped: u64,
    /// What happened, in its order.
    pub notices: &'a [Notice],
}

/// What is found, and posted.
pub struct Payload {
    /// What waits to be posted.
    pub notices: Arc<Notices>,
    /// The alerts that hold now.
    pub states: Box<dyn Fn() -> Arc<AlertStates> + Send>,
    /// When the service was started.
    pub service_started_at: Timestamp,
}

/// Posts what is found until `stop`. What waits then is not sent any more.
///
/// # Errors
/// None: a server that does not take it is logged and counted.
pub async fn serve(
    found: Payload,
    options: watch::Receiver<WebhookOptions>,
    stop: impl Future<Output = ()>,
) -> Result<(), Infallible> {
    let sender = Sender::new(found, options, FIRST_PAUSE);
    tokio::select! {
        () = sender.run() => {}
        () = stop => {}
    }
    Ok(())
}

/// Takes notices from the queue and posts them.
struct Sender {
    found: Payload,
    options: watch::Receiver<WebhookOptions>,
    host: String,
    first_pause: Duration,
}

// === impl Payload ===

impl std::fmt::Debug for Payload {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Found").field("notices", &self.notices).finish_non_exhaustive()
    }
}

// === impl Sender ===

impl Sender {
    fn new(
        found: Payload,
        options: watch::Receiver<WebhookOptions>,
        first_pause: Duration,
    ) -> Self {
        // A machine without a name has an empty one.
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim().to_owned();
        Self { found, options, host, first_pause }
    }

    async fn run(mut self) {
        let mut repeated = Instant::now();
        loop {
            let options = self.options();
            let has_receiver = options.url.is_some();
            let repeat = options.repeat_seconds.map(Duration::from_secs);
            let left =
                repeat.map(|each| (repeated + each).saturating_duration_since(Instant::now()));
            // In this order, so that a notice goes to the receiver that there was when it was taken.
            tokio::select! {
                biased;
                () = changed(&mut self.options) => {}
                () = tokio::time::sleep(left.unwrap_or_default()), if left.is_some() => {
                    repeated = Instant::now();
                    self.repeat();
                }
                taken = self.found.notices.take(MAX_TOGETHER) => {
                    if has_receiver {
                        self.deliver(&taken).await;
                    }
                }
            }
        }
    }

    fn options(&mut self) -> WebhookOptions {
        self.options.borrow_and_update().clone()
    }

    /// Queues what still fires.
    fn repeat(&self) {
        let now = SystemClock.now();
        for alert in &(self.found.states)().alerts {
            if alert.state == AlertState::Firing {
                self.found.notices.push(NoticeEvent::Repeated, now, alert.clone());
            }
        }
    }

    /// Posts these until they are taken, given up, or there is no receiver any more.
    async fn deliver(&mut self, notices: &[Notice]) {
        let mut attempts = 0;
        loop {
            let options = self.options();
            let Some(url) = &options.url else { return };
            let limit = Duration::from_secs(options.timeout_seconds);
            let posted = post(url, &options, self.message(notices));
            let posted = tokio::time::timeout(limit, posted).await;
            let error = match posted.unwrap_or(Err(PostError::TimedOut(limit))) {
                Ok(()) => return self.found.notices.count_sent(notices),
                Err(error) => error,
            };
            attempts += 1;
            if attempts >= MAX_ATTEMPTS || !error.may_pass() {
                self.found.notices.count_failed(notices);
                let (count, why) = (notices.len(), with_causes(&error));
                return warn!("{}", not_reported(count, &why));
            }
            if attempts == 1 {
                warn!("retrying the webhook later: {}", with_causes(&error));
            }
            tokio::select! {
                () = tokio::time::sleep(pause(self.first_pause, attempts)) => {}
                () = changed(&mut self.options) => {}
            }
        }
    }

    fn message(&self, notices: &[Notice]) -> Vec<u8> {
        let message = Message {
            version: SHAPE_VERSION,
            host: &self.host,
            service_started_at: self.found.service_started_at,
            dropped: self.found.notices.metrics().dropped,
            notices,
        };
        serde_json::to_vec(&message).expect("notices are JSON")
    }
}

/// What the log says of alerts that were given up.
fn not_reported(count: usize, why: &str) -> String {
    let alerts = if count == 1 { "alert" } else { "alerts" };
    format!("the webhook was not notified of {count} {alerts}: {why}")
}

/// Waits until the options are read again; for ever where that is no longer done.
async fn changed(options: &mut watch::Receiver<WebhookOptions>) {
    if options.changed().await.is_err() {
        std::future::pending().await
    }
}

/// The pause after so many attempts: twice the one before, and up to half of it more or less, so
/// that machines which failed together do not come back together.
fn pause(first: Duration, attempts: u32) -> Duration {
    let whole = first.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    // A fresh hasher's state is random.
    let random = RandomState::new().hash_one(attempts) % 1024;
    let share = u32::try_from(random).unwrap_or_default();
    whole / 2 + whole * share / 1024
}

#[cfg(test)]
mod tests;
