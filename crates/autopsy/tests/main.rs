//! The tests of this crate, in one program.

#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod fixture;
mod hostile;
mod interpreters;
mod undisturbed;
