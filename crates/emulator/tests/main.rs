//! The tests of this crate, in one program.

#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod accelerator;
mod chip;
mod devices;
mod documented;
mod faults;
mod process;
mod root;
mod tree;
