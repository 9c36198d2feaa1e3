//! `telltale train` as torchrun's users run it: real processes, real signals, and PyTorch where it is installed.

mod exits;
mod fixture;
mod nodes;
mod outputs;
pub(crate) mod pairs;
mod reports;
mod signals;
mod torchrun;
