//! Files that are there whole or not at all: written under a name of their own beside the wanted one, and given that
//! at the end. What was not finished is removed.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// A file that is being written.
pub(crate) struct NewFile {
    out: BufWriter<File>,
    path: PathBuf,
    wanted: PathBuf,
    replaces: bool,
    is_done: bool,
}

// === impl NewFile ===

impl NewFile {
    /// Begins the file `wanted`, or the one that it is a link to. One that is there is replaced if it may be.
    ///
    /// # Errors
    /// When it is there and may not be replaced, when what is there is no regular file, or when none can be made.
    pub(crate) fn begin(wanted: &Path, replaces: bool) -> io::Result<Self> {
        let wanted = match wanted.metadata() {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) if !replaces => return Err(io::ErrorKind::AlreadyExists.into()),
            Ok(found) if !found.is_file() => {
                return Err(io::Error::other("it is no regular file, and is not replaced"));
            }
            Ok(_) => wanted.canonicalize()?,
            // A link that leads nowhere, too.
            Err(_) if wanted.symlink_metadata().is_ok() => {
                return Err(io::Error::other("it is a link that leads nowhere"));
            }
            Err(_) => wanted.to_owned(),
        };
        let path = name_beside(&wanted);
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(Self { out: BufWriter::new(file), path, wanted, replaces, is_done: false })
    }

    /// Puts the whole file in its place.
    ///
    /// # Errors
    /// When its end cannot be written, or another has taken its place.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        if self.replaces {
            fs::rename(&self.path, &self.wanted)?;
        } else {
            match renameat_with(CWD, &self.path, CWD, &self.wanted, RenameFlags::NOREPLACE) {
                // A file system without it: what is there was searched for at the start.
                Err(Errno::INVAL) => fs::rename(&self.path, &self.wanted)?,
                outcome => outcome?,
            }
        }
        self.is_done = true;
        Ok(())
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

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_done {
            // No one is left to notify.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A hidden name in the same directory, of this process alone.
pub(crate) fn name_beside(wanted: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(wanted.file_name().unwrap_or_default());
    name.push(format!(".unfinished-{}", std::process::id()));
    wanted.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use telltale_harness::Scratch;

    fn write(path: &Path, replaces: bool) -> io::Result<()> {
        let mut file = NewFile::begin(path, replaces)?;
        file.write_all(b"new")?;
        file.finish()
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let scratch = Scratch::new();
        let file = scratch.join("file");
        fs::write(&file, "old").unwrap();
        assert_eq!(write(&file, false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let link = scratch.join("link");
        symlink("file", &link).unwrap();
        write(&link, true).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(link.symlink_metadata().unwrap().is_symlink(), "a link stays one");
        let [pipe, nowhere] = ["pipe", "nowhere"].map(|name| scratch.join(name));
        rustix::fs::mkfifoat(CWD, &pipe, 0o600.into()).unwrap();
        symlink("absent", &nowhere).unwrap();
        let null = scratch.join("null");
        symlink("/dev/null", &null).unwrap();
        for special in [&pipe, &nowhere, &null] {
            let before = special.symlink_metadata().unwrap().file_type();
            write(special, true).unwrap_err();
            assert_eq!(special.symlink_metadata().unwrap().file_type(), before);
        }
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 5, "nothing is left over");
    }

    #[test]
    fn what_is_not_finished_is_removed() {
        let scratch = Scratch::new();
        let mut file = NewFile::begin(&scratch.join("file"), false).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}
