//! The coordinator's messages (`proto/cluster.proto`) as bytes, and the client that sends them.
//!
//! What is received is counted and measured before anything is built from it ([`decode`]). Whether a
//! message's values make sense, and what they mean to agents and coordinator, is decided where those
//! are. [`Client`] asks; whom it may trust its caller decides.

mod client;
pub mod decode;
#[path = "generated/cluster_descriptors.rs"]
mod descriptors;
mod limited;
// Nearly all messages of agents are reports, which are also the largest.
#[allow(
    unreachable_pub,
    missing_docs,
    clippy::pedantic,
    clippy::enum_variant_names,
    clippy::large_enum_variant
)]
#[path = "generated/telltale_cluster_v1.rs"]
pub mod message;

pub use crate::call::TokenTextError;
pub use crate::limits::cluster::*;
pub use crate::telemetry::{Payload, RawCodec};
pub use client::{CallError, Client, Orders};
pub use descriptors::DESCRIPTORS;

/// The service's full name, the first part of each method's path.
pub const SERVICE: &str = "telltale.cluster.v1.Coordinator";

/// Bytes of the longest message of an agent that a coordinator takes: a full report has about three
/// quarters of it.
pub const MAX_NODE_MESSAGE_BYTES: usize = 4 << 20;

/// Bytes of the longest message that an agent takes.
pub const MAX_ORDER_BYTES: usize = 4 << 10;

/// Bytes of the longest question or order of an operator.
pub const MAX_REQUEST_BYTES: usize = 4 << 10;

/// Bytes of the longest answer that an operator's client takes.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;

/// The metadata of a refusal by a coordinator that does not lead: the address of the one that does,
/// or empty.
pub const LEADER_METADATA: &str = "telltale-leader";
