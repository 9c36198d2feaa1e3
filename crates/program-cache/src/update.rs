//! What is written into a program that was found, and why it could not be.

use crate::argument::{Argument, DynamicIndex, GlobalSemaphoreIndex, OperandIndex};
use crate::descriptor::ProgramDescriptor;
use crate::dispatch::Dispatch;
use crate::plan::PatchPlan;
use crate::slots::{ArgumentsError, ProgramArguments};

/// The words of a dispatch, on their way into a program.
#[derive(Clone, Copy)]
pub struct Updates<'a>(WordSource<'a>);

/// Where the words come from.
#[derive(Clone, Copy)]
enum WordSource<'a> {
    /// All of them, from a description made for this dispatch.
    Described(&'a ProgramDescriptor),
    /// All of them, in the program's order.
    Words(&'a [u32]),
    /// Those that change, from what an operation is dispatched with.
    Planned(&'a PatchPlan, &'a Dispatch<'a>),
    /// Whatever the operation itself writes.
    Custom(&'a CustomWriter<'a>),
}

/// Writes words in its own way.
type CustomWriter<'a> = dyn Fn(&mut ProgramArguments) -> Result<(), UpdateError> + 'a;

/// Why the words of a dispatch could not be written. The program must not be run with what it
/// has; its next dispatch rewrites everything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// The words do not fit the program.
    #[error("the words of this dispatch do not fit the program")]
    Arguments(#[source] ArgumentsError),
    /// The program needs the address of an operand that was not given.
    #[error("the program takes the address of operand {}, which was not given", .0.0)]
    NoOperand(OperandIndex),
    /// The program needs a value that was not given.
    #[error("the program takes dynamic value {}, which was not given", .0.0)]
    NoDynamic(DynamicIndex),
    /// The program needs the address of a global semaphore that was not given.
    #[error("the program takes the address of global semaphore {}, which was not given", .0.0)]
    NoSemaphore(GlobalSemaphoreIndex),
}

impl From<ArgumentsError> for UpdateError {
    fn from(error: ArgumentsError) -> Self {
        Self::Arguments(error)
    }
}

impl<'a> Updates<'a> {
    /// All words of a description.
    #[must_use]
    pub fn described(descriptor: &'a ProgramDescriptor) -> Self {
        Self(WordSource::Described(descriptor))
    }

    /// All words, in the order of the program's layout.
    #[must_use]
    pub fn words(words: &'a [u32]) -> Self {
        Self(WordSource::Words(words))
    }

    /// Those words that a plan has.
    #[must_use]
    pub fn planned(plan: &'a PatchPlan, dispatch: &'a Dispatch<'a>) -> Self {
        Self(WordSource::Planned(plan, dispatch))
    }

    /// Whatever `write` writes.
    #[must_use]
    pub fn custom(write: &'a CustomWriter<'a>) -> Self {
        Self(WordSource::Custom(write))
    }

    /// Writes the words; what is outside the program is refused, never written.
    ///
    /// # Errors
    /// When they do not fit the program, or something that it needs was not given.
    #[inline]
    pub fn write_to(&self, arguments: &mut ProgramArguments) -> Result<(), UpdateError> {
        match self.0 {
            WordSource::Described(descriptor) => Ok(arguments.copy_from_descriptor(descriptor)?),
            WordSource::Words(words) => Ok(arguments.copy_from(words)?),
            WordSource::Planned(plan, dispatch) => plan.write_to(dispatch, arguments),
            WordSource::Custom(write) => write(arguments),
        }
    }
}

impl Argument {
    /// The word that stands for it at a dispatch.
    ///
    /// # Errors
    /// When what it names was not given.
    #[inline]
    pub fn word_at(self, dispatch: &Dispatch<'_>) -> Result<u32, UpdateError> {
        match self {
            Self::Word(word) => Ok(word),
            Self::Address { operand, offset_bytes } => {
                let found = dispatch.operands.get(usize::from(operand.0)).copied().flatten();
                let found = found.ok_or(UpdateError::NoOperand(operand))?;
                Ok(found.address.get().wrapping_add(offset_bytes))
            }
            Self::Dynamic(index) => {
                let found = dispatch.dynamics.get(usize::from(index.0));
                found.copied().ok_or(UpdateError::NoDynamic(index))
            }
            Self::SemaphoreAddress(index) => {
                let found = dispatch.semaphores.get(usize::from(index.0));
                Ok(found.ok_or(UpdateError::NoSemaphore(index))?.get())
            }
        }
    }
}
