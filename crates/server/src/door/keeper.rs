//! Who is let in by a door, and what a server learns of its connections.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::http::Extensions;
use tokio::sync::Notify;

use super::end::End;
use super::movement::Movement;
use super::stream::Stream;

/// Who is let in.
pub trait Keeper: Send + Sync {
    /// What is known of a connection that has just come; none where it is refused, which the
    /// keeper counts. It may be asked for several at once.
    fn admit<'a>(&'a self, stream: &'a Stream) -> Admission<'a>;

    /// Takes note of how a connection that was let in has ended.
    fn ended(&self, end: End);
}

/// A keeper's answer, once it is there.
pub type Admission<'a> = Pin<Box<dyn Future<Output = Option<Guest>> + Send + 'a>>;

/// A connection that is let in.
pub struct Guest {
    /// What each of its requests carries; beside it the [`Certificate`](super::Certificate) of its client, if it has shown one.
    pub extensions: Extensions,
    /// When its bytes moved last.
    pub movement: Arc<Movement>,
    /// Notified when it has to leave.
    pub leave: Arc<Notify>,
    /// Dropped when it has ended.
    pub seat: Box<dyn Any + Send>,
}

impl Guest {
    /// One that holds this slot.
    pub fn new(seat: impl Any + Send) -> Self {
        Self {
            extensions: Extensions::new(),
            movement: Arc::new(Movement::default()),
            leave: Arc::new(Notify::new()),
            seat: Box::new(seat),
        }
    }

    /// The same, whose requests carry this.
    #[must_use]
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, extension: T) -> Self {
        self.extensions.insert(extension);
        self
    }
}
