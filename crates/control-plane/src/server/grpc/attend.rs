//! The streams of agents: what comes is checked and handed to the coordinator's task, what goes is
//! what that puts into the stream's queue.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tracing::warn;

use telltale_wire::cluster::{MAX_NODE_MESSAGE_BYTES, Payload};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::{BoxFuture, Bytes};
use tonic::server::StreamingService;
use tonic::{Code, Request, Response, Status, Streaming};

use super::super::access::NodeNames;
use super::super::counters::RefusalReason;
use super::super::mailbox::{MailboxEvent, StreamEnding};
use super::super::peer::{Peer, certified_name};
use super::super::roster::{MAX_WAITING, Orders, StreamId, payload};
use super::Serving;
use crate::protocol::decode::{AgentMessage, RefusedMessage, node_message};
use crate::protocol::encode;
use telltale_cluster::node::NodeName;

/// Bytes of messages that may wait for the coordinator's task, of all streams together.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// What a message counts for at least: what it takes in memory besides its bytes.
const LEAST_SHARE_BYTES: usize = 512;
/// Agents of other jobs of which it is remembered that they were logged.
const MAX_REPORTED_JOBS: usize = 1024;
/// Messages of one stream that are refused before the stream is ended.
const MAX_REFUSALS: u32 = 64;

/// What bounds all streams together.
#[derive(Debug)]
pub(in super::super) struct Gate {
    next: AtomicU64,
    bytes: Arc<Semaphore>,
    /// Agents of other jobs that were logged: they reconnect repeatedly.
    other_jobs: Mutex<BTreeSet<String>>,
}

/// A call of Attend.
pub(super) struct Attend(pub(super) Serving);

/// The reading side of one stream.
struct AgentReader {
    serving: Serving,
    stream: StreamId,
    orders: Orders,
    peer: Peer,
    /// Whose message came last, who may be at the other end: the next is mostly of the same.
    known: Option<NodeName>,
    refusals: u32,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(0),
            bytes: Arc::new(Semaphore::new(MAX_WAITING_BYTES)),
            other_jobs: Mutex::default(),
        }
    }
}

impl Gate {
    /// Whether this was not reported yet, as far as that is remembered.
    fn is_news(&self, reason: &str) -> bool {
        let mut reported = self.other_jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() >= MAX_REPORTED_JOBS && !reported.contains(reason) {
            reported.clear();
        }
        reported.insert(reason.to_owned())
    }
}

impl StreamingService<Bytes> for Attend {
    type Response = Payload;
    type ResponseStream = ReceiverStream<Result<Payload, Status>>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let serving = self.0.clone();
        Box::pin(async move {
            serving.counters.streams.add(1);
            let peer = Peer::of(request.extensions());
            let stream = StreamId(serving.gate.next.fetch_add(1, Ordering::Relaxed));
            let (orders, to_send) = mpsc::channel(MAX_WAITING);
            if !serving.mailbox.send(MailboxEvent::Opened { stream, orders: orders.clone() }).await
            {
                return Err(Status::unavailable("the coordinator is ending"));
            }
            let reader = AgentReader { serving, stream, orders, peer, known: None, refusals: 0 };
            tokio::spawn(reader.read(request.into_inner()));
            Ok(Response::new(ReceiverStream::new(to_send)))
        })
    }
}

// === impl AgentReader ===

impl AgentReader {
    /// Reads until the agent ends the stream, or the coordinator has.
    async fn read(mut self, mut messages: Streaming<Bytes>) {
        // The queue's other end is gone once the stream has ended.
        let ended = self.orders.clone();
        let ending = match first_of(self.take_all(&mut messages), ended.closed()).await {
            Ok(ending) => ending,
            Err(refusal) => {
                let _ = self.orders.try_send(Err(refusal));
                StreamEnding::Refused
            }
        };
        self.serving.mailbox.send(MailboxEvent::Closed { stream: self.stream, ending }).await;
    }

    async fn take_all(&mut self, messages: &mut Streaming<Bytes>) -> Result<StreamEnding, Status> {
        loop {
            match messages.message().await {
                Ok(Some(bytes)) => {
                    let read = Instant::now();
                    let share = self.share(bytes.len()).await?;
                    match node_message(&bytes, self.known.as_ref()) {
                        Ok(word) if !self.may_be(&word.message.node) => {
                            self.refuse_name(&word.message.node)?;
                        }
                        Ok(AgentMessage { message, job: Some(job), .. })
                            if *job != *self.serving.job =>
                        {
                            self.refuse_job(&message.node, &job)?;
                        }
                        Ok(word) => self.hand_on(word, read, share).await?,
                        Err(RefusedMessage { node, error }) => {
                            let reason = error.to_string();
                            self.refuse(RefusalReason::of(&error), node.as_ref(), &reason)?;
                        }
                    }
                }
                Ok(None) => return Ok(StreamEnding::ByAgent),
                Err(status) => return self.broken(status),
            }
        }
    }

