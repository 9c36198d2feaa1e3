//! The runtime as workloads and askers meet it.

mod asking;
mod endpoint;
mod hostile;
mod tracker;
