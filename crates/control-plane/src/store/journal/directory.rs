//! A journal's file in its directory, and the lock that keeps others out.
//!
//! The lock is on the directory (flock(2)): the system lets go of it when the process ends, however it
//! ends, and the file in it may be replaced.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::Displaced;

/// The journal's name in its directory.
pub(super) const FILE_NAME: &str = "journal";
/// What it is called until it is whole.
const NEW_NAME: &str = "journal.new";

/// Where a journal's path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JournalPath {
    /// To what was written, or nothing ever was.
    Kept,
    /// Nowhere: all bytes can be put there again.
    Empty,
    /// To something else.
    Other(Displaced),
    /// To a directory that another process has.
    Taken,
}

/// What holds a journal's bytes.
pub(super) trait Medium {
    /// What a person knows it by.
    fn path(&self) -> PathBuf;
    /// Where its path leads now. A directory that was removed is made again.
    fn place(&mut self) -> io::Result<JournalPath>;
    /// All bytes, at most `limit`; none where nothing was ever written.
    fn read(&mut self, limit: u64) -> io::Result<Vec<u8>>;
    /// Adds bytes at the end. When this fails, any part of them may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns once a crash of the machine cannot take away what was added.
    fn sync(&mut self) -> io::Result<()>;
    /// Drops all but the first `length` bytes.
    fn cut(&mut self, length: usize) -> io::Result<()>;
    /// Puts these bytes in the place of all others, at once: after a crash, either are there. When
    /// this fails, nothing can be added unless all others are still in place.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// A directory that this process has alone.
#[derive(Debug)]
pub(super) struct JournalDirectory {
    path: PathBuf,
    /// Holds the lock.
    directory: File,
    file: Option<File>,
}

impl JournalDirectory {
    /// The directory at `path`, made if it is not there; `None` while another process has it.
    pub(super) fn lock(path: &Path) -> io::Result<Option<Self>> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).expect("flags of open(2) fit in its argument");
        let directory = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { path: path.to_path_buf(), directory, file: None })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What has become of the directory: `Empty` where it was made again.
    fn directory_place(&mut self) -> io::Result<JournalPath> {
        let own = self.directory.metadata()?;
        match self.path.metadata() {
            Ok(found) if is_same(&found, &own) => return Ok(JournalPath::Kept),
            Ok(_) => return Ok(JournalPath::Other(Displaced::Directory)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // What an unmounted disk leaves is not the place: its journal would come back with it.
        let above = self.path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new(".")).metadata();
        if !above.is_ok_and(|above| above.dev() == own.dev()) {
            return Ok(JournalPath::Other(Displaced::FileSystem));
        }
        let Some(again) = Self::lock(&self.path)? else { return Ok(JournalPath::Taken) };
        if again.path().exists() {
            return Ok(JournalPath::Other(Displaced::Directory));
        }
        *self = again;
        Ok(JournalPath::Empty)
    }

    fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::Error::from(ErrorKind::NotFound))
    }
}

/// Opens a regular file. A pipe is not waited for.
pub(super) fn opened(flags: OFlags, path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).expect("flags of open(2) fit in its argument");
    let file = options.mode(0o600).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(file)
}

/// All bytes of a file that has at most `limit`.
pub(super) fn read_all(file: &File, limit: u64) -> io::Result<Vec<u8>> {
    if file.metadata()?.len() > limit {
        let text = format!("it is longer than {limit} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Medium for JournalDirectory {
    fn path(&self) -> PathBuf {
        self.path.join(FILE_NAME)
    }

    fn place(&mut self) -> io::Result<JournalPath> {
        match self.directory_place()? {
            JournalPath::Kept => {}
            other => return Ok(other),
        }
        let Some(file) = &self.file else { return Ok(JournalPath::Kept) };
        match self.path().symlink_metadata() {
            Ok(found) if is_same(&found, &file.metadata()?) => Ok(JournalPath::Kept),
            Ok(_) => Ok(JournalPath::Other(Displaced::File)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(JournalPath::Empty),
            Err(error) => Err(error),
        }
    }

    fn read(&mut self, limit: u64) -> io::Result<Vec<u8>> {
        let file =
            opened(OFlags::NOFOLLOW, &self.path(), OpenOptions::new().read(true).write(true));
        let file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        read_all(self.file.insert(file), limit)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.file()?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file()?.sync_data()
    }

    fn cut(&mut self, length: usize) -> io::Result<()> {
        let length = u64::try_from(length).expect("a length fits in 64 bits");
        self.file()?.set_len(length)
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let new = self.path.join(NEW_NAME);
        let mut options = OpenOptions::new();
        let mut file = opened(
            OFlags::NOFOLLOW,
            &new,
            options.read(true).write(true).create(true).truncate(true),
        )?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        if let Err(error) = written {
            // Its bytes are useless, and the disk may be full.
            let _ = std::fs::remove_file(&new);
            return Err(error);
        }
        std::fs::rename(&new, self.path())?;
        // Until the directory is synced, a crash could bring the old file back: nothing is added to
        // the new one.
        self.file = None;
        self.directory.sync_all()?;
        self.file = Some(file);
        Ok(())
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}
