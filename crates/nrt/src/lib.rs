//! The debug stream for programs in C and C++, under the names and layouts that AWS publishes for
//! Neuron: `libtelltale_nrt`. The headers in `include/` are its documentation.
//!
//! The crate turns C calls into those of `telltale-debug-stream`; it adds the table of descriptors
//! and nothing else. Whatever a caller passes, a call ends with a status: no panic crosses the
//! border. Only the pointers' targets are believed.
#![deny(clippy::cast_possible_truncation)]

mod abi;
mod client;
mod connections;
mod cores;
mod counts;
mod forks;
mod glance;
mod identity;
mod lifetime;
mod producer;
mod status;

pub use abi::{CoreCounts, DebugCounts, EventHeader, TensorPayload};
pub use client::{
    nrt_debug_client_connect, nrt_debug_client_connect_close, nrt_debug_client_read_one_event,
};
pub use counts::{telltale_debug_counts, telltale_debug_read_cores};
pub use glance::{GLANCE_CORES, telltale_debug_glance};
pub use lifetime::{nrt_close, nrt_get_visible_nc_count, nrt_init};
pub use producer::{telltale_debug_drain, telltale_debug_publish_tensor};
pub use status::{STATUSES, Status, nrt_get_status_as_str};
