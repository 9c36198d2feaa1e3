//! The consumer on tokio's reactor.
//!
//! tokio sees edges only, so what it remembers as readable may be forgotten exactly when the
//! queue was found empty: from then on the next event makes an edge.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;

use crate::consumer::{Consumer, NextEvent, ReadError};
use crate::queue::register;

/// A consumer whose events can be awaited. Cannot lose a wake-up, and is safe to cancel: what was
/// not returned is still in the queue.
pub struct AsyncConsumer {
    /// First, so that it is gone from the reactor before the connection ends.
    registered: AsyncFd<Arc<OwnedFd>>,
    consumer: Consumer,
}

impl AsyncConsumer {
    /// Registers a consumer with the runtime that this is called in.
    ///
    /// # Errors
    /// When the reactor takes no more descriptors.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled.
    pub fn new(consumer: Consumer) -> io::Result<Self> {
        Ok(Self { registered: register(consumer.reader().descriptor())?, consumer })
    }

    /// Waits for what is next.
    ///
    /// # Errors
    /// In a child of the process that connected, or when the reactor is gone.
    pub async fn next(&mut self) -> Result<NextEvent, ReadError> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// What is next, or a promise to wake the task when there is something.
    ///
    /// # Errors
    /// As for [`AsyncConsumer::next`].
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<NextEvent, ReadError>> {
        loop {
            let ready = ready!(self.registered.poll_read_ready(context));
            let mut ready = ready.map_err(ReadError::Wait)?;
            match self.consumer.try_next()? {
                Some(next) => return Poll::Ready(Ok(next)),
                None => ready.clear_ready(),
            }
        }
    }

    /// The consumer, no longer registered.
    #[must_use]
    pub fn into_consumer(self) -> Consumer {
        self.consumer
    }
}
