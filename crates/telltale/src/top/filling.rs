//! Asks the service for what its history has of the values that graphs show, from before the view was
//! opened: in small answers, beside the snapshots. A service without a history, or an earlier one,
//! leaves graphs as they are.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use telltale_client::Client;
use telltale_schema::clock::Timestamp;
use telltale_schema::history::{HistoryAnswer, HistoryQuery, ProcessChoice, Subjects};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::Snapshot;
use telltale_smi::screen::{GraphValue, MAX_PROCESSES, SAMPLES};

use super::Wake;

/// Devices and processes of one question, so that no answer is large.
const DEVICES: usize = 32;
const PROCESSES: usize = 16;
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How far graphs go back at most, however long the period is.
const MAX_SPAN: Duration = Duration::from_secs(3600);
/// When the service has written what it saw last before the view was opened. It writes every ten
/// seconds, unless it is configured otherwise.
const WRITTEN: Duration = Duration::from_secs(15);

/// What is asked for.
pub(super) struct Filling {
    devices: Vec<String>,
    processes: Vec<ProcessIdentity>,
    /// When the view was opened.
    to: Timestamp,
    period: Duration,
}

impl Filling {
    /// For the devices and processes of the first snapshot.
    pub(super) fn of(snapshot: &Snapshot, period: Duration) -> Self {
        let identities = snapshot.processes.iter().filter_map(|process| process.identity);
        Self {
            devices: snapshot.devices.iter().map(|device| device.id.clone()).collect(),
            processes: identities.take(MAX_PROCESSES).collect(),
            to: snapshot.taken_at,
            period,
        }
    }

    /// Asks for everything, first for what is shown, and once more for the last seconds when the
    /// service has written them.
    pub(super) async fn run(self, shown: GraphValue, mut client: Client, wakes: SyncSender<Wake>) {
        let samples = u32::try_from(SAMPLES).unwrap_or(u32::MAX);
        let span = self.period.saturating_mul(samples).min(MAX_SPAN);
        if self.ask(shown, span, &mut client, &wakes).await.is_none() {
            return;
        }
        tokio::time::sleep(WRITTEN).await;
        self.ask(shown, span.min(2 * WRITTEN), &mut client, &wakes).await;
    }

    /// Passes on what the history has of this span before the view was opened; nothing where it does
    /// not answer, or the view has ended.
    async fn ask(
        &self,
        shown: GraphValue,
        span: Duration,
        client: &mut Client,
        wakes: &SyncSender<Wake>,
    ) -> Option<()> {
        let mut names = vec![shown.history_name()];
        for name in GraphValue::all().map(GraphValue::history_name) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut is_first = true;
        for name in names {
            for devices in self.devices.chunks(DEVICES) {
                let (subjects, devices) = (Subjects::Devices, devices.to_vec());
                let metrics = vec![name.to_owned()];
                let query = HistoryQuery { subjects, devices, metrics, ..self.query(span) };
                pass_on(answer(client, &query).await?, wakes)?;
            }
            if std::mem::take(&mut is_first) {
                self.ask_processes(span, client, wakes).await?;
            }
        }
        Some(())
    }

    async fn ask_processes(
        &self,
        span: Duration,
        client: &mut Client,
        wakes: &SyncSender<Wake>,
    ) -> Option<()> {
        for processes in self.processes.chunks(PROCESSES) {
            let subjects = Subjects::Processes;
            let processes = processes.iter().copied().map(ProcessChoice::Identity).collect();
            let query = HistoryQuery { subjects, processes, ..self.query(span) };
            pass_on(answer(client, &query).await?, wakes)?;
        }
        Some(())
    }

    fn query(&self, span: Duration) -> HistoryQuery {
        let span_ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let from = Timestamp(self.to.0.saturating_sub(span_ns));
        let step_ms = u64::try_from(self.period.as_millis()).ok();
        HistoryQuery { step_ms, ..HistoryQuery::over(from, self.to) }
    }
}

/// What the history has; none where it cannot be asked.
async fn answer(client: &mut Client, query: &HistoryQuery) -> Option<HistoryAnswer> {
    tokio::time::timeout(TIMEOUT, client.history(query)).await.ok()?.ok()
}

fn pass_on(answer: HistoryAnswer, wakes: &SyncSender<Wake>) -> Option<()> {
    wakes.send(Wake::History(Box::new(answer))).ok()
}
