//! The directory of a training's checkpoint: locked while the training runs, so that two cannot
//! write over each other.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FlockOperation, Mode, OFlags, access, flock};
use rustix::io::Errno;

use super::{Checkpoint, DecodeError, HEADER_BYTES, Identity};

/// The checkpoint's name in its directory.
pub const FILE_NAME: &str = "gpt.checkpoint";
/// What is being written, or was when its writer was killed. The next one writes over it.
const PARTIAL_NAME: &str = "gpt.checkpoint.partial";

/// A directory for the checkpoint of one training, which is locked as long as this lives.
#[derive(Debug)]
pub struct CheckpointDirectory {
    path: PathBuf,
    /// Open for its lock, and for bringing a new name to the disk.
    directory: File,
}

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// It is not there and cannot be made, or cannot be opened.
    #[error("the directory {} for checkpoints cannot be used; choose one that you may write", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another training uses it.
    #[error("another training writes its checkpoints to {}; choose another directory", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
}

/// Why a checkpoint was not read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("reading the checkpoint {} failed", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not a checkpoint of this training.
    #[error("{} is not a checkpoint that this training can go on from; repeat what it was made with, or choose another directory", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: DecodeError,
    },
}

/// Why a checkpoint was not written. The one before is as it was.
#[derive(Debug, thiserror::Error)]
#[error("writing the checkpoint {} failed at {step}; the one before it, if any, is still good", path.display())]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// What failed.
    pub step: &'static str,
    /// Why.
    #[source]
    pub source: io::Error,
}

// === impl CheckpointDirectory ===

impl CheckpointDirectory {
    /// Opens a directory and makes it if it is not there.
    ///
    /// # Errors
    /// When that is not possible, or another training uses it.
    pub fn open(path: &Path) -> Result<Self, DirectoryError> {
        let failed = |source| DirectoryError::Directory { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(failed)?;
        let directory = File::open(path).map_err(failed)?;
        access(path, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| failed(error.into()))?;
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_owned(), directory }),
            Err(Errno::WOULDBLOCK) => Err(DirectoryError::Busy { path: path.to_owned() }),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// The checkpoint's file.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.path.join(FILE_NAME)
    }

    /// Reads the checkpoint of a training; none if there is none.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or is another training's.
    pub fn load(&self, identity: &Identity) -> Result<Option<Checkpoint>, LoadError> {
        let path = self.file();
        let read = match open_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => Err(error),
            Ok(file) => read_bounded(file, identity),
        };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(source) => return Err(LoadError::Read { path, source }),
        };
        match Checkpoint::decode(&bytes, identity) {
            Ok(checkpoint) => Ok(Some(checkpoint)),
            Err(source) => Err(LoadError::Content { path, source }),
        }
    }

    /// Replaces the checkpoint.
    ///
    /// # Errors
    /// When that fails; nothing of the new one is left then.
    pub fn store(&self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let partial = self.path.join(PARTIAL_NAME);
        let stored = self.write_and_rename(&partial, &checkpoint.encode());
        stored.map_err(|(step, source)| {
            // What is left of it is of no use, and takes room where there may be none.
            let _ = fs::remove_file(&partial);
            StoreError { path: self.file(), step, source }
        })
    }

    fn write_and_rename(
        &self,
        partial: &Path,
        bytes: &[u8],
    ) -> Result<(), (&'static str, io::Error)> {
        let mut file = File::create(partial).map_err(|error| ("making a new file", error))?;
        file.write_all(bytes).map_err(|error| ("writing the new file", error))?;
        file.sync_all().map_err(|error| ("bringing the new file to the disk", error))?;
        drop(file);
        fs::rename(partial, self.file()).map_err(|error| ("replacing the old file", error))?;
        self.directory.sync_all().map_err(|error| ("bringing the new name to the disk", error))
    }
}

/// Opens a file to read it; what is no file, and might never be written to, is refused.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"))
    }
}

/// Reads no more than one byte beyond what a checkpoint of this training has, and only the
/// beginning of another's.
fn read_bounded(file: File, identity: &Identity) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&file).take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
    if Checkpoint::check_header(&bytes, identity).is_ok() {
        let rest = identity.file_bytes().saturating_sub(HEADER_BYTES as u64) + 1;
        file.take(rest).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::fs;

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use telltale_harness::Scratch;

    use super::super::tests::example;
    use super::{CheckpointDirectory, DirectoryError, FILE_NAME, LoadError, PARTIAL_NAME};

    #[test]
    fn a_checkpoint_comes_back_and_the_next_replaces_it() {
        let place = Scratch::new();
        let directory = CheckpointDirectory::open(&place.join("new/directory")).unwrap();
        let identity = example(0).identity;
        assert_eq!(directory.load(&identity).unwrap(), None);
        for steps in [3, 4] {
            directory.store(&example(steps)).unwrap();
            assert_eq!(directory.load(&identity).unwrap(), Some(example(steps)));
        }
        let names: Vec<_> = fs::read_dir(place.join("new/directory")).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn one_training_at_a_time() {
        let place = Scratch::new();
        let first = CheckpointDirectory::open(place.path()).unwrap();
        let second = CheckpointDirectory::open(place.path());
        assert!(matches!(second, Err(DirectoryError::Busy { .. })), "{second:?}");
        drop(first);
        assert!(CheckpointDirectory::open(place.path()).is_ok());
    }

    #[test]
    fn half_a_file_of_a_killed_writer_disturbs_nobody() {
        let place = Scratch::new();
        let directory = CheckpointDirectory::open(place.path()).unwrap();
        directory.store(&example(3)).unwrap();
        let whole = example(4).encode();
        fs::write(place.join(PARTIAL_NAME), &whole[..whole.len() / 2]).unwrap();
        assert_eq!(directory.load(&example(3).identity).unwrap(), Some(example(3)));
        directory.store(&example(5)).unwrap();
        assert_eq!(directory.load(&example(3).identity).unwrap(), Some(example(5)));
        assert!(!place.join(PARTIAL_NAME).exists());
    }

    #[test]
    fn a_failure_says_at_which_step_and_leaves_the_earlier_one() {
        let place = Scratch::new();
        let directory = CheckpointDirectory::open(place.path()).unwrap();
        directory.store(&example(3)).unwrap();
        fs::create_dir(place.join(PARTIAL_NAME)).unwrap();
        let error = directory.store(&example(4)).expect_err("a directory is in the way");
        assert!(error.to_string().contains("failed at making a new file"), "{error}");
        assert!(error.source().is_some());
        assert_eq!(directory.load(&example(3).identity).unwrap(), Some(example(3)));
    }

    #[test]
    fn a_file_that_is_no_checkpoint_is_named() {
        let place = Scratch::new();
        let directory = CheckpointDirectory::open(place.path()).unwrap();
        fs::write(place.join(FILE_NAME), "something else").unwrap();
        let error = directory.load(&example(3).identity).expect_err("it is none");
        assert!(matches!(error, LoadError::Content { .. }), "{error:?}");
        assert!(error.to_string().contains(FILE_NAME), "{error}");
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains("does not begin as a checkpoint"), "{cause}");
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let place = Scratch::new();
        let directory = CheckpointDirectory::open(place.path()).unwrap();
        mknodat(CWD, place.join(FILE_NAME), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let error = directory.load(&example(3).identity).expect_err("nobody writes to it");
        assert!(matches!(error, LoadError::Read { .. }), "{error:?}");
        assert_eq!(error.source().unwrap().to_string(), "it is not a file");
    }
}
