//! Loom models of the program cache's algorithms: single flight, use against eviction and clear,
//! users that panic.
//!
//! The files with the algorithms are compiled here a second time, from the cache's own sources,
//! with loom's locks and atomics; loom then runs every order in which the threads of a model may
//! act. The index, which is papaya's, is a list behind a lock here: what is modelled is what the
//! cache makes of it. Nothing here is linked into anything. Each model has a twin with a rule
//! broken, which must fail.
#![forbid(unsafe_code)]
#![cfg(test)]

mod counters;
#[path = "../../program-cache/src/cache/entry.rs"]
#[allow(dead_code, reason = "the models need a part of it")]
mod entry;
#[path = "../../program-cache/src/cache/flight.rs"]
mod flight;
mod index;
#[path = "../../program-cache/src/cache/missing.rs"]
mod missing;
mod sync;
#[path = "../../program-cache/src/cache/table.rs"]
#[allow(dead_code, reason = "the models need a part of it")]
mod table;
#[path = "../../program-cache/src/waiting.rs"]
#[allow(unreachable_pub, reason = "the cache itself shows a part of it")]
mod waiting;

mod compiling;
mod dropping;
mod fixture;
mod panicking;
mod reentering;

/// Runs a model with a bound on how often a thread is interrupted, which keeps it to seconds; two
/// suffice for most defects and loom's authors advise two or three.
fn model(interruptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.check(run);
}
