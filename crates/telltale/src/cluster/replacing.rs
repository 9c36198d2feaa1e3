//! Reports that are written to a file, whole or not at all, or to standard output.

use std::io::{self, Write};
use std::path::Path;

use crate::exit::Failure;
use crate::new_file::NewFile;

/// Writes a report in the place of the file that may be there; `-` is standard output. `what` is its name for people,
/// and the option that names the file.
pub(super) fn replace(
    file: &Path,
    (what, option): (&str, &str),
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    if file == Path::new("-") {
        let mut out = io::stdout().lock();
        return Ok(write(&mut out).and_then(|()| out.flush())?);
    }
    let written = NewFile::begin(file, true).and_then(|mut new| {
        write(&mut new)?;
        new.finish()
    });
    written.map_err(|error| {
        Failure::Message(format!(
            "cannot write the {what} to {}: {error}; {option} names a file, or `-` for standard output",
            file.display()
        ))
    })
}
