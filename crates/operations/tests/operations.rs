//! Operations on the software accelerator.
#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

mod bench;
mod blame;
mod differential;
mod edited;
mod faults;
mod floating_point;
mod found_again;
mod kernel_process;
mod libraries;
mod printed;
mod random;
mod reference;
mod refusals;
