//! The client against a service on real sockets.

#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod calls;
mod served;
mod ways;
