//! Loom models of the debug stream's descriptor: readable if and only if something waits.
//!
//! The file with the protocol is compiled here a second time, from the debug stream's own sources,
//! with loom's atomics in the place of the processor's; loom then runs every order in which the
//! threads of a model may see each other's stores. Nothing here is linked into anything. Models
//! with a fence or a last check taken away must fail.
#![forbid(unsafe_code)]
#![cfg(test)]

mod sync;
#[path = "../../debug-stream/src/wake_up.rs"]
#[allow(dead_code, reason = "the models need a part of it")]
mod wake_up;

mod ringing;

/// Runs a model with a bound on how often a thread is interrupted, which keeps it to seconds; two
/// suffice for most defects and loom's authors advise two or three.
fn model(interruptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.check(run);
}
