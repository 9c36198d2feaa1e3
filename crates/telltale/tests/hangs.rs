//! `telltale autopsy` beside programs that hang: unchanged PyTorch, four ranks, Gloo, and no agent.

mod command;
mod fixture;
mod suite;
