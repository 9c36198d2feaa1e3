//! Loom models of the ledger's algorithms: publication, claims, torn copies, peaks, biased access.
//!
//! The files with the algorithms are compiled here a second time, from the ledger's own sources,
//! with loom's atomics in the place of the processor's; loom then runs every order in which the
//! threads of a model may see each other's stores. Nothing here is linked into anything. Each
//! model has a twin with one ordering or lock taken away, which must fail.
#![forbid(unsafe_code)]
#![cfg(test)]

#[path = "../../ledger/src/bias.rs"]
#[allow(dead_code, reason = "the models need a part of it")]
mod bias;
#[path = "../../ledger/src/cell.rs"]
#[allow(dead_code, reason = "the models need a part of it")]
mod cell;
#[path = "../../ledger/src/claims.rs"]
#[allow(dead_code, reason = "the models need a part of it")]
mod claims;
#[path = "../../ledger/src/posting.rs"]
#[allow(dead_code, reason = "the models need a part of it")]
mod posting;
mod sync;

mod biasing;
mod claiming;
mod copying;
mod peaks;
mod publishing;

/// Runs a model with a bound on how often a thread is interrupted, which keeps it to seconds; two
/// suffice for most defects and loom's authors advise two or three.
fn model(interruptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.check(run);
}
