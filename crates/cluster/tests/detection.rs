//! What detection says, at its border: reports in, verdicts out.

#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod echoes;
mod hangs;
mod held_up;
mod job;
mod properties;
mod slow;
mod steps;
mod workers;
