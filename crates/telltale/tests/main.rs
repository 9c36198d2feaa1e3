//! The tests of this crate, in one program.

#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod attacks;
mod chaos;
mod cli;
mod cluster;
mod conformance;
mod corpus;
mod deploy;
mod hangs;
mod killed_workloads;
mod train;
