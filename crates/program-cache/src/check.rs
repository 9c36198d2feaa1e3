//! Checking mode: after a hit the description is rebuilt and compared with the program.
//!
//! The comparison has two halves. The description of the program that was found is compared field
//! by field with the new one, which finds what a key lacks and whatever a factory reads beside its
//! attributes and specifications: the environment, the state of an allocator, a counter. And each
//! word that the hit left in the program is compared with the new description's, which finds what
//! an operation's own update forgets.

mod difference;
mod place;

pub use difference::Difference;
pub use place::ArgumentLocation;

use crate::argument::Argument;
use crate::descriptor::ProgramDescriptor;
use crate::dispatch::Dispatch;
use crate::plan::arguments_of;
use crate::slots::ProgramArguments;
use crate::update::UpdateError;

/// A symbol of a factory's description that names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} cannot be written")]
pub struct SymbolError {
    /// Where the symbol stands.
    pub place: ArgumentLocation,
    /// What it names.
    #[source]
    pub source: UpdateError,
}

/// The description with the words of one dispatch in the place of symbols.
///
/// # Errors
/// When a symbol names something that was not given.
pub fn resolve(
    symbolic: &ProgramDescriptor<Argument>,
    dispatch: &Dispatch<'_>,
) -> Result<ProgramDescriptor, SymbolError> {
    let failing = arguments_of(symbolic)
        .enumerate()
        .find_map(|(slot, argument)| argument.word_at(dispatch).err().map(|error| (slot, error)));
    if let Some((slot, source)) = failing {
        return Err(SymbolError { place: ArgumentLocation::of(symbolic, slot), source });
    }
    Ok(symbolic.map(|argument| argument.word_at(dispatch).unwrap_or_default()))
}

/// The first difference between the description of a program that was found and a new one.
pub(crate) fn compare_descriptions(
    found: &ProgramDescriptor<Argument>,
    rebuilt: &ProgramDescriptor<Argument>,
) -> Option<Difference> {
    difference::first(found, rebuilt)
}

/// The first word of a program that is not the one which the new description has for it.
pub(crate) fn compare_words(
    written: &ProgramArguments,
    rebuilt: &ProgramDescriptor<Argument>,
    dispatch: &Dispatch<'_>,
) -> Option<Difference> {
    let words = written.words();
    let count = arguments_of(rebuilt).count();
    if words.len() != count {
        return Some(Difference::new("number of argument words", &words.len(), &count));
    }
    let mut pairs = words.iter().zip(arguments_of(rebuilt)).enumerate();
    pairs.find_map(|(slot, (written, argument))| {
        let expected = match argument.word_at(dispatch) {
            Ok(expected) if expected == *written => return None,
            Ok(expected) => expected.to_string(),
            Err(error) => error.to_string(),
        };
        let field = ArgumentLocation::of(rebuilt, slot).to_string();
        Some(Difference { field, found: written.to_string(), rebuilt: expected })
    })
}

/// The first word in which two rows of a program's arguments differ.
pub(crate) fn first_other_word(
    written: &ProgramArguments,
    wanted: &ProgramArguments,
    described: &ProgramDescriptor<Argument>,
) -> Option<Difference> {
    let mut pairs = written.words().iter().zip(wanted.words()).enumerate();
    let (slot, (written, wanted)) = pairs.find(|(_, (written, wanted))| written != wanted)?;
    Some(Difference::new(ArgumentLocation::of(described, slot).to_string(), written, wanted))
}
