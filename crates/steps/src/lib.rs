//! Training steps: what each rank does in one, who waits for whom, and what the step would take if
//! some of it took as long as usual.
//!
//! - A [`StepBuilder`] takes the operations of all ranks and makes a [`Step`]: a graph in which an
//!   operation waits for what its rank did before, and a transfer or collective for all of its ranks.
//! - [`Typical`] has how long operations of each kind take, over steps.
//! - [`what_if`] replays steps with some durations replaced: the slow-down S of "Understanding
//!   Stragglers in Large Model Training Using What-if Analysis" (OSDI '25), and its parts.
//! - [`Roles`] finds the ranks that do the same work, from what they do.
//! - [`waits()`] tells who waits for whom, and how long.
//! - [`attribution`] puts the time lost to ranks, to the model's stages, to links, to the data and to
//!   noise of the hosts.
//!
//! Nothing here does I/O, reads a clock or draws a random number. Nothing is configured: what a rank's
//! role is, and whose clock is ahead, follows from the operations.

#![forbid(unsafe_code)]

pub mod attribution;
mod clocks;
mod gaps;
mod kind;
mod lists;
mod meeting;
mod operation;
mod order;
mod processors;
mod roles;
mod spread;
mod step;
mod typical;
mod waits;
pub mod what_if;

pub use kind::{Kind, Kinds, MAX_KINDS, Nature};
pub use operation::{MAX_DURATION_NS, Operation, Partners};
pub use processors::Processors;
pub use roles::{Role, Roles};
pub use step::{MAX_OPERATIONS, Placed, Step, StepBuilder, StepError};
pub use typical::Typical;
pub use waits::{Wait, waits};
