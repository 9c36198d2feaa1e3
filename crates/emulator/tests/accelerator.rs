//! Programs on the software accelerator: what kernels can do, and what happens when they do
//! something else.
#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

mod bench;
mod cached;
mod interrupted;
mod kept;
mod printing;
mod refused;
mod running;
mod undone;
