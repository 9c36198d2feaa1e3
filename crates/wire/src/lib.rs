//! What a process's metrics endpoint is asked and what it answers: framing, messages, limits.
//!
//! [`FrameReader`] and [`FrameWriter`] cut a byte stream into messages without doing any I/O;
//! [`Query`] and [`Reply`] are those messages once they have passed every limit of [`limits`].
//! The node service's own messages are in [`telemetry`], with the feature `grpc`, and so are the
//! coordinator's ([`cluster`]), what it stores ([`cluster_state`]) and asks etcd ([`etcd`]), and what
//! the kubelet is asked ([`kubelet`]).
//! Nothing here opens a socket or believes a length before the bytes are there.
#![forbid(unsafe_code)]
#![deny(clippy::cast_possible_truncation)]

#[cfg(feature = "grpc")]
mod call;
#[cfg(feature = "grpc")]
pub mod cluster;
#[cfg(feature = "grpc")]
pub mod cluster_state;
#[cfg(feature = "grpc")]
pub mod etcd;
pub mod exposition;
mod frame;
#[cfg(feature = "grpc")]
pub mod kubelet;
pub mod limits;
#[allow(unreachable_pub, missing_docs, clippy::pedantic, clippy::enum_variant_names)]
#[path = "generated/telltale_endpoint_v1.rs"]
mod message;
mod query;
mod reply;
mod report;
mod shape;
#[cfg(feature = "grpc")]
pub mod telemetry;

pub use frame::{FrameError, FrameReader, FrameWriter, frame};
pub use query::{DeviceSelector, Query, QueryError, QueryKind};
pub use reply::{EncodeError, Refusal, RefusalReason, Reply, ReplyError};
pub use report::{
    DeviceReport, KernelCache, Programs, Quota, Report, RingBuffer, Throttling, Traffic,
};

/// The version of the protocol that this crate speaks. Old versions are answered, newer ones are
/// asked to speak this one.
pub const PROTOCOL_VERSION: u32 = 1;
