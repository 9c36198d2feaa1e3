//! The coordinator's program on loopback, with nodes that say what a test wants them to.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod hostile;
mod late;
mod lives;
mod node;
mod operators;
mod running;
mod troubles;
mod trust;
mod unstored;
