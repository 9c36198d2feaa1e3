//! Why a dispatch did not take place.

use std::error::Error;
use std::sync::Arc;

use super::missing::Refusal;
use crate::check::{Difference, SymbolError};
use crate::descriptor::kernel::Text;
use crate::operation::FactoryError;
use crate::update::UpdateError;
use crate::waiting::CannotWait;

/// Why a dispatch did not take place. Nothing was run. Where several threads waited for the same
/// compilation, all of them have the same source.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError<E: Error + 'static> {
    /// The operation has no program for these attributes and operands.
    #[error("operation {operation} cannot describe its program")]
    Factory {
        /// The operation.
        operation: Text,
        /// Why.
        #[source]
        source: Arc<FactoryError>,
    },
    /// The program takes something that the dispatch does not bring.
    #[error("operation {operation} was dispatched without something that its program takes")]
    Symbol {
        /// The operation.
        operation: Text,
        /// Where, and what.
        #[source]
        source: SymbolError,
    },
    /// The back end refused the program.
    #[error("the program of {operation} cannot be compiled")]
    Compile {
        /// The operation, or the first kernel of a program that was described in full.
        operation: Text,
        /// Why.
        #[source]
        source: Arc<E>,
    },
    /// The words of this dispatch could not be written.
    #[error("the arguments of {operation} cannot be updated")]
    Update {
        /// The operation, or the first kernel of a program that was described in full.
        operation: Text,
        /// Why.
        #[source]
        source: UpdateError,
    },
    /// The dispatch was made while this thread uses or compiles the very same program.
    #[error(
        "this thread is in the middle of a dispatch of the same program; dispatch it again after \
         that one returns"
    )]
    Reentered,
    /// While this thread waited for another one, which compiles or uses the same program,
    /// [`Backend::interrupt_check`](crate::Backend::interrupt_check) returned true.
    #[error("waiting for a program of another thread was interrupted; dispatch it again")]
    Interrupted,
    /// Checking mode found a program that is not what its operation describes now.
    #[error("the cache's program of {operation} is not the one that is wanted")]
    Check {
        /// The operation, or the first kernel of a program that was described in full.
        operation: Text,
        /// In what.
        #[source]
        source: CheckError,
    },
}

/// What checking mode found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// A field that is compiled in, or a constant argument, differs.
    #[error(
        "{0}; something decides it that is not in the key: an attribute that a key of the \
         operation's own leaves out, or the environment or state that its factory reads"
    )]
    Description(Difference),
    /// An argument word differs.
    #[error("{0}; the update of the operation or of the back end does not write it")]
    Word(Difference),
}

/// Why no program could be made. Threads that wait for the same program share it.
pub(crate) enum Failure<E> {
    Factory { operation: Text, source: Arc<FactoryError> },
    Symbol { operation: Text, source: SymbolError },
    Compile { operation: Text, source: Arc<E> },
}

impl<E> Refusal for Failure<E> {
    /// An operand or a value that one dispatch lacks another one may bring.
    fn concerns_all(&self) -> bool {
        !matches!(self, Self::Symbol { .. })
    }
}

impl<E> Clone for Failure<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Factory { operation, source } => {
                Self::Factory { operation: operation.clone(), source: Arc::clone(source) }
            }
            Self::Symbol { operation, source } => {
                Self::Symbol { operation: operation.clone(), source: source.clone() }
            }
            Self::Compile { operation, source } => {
                Self::Compile { operation: operation.clone(), source: Arc::clone(source) }
            }
        }
    }
}

impl<E: Error + 'static> From<Failure<E>> for DispatchError<E> {
    fn from(failure: Failure<E>) -> Self {
        match failure {
            Failure::Factory { operation, source } => Self::Factory { operation, source },
            Failure::Symbol { operation, source } => Self::Symbol { operation, source },
            Failure::Compile { operation, source } => Self::Compile { operation, source },
        }
    }
}

impl<E: Error + 'static> From<CannotWait> for DispatchError<E> {
    fn from(cause: CannotWait) -> Self {
        match cause {
            CannotWait::Reentered => Self::Reentered,
            CannotWait::Interrupted => Self::Interrupted,
        }
    }
}
