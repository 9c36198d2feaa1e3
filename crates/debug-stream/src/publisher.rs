//! The producer's side: what a runtime calls for each event. Nothing here waits or allocates.

use std::sync::Arc;

use crate::event::{EventKind, FIRST_USER_TYPE, Fields};
use crate::queue::{LossCause, Queue, QueueRefusal};
use crate::shared::StreamShared;

/// One end through which events go into a stream. Any number may be used at once.
#[derive(Clone)]
pub struct Publisher {
    queue: Arc<Queue>,
    shared: Arc<StreamShared>,
}

/// A tensor to publish.
#[derive(Debug, Clone, Copy)]
pub struct TensorEvent<'event> {
    /// What the kernel's author called it; cut after 511 bytes.
    pub prefix: &'event str,
    /// The name of its data type, as `float32`; cut after 15 bytes.
    pub dtype: &'event str,
    /// Its dimensions, at most 8; none for a scalar.
    pub shape: &'event [u64],
    /// Its elements, little-endian, in row-major order.
    pub data: &'event [u8],
    /// Where it wants to be printed: 0 for standard output, anything else for standard error.
    pub pipe: u32,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Published {
    /// It is in the queue.
    Queued,
    /// It is lost, and counted.
    Lost(LossCause),
    /// The stream's filter does not want it.
    Filtered,
    /// The stream has no reader.
    Disconnected,
    /// It cannot be recorded: more than 8 dimensions, or a type below [`FIRST_USER_TYPE`].
    Unrepresentable,
}

impl Publisher {
    pub(crate) fn new(queue: Arc<Queue>, shared: Arc<StreamShared>) -> Self {
        Self { queue, shared }
    }

    /// Whether there is a reader, so that a tensor is worth fetching. Costs one load.
    #[must_use]
    #[inline(always)]
    pub fn is_connected(&self) -> bool {
        self.queue.is_connected()
    }

    /// Where [`Publisher::is_connected`] looks, for code in another language: a byte that is 1 while
    /// there is a reader, to be loaded atomically and never written. It is there as long as this
    /// publisher.
    #[must_use]
    pub fn connected_at(&self) -> *const bool {
        self.queue.connected_at()
    }

    /// Publishes a tensor.
    // Inlined, so that it costs its caller a load and a branch without a reader.
    #[inline(always)]
    pub fn tensor(&self, event: &TensorEvent<'_>) -> Published {
        if !self.is_connected() {
            return Published::Disconnected;
        }
        self.connected_tensor(event)
    }

    #[inline(never)]
    fn connected_tensor(&self, event: &TensorEvent<'_>) -> Published {
        let TensorEvent { prefix, dtype, shape, data, pipe } = *event;
        let core = self.shared.core;
        self.publish(EventKind::Tensor, &Fields { core, pipe, prefix, dtype, shape, data })
    }

    /// Publishes text, for standard error if `pipe` is not 0.
    pub fn text(&self, prefix: &str, pipe: u32, text: &str) -> Published {
        self.bytes(EventKind::Text, prefix, pipe, text.as_bytes())
    }

    /// Publishes that the core reached a breakpoint; `note` says what for.
    pub fn breakpoint(&self, prefix: &str, note: &str) -> Published {
        self.bytes(EventKind::Breakpoint, prefix, 0, note.as_bytes())
    }

    /// Publishes an event of a type of the runtime's own, [`FIRST_USER_TYPE`] or above.
    pub fn user(&self, event_type: u32, prefix: &str, data: &[u8]) -> Published {
        if event_type < FIRST_USER_TYPE {
            return Published::Unrepresentable;
        }
        self.bytes(EventKind::User(event_type), prefix, 0, data)
    }

    fn bytes(&self, kind: EventKind, prefix: &str, pipe: u32, data: &[u8]) -> Published {
        if !self.is_connected() {
            return Published::Disconnected;
        }
        let core = self.shared.core;
        self.publish(kind, &Fields { core, pipe, prefix, dtype: "", shape: &[], data })
    }

    #[inline(always)]
    fn publish(&self, kind: EventKind, fields: &Fields<'_>) -> Published {
        if self.shared.filters() && !self.shared.wants(fields) {
            return Published::Filtered;
        }
        let Some(draft) = fields.draft(kind) else { return Published::Unrepresentable };
        match self.queue.push(&draft) {
            Ok(()) => Published::Queued,
            Err(QueueRefusal::Lost(cause)) => Published::Lost(cause),
            Err(QueueRefusal::Disconnected) => Published::Disconnected,
        }
    }
}
