//! A character-level GPT that is trained on the software accelerator: the workload that exercises
//! runtime, program cache and operations together.
//!
//! All numbers come from the operations of `telltale-operations`; nothing here computes with a
//! weight on the host, and with a gradient only where processes add theirs up ([`parallel`]). What is random is counted, not drawn ([`random`]), so a training is the same
//! from a seed alone, and goes on from a checkpoint as if it had never stopped. Nothing here
//! prints, waits for signals or knows an endpoint: that is the command's business.
//!
//! The way of a step: [`text`] gives windows of characters, [`Training`] hands them to the model,
//! which gives the loss and a gradient for each of its [`Weights`], and AdamW changes the weights.
#![forbid(unsafe_code)]

mod activation;
pub mod alphabet;
mod attention;
pub mod checkpoint;
mod config;
mod layer;
mod linear;
mod model;
pub mod parallel;
pub mod random;
pub mod text;
mod training;
mod weights;

/// Kernels that a step of any sizes has, each of which is compiled once. What is printed has one more for each
/// prefix.
pub const KERNELS_OF_A_STEP: u64 = 15;

pub use activation::{
    Activation, Activations, LayerActivation, ModelActivation, ParseActivationError,
};
pub use config::{Config, ConfigError};
pub use model::{Gradients, forward, forward_and_backward};
pub use training::{Batch, ResumeError, SharedStepError, Training};
pub use weights::{Initial, LayerWeights, Linear, Norm, Weight, Weights};
