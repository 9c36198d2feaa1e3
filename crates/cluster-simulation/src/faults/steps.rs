//! Jobs of training steps in which something is slow from the first step on, or comes and goes: who is named.
//!
//! A model runs the ranks of a [`program`]; what they do goes through the shipped intake, agents, coordinator and detection.
//! Beside it three usual rules judge the same operations.

mod baselines;
mod job;
mod program;
mod run;
mod suite;

pub use program::Shape;
pub use suite::{Broken, Case, Group, Score, cases, groups, score, table};
