//! The node service's messages (`proto/telemetry.proto`): a snapshot to bytes and back.
//!
//! A server encodes a snapshot once and shares the bytes between all who ask ([`encode`]); a
//! client believes nothing of what it receives before it is counted and measured ([`decode`]).
//! [`RawCodec`] hands messages over as bytes; the crate `telltale-client` asks. Who may see what is
//! not decided here.

pub mod alert;
mod codec;
mod codes;
mod container;
pub mod decode;
#[path = "generated/telemetry_descriptors.rs"]
mod descriptors;
pub mod encode;
pub mod history;
mod limited;
#[allow(unreachable_pub, missing_docs, clippy::pedantic, clippy::enum_variant_names)]
#[path = "generated/telltale_telemetry_v1.rs"]
pub mod message;
pub mod report;

pub use codec::{Payload, RawCodec};
pub use descriptors::DESCRIPTORS;

/// The service's full name, the first part of each method's path.
pub const SERVICE: &str = "telltale.telemetry.v1.Telemetry";

/// Bytes of the longest answer that a client takes.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Bytes of the longest request that a server takes.
pub const MAX_REQUEST_BYTES: usize = 4 << 10;
