//! An operation: what it is keyed by, and how it describes its program.
//!
//! A description is made from attributes and from what is known of the operands, never from where
//! they are: [`OperandSpecs`] has no address to give, and what changes with each dispatch is
//! written as a symbol ([`Argument`]). So what a program was compiled from is always what it is
//! found by, and what differs from dispatch to dispatch is always rewritten.
//!
//! This is all that a factory can do with an operand:
//!
//! ```
//! use telltale_program_cache::{Address, Argument, Operand, OperandIndex, OperandSpec, OperandSpecs};
//! # #[derive(telltale_program_cache::ProgramKey)]
//! # struct Attributes { rows: u32 }
//! fn rows(operands: OperandSpecs<'_>) -> u32 {
//!     operands.get(0).map_or(0, |operand: &OperandSpec| operand.shape[0])
//! }
//! fn address() -> Argument {
//!     Argument::Address { operand: OperandIndex(0), offset_bytes: 4 }
//! }
//! ```
//!
//! It cannot ask an operand for its address:
//!
//! ```compile_fail,E0599
//! # use telltale_program_cache::{Address, Argument, Operand, OperandIndex, OperandSpec, OperandSpecs};
//! fn rows(operands: OperandSpecs<'_>) -> u32 {
//!     operands.get(0).map_or(0, |operand: &OperandSpec| operand.address().get())
//! }
//! ```
//!
//! nor get behind the specifications:
//!
//! ```compile_fail,E0616
//! # use telltale_program_cache::{Address, Argument, Operand, OperandIndex, OperandSpec, OperandSpecs};
//! fn rows(operands: OperandSpecs<'_>) -> u32 {
//!     operands.operands[0].map_or(0, |operand: Operand<'_>| operand.address.get())
//! }
//! ```
//!
//! nor take one from its attributes, for an address has no place in a key:
//!
//! ```compile_fail,E0277
//! # use telltale_program_cache::{Address, Argument, Operand, OperandIndex, OperandSpec, OperandSpecs};
//! #[derive(telltale_program_cache::ProgramKey)]
//! struct Attributes { rows: Address }
//! ```
//!
//! nor write one where a word is wanted:
//!
//! ```compile_fail,E0308
//! # use telltale_program_cache::{Address, Argument, Operand, OperandIndex, OperandSpec, OperandSpecs};
//! fn word(address: Address) -> Argument {
//!     Argument::Word(address)
//! }
//! ```
//!
//! nor calculate with a symbol:
//!
//! ```compile_fail,E0369
//! # use telltale_program_cache::{Address, Argument, Operand, OperandIndex, OperandSpec, OperandSpecs};
//! fn address() -> Argument {
//!     Argument::Address { operand: OperandIndex(0), offset_bytes: 0 } + 4
//! }
//! ```

use std::error::Error;

use crate::argument::{Argument, OperandIndex};
use crate::descriptor::ProgramDescriptor;
use crate::descriptor::kernel::Text;
use crate::dispatch::{Dispatch, Operand};
use crate::key::{KeyEncoder, ProgramKey};
use crate::operand::OperandSpec;
use crate::slots::ProgramArguments;
use crate::update::UpdateError;

/// What a factory sees of the operands.
#[derive(Debug, Clone, Copy)]
pub struct OperandSpecs<'a> {
    operands: &'a [Option<Operand<'a>>],
    aliasing: Aliasing,
}

/// Whether it matters to an operation's program which operands share a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aliasing {
    /// One program serves all: operands are distinguished by position alone.
    Ignored,
    /// Each pattern has a program of its own, and the factory may ask for it.
    Keyed,
}

/// Why an operation cannot describe its program.
#[derive(Debug, thiserror::Error)]
pub enum FactoryError {
    /// An operand that it needs is not there.
    #[error("operand {} is needed and was not given", .0.0)]
    MissingOperand(OperandIndex),
    /// It asked which operands share a buffer, which its key does not say.
    #[error(
        "the operation asked which operands share a buffer; that is not in its key unless it sets \
         ALIASING to Aliasing::Keyed"
    )]
    AliasingNotKeyed,
    /// Its attributes or operands are not among those it can do.
    #[error("{0}")]
    Unsupported(Text),
    /// An error of the factory's own, such as an exception of another language. Its type can be asked for.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
}

