//! Files that are written whole, or not at all.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::exit::Failure;

/// Writes a file beside the one that may be there, and puts it in its place when it is whole. `what` is its name for
/// people, and the option that names it.
pub(super) fn replace(
    file: &Path,
    (what, option): (&str, &str),
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let written = fs::File::create(&part).and_then(|part| {
        let mut to = BufWriter::new(part);
        write(&mut to)?;
        to.flush()
    });
    written.and_then(|()| fs::rename(&part, file)).map_err(|error| {
        let _ = fs::remove_file(&part);
        Failure::Message(format!(
            "cannot write the {what} to {}: {error}; {option} names a file",
            file.display()
        ))
    })
}
