//! What an operation is dispatched with: operands and where they are, and the values of the day.
//! A factory sees none of it but the operands' specifications.

use crate::operand::OperandSpec;

/// A device address. It is no part of a key and no word of a description, so that none can be
/// compiled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(u32);

/// An operand at a dispatch: what it is, and where.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    /// What is known of it.
    pub spec: &'a OperandSpec,
    /// Where it is.
    pub address: Address,
}

/// What an operation is dispatched with, beside its attributes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dispatch<'a> {
    /// Inputs and outputs by position; an optional operand that is not given is `None`. The same
    /// buffer may stand at several positions.
    pub operands: &'a [Option<Operand<'a>>],
    /// Values that change from dispatch to dispatch, such as a seed or a step.
    pub dynamics: &'a [u32],
    /// Where the global semaphores are.
    pub semaphores: &'a [Address],
}

// === impl Address ===

impl Address {
    /// The address as the device counts.
    #[must_use]
    pub const fn new(address: u32) -> Self {
        Self(address)
    }

    /// The address as the device counts.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}
