//! Asks machines, all at the same time, and keeps what each said last. On a thread of its own: a
//! machine that is silent delays only itself.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use telltale_client::{CallError, Client, ConnectError, Connector, ServiceAddress, Tls};
use telltale_collector::clock::SystemClock;
use telltale_query::Query;
use telltale_schema::clock::Clock;
use telltale_schema::fleet::{FLEET_VERSION, Fleet, Host, HostState};
use telltale_schema::snapshot::Snapshot;
use telltale_schema::text::with_causes;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use super::shell;
use crate::addresses::{HostAddress, HostRoute};

/// Names that are looked up at the same time: each takes a thread while its name server is silent.
const MAX_LOOKUPS: usize = 64;
/// Machines that begin to be asked at the same time. More would all be half-way at once, and a slow
/// computer of ours would take them for slow.
const MAX_BEGINNING: usize = 64;
/// How long a machine is beginning to be asked at most; then it is the next one's turn.
const BEGINNING: Duration = Duration::from_millis(100);
/// The least time between two attempts to reach a machine that does not answer.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// The credentials, timeout and period for asking hosts.
#[derive(Debug, Clone)]
pub struct Terms {
    /// How ports are reached; none for no encryption.
    pub tls: Option<Tls>,
    /// The services' token.
    pub token: Option<String>,
    /// The rows that are wanted, which a service then sends alone; none for all.
    pub filter: Option<Query>,
    /// Whether it is read what processes and the hosts use.
    pub usage: bool,
    /// Whether rows are chosen by that after they came, so that they are of no use without.
    pub chooses_by_usage: bool,
    /// How long one answer may take, connecting included.
    pub timeout: Duration,
    /// The time from one question to the next; none to ask once.
    pub period: Option<Duration>,
}

