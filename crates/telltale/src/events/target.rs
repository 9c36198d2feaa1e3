//! Directories that are there whole or not at all: filled under a name of their own, and given the
//! wanted one at the end. What was not finished is removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::new_file::name_beside;

/// A directory that is being filled under a name of its own.
pub(super) struct NewDirectory {
    path: PathBuf,
    wanted: PathBuf,
    replaces: bool,
    is_done: bool,
}

/// Says that writing failed.
pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room, or write somewhere else with -o"
        }
        io::ErrorKind::AlreadyExists => "name another with -o, or replace it with --force",
        _ => "write somewhere else with -o",
    };
    Failure::Message(format!("writing {} failed: {error}; {remedy}", path.display()))
}

// === impl NewDirectory ===

impl NewDirectory {
    pub(super) fn begin(wanted: &Path, replaces: bool) -> Result<Self, Failure> {
        let cannot = |error: io::Error| cannot_write(wanted, &error);
        match wanted.symlink_metadata() {
            Ok(_) if !wanted.is_dir() => return Err(cannot(io::ErrorKind::NotADirectory.into())),
            Ok(_) if !replaces && fs::read_dir(wanted).map_err(cannot)?.next().is_some() => {
                return Err(cannot(io::ErrorKind::AlreadyExists.into()));
            }
            _ => {}
        }
        let path = name_beside(wanted);
        fs::create_dir(&path).map_err(cannot)?;
        Ok(Self { path, wanted: wanted.to_owned(), replaces, is_done: false })
    }

    /// Where it is filled until then.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let outcome = if self.replaces && self.wanted.is_dir() {
            // Its other files stay; an empty one is left of ours, and goes with it.
            move_files(&self.path, &self.wanted)
        } else {
            // An empty directory gives way.
            fs::rename(&self.path, &self.wanted).inspect(|()| self.is_done = true)
        };
        outcome.map_err(|error| cannot_write(&self.wanted, &error))
    }
}

/// Moves every file below a directory to the same place below another.
fn move_files(from: &Path, to: &Path) -> io::Result<()> {
    let mut places = vec![PathBuf::new()];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(from.join(&place))? {
            let entry = entry?;
            let inside = place.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                fs::create_dir_all(to.join(&inside))?;
                places.push(inside);
            } else {
                fs::rename(entry.path(), to.join(&inside))?;
            }
        }
    }
    Ok(())
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        if !self.is_done {
            // No one is left to notify.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
