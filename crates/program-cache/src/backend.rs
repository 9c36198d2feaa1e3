//! What the cache needs of whatever compiles and holds programs.

use std::error::Error;
use std::sync::Arc;

use crate::descriptor::ProgramDescriptor;
use crate::slots::ProgramArguments;
use crate::update::{UpdateError, Updates};
use crate::waiting::InterruptCheck;

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

    /// How many bytes of the device's memory a compilation asked for in vain; none if it failed for
    /// another reason. Where it lacked memory, the cache drops programs that are unused and
    /// compiles again.
    fn lacking_bytes(&self, _error: &Self::Error) -> Option<u64> {
        None
    }

    /// Whether a program is still what its description would be compiled to: the files that it names
    /// have not changed. Called at each hit, so it should cost nothing where there are none. One
    /// that is not current is dropped and recompiled.
    #[inline]
    fn is_current(&self, _program: &mut Self::Program) -> bool {
        true
    }

    /// Returns once programs that were dropped before the call have given back what they took, or
    /// when waiting for that is of no use. Called before a compilation that lacked memory is tried
    /// again, with no lock held.
    fn reclaim(&self) {}

    /// What a dispatch that waits for another thread, which compiles or uses the same program, calls about ten
    /// times a second. Once it returns true, the dispatch ends with
    /// [`DispatchError::Interrupted`](crate::DispatchError::Interrupted). None if nothing interrupts.
    fn interrupt_check(&self) -> Option<InterruptCheck> {
        None
    }

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

    fn lacking_bytes(&self, error: &Self::Error) -> Option<u64> {
        B::lacking_bytes(self, error)
    }

    #[inline]
    fn is_current(&self, program: &mut Self::Program) -> bool {
        B::is_current(self, program)
    }

    fn reclaim(&self) {
        B::reclaim(self);
    }

    fn interrupt_check(&self) -> Option<InterruptCheck> {
        B::interrupt_check(self)
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