/// Machines that are being asked. Dropping it ends that.
#[derive(Debug)]
pub struct Inquiry {
    board: Arc<Board>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What is known of each machine, written by its client thread.
#[derive(Debug)]
pub(super) struct Board {
    hosts: Mutex<Vec<Host>>,
    /// Rung when a machine is no longer waited for.
    settled: Condvar,
}

/// Why a service did not answer.
#[derive(Debug, thiserror::Error)]
enum InquiryError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Call(#[from] CallError),
}

// === impl Inquiry ===

impl Inquiry {
    /// Starts to ask.
    ///
    /// # Errors
    /// When the system has no thread or no descriptor for it.
    pub fn start(addresses: Vec<HostAddress>, terms: Terms) -> io::Result<Self> {
        let board = Arc::new(Board::of(&addresses));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_LOOKUPS)
            .build()?;
        let (end, ended) = oneshot::channel::<()>();
        let (shared, terms) = (Arc::clone(&board), Arc::new(terms));
        let thread = thread::Builder::new().name(String::from("hosts")).spawn(move || {
            runtime.block_on(async {
                let mut asked = JoinSet::new();
                let turns = Arc::new(Semaphore::new(MAX_BEGINNING));
                for (place, address) in addresses.into_iter().enumerate() {
                    let seat = BoardSlot { board: Arc::clone(&shared), place };
                    asked.spawn(follow(address.way, Arc::clone(&terms), seat, Arc::clone(&turns)));
                }
                let all = async { while asked.join_next().await.is_some() {} };
                tokio::select! {
                    () = all => {}
                    // Either way it is no longer wanted.
                    _ = ended => {}
                }
            });
            // Names that are still looked up are not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { board, end: Some(end), thread: Some(thread) })
    }

    /// Waits until each machine has answered or failed, but no longer than this. Whether all have.
    pub fn wait(&self, most: Duration) -> bool {
        let waiting =
            |hosts: &mut Vec<Host>| hosts.iter().any(|host| host.state == HostState::Waiting);
        let hosts = self.board.lock();
        // A thread that panicked has reported it; what it wrote is whole.
        let waited = self.board.settled.wait_timeout_while(hosts, most, waiting);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// What is known now.
    #[must_use]
    pub fn now(&self) -> Fleet {
        let hosts = self.board.lock().clone();
        Fleet { fleet_version: FLEET_VERSION, taken_at: SystemClock.now(), hosts }
    }
}

impl Drop for Inquiry {
    /// Ends at once whatever still goes on, sessions of ssh included.
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported it.
            let _ = thread.join();
        }
    }
}

// === impl Board ===

impl Board {
    fn of(addresses: &[HostAddress]) -> Self {
        let host = |address: &HostAddress| Host {
            name: address.name.clone(),
            state: HostState::Waiting,
            reason: None,
            answered_at: None,
            snapshot: None,
        };
        Self { hosts: Mutex::new(addresses.iter().map(host).collect()), settled: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One machine's place on the board.
pub(super) struct BoardSlot {
    board: Arc<Board>,
    place: usize,
}

// === impl BoardSlot ===

impl BoardSlot {
    /// It answered.
    pub(super) fn answered(&self, snapshot: Snapshot) {
        let mut hosts = self.board.lock();
        let host = &mut hosts[self.place];
        host.state = HostState::Answering;
        host.reason = None;
        host.answered_at = Some(SystemClock.now());
        host.snapshot = Some(Arc::new(snapshot));
        self.board.settled.notify_all();
    }

    /// It did not; what it said before stays.
    pub(super) fn failed(&self, reason: String) {
        let mut hosts = self.board.lock();
        let host = &mut hosts[self.place];
        host.state = HostState::Unreachable;
        host.reason = Some(reason);
        self.board.settled.notify_all();
    }
}

/// Asks a machine as often as the terms say.
async fn follow(way: HostRoute, terms: Arc<Terms>, seat: BoardSlot, turns: Arc<Semaphore>) {
    let mut client = None;
    loop {
        let begun = Instant::now();
        let failed = match &way {
            HostRoute::Service(address) => {
                in_turn(&turns, ask(address, &terms, &mut client, &seat)).await
            }
            HostRoute::Shell(to) => match in_turn(&turns, shell::follow(to, &terms, &seat)).await {
                Ok(()) => None,
                Err(error) => Some(with_causes(&error)),
            },
        };
        let Some(period) = terms.period else {
            failed.into_iter().for_each(|words| seat.failed(words));
            return;
        };
        let pause = if failed.is_some() { period.max(LEAST_PAUSE) } else { period };
        failed.into_iter().for_each(|words| seat.failed(words));
        tokio::time::sleep_until((begun + pause).into()).await;
    }
}

/// Begins when it is this one's turn, and lets the next one begin before it has to wait for long.
async fn in_turn<T>(turns: &Semaphore, question: impl Future<Output = T>) -> T {
    let turn = turns.acquire().await;
    tokio::pin!(question);
    if let Ok(answer) = tokio::time::timeout(BEGINNING, &mut question).await {
        return answer;
    }
    drop(turn);
    question.await
}

/// Asks a service once, by the connection that there is or a new one; gives why it did not answer.
async fn ask(
    address: &ServiceAddress,
    terms: &Terms,
    client: &mut Option<Client>,
    seat: &BoardSlot,
) -> Option<String> {
    let answer = tokio::time::timeout(terms.timeout, answer(address, terms, client)).await;
    let words = match answer {
        Ok(Ok(snapshot)) => {
            seat.answered(snapshot);
            return None;
        }
        Ok(Err(error)) => with_causes(&error),
        Err(_) => late(terms.timeout),
    };
    *client = None;
    Some(words)
}

async fn answer(
    address: &ServiceAddress,
    terms: &Terms,
    client: &mut Option<Client>,
) -> Result<Snapshot, InquiryError> {
    let client = match client {
        Some(client) => client,
        none => none.insert(connector(address, terms).connect().await?),
    };
    let Some(filter) = &terms.filter else { return Ok(rows(client, terms, "").await?) };
    match rows(client, terms, filter.text()).await {
        // A service of another version may not know a field; here it is known.
        Err(error) if error.is_of_the_request() => Ok(rows(client, terms, "").await?),
        answer => Ok(answer?),
    }
}

/// The rows that a filter wants. A service measures for a moment what processes use: one that takes
/// too long for that is asked for what it has.
async fn rows(client: &mut Client, terms: &Terms, filter: &str) -> Result<Snapshot, CallError> {
    let is_needed =
        terms.chooses_by_usage || terms.filter.as_ref().is_some_and(Query::asks_for_usage);
    if terms.usage && !is_needed {
        let measured = client.selected(filter, true);
        if let Ok(answer) = tokio::time::timeout(terms.timeout / 2, measured).await {
            return answer;
        }
    }
    client.selected(filter, terms.usage && is_needed).await
}

/// The way to a service on these terms. TLS is for ports.
fn connector(address: &ServiceAddress, terms: &Terms) -> Connector {
    let mut connector = Connector::new(address.clone());
    if let (ServiceAddress::Port(_), Some(tls)) = (address, &terms.tls) {
        connector = connector.with_tls(tls.clone());
    }
    if let Some(token) = &terms.token {
        connector = connector.with_token(token);
    }
    connector
}

/// What is said of a machine that took too long.
pub(super) fn late(timeout: Duration) -> String {
    format!("it did not answer within {} s", timeout.as_secs_f64())
}
