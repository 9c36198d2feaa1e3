//! The tests of this crate, in one program.

#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod generate;
mod gpu;
mod layout;
mod new_sensor;
mod packages;
mod pictures;
mod site;
mod skipped;
mod tidy;
mod version;
