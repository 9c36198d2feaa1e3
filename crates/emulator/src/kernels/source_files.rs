//! The files that a kernel was made from: whether they are still what they were.
//!
//! A file counts as unchanged while inode, size and times are the same. Times are coarse, so a file
//! that was changed just before it was read is compared by content until it is old enough.

use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A change within this time may leave the same times in the inode as the change before it.
const TIME_GRAIN: Duration = Duration::from_millis(100);
/// Files that are watched for one program; with more, it is recreated at each dispatch.
const MAX_FILES: usize = 256;

/// The files that a kernel or a program was made from, and paths where a new file would be read in
/// the place of one of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceFiles {
    files: Vec<(PathBuf, PathState)>,
    /// They cannot be watched, so they never count as unchanged.
    never: bool,
}

/// What was at a path.
#[derive(Debug, Clone, Copy)]
enum PathState {
    /// No file.
    Absent,
    Present {
        stamp: Stamp,
        content: [u64; 2],
        /// Any later change gives it another stamp.
        settled: bool,
    },
}

/// What changes when a file is changed or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

// === impl SourceFiles ===

impl SourceFiles {
    /// Whether every file is as it was. One `stat` for each; none where there are no files.
    #[inline]
    pub(crate) fn are_unchanged(&mut self) -> bool {
        (self.files.is_empty() && !self.never) || self.look_again()
    }

    #[cold]
    fn look_again(&mut self) -> bool {
        !self.never && self.files.iter_mut().all(|(path, seen)| seen.is_unchanged(path))
    }

    /// Adds a file whose content was read from an open file with this metadata, taken before.
    pub(super) fn add_read(&mut self, path: PathBuf, metadata: &Metadata, content: &[u8]) {
        self.add_seen(path, PathState::present(metadata, digest(content)));
    }

    /// Adds what is at a path now, unless the path is known. Whether it may be other than it was at
    /// `time`: a file that was changed since, or so shortly before that its times do not tell.
    pub(super) fn add(&mut self, path: PathBuf, time: SystemTime) -> bool {
        if self.contains(&path) {
            return false;
        }
        let seen = PathState::now(&path);
        let is_young = match seen {
            PathState::Absent => false,
            PathState::Present { stamp, .. } => !stamp.is_older_than(time),
        };
        self.add_seen(path, seen);
        is_young
    }

    /// Adds those of another kernel.
    pub(crate) fn add_all(&mut self, others: &Self) {
        self.never |= others.never;
        for (path, seen) in &others.files {
            self.add_seen(path.clone(), *seen);
        }
    }

    /// They count as changed from now on.
    pub(super) fn distrust(&mut self) {
        self.never = true;
    }

    fn contains(&self, path: &Path) -> bool {
        self.files.iter().any(|(known, _)| known == path)
    }

    fn add_seen(&mut self, path: PathBuf, seen: PathState) {
        if self.contains(&path) {
            return;
        }
        if self.files.len() == MAX_FILES {
            self.distrust();
            return;
        }
        self.files.push((path, seen));
    }
}

// === impl PathState ===

impl PathState {
    fn present(metadata: &Metadata, content: [u64; 2]) -> Self {
        let stamp = Stamp::of(metadata);
        Self::Present { stamp, content, settled: stamp.is_older_than(SystemTime::now()) }
    }

    fn now(path: &Path) -> Self {
        read(path)
            .map_or(Self::Absent, |(metadata, content)| Self::present(&metadata, digest(&content)))
    }

    fn is_unchanged(&mut self, path: &Path) -> bool {
        let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file);
        match (*self, metadata) {
            (Self::Absent, None) => true,
            (Self::Absent, Some(_)) | (Self::Present { .. }, None) => false,
            (Self::Present { stamp, settled: true, .. }, Some(metadata))
                if stamp == Stamp::of(&metadata) =>
            {
                true
            }
            // Touched, or too young to say: the content decides.
            (Self::Present { content: before, .. }, Some(_)) => {
                *self = Self::now(path);
                matches!(self, Self::Present { content, .. } if *content == before)
            }
        }
    }
}

// === impl Stamp ===

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The time of change cannot be set by anybody, so it alone decides.
    fn is_older_than(&self, time: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let since_epoch = Duration::new(
            u64::try_from(seconds).unwrap_or_default(),
            u32::try_from(nanoseconds).unwrap_or_default(),
        );
        let changed = SystemTime::UNIX_EPOCH + since_epoch;
        time.duration_since(changed).is_ok_and(|age| age > TIME_GRAIN)
    }
}

/// A regular file's metadata and content; the metadata is taken first, so that a change while it is
/// read is noticed later.
fn read(path: &Path) -> io::Result<(Metadata, Vec<u8>)> {
    // A pipe would keep its opener waiting, so what it is comes first.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok((metadata, content))
}

fn digest(content: &[u8]) -> [u64; 2] {
    [0u8, 1].map(|half| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(half);
        hasher.write(content);
        hasher.finish()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use telltale_harness::Scratch;

    use super::SourceFiles;

    #[test]
    fn each_way_to_change_a_file_is_noticed_and_a_touch_is_none() {
        let scratch = Scratch::new();
        let path = scratch.join("a.h");
        let watched = || {
            let mut files = SourceFiles::default();
            files.add(path.clone(), SystemTime::now());
            files
        };
        let mut files = watched();
        assert!(files.are_unchanged());
        fs::write(&path, "one").unwrap();
        assert!(!files.are_unchanged(), "it appeared");

        // The same size within the same tick of the clock, repeatedly.
        for round in 0..100 {
            let mut files = watched();
            assert!(files.are_unchanged());
            fs::write(&path, format!("{round:03}")).unwrap();
            assert!(!files.are_unchanged(), "edited in place, round {round}");
        }
        let mut files = watched();
        fs::write(scratch.join("b.h"), "two").unwrap();
        fs::rename(scratch.join("b.h"), &path).unwrap();
        assert!(!files.are_unchanged(), "replaced");

        let mut files = watched();
        let touched = fs::OpenOptions::new().append(true).open(&path).unwrap();
        touched.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(files.are_unchanged(), "touched");
        fs::remove_file(&path).unwrap();
        assert!(!files.are_unchanged(), "removed");
    }

    #[test]
    fn more_files_than_can_be_watched_count_as_changed() {
        let mut files = SourceFiles::default();
        for number in 0..=super::MAX_FILES {
            files.add(format!("/nowhere/{number}").into(), SystemTime::now());
        }
        assert!(!files.are_unchanged());
    }
}
