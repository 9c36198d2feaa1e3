//! Files that are there whole or not at all: written under a name of their own, and given the
//! wanted one at the end. What was not finished is removed.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::exit::Failure;

/// A file that is being written.
pub(super) struct NewFile {
    out: BufWriter<File>,
    unfinished: Unfinished,
}

/// A directory that is being filled.
pub(super) struct NewDirectory {
    unfinished: Unfinished,
}

/// Something under a name of its own.
struct Unfinished {
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

// === impl NewFile ===

impl NewFile {
    pub(super) fn begin(wanted: &Path, replaces: bool) -> Result<Self, Failure> {
        let cannot = |error: io::Error| cannot_write(wanted, &error);
        match wanted.symlink_metadata() {
            Ok(found) if found.is_dir() => return Err(cannot(io::ErrorKind::IsADirectory.into())),
            Ok(_) if !replaces => return Err(cannot(io::ErrorKind::AlreadyExists.into())),
            _ => {}
        }
        let path = name_beside(wanted);
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(cannot)?;
        let unfinished = Unfinished { path, wanted: wanted.to_owned(), replaces, is_done: false };
        Ok(Self { out: BufWriter::new(file), unfinished })
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let outcome = self.out.flush().and_then(|()| self.unfinished.rename());
        outcome.map_err(|error| cannot_write(&self.unfinished.wanted, &error))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
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
        let unfinished = Unfinished { path, wanted: wanted.to_owned(), replaces, is_done: false };
        Ok(Self { unfinished })
    }

    /// Where it is filled until then.
    pub(super) fn path(&self) -> &Path {
        &self.unfinished.path
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let unfinished = &mut self.unfinished;
        let outcome = if unfinished.replaces && unfinished.wanted.is_dir() {
            // Its other files stay; an empty one is left of ours, and goes with it.
            move_files(&unfinished.path, &unfinished.wanted)
        } else {
            // An empty directory gives way.
            fs::rename(&unfinished.path, &unfinished.wanted).inspect(|()| unfinished.is_done = true)
        };
        outcome.map_err(|error| cannot_write(&self.unfinished.wanted, &error))
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

// === impl Unfinished ===

impl Unfinished {
    fn rename(&mut self) -> io::Result<()> {
        let renamed = if self.replaces {
            fs::rename(&self.path, &self.wanted)
        } else {
            match renameat_with(CWD, &self.path, CWD, &self.wanted, RenameFlags::NOREPLACE) {
                // A file system without it: what is there was searched for at the start.
                Err(Errno::INVAL) => fs::rename(&self.path, &self.wanted),
                outcome => outcome.map_err(io::Error::from),
            }
        };
        renamed.inspect(|()| self.is_done = true)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        // No one is left to notify.
        let _ = if self.path.is_dir() {
            fs::remove_dir_all(&self.path)
        } else {
            fs::remove_file(&self.path)
        };
    }
}

/// A hidden name in the same directory, of this process alone.
fn name_beside(wanted: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(wanted.file_name().unwrap_or_default());
    name.push(format!(".unfinished-{}", std::process::id()));
    wanted.with_file_name(name)
}
