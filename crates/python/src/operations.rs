//! `telltale.operations`: the native half of operations that are described in Python.
//!
//! A chip and its tensors belong to the process that opened them: a child of `fork` is refused, and leaves alone what
//! it inherited. A factory is called by the thread that dispatches, so its exceptions, debuggers and locals are those
//! of the caller.

mod attributes;
mod cache;
mod chip;
mod describe;
mod dispatch;
mod interrupted;
mod numbers;
mod opened;
mod tensor;

pub(crate) use cache::ProgramCache;
pub(crate) use chip::{Chip, close_chips};
pub(crate) use dispatch::dispatch_operation;
pub(crate) use tensor::Tensor;
