//! What is done in the Pythons of workers before their script begins, so that the script needs no change.
//!
//! Python imports a module of ours by itself (`sitecustomize`, found through `PYTHONPATH`), which steps aside before
//! the next of that name. Every command is given it: what is no Python may start one. It lets ranks wait for rank
//! 0's store, which PyTorch alone does by the second, and holds those that are started ahead ([`super::warm`]).

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The module.
const MODULE: &str = include_str!("python/sitecustomize.py");

/// Whether a command's program is a Python, by its name.
pub(super) fn is_python(command: &[OsString]) -> bool {
    let name = command.first().and_then(|program| Path::new(program).file_name());
    let name = name.unwrap_or_default().as_bytes();
    name.starts_with(b"python") || name.starts_with(b"pypy")
}

/// The option by which a Python looks neither at `PYTHONPATH` nor for `sitecustomize`, if it has one.
pub(super) fn blind_option(command: &[OsString]) -> Option<&OsString> {
    let mut words = command.iter().skip(1);
    while let Some(option) = words.next() {
        let letters = option.as_bytes().strip_prefix(b"-").filter(|letters| !letters.is_empty())?;
        if letters.starts_with(b"-") {
            if letters == b"-check-hash-based-pycs" {
                words.next();
            }
            continue;
        }
        // Letters follow each other in a word, up to one whose value is the rest of it, or the next word.
        let valued = letters.iter().position(|letter| b"cmWX".contains(letter));
        if letters[..valued.unwrap_or(letters.len())].iter().any(|letter| b"EIS".contains(letter)) {
            return Some(option);
        }
        match valued.map(|place| (letters[place], place + 1 == letters.len())) {
            Some((b'c' | b'm', _)) => return None,
            Some((_, true)) => drop(words.next()),
            _ => {}
        }
    }
    None
}

/// Writes the module below `state`, and says in which directory.
pub(super) fn write(state: &Path) -> io::Result<PathBuf> {
    let directory = state.join("python");
    DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    std::fs::write(directory.join("sitecustomize.py"), MODULE)?;
    Ok(directory)
}
