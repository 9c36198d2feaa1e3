//! The files with what workers printed: one for each rank and epoch, of a bounded size and number.
//!
//! The newest part of a file is `RANK.log`, the part before it `RANK.log.1`; what is older is gone.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::WorkerPosition;
use telltale_cluster::epoch::Epoch;

/// Epochs whose files are kept: the present one and those before it.
const MAX_EPOCHS: usize = 10;
/// What the directory of an epoch is called, before its number.
const EPOCH: &str = "epoch-";
/// A link to the directory of the epoch in which the job failed first: its files are kept.
const FIRST_FAILURE: &str = "first-failure";

#[derive(Debug)]
pub(super) struct OutputFiles {
    directory: PathBuf,
    /// Bytes of one part; there are two.
    part_bytes: u64,
    open: BTreeMap<Option<WorkerPosition>, OutputPart>,
    epoch: Option<Epoch>,
}

#[derive(Debug)]
struct OutputPart {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl OutputFiles {
    pub(super) fn below(directory: PathBuf, bytes: u64) -> Self {
        Self { directory, part_bytes: bytes / 2, open: BTreeMap::new(), epoch: None }
    }

    /// Where all of it is.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Appends lines to the file of a worker; without a place, to that of workers started ahead.
    pub(super) fn append(&mut self, place: Option<WorkerPosition>, lines: &[u8]) -> io::Result<()> {
        if let Some(place) = place {
            self.turn_to(place.epoch)?;
        }
        if !self.open.contains_key(&place) {
            let path = self.path(place);
            self.open.insert(place, OutputPart::open(path)?);
        }
        let part = self.open.get_mut(&place).expect("it was put in above");
        let bytes = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        if part.bytes > 0 && part.bytes.saturating_add(bytes) > self.part_bytes {
            part.turn()?;
        }
        part.file.write_all(lines)?;
        part.bytes = part.bytes.saturating_add(bytes);
        Ok(())
    }

    /// Makes the directory of an epoch, and lets go of the files of others.
    fn turn_to(&mut self, epoch: Epoch) -> io::Result<()> {
        if self.epoch == Some(epoch) {
            return Ok(());
        }
        let directory = directory_of(&self.directory, epoch);
        make_directory(&directory)?;
        self.open.clear();
        self.epoch = Some(epoch);
        remove_oldest(&self.directory, &directory)
    }

    fn path(&self, place: Option<WorkerPosition>) -> PathBuf {
        match place {
            Some(WorkerPosition { epoch, rank, .. }) => {
                directory_of(&self.directory, epoch).join(format!("{rank}.log"))
            }
            None => self.directory.join("warm.log"),
        }
    }
}

impl OutputPart {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, path, bytes })
    }

    /// Begins another part; the one before the last is gone.
    fn turn(&mut self) -> io::Result<()> {
        fs::rename(&self.path, self.path.with_extension("log.1"))?;
        *self = Self::open(self.path.clone())?;
        Ok(())
    }
}

/// The directory of an epoch's files.
pub(in crate::supervisor) fn directory_of(logs: &Path, epoch: Epoch) -> PathBuf {
    logs.join(format!("{EPOCH}{epoch}"))
}

/// Makes it, for this user alone.
pub(in crate::supervisor) fn make_directory(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Keeps the files of an epoch that failed, unless those of an earlier one are kept.
pub(in crate::supervisor) fn keep_first_failure(directory: &Path, failed: Epoch) -> io::Result<()> {
    match symlink(format!("{EPOCH}{failed}"), directory.join(FIRST_FAILURE)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Lets the files of the first failure be removed as others are.
pub(in crate::supervisor) fn forget_first_failure(directory: &Path) -> io::Result<()> {
    match fs::remove_file(directory.join(FIRST_FAILURE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes the directories of epochs that were written to the longest ago, but neither `present` nor that of
/// the first failure.
fn remove_oldest(directory: &Path, present: &Path) -> io::Result<()> {
    let first_failure = fs::read_link(directory.join(FIRST_FAILURE)).ok();
    let first_failure = first_failure.map(|name| directory.join(name));
    let mut epochs: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(EPOCH));
        let is_kept = entry.path() == present || Some(entry.path()) == first_failure;
        if is_ours && !is_kept {
            epochs.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    epochs.sort();
    let surplus = (epochs.len() + 1).saturating_sub(MAX_EPOCHS);
    epochs.iter().take(surplus).try_for_each(|(_, path)| fs::remove_dir_all(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_epochs_are_bounded() {
        let scratch = telltale_harness::Scratch::new();
        let mut files = OutputFiles::below(scratch.path().to_path_buf(), 20);
        for number in 0..15 {
            let place = WorkerPosition { epoch: Epoch::new(number), rank: 3, local: 0 };
            for line in ["first..\n", "second.\n", "third..\n", "fourth.\n"] {
                files.append(Some(place), line.as_bytes()).unwrap();
            }
        }
        let read = |name: &str| fs::read_to_string(scratch.join(name)).ok();
        assert_eq!(read("epoch-14/3.log").as_deref(), Some("fourth.\n"));
        assert_eq!(read("epoch-14/3.log.1").as_deref(), Some("third..\n"));
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), MAX_EPOCHS);
    }

    #[test]
    fn files_of_the_first_failure_outlive_later_epochs() {
        let scratch = telltale_harness::Scratch::new();
        let mut files = OutputFiles::below(scratch.path().to_path_buf(), 20);
        let mut write = |number| {
            let place = WorkerPosition { epoch: Epoch::new(number), rank: 0, local: 0 };
            files.append(Some(place), b"line\n").unwrap();
        };
        (0..20).for_each(|number| {
            write(number);
            if [3, 7].contains(&number) {
                keep_first_failure(scratch.path(), Epoch::new(number)).unwrap();
            }
        });
        assert!(scratch.join("first-failure/0.log").exists() && scratch.join("epoch-3").exists());
        assert!(!scratch.join("epoch-7").exists());
        forget_first_failure(scratch.path()).unwrap();
        forget_first_failure(scratch.path()).unwrap();
        write(20);
        assert!(!scratch.join("epoch-3").exists());
    }

    #[test]
    fn a_line_that_cannot_be_written_is_an_error_each_time() {
        let scratch = telltale_harness::Scratch::new();
        let in_the_way = scratch.join("file");
        fs::write(&in_the_way, "").unwrap();
        let mut files = OutputFiles::below(in_the_way, 20);
        let place = Some(WorkerPosition { epoch: Epoch::new(1), rank: 0, local: 0 });
        assert!(files.append(place, b"a\n").is_err());
        assert!(files.append(place, b"a\n").is_err());
        assert!(files.append(None, b"a\n").is_err());
    }
}
