//! What a coordinator must not forget (`proto/cluster_state.proto`), as messages.
//!
//! Only the version is stated here; what the messages mean, and whether they make sense, is checked
//! by their reader.

#[allow(unreachable_pub, missing_docs, clippy::pedantic, clippy::enum_variant_names)]
#[path = "generated/telltale_cluster_state_v1.rs"]
pub mod message;

/// The version of [`message::Decision`] that is written, and the newest that is understood.
pub const VERSION: u32 = 1;