    /// Waits until there is room for a message.
    async fn share(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Status> {
        let bytes = u32::try_from(bytes.max(LEAST_SHARE_BYTES)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.serving.gate.bytes);
        let ending = |_| Status::unavailable("the coordinator is ending");
        room.acquire_many_owned(bytes).await.map_err(ending)
    }

    async fn hand_on(
        &mut self,
        word: AgentMessage,
        read: Instant,
        share: OwnedSemaphorePermit,
    ) -> Result<(), Status> {
        self.serving.counters.messages.add(1);
        let word = Box::new(word);
        let event = MailboxEvent::Heard { stream: self.stream, word, read, share };
        if self.serving.mailbox.send(event).await {
            Ok(())
        } else {
            Err(Status::unavailable("the coordinator is ending"))
        }
    }

    /// Whether the caller may speak for this node.
    fn may_be(&mut self, node: &NodeName) -> bool {
        if self.known.as_ref() == Some(node) {
            return true;
        }
        let may = self.peer.may_be(node, &self.serving.access.nodes);
        if may {
            self.known = Some(node.clone());
        }
        may
    }

    fn refuse_name(&mut self, node: &NodeName) -> Result<(), Status> {
        let NodeNames::Certified { domain } = &self.serving.access.nodes else { return Ok(()) };
        let name = certified_name(node, domain.as_deref());
        let reason = format!(
            "the certificate of this connection is not one of node {node}: {name} must be among the \
             names in its subjectAltName"
        );
        self.refuse(RefusalReason::Name, Some(node), &reason)
    }

    fn refuse_job(&mut self, node: &NodeName, job: &str) -> Result<(), Status> {
        let own = &self.serving.job;
        let reason = format!(
            "node {node} was started for the job {job:?}, and this coordinator runs {own:?}; give its \
             agent that --job or none, or another --coordinator"
        );
        if self.serving.gate.is_news(&reason) {
            warn!("{reason}");
        }
        self.refuse(RefusalReason::Job, Some(node), &reason)
    }

    /// Tells why a message is not taken, and ends the stream of one who sends many of those.
    fn refuse(
        &mut self,
        why: RefusalReason,
        node: Option<&NodeName>,
        reason: &str,
    ) -> Result<(), Status> {
        self.serving.counters.refuse(why);
        self.refusals += 1;
        if self.refusals > MAX_REFUSALS {
            let text = format!("too many messages that are not taken; the last: {reason}");
            return Err(Status::invalid_argument(text));
        }
        // In a full queue the agent misses the reason, and the count is there all the same.
        let _ = self.orders.try_send(Ok(payload(&encode::refusal(node, reason))));
        Ok(())
    }

    /// The stream broke off: its agent is gone, or sent what is no gRPC message or too long a one.
    fn broken(&self, status: Status) -> Result<StreamEnding, Status> {
        match status.code() {
            Code::OutOfRange | Code::ResourceExhausted => {
                self.serving.counters.refuse(RefusalReason::TooLarge);
                let text = format!("a message may have {MAX_NODE_MESSAGE_BYTES} bytes");
                Err(Status::resource_exhausted(text))
            }
            Code::Internal | Code::Unimplemented | Code::InvalidArgument => {
                self.serving.counters.refuse(RefusalReason::Malformed);
                Err(status)
            }
            _ => Ok(StreamEnding::Broken),
        }
    }
}

/// How a stream ends: what was read decides where its queue has ended in the same moment, as when its agent is gone.
async fn first_of(
    taken: impl Future<Output = Result<StreamEnding, Status>>,
    ended: impl Future<Output = ()>,
) -> Result<StreamEnding, Status> {
    tokio::select! {
        biased;
        ending = taken => ending,
        () = ended => Ok(StreamEnding::Refused),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn a_stream_that_its_agent_ends_is_never_taken_for_one_that_was_refused() {
        for ending in [StreamEnding::ByAgent, StreamEnding::Broken] {
            for _ in 0..100 {
                assert_eq!(first_of(ready(Ok(ending)), ready(())).await.unwrap(), ending);
            }
        }
        assert_eq!(first_of(pending(), ready(())).await.unwrap(), StreamEnding::Refused);
    }

    #[test]
    fn an_agent_of_another_job_is_logged_once_however_often_it_comes() {
        let gate = Gate::default();
        let news = ["a", "b", "a", "b", "a"].map(|reason| gate.is_news(reason));
        assert_eq!(news, [true, true, false, false, false]);
        (0..2 * MAX_REPORTED_JOBS).for_each(|number| assert!(gate.is_news(&number.to_string())));
        assert!(gate.other_jobs.lock().unwrap().len() <= MAX_REPORTED_JOBS);
    }
}
