//! The stream as its users see it: what is published is read, whichever way they wait.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod polling;
mod publishing;
mod standing_by;
#[cfg(feature = "tokio")]
mod tasks;

use telltale_debug_stream::{Publisher, Stream, StreamOptions, TensorEvent};

/// A stream with room for so many events.
fn stream(max_events: u64) -> Stream {
    Stream::new(7, StreamOptions { max_events, ..StreamOptions::default() })
}

/// Publishes a tensor of one number.
fn publish(publisher: &Publisher, prefix: &str, number: u32) -> telltale_debug_stream::Published {
    publisher.tensor(&TensorEvent {
        prefix,
        dtype: "uint32",
        shape: &[1],
        data: &number.to_le_bytes(),
        pipe: 0,
    })
}

/// The number that [`publish`] was given.
fn number(data: &[u8]) -> u32 {
    u32::from_le_bytes(data.try_into().unwrap())
}
