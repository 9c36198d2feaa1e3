//! A cluster that is simulated from a seed: the machines that are shipped, and everything around
//! them made up.
//!
//! Nothing here reads a clock or draws from the machine's randomness: the same seed gives the same
//! run. Nothing shipped uses it; tests and benchmarks do.
#![forbid(unsafe_code)]

mod clock;
mod defect;
pub mod faults;
mod host;
mod network;
pub mod random;
mod replica;
mod safety;
mod scenario;
mod store;
mod world;

pub use defect::Defect;
pub use scenario::{Kinds, Scenario};
pub use world::{RunFailure, RunSummary, World};
