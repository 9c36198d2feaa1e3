//! The collector as its users see it: emulated machines, real processes with ledgers and
//! endpoints, other users, containers, and those who lie.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test, the panic is the report")]

mod bench;
mod cleaning;
mod containers;
pub(crate) mod health;
mod host_parts;
mod hostile;
mod killed;
mod links;
mod machines;
mod memory;
mod parts;
mod regions;
mod reopening;
mod stopped;
mod usage;
mod users;
mod workload;
