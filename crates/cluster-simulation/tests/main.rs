//! The tests of this crate, in one program.

#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod acting;
mod blind;
mod faults;
mod hangs;
mod scale;
mod simulation;
mod steps;
mod suite;
mod week;
