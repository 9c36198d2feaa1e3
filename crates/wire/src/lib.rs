#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::cast_possible_truncation)]

#[cfg(feature = "grpc")]
pub mod call;
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

/// The name of the node service's socket in a runtime directory.
pub const TELEMETRY_SOCKET: &str = "telemetry.sock";
