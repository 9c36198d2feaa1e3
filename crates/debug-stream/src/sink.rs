//! Where events go: lines of text, lines of JSON, and files that other tools open.
//!
//! Nothing here reads a stream. What cannot be read as a tensor is shown as it is, and distinguished
//! by what is returned, so that the caller can count it; it is never an error.

mod directory;
pub(crate) mod json;
mod lines;
mod npy;
mod raw;
mod safetensors;

pub use directory::{DefaultConsumer, Saved, TakeError, Totals, directory_name};
pub use json::write_json_line;
pub use lines::write_text;
pub use npy::write_npy;
pub use raw::write_metadata;
pub use safetensors::write_safetensors;

/// Whether what was written is what the event says, or the best that could be made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Fidelity {
    /// As the event says.
    Whole,
    /// The event is of an undefined type.
    UnknownType,
    /// The event says it is a tensor, and its parts do not fit together.
    Malformed,
}

impl Fidelity {
    /// What becomes of an event that is not what the sink is for.
    fn of(event: &crate::Event) -> Self {
        match event.kind {
            crate::EventKind::Unknown(_) => Self::UnknownType,
            crate::EventKind::Tensor if crate::Tensor::of(event).is_err() => Self::Malformed,
            _ => Self::Whole,
        }
    }
}
