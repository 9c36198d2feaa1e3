//! A profiler plugin for NCCL: `libnccl-profiler-telltale.so`.
//!
//! NCCL calls it when a collective, a transfer or a step of one begins and ends. It takes the times
//! and tells them to the node's agent, in the form that `POST /log_ccl` takes (`docs/cluster-clients.md`).
//!
//! On NCCL's threads it takes no lock, makes no allocation and no call into the system but for the
//! clock; what has no place is dropped and counted. Everything else is done by a thread of its own.
//! It never makes NCCL fail, and believes no pointer of NCCL's beyond the call in which it was given.
#![deny(unsafe_code)]
#![deny(clippy::cast_possible_truncation)]

mod address;
#[allow(unsafe_code)]
mod border;
mod clock;
mod communicators;
mod connection;
mod counts;
mod handle;
mod operation;
mod outbox;
mod pool;
mod profiler;
mod record;
mod reporter;
mod settings;
mod short_text;
mod state_value;
mod task;

pub use border::{
    EventArguments, EventDescription, ProfilerTable, ncclProfiler_v5, ncclProfiler_v6,
};
