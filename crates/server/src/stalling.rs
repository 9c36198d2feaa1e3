//! A connection's bytes, with a look at whether they move: a client that takes nothing of an answer
//! would hold it for ever.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// When bytes of a connection moved last.
#[derive(Debug)]
pub struct Movement(Mutex<Moved>);

#[derive(Debug)]
struct Moved {
    last: Instant,
    /// Since when the client has not taken what is there for it.
    stalled: Option<Instant>,
}

/// A stream that notes its movement.
#[derive(Debug)]
pub struct Noting<S> {
    stream: S,
    movement: Arc<Movement>,
}

// === impl Movement ===

impl Default for Movement {
    fn default() -> Self {
        Self(Mutex::new(Moved { last: Instant::now(), stalled: None }))
    }
}

impl Movement {
    /// When a byte came or went last.
    pub fn last(&self) -> Instant {
        self.moved().last
    }

    /// Ends when the client has taken nothing for `patience` although there was something.
    pub async fn stalls(&self, patience: Duration) {
        loop {
            let since = self.moved().stalled;
            match since.map(|since| since.elapsed()) {
                Some(stalled) if stalled >= patience => return,
                Some(stalled) => tokio::time::sleep(patience - stalled).await,
                None => tokio::time::sleep(patience).await,
            }
        }
    }

    fn note<T>(&self, outcome: &Poll<io::Result<T>>, is_write: bool) {
        let mut moved = self.moved();
        match outcome {
            Poll::Ready(_) => {
                moved.last = Instant::now();
                if is_write {
                    moved.stalled = None;
                }
            }
            Poll::Pending if is_write => {
                moved.stalled.get_or_insert_with(Instant::now);
            }
            Poll::Pending => {}
        }
    }

    fn moved(&self) -> std::sync::MutexGuard<'_, Moved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Noting ===

impl<S> Noting<S> {
    /// Notes what moves on `stream` in `movement`.
    pub fn new(stream: S, movement: Arc<Movement>) -> Self {
        Self { stream, movement }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noting<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.movement.note(&outcome, false);
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noting<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.movement.note(&outcome, true);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.movement.note(&outcome, true);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
