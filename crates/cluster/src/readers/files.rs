//! Files that grow, read in whole lines, and whole files, both of bounded size.
//!
//! A file is known by its device and inode, so one that was renamed is not read twice, and one that
//! took its name is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::ReaderCounts;

/// Files of one directory that are followed.
pub(super) const MAX_FILES: usize = 1024;
/// Bytes of one file that are read in one look.
const MAX_READ_BYTES: u64 = 1 << 20;
/// Bytes of a whole file.
pub(super) const MAX_WHOLE_BYTES: u64 = 16 << 20;

/// Device and inode.
pub(super) type Identity = (u64, u64);

/// How far each file has been read.
#[derive(Debug, Default)]
pub(super) struct Files {
    read_bytes: BTreeMap<Identity, u64>,
}

impl Files {
    /// Everything that is there now counts as read.
    pub(super) fn at_their_ends(path: &Path, counts: &mut ReaderCounts) -> Self {
        let mut files = Self::default();
        for (_, file) in open_all(path, counts) {
            if let Ok(status) = file.metadata() {
                files.read_bytes.insert((status.dev(), status.ino()), status.len());
            }
        }
        files
    }

    /// Gives each new line to `take`, without its end.
    pub(super) fn lines(
        &mut self,
        path: &Path,
        counts: &mut ReaderCounts,
        mut take: impl FnMut(&[u8], &mut ReaderCounts),
    ) {
        let before = std::mem::take(&mut self.read_bytes);
        for (_, mut file) in open_all(path, counts) {
            let Ok(status) = file.metadata() else { continue };
            let identity = (status.dev(), status.ino());
            let from = before.get(&identity).copied().unwrap_or(0);
            // One that is shorter than it was has been begun anew.
            let from = if status.len() < from { 0 } else { from };
            let read = if status.len() > from {
                read_lines(&mut file, from, counts, &mut take)
            } else {
                0
            };
            self.read_bytes.insert(identity, from + read);
        }
    }
}

/// Reads whole lines, and says how many bytes they are. A line that is longer than what is read at
/// once is passed over in pieces.
fn read_lines(
    file: &mut File,
    from: u64,
    counts: &mut ReaderCounts,
    take: &mut impl FnMut(&[u8], &mut ReaderCounts),
) -> u64 {
    let mut bytes = Vec::new();
    let read = file
        .seek(SeekFrom::Start(from))
        .and_then(|_| file.take(MAX_READ_BYTES).read_to_end(&mut bytes));
    if read.is_err() {
        return 0;
    }
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
        let all = u64::try_from(bytes.len()).unwrap_or(0);
        if all < MAX_READ_BYTES {
            return 0;
        }
        counts.skipped_bytes = counts.skipped_bytes.saturating_add(all);
        return all;
    };
    let lines = bytes[..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty()).for_each(|line| take(line, counts));
    u64::try_from(end + 1).unwrap_or(0)
}

/// The file at `path`, or those in the directory there whose names do not begin with a dot, each opened
/// when its turn comes.
pub(super) fn open_all(
    path: &Path,
    counts: &mut ReaderCounts,
) -> impl Iterator<Item = (PathBuf, File)> + use<> {
    let paths = list(path, counts).unwrap_or_else(|| vec![path.to_owned()]);
    paths.into_iter().filter_map(|path| open(&path).map(|file| (path, file)))
}

/// The paths in a directory, in their order; nothing if it is none.
fn list(path: &Path, counts: &mut ReaderCounts) -> Option<Vec<PathBuf>> {
    let listed = std::fs::read_dir(path).ok()?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in listed.flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if paths.len() == MAX_FILES {
            counts.files_left_out = counts.files_left_out.saturating_add(1);
        } else {
            paths.push(entry.path());
        }
    }
    paths.sort_unstable();
    Some(paths)
}

/// A regular file; nothing where it is a link, a pipe, or not to be read.
fn open(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().ok()?.is_file().then_some(file)
}

/// All of a file; nothing where it is too long.
pub(super) fn read_whole(file: File, counts: &mut ReaderCounts) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_WHOLE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let length = u64::try_from(bytes.len()).ok()?;
    if length > MAX_WHOLE_BYTES {
        counts.skipped_bytes = counts.skipped_bytes.saturating_add(length);
        return None;
    }
    Some(bytes)
}
