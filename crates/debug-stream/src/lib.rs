//! What kernels print, as events on a pollable descriptor; decoding and sinks.
//!
//! A runtime makes one [`Stream`] for each logical core and publishes through its [`Publisher`]s;
//! one [`Consumer`] at a time reads. Publishing never waits for the consumer: what does not fit is
//! lost, counted by cause, and reported in its place. The descriptor is readable if and only if
//! something waits, so poll, select and epoll of either kind may be used as for a socket.
//!
//! ```
//! use telltale_debug_stream::{NextEvent, Stream, StreamOptions, TensorEvent};
//!
//! let stream = Stream::new(0, StreamOptions::default());
//! let publisher = stream.publisher();
//! let mut consumer = stream.connect()?;
//! let data = 1.5_f32.to_le_bytes();
//! publisher.tensor(&TensorEvent {
//!     prefix: "loss", dtype: "float32", shape: &[1], data: &data, pipe: 0,
//! });
//! let Some(NextEvent::Event(event)) = consumer.try_next()? else { panic!("one was published") };
//! assert_eq!((event.prefix.as_str(), event.iteration), ("loss", Some(0)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]
#![deny(clippy::cast_possible_truncation)]

#[cfg(feature = "tokio")]
mod asynchronous;
pub mod capture;
mod consumer;
pub mod cores;
mod dtype;
mod encode;
mod event;
mod filter;
mod options;
mod publisher;
#[allow(unsafe_code)]
mod queue;
mod shared;
pub mod sink;
mod standby;
mod stream;
mod sync;
mod tensor;
mod text;
mod wake_up;

#[cfg(feature = "tokio")]
pub use asynchronous::AsyncConsumer;
pub use consumer::{Consumer, EventReader, MAX_COUNTED_PREFIXES, NextEvent, ReadError};
pub use dtype::{Dtype, ElementValue};
pub use event::{
    Event, EventKind, EventView, FIRST_USER_TYPE, MAX_DIMENSIONS, MAX_DTYPE_BYTES, MAX_PREFIX_BYTES,
};
pub use filter::{Filter, FilterError, Pattern};
pub use options::{
    BUFFER_BYTES_VARIABLE, BUFFER_SIZE_VARIABLE, DEFAULT_MAX_BYTES, DEFAULT_MAX_EVENTS,
    FILTER_VARIABLE, Misread, StreamOptions,
};
pub use publisher::{Published, Publisher, TensorEvent};
pub use queue::{LossCause, Losses};
pub use stream::{ConnectError, Stream, StreamCounters};
pub use tensor::{Malformed, Statistics, Tensor};
pub use text::{TextStyle, format_tensor};
