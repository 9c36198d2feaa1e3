//! An answer whose parts a task makes while the connection takes them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::mpsc;

/// Parts of an answer as a task makes them. The task ends when they are not taken any more.
pub(super) struct BodyParts {
    parts: mpsc::Receiver<Bytes>,
    task: tokio::task::JoinHandle<()>,
}

impl BodyParts {
    /// What `task` sends to the other end of `parts`. With room for one part in that channel, it
    /// makes the next one when the connection has taken this one.
    pub(super) fn by(
        parts: mpsc::Receiver<Bytes>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { parts, task: tokio::spawn(task) }
    }
}

impl HttpBody for BodyParts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.parts.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}

impl Drop for BodyParts {
    fn drop(&mut self) {
        self.task.abort();
    }
}
