#![doc = include_str!("../README.md")]
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
