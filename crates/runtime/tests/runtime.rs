//! The runtime as workloads and askers meet it.

mod arrivals;
mod asking;
mod debug_output;
mod debug_streams;
mod degraded;
mod documented;
mod endpoint;
mod hostile;
mod program_cache;
mod regions;
mod roles;
mod tracker;
mod users;
