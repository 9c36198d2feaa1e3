//! Tells the node's agent of each transfer of a ring, as `POST /log_ccl` takes it.
//!
//! A thread of its own does the posting, so that the training never waits for the agent. What finds
//! no room, or no agent, is dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, io};

use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use telltale_gpt::parallel::{Observer, ParallelRank, Transfer, TransferRecord};
use telltale_server::listen::Address;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};

use crate::exit::{self, Failure};

/// Where the agent takes reports; set by the agent.
const VARIABLE: &str = "TELLTALE_LOG_CCL";
/// Records on their way to the agent.
const MOST_WAITING: usize = 8192;
/// Records in one post.
const MOST_IN_A_POST: usize = 1000;
/// Time between two posts.
const PERIOD: Duration = Duration::from_millis(50);
/// How long a post may take.
const TIMEOUT: Duration = Duration::from_secs(1);

/// What is reported.
#[derive(Debug, Clone, Copy)]
enum TrainingMessage {
    Transfer(TransferRecord),
    Checkpoint { finished: bool },
}

/// See the module. Dropping it posts what is left.
pub(super) struct Telling {
    sender: Option<Sender<TrainingMessage>>,
    dropped: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// The thread's part.
struct Teller {
    address: Address,
    member: ParallelRank,
    /// Times count from here: a clock that only grows is all that is asked for.
    since: Instant,
    dropped: Arc<AtomicU64>,
    connection: Option<SendRequest<String>>,
    /// Whether "the agent does not take reports" was logged.
    complained: bool,
}

/// Why a post was not taken.
#[derive(Debug, thiserror::Error)]
enum PostError {
    #[error("no agent answers there")]
    Connect(#[source] io::Error),
    #[error("the exchange failed")]
    Http(#[from] hyper::Error),
    #[error("it answers {0}")]
    Status(StatusCode),
    #[error("it takes longer than {TIMEOUT:?}")]
    Late,
}

// === impl Telling ===

impl Telling {
    /// Begins to tell the agent that the environment names; none when it names none.
    pub(super) fn from_environment(member: ParallelRank) -> Result<Option<Self>, Failure> {
        let Some(text) = env::var_os(VARIABLE).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let text = text.to_string_lossy();
        let address = text.strip_prefix("http://").unwrap_or(&text).trim_end_matches('/');
        let address = address.trim_end_matches("/log_ccl");
        let address = address.parse::<Address>();
        let address = address.map_err(|error| Failure::Message(format!("{VARIABLE}: {error}")))?;
        Self::begin(address, member).map(Some)
    }

    fn begin(address: Address, member: ParallelRank) -> Result<Self, Failure> {
        let (sender, receiver) = channel(MOST_WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let teller = Teller {
            address,
            member,
            since: Instant::now(),
            dropped: Arc::clone(&dropped),
            connection: None,
            complained: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::because(&error))?;
        let thread = thread::Builder::new()
            .name("reporting".to_owned())
            .spawn(move || runtime.block_on(teller.run(receiver)))
            .map_err(|error| Failure::because(&error))?;
        Ok(Self { sender: Some(sender), dropped, thread: Some(thread) })
    }

    /// Tells of what a ring does.
    pub(super) fn observer(&self) -> Observer {
        // The ring's own end of the channel, which ends with the ring.
        let sender = self.sender.clone();
        let dropped = Arc::clone(&self.dropped);
        Box::new(move |record| {
            if let Some(sender) = &sender {
                tell(sender, &dropped, TrainingMessage::Transfer(*record));
            }
        })
    }

    /// Tells that the training does something slow on purpose, or has done it.
    pub(super) fn report_checkpoint(&self, finished: bool) {
        if let Some(sender) = &self.sender {
            tell(sender, &self.dropped, TrainingMessage::Checkpoint { finished });
        }
    }
}

fn tell(sender: &Sender<TrainingMessage>, dropped: &AtomicU64, reported: TrainingMessage) {
    if sender.try_send(reported).is_err() {
        dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.sender.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            exit::tell(&format!("telltale: {dropped} transfers were not reported to the agent"));
        }
    }
}

// === impl Teller ===

impl Teller {
    async fn run(mut self, mut receiver: Receiver<TrainingMessage>) {
        let mut records = Vec::with_capacity(MOST_IN_A_POST);
        while receiver.recv_many(&mut records, MOST_IN_A_POST).await > 0 {
            let lines: String =
                records.iter().map(|reported| format!("{}\n", self.line(*reported))).collect();
            if let Err(error) = self.post(lines).await {
                self.connection = None;
                self.dropped.fetch_add(records.len() as u64, Ordering::Relaxed);
                if !self.complained {
                    let text = telltale_schema::text::with_causes(&error);
                    exit::tell(&format!(
                        "telltale: reporting transfers to the agent at {} failed: {text}; the \
                         training goes on, and what is not reported is counted",
                        self.address
                    ));
                }
                self.complained = true;
            }
            records.clear();
            sleep(PERIOD).await;
        }
    }

    async fn post(&mut self, lines: String) -> Result<(), PostError> {
        timeout(TIMEOUT, self.exchange(lines)).await.unwrap_or(Err(PostError::Late))
    }

    async fn exchange(&mut self, lines: String) -> Result<(), PostError> {
        let mut sender = match self.connection.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => connect(&self.address).await?,
        };
        sender.ready().await?;
        let request = Request::post("/log_ccl")
            .header(HOST, "localhost")
            .header(CONTENT_TYPE, "application/x-ndjson")
            .body(lines)
            .expect("these parts make a request");
        let status = sender.send_request(request).await?.status();
        self.connection = Some(sender);
        if status.is_success() { Ok(()) } else { Err(PostError::Status(status)) }
    }

    /// The fields are those of the original's records, with the epoch.
    fn line(&self, reported: TrainingMessage) -> Value {
        let (rank, epoch) = (self.member.rank(), self.member.epoch());
        let TransferRecord { transfer, began, ended } = match reported {
            TrainingMessage::Transfer(record) => record,
            TrainingMessage::Checkpoint { finished } => {
                return json!({"opType": "checkpoint", "global_rank": rank, "epoch": epoch,
                    "finished": finished});
            }
        };
        let time = |moment: Instant| {
            let since = moment.saturating_duration_since(self.since);
            u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
        };
        let mut fields = json!({"context_rank": rank, "context_size": self.member.world_size(),
            "startTime": time(began), "endTime": ended.map_or(0, time), "filename": file!(),
            "finished": ended.is_some(), "epoch": epoch});
        match transfer {
            Transfer::Send { to: peer, bytes } | Transfer::Receive { from: peer, bytes } => {
                let sends = matches!(transfer, Transfer::Send { .. });
                fields["opType"] = if sends { "send" } else { "recv" }.into();
                fields["remoteRank"] = peer.into();
                fields["bytes"] = bytes.into();
            }
            Transfer::AllReduce { count } => {
                fields["opType"] = "allreduce".into();
                fields["algorithm"] = "ring".into();
                fields["dataType"] = "float32".into();
                fields["count"] = count.into();
                fields["rootRank"] = (-1).into();
            }
        }
        fields
    }
}

async fn connect(address: &Address) -> Result<SendRequest<String>, PostError> {
    match address {
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await.map_err(PostError::Connect)?;
            begin(stream).await
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).await.map_err(PostError::Connect)?;
            begin(stream).await
        }
    }
}

async fn begin(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<SendRequest<String>, PostError> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The sender sees how it ends.
    tokio::spawn(async { drop(connection.await) });
    Ok(sender)
}
