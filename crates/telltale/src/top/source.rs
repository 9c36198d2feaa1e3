//! Where the view's snapshots come from: the service of this machine while it answers, else a
//! collector of our own. All on a thread of its own, so that nothing here stops the view.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SendError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use telltale_client::connect;
use telltale_client::{CallError, Client, Updates};
use telltale_collector::{CollectOptions, Collector, EndpointUse, Round};
use telltale_schema::snapshot::Snapshot;
use telltale_schema::text::with_causes;
use telltale_smi::screen::GraphValue;
use telltale_sources::Inquiry;

use super::filling::Filling;
use super::{Wake, alerts};
use crate::arguments::LocationArguments;
use crate::service_timeout::TIMEOUT;
use crate::smi::many::FIRST_FRAME;

/// How long we collect before the service is searched for again.
const RETRY: Duration = Duration::from_secs(10);

/// What is checked, and how often.
pub(super) struct ViewSource {
    pub(super) place: LocationArguments,
    pub(super) options: CollectOptions,
    pub(super) period: Duration,
    /// What the graphs of devices show at the start.
    pub(super) shown: GraphValue,
}

/// What is said once there is no service to follow.
const ENDED: &str = "the service has ended; collecting here";
/// Said where the service runs, and is stopped or stuck.
const LATE: &str = "the service does not answer, see `telltale doctor`; collecting here";

/// A service that reports.
struct ServiceStream {
    client: Client,
    updates: Updates,
    first: Snapshot,
}

/// The view has ended.
struct Ended;

impl<T> From<SendError<T>> for Ended {
    fn from(_: SendError<T>) -> Self {
        Self
    }
}

/// Tells the view when the thread ends, by a panic as well.
struct Farewell<'a> {
    wakes: &'a SyncSender<Wake>,
    why: String,
}

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        // A view that has ended need not be notified.
        let _ = self.wakes.send(Wake::SourceEnded(std::mem::take(&mut self.why)));
    }
}

