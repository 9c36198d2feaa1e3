//! The legacy socket: clients that come, what they send, and their end.
//!
//! A client that floods, dawdles or contradicts itself costs itself alone: it waits, or it is
//! disconnected, and what it had is taken out.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;

use telltale_schema::text::with_causes;
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::framing::Framing;
use super::message::{MessageForm, Request, Verb};
use super::roster::{ClientSlot, Roster};
use super::{PAUSE_AFTER_FAILURE, ServeError, answers, peer};
use crate::service::Control;

/// Bytes that one read takes.
const READ_BYTES: usize = 4096;
/// How long nothing follows a first message until its size is believed. Clients write a message at
/// once, so a longer one is there as a whole.
const SILENCE: Duration = Duration::from_millis(25);
/// How long a message may take to arrive once it has begun.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to receive an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Messages of one client in a second, over time; it waits for more, as it did for the server.
const MESSAGES_A_SECOND: u32 = 20_000;
/// Messages that a client may be ahead of that.
const BURST: u32 = 65_536;

/// What all connections share.
#[derive(Debug, Clone)]
pub(super) struct Serving {
    pub(super) roster: Roster,
    pub(super) control: Control,
}

/// Why a connection is ended by us; the name in metrics.
struct Reason(&'static str);

/// Serves the sockets until `stop` ends.
pub(super) async fn serve(
    listeners: Vec<std::os::unix::net::UnixListener>,
    serving: Serving,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let serving = Arc::new(serving);
    let mut all = JoinSet::new();
    for listener in listeners {
        let listener = UnixListener::from_std(listener).map_err(ServeError::Listen)?;
        all.spawn(accept(listener, Arc::clone(&serving)));
    }
    stop.await;
    // Nothing is owed to clients: they connect again when the service is back.
    all.shutdown().await;
    Ok(())
}

/// Lets clients in, for ever.
async fn accept(listener: UnixListener, serving: Arc<Serving>) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if let Some((slot, end)) = admit(&stream, &serving.roster) {
                        clients.spawn(attend(stream, end, slot, Arc::clone(&serving)));
                    }
                }
                Err(_) => sleep(PAUSE_AFTER_FAILURE).await,
            },
            Some(_) = clients.join_next() => {}
        }
    }
}

/// A slot for a client whose process is known.
fn admit(stream: &UnixStream, roster: &Roster) -> Option<(ClientSlot, AsyncFd<OwnedFd>)> {
    match peer::process_of(stream) {
        Ok(Some((client, end))) => match follow(end) {
            Ok(end) => roster.slot(client).map(|slot| (slot, end)),
            Err(error) => {
                debug!("a legacy client is not let in: {}", with_causes(&error));
                roster.refuse("no_descriptors");
                None
            }
        },
        Ok(None) => {
            roster.refuse("unseen_process");
            None
        }
        Err(error) => {
            debug!("cannot answer a legacy client: {}", with_causes(&error));
            roster.refuse("unseen_process");
            None
        }
    }
}

/// The end of a process as something that tasks can wait for.
fn follow(end: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(deprecated, reason = "its successor is unsafe for what is no owned descriptor")]
    AsyncFd::with_interest(end, Interest::READABLE)
}

/// Attends to a client until its connection or its process ends.
async fn attend(
    stream: UnixStream,
    end: AsyncFd<OwnedFd>,
    slot: ClientSlot,
    serving: Arc<Serving>,
) {
    let outcome = tokio::select! {
        // A process that ended counts no more, even if another still has its connection.
        _ = end.readable() => Ok(()),
        outcome = converse(&stream, &slot, &serving.control) => outcome,
    };
    if let Err(Reason(reason)) = outcome {
        serving.roster.refuse(reason);
    }
    let was_used = slot.is_used();
    drop(slot);
    if was_used {
        serving.control.note_change();
    }
}

/// Reads messages and answers them until the client hangs up.
async fn converse(stream: &UnixStream, slot: &ClientSlot, control: &Control) -> Result<(), Reason> {
    let mut framing = Framing::default();
    let mut pace = MessagePace::new();
    let mut buffer = [0; READ_BYTES];
    let mut begun: Option<Instant> = None;
    loop {
        while let Some((form, request)) =
            framing.next().map_err(|_| Reason("contradictory_form"))?
        {
            begun = None;
            hear(stream, slot, control, (form, &request)).await?;
            pace.wait().await;
        }
        let until = if framing.awaits_silence() {
            Some(Instant::now() + SILENCE)
        } else if framing.is_within() {
            Some(*begun.get_or_insert_with(Instant::now) + MESSAGE_TIMEOUT)
        } else {
            None
        };
        match read(stream, &mut buffer, until).await {
            Ok(Some(0)) if framing.awaits_silence() => framing.fell_silent(),
            Ok(Some(0)) => return Ok(()),
            Ok(Some(count)) => framing.arrived(&buffer[..count]),
            Ok(None) if framing.awaits_silence() => framing.fell_silent(),
            Ok(None) => return Err(Reason("slow")),
            // The client has gone.
            Err(_) => return Ok(()),
        }
    }
}

/// Takes note of one message and answers it.
async fn hear(
    stream: &UnixStream,
    slot: &ClientSlot,
    control: &Control,
    (form, request): (MessageForm, &Request),
) -> Result<(), Reason> {
    let published = control.view().latest();
    let capacity = answers::capacity(&published.snapshot, request.device);
    if slot.note(request, capacity) {
        control.note_change();
    }
    if request.verb == Verb::DumpRemaining {
        debug!("{}", slot.remaining());
    }
    let Some(answer) = answers::answer(request, &published.snapshot) else { return Ok(()) };
    let message = answer.encode(form);
    match timeout(ANSWER_TIMEOUT, write(stream, &message)).await {
        // A client that has gone is noticed at the next read.
        Ok(_) => Ok(()),
        Err(_) => Err(Reason("slow")),
    }
}

/// Reads what is there; 0 at the end, none at `until`.
async fn read(
    stream: &UnixStream,
    buffer: &mut [u8],
    until: Option<Instant>,
) -> io::Result<Option<usize>> {
    let late = async {
        match until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(late);
    loop {
        tokio::select! {
            biased;
            ready = stream.readable() => ready?,
            () = &mut late => return Ok(None),
        }
        match stream.try_read(buffer) {
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn write(stream: &UnixStream, mut message: &[u8]) -> io::Result<()> {
    while !message.is_empty() {
        let _: Ready = stream.ready(Interest::WRITABLE).await?;
        match stream.try_write(message) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => message = &message[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Holds a client to [`MESSAGES_A_SECOND`], and lets others in between.
struct MessagePace {
    left: u32,
    since: Instant,
}

impl MessagePace {
    fn new() -> Self {
        Self { left: BURST, since: Instant::now() }
    }

    /// Counts a message; waits when there were too many.
    async fn wait(&mut self) {
        self.left -= 1;
        if self.left > 0 {
            return tokio::task::coop::consume_budget().await;
        }
        let earned = self.since.elapsed().as_secs_f64() * f64::from(MESSAGES_A_SECOND);
        if earned < f64::from(BURST) {
            let missing = f64::from(BURST) - earned;
            sleep(Duration::from_secs_f64(missing / f64::from(MESSAGES_A_SECOND))).await;
        }
        *self = Self::new();
    }
}
