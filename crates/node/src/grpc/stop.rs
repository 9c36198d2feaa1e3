//! Streams that end when the service stops, which clients take as the call to connect again.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::watch::Receiver;
use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;
use tonic::Status;

/// A stream until the call to stop.
struct UntilStop<S> {
    stream: S,
    stop: WatchStream<bool>,
    has_ended: bool,
}

/// `stream` until `stop` says true.
pub(super) fn until_stop<T, S>(
    stream: S,
    stop: Receiver<bool>,
) -> impl Stream<Item = Result<T, Status>> + Unpin + Send
where
    S: Stream<Item = Result<T, Status>> + Unpin + Send,
{
    UntilStop { stream, stop: WatchStream::new(stop), has_ended: false }
}

impl<T, S: Stream<Item = Result<T, Status>> + Unpin> Stream for UntilStop<S> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        while let Poll::Ready(stop) = Pin::new(&mut self.stop).poll_next(context) {
            if stop.unwrap_or(true) {
                self.has_ended = true;
                return Poll::Ready(Some(Err(Status::unavailable("the service is stopping"))));
            }
        }
        Pin::new(&mut self.stream).poll_next(context)
    }
}