/// Starts a thread that passes on what several machines said last.
pub(super) fn start_fleet(
    inquiry: Inquiry,
    period: Duration,
    wakes: SyncSender<Wake>,
) -> std::io::Result<()> {
    let thread = thread::Builder::new().name(String::from("source"));
    thread.spawn(move || {
        let why = String::from("asking hosts ended by a fault of telltale");
        let _farewell = Farewell { wakes: &wakes, why };
        let every = format!("every {} s", period.as_secs_f64());
        if wakes.send(Wake::Source(every)).is_err()
            || wakes.send(alerts::absent(alerts::OF_SEVERAL)).is_err()
        {
            return;
        }
        inquiry.wait(FIRST_FRAME);
        let mut due = Instant::now();
        while wakes.send(Wake::Fleet(Arc::new(inquiry.now()))).is_ok() {
            // A late one is skipped, not made up for.
            due = (due + period).max(Instant::now());
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    })?;
    Ok(())
}

/// Why the service is not followed any more.
fn ending(error: &CallError) -> String {
    match error {
        _ if error.is_of_an_ended_service() => ENDED.to_owned(),
        CallError::Refused(_) => error.to_string(),
        _ => with_causes(error),
    }
}

impl ViewSource {
    /// Starts the thread.
    pub(super) fn start(self, wakes: SyncSender<Wake>) -> std::io::Result<()> {
        let thread = thread::Builder::new().name(String::from("source"));
        thread.spawn(move || {
            let why = String::from("collecting ended by a fault of telltale");
            let mut farewell = Farewell { wakes: &wakes, why };
            match self.run(&wakes) {
                Ok(Ended) => {}
                Err(error) => farewell.why = error,
            }
        })?;
        Ok(())
    }

    fn run(self, wakes: &SyncSender<Wake>) -> Result<Ended, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| with_causes(&error))?;
        let (mut collector, mut is_first, mut filled) = (None, true, false);
        loop {
            if runtime.block_on(self.follow_service(&mut filled, wakes)).is_err() {
                return Ok(Ended);
            }
            let collector = match &mut collector {
                Some(collector) => collector,
                none => {
                    let new = Collector::new(self.options.clone());
                    none.insert(new.map_err(|error| with_causes(&error))?)
                }
            };
            if self.collect(collector, &mut is_first, wakes).is_err() {
                return Ok(Ended);
            }
        }
    }

    /// Passes on what the service reports, until it ends or falls silent; nothing where there is none.
    /// What it recorded before is asked for once.
    async fn follow_service(
        &self,
        filled: &mut bool,
        wakes: &SyncSender<Wake>,
    ) -> Result<(), Ended> {
        for socket in self.place.sockets().into_iter().filter(|socket| socket.exists()) {
            match tokio::time::timeout(TIMEOUT, self.follow(&socket)).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(followed))) => match self.watch(followed, filled, wakes).await {
                    Ok(ended) => {
                        ended?;
                        // Its stream came to an end, as where the service stops before it says so.
                        wakes.send(Wake::Words(ENDED.to_owned()))?;
                    }
                    Err(error) => wakes.send(Wake::Words(ending(&error)))?,
                },
                Ok(Err(error)) => wakes.send(Wake::Words(ending(&error)))?,
                Err(_) => wakes.send(Wake::Words(LATE.to_owned()))?,
            }
        }
        Ok(())
    }

    /// What a service reports first, and the way to the rest. A service that does not answer would
    /// keep the view waiting.
    async fn follow(&self, socket: &Path) -> Result<Option<ServiceStream>, CallError> {
        let Ok(mut client) = connect(socket).await else { return Ok(None) };
        let mut updates = client.watch_selected(self.period, "", true).await?;
        while let Some(update) = updates.next().await? {
            if let Some(first) = update.snapshot {
                return Ok(Some(ServiceStream { client, updates, first }));
            }
        }
        Ok(None)
    }

    async fn watch(
        &self,
        followed: ServiceStream,
        filled: &mut bool,
        wakes: &SyncSender<Wake>,
    ) -> Result<Result<(), Ended>, CallError> {
        let ServiceStream { mut client, mut updates, first } = followed;
        if wakes.send(Wake::Source(String::from("from the service"))).is_err() {
            return Ok(Err(Ended));
        }
        let mut alerts = alerts::AlertPoller::new(self.period);
        let mut next = Some(first);
        loop {
            if let Some(snapshot) = next {
                let filling = (!*filled).then(|| Filling::of(&snapshot, self.period));
                if wakes.send(Wake::Snapshot(Arc::new(snapshot))).is_err() {
                    return Ok(Err(Ended));
                }
                if let Some(filling) = filling {
                    *filled = true;
                    tokio::spawn(filling.run(self.shown, client.clone(), wakes.clone()));
                }
                if let Some(news) = alerts.ask(&mut client).await
                    && wakes.send(news).is_err()
                {
                    return Ok(Err(Ended));
                }
            }
            let Some(update) = updates.next().await? else { return Ok(Ok(())) };
            next = update.snapshot;
        }
    }

    /// Collects for a while. The very first check has what is in ledgers, which is there at once;
    /// what only endpoints tell comes right behind.
    fn collect(
        &self,
        collector: &mut Collector,
        is_first: &mut bool,
        wakes: &SyncSender<Wake>,
    ) -> Result<(), Ended> {
        let words = format!("collected here, every {} s", self.period.as_secs_f64());
        wakes.send(Wake::Source(words))?;
        wakes.send(alerts::absent(alerts::WITHOUT_SERVICE))?;
        if std::mem::take(is_first) {
            let endpoints = EndpointUse::WhereNeeded;
            let first = collector.collect_round(Round { sensors: true, endpoints });
            wakes.send(Wake::Snapshot(Arc::new(first)))?;
        }
        let until = Instant::now() + RETRY.max(self.period);
        let mut due = Instant::now();
        while due < until {
            let snapshot = collector.collect();
            wakes.send(Wake::Snapshot(Arc::new(snapshot)))?;
            // A late one is skipped, not made up for.
            due = (due + self.period).max(Instant::now());
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }
}
