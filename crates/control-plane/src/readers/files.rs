//! Files that grow, read in whole lines, and whole files, both of bounded size.
//!
//! A file is known by its device and inode, so one that was renamed is not read twice, and one that
//! took its name is.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::ReaderCounts;
use super::owners::Owners;
use telltale_cluster::intake::Sender;

/// Files of one directory that are followed.
pub(super) const MAX_FILES: usize = 1024;
/// Bytes of one file that are read in one poll.
const MAX_READ_BYTES: u64 = 1 << 20;
/// Bytes of a whole file: the Flight Recorder's with the stacks of each operation.
pub(super) const MAX_WHOLE_BYTES: u64 = 128 << 20;

/// The same of files that may be anybody's.
const MAX_UNVERIFIED_FILES: usize = 64;
/// Names of one directory that are checked.
pub(super) const MAX_NAMES: usize = 16_384;

/// A file's name, and whether anything in its directory can be evidence.
pub(super) struct CandidateFile {
    path: PathBuf,
    directory: Sender,
}

/// A file, and whether what is in it is evidence.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) status: Metadata,
    pub(super) sender: Sender,
}

/// Device and inode.
pub(super) type Identity = (u64, u64);

/// Which files of a directory are followed.
#[derive(Debug, Default)]
pub(super) struct DirectoryListing {
    /// The workers' files that have been found and are still there.
    verified: BTreeSet<PathBuf>,
}

/// How far each file has been read.
#[derive(Debug, Default)]
pub(super) struct ReadPositions {
    listing: DirectoryListing,
    read_bytes: BTreeMap<Identity, u64>,
}

impl ReadPositions {
    /// Everything that is there now counts as read.
    pub(super) fn at_their_ends(
        path: &Path,
        owners: &mut Owners,
        counts: &mut ReaderCounts,
    ) -> Self {
        let mut files = Self::default();
        let mut listing = DirectoryListing::default();
        for Opened { status, .. } in
            listing.poll(path, owners, counts).filter_map(|named| named.open(owners))
        {
            files.read_bytes.insert(identity(&status), status.len());
        }
        files.listing = listing;
        files
    }

    /// Gives each new line to `take`, without its end, and whether it is evidence.
    pub(super) fn lines(
        &mut self,
        path: &Path,
        owners: &mut Owners,
        counts: &mut ReaderCounts,
        mut take: impl FnMut(&[u8], Sender, &mut ReaderCounts),
    ) {
        let before = std::mem::take(&mut self.read_bytes);
        let named = self.listing.poll(path, owners, counts);
        let opened = named.filter_map(|named| named.open(owners));
        for Opened { mut file, status, sender, .. } in opened {
            let identity = identity(&status);
            let from = before.get(&identity).copied().unwrap_or(0);
            // One that is shorter than it was was restarted.
            let from = if status.len() < from { 0 } else { from };
            let take = |line: &[u8], counts: &mut ReaderCounts| take(line, sender, counts);
            let read =
                if status.len() > from { read_lines(&mut file, from, counts, take) } else { 0 };
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
    mut take: impl FnMut(&[u8], &mut ReaderCounts),
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

// === impl DirectoryListing ===

impl DirectoryListing {
    /// The file at `path`, or those in the directory there whose names do not begin with a dot, in their
    /// order. The workers' files that were found before come before all other names, and those that may be
    /// anybody's have a limit of their own, so that they take no other client's slot.
    pub(super) fn poll(
        &mut self,
        path: &Path,
        owners: &mut Owners,
        counts: &mut ReaderCounts,
    ) -> impl Iterator<Item = CandidateFile> + use<> {
        let mut named = Vec::new();
        match std::fs::read_dir(path) {
            Ok(listed) => {
                let directory = owners.directory(path);
                self.verified.retain(|path| is_verified(path, directory, owners));
                let mut left_out = 0;
                let mut unverified = 0;
                let entries = listed.take(MAX_NAMES + 1).flatten();
                let names = entries.filter(|one| !is_hidden(&one.file_name()));
                for (place, path) in names.map(|entry| entry.path()).enumerate() {
                    if self.verified.contains(&path) {
                        continue;
                    }
                    if place >= MAX_NAMES {
                        // Those behind it are not even counted.
                        left_out += 1;
                    } else if is_verified(&path, directory, owners) {
                        match self.verified.len() < MAX_FILES {
                            true => _ = self.verified.insert(path),
                            false => left_out += 1,
                        }
                    } else if unverified < MAX_UNVERIFIED_FILES {
                        unverified += 1;
                        named.push(CandidateFile { path, directory });
                    } else {
                        left_out += 1;
                    }
                }
                counts.files_left_out = counts.files_left_out.saturating_add(left_out);
                let verified = self.verified.iter().cloned();
                named.extend(verified.map(|path| CandidateFile { path, directory }));
            }
            Err(_) => {
                let directory = owners.directory(path.parent().unwrap_or(Path::new("/")));
                named.push(CandidateFile { path: path.to_owned(), directory });
            }
        }
        named.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        named.into_iter()
    }
}

fn is_verified(path: &Path, directory: Sender, owners: &mut Owners) -> bool {
    let status = std::fs::symlink_metadata(path).ok();
    status.is_some_and(|status| owners.file(path, directory, &status) == Sender::Verified)
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

pub(super) fn identity(status: &Metadata) -> Identity {
    (status.dev(), status.ino())
}

impl CandidateFile {
    /// A regular file; nothing where it is a link, a pipe, or not to be read.
    pub(super) fn open(self, owners: &mut Owners) -> Option<Opened> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&self.path, flags, Mode::empty()).ok()?);
        let status = file.metadata().ok().filter(Metadata::is_file)?;
        // What is open counts: the name may have been another file's before.
        let sender = owners.file(&self.path, self.directory, &status);
        Some(Opened { path: self.path, file, status, sender })
    }
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
