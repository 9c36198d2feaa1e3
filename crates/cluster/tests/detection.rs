//! What detection says, at its border: reports in, verdicts out.

#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

#[path = "detection/echoes.rs"]
mod echoes;
#[path = "detection/hangs.rs"]
mod hangs;
#[path = "detection/held_up.rs"]
mod held_up;
#[path = "detection/job.rs"]
mod job;
#[path = "detection/properties.rs"]
mod properties;
#[path = "detection/slow.rs"]
mod slow;
#[path = "detection/steps.rs"]
mod steps;
#[path = "detection/workers.rs"]
mod workers;