/// Writes a key.
pub type CustomKey<A> = fn(&A, OperandSpecs<'_>, &mut KeyEncoder);

/// Writes everything that changes from dispatch to dispatch into a program that was found.
pub type CustomUpdate<A> = fn(&A, &Dispatch<'_>, &mut ProgramArguments) -> Result<(), UpdateError>;

/// The parts of the cache's work that an operation does itself, because it can do them faster.
/// Checking mode compares what comes of it with what the factory describes.
#[derive(Debug, Clone, Copy)]
pub struct Hybrid<A> {
    /// In the place of the key of all attributes and operand specifications.
    pub key: Option<CustomKey<A>>,
    /// In the place of the patch plan.
    pub update: Option<CustomUpdate<A>>,
}

/// An operation.
pub trait Operation: 'static {
    /// What errors and keys call it. Operations of different types are never taken for each other,
    /// even with the same name.
    const NAME: &'static str;
    /// Its parameters beside its operands; all of it is in the key.
    type Attributes: ProgramKey;
    /// Whether its program depends on which operands share a buffer.
    const ALIASING: Aliasing = Aliasing::Ignored;
    /// What it does itself.
    const HYBRID: Hybrid<Self::Attributes> = Hybrid::AUTOMATIC;

    /// What errors call the operation with these attributes: another name than [`Self::NAME`] where one
    /// type stands for operations that are known only at run time. Their identity is in the key because the
    /// attributes write it there.
    #[must_use]
    fn name(attributes: &Self::Attributes) -> &'static str {
        let _ = attributes;
        Self::NAME
    }

    /// Describes the program for these attributes and operands. It must depend on nothing else:
    /// not on the environment, the device's memory, or what was dispatched before.
    ///
    /// # Errors
    /// When there is no such program.
    fn create(
        attributes: &Self::Attributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError>;
}

// === impl OperandSpecs ===

impl<'a> OperandSpecs<'a> {
    pub(crate) fn new(operands: &'a [Option<Operand<'a>>], aliasing: Aliasing) -> Self {
        Self { operands, aliasing }
    }

    /// How many positions there are, those of missing optional operands included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operands.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    /// The operand at a position; `None` if it was not given.
    #[must_use]
    pub fn get(&self, index: u16) -> Option<&'a OperandSpec> {
        self.operands.get(usize::from(index))?.as_ref().map(|operand| operand.spec)
    }

    /// The operand at a position.
    ///
    /// # Errors
    /// When it was not given.
    pub fn require(&self, index: u16) -> Result<&'a OperandSpec, FactoryError> {
        self.get(index).ok_or(FactoryError::MissingOperand(OperandIndex(index)))
    }

    /// Whether two operands are there and begin at the same address.
    ///
    /// # Errors
    /// When the operation does not declare [`Aliasing::Keyed`].
    pub fn share_a_buffer(&self, one: u16, other: u16) -> Result<bool, FactoryError> {
        if self.aliasing == Aliasing::Ignored {
            return Err(FactoryError::AliasingNotKeyed);
        }
        let address = |index: u16| {
            let operand = self.operands.get(usize::from(index)).copied().flatten();
            operand.map(|operand| operand.address)
        };
        Ok(address(one).is_some() && address(one) == address(other))
    }

    /// Writes what a factory can see of the operands.
    #[inline]
    pub(crate) fn encode(&self, key: &mut KeyEncoder) {
        key.length(self.operands.len());
        for operand in self.operands {
            match operand {
                None => key.put([0]),
                Some(operand) => {
                    key.put([1]);
                    operand.spec.encode_value(key);
                }
            }
        }
        if self.aliasing == Aliasing::Keyed {
            self.encode_aliasing(key);
        }
    }

    /// For each operand the first position with the same address.
    fn encode_aliasing(&self, key: &mut KeyEncoder) {
        for (index, operand) in self.operands.iter().enumerate() {
            let same = |other: &Option<Operand<'_>>| match (operand, other) {
                (Some(one), Some(other)) => one.address == other.address,
                _ => false,
            };
            key.length(self.operands.iter().position(same).unwrap_or(index));
        }
    }
}

// === impl Hybrid ===

impl<A> Hybrid<A> {
    /// Nothing: key and update are made from attributes, specifications and symbols.
    pub const AUTOMATIC: Self = Self { key: None, update: None };
}
