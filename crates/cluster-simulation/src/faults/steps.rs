//! Jobs of training steps in which something is slow from the first step on, or comes and goes: who is named.
//!
//! A model runs the ranks of a [`program`]; what they post goes through the shipped intake, agents, coordinator and
//! detection. Beside it three usual rules judge the same operations, and so may any other program ([`outside`]).

mod acting;
mod baselines;
mod case;
mod detector;
mod job;
mod judging;
mod load;
mod lying;
pub mod outside;
mod program;
mod record;
mod run;
mod score;
mod second;
mod stream;
mod suite;
pub mod trace;

pub use acting::{Acted, act};
pub use case::{Broken, Case, CaseGroup, cases, groups};
pub use detector::detect;
pub use judging::NamedSuspects;
pub use load::Load;
pub use lying::{Lie, replaced_by_lies};
pub use program::StepShape;
pub use score::{Score, Tally, table};
pub use stream::{write, write_truth};
pub use suite::{score, score_outside};
