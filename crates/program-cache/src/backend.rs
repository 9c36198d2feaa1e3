//! What the cache needs of whatever compiles and holds programs.

use std::error::Error;
use std::sync::Arc;

use crate::descriptor::ProgramDescriptor;
use crate::slots::ProgramArguments;
use crate::update::{UpdateError, Updates};

/// Compiles programs and keeps their arguments.
pub trait Backend {
    /// A compiled program. It keeps its arguments in a [`ProgramArguments`]. Dropping it gives
    /// back what it takes on the device, as soon as no dispatch that was enqueued needs it.
    type Program: Send;
    /// Why a program could not be compiled.
    type Error: Error + Send + Sync + 'static;

    /// Compiles a program, with the arguments of its first dispatch.
    ///
    /// # Errors
    /// When the program is not possible; the error says which kernel, core and field.
    fn compile(&self, descriptor: &ProgramDescriptor) -> Result<Self::Program, Self::Error>;

    /// Writes the words of a dispatch: [`Updates::write_to`] the program's arguments, and whatever
    /// follows from them.
    ///
    /// # Errors
    /// When they do not fit the program.
    fn apply(&self, program: &mut Self::Program, updates: Updates<'_>) -> Result<(), UpdateError>;

    /// The program's arguments, for comparing.
    fn arguments<'a>(&self, program: &'a Self::Program) -> &'a ProgramArguments;

    /// What the program takes of the memory that the cache's limit is for.
    fn weight_bytes(&self, program: &Self::Program) -> u64;
}

impl<B: Backend + ?Sized> Backend for Arc<B> {
    type Program = B::Program;
    type Error = B::Error;

    fn compile(&self, descriptor: &ProgramDescriptor) -> Result<Self::Program, Self::Error> {
        B::compile(self, descriptor)
    }

    fn apply(&self, program: &mut Self::Program, updates: Updates<'_>) -> Result<(), UpdateError> {
        B::apply(self, program, updates)
    }

    fn arguments<'a>(&self, program: &'a Self::Program) -> &'a ProgramArguments {
        B::arguments(self, program)
    }

    fn weight_bytes(&self, program: &Self::Program) -> u64 {
        B::weight_bytes(self, program)
    }
}
