//! Reads region files: open read-only, check, copy out with `pread`, decode.
//!
//! Never maps, never writes, never waits, never follows a link in the last component. A file that
//! grows, shrinks, vanishes or is no file costs one error.
#![forbid(unsafe_code)]

mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::{Errno, pread};
use thiserror::Error;

use super::decode::{DecodeError, Now, Region, decode};
use super::findings::RegionFinding;
use super::layout::{MAX_REGION_BYTES, RegionKind};
use super::name::{FileName, file_name, parse_file_name};

/// Regions read in one scan: a full Galaxy pod has 32 chips in one machine.
pub const MAX_REGIONS: usize = 1024;
/// Directory entries checked in one scan: `/dev/shm` is writable by everyone.
pub const MAX_DIRECTORY_ENTRIES: usize = 65_536;
/// How often one file is read at most to let totals and rows settle.
pub const MAX_READS: u32 = 4;

/// Which file a name led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileIdentity {
    /// `st_dev`: the file system.
    pub device: u64,
    /// `st_ino`: the file in it.
    pub inode: u64,
}

/// A region and the file it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionReading {
    /// The id in the file's name.
    pub name_id: u64,
    /// Which file it is, whatever its name.
    pub file: FileIdentity,
    /// The owner's uid. In version 3 and 4 only this user's processes can attach.
    pub owner_uid: u32,
    /// The permission bits.
    pub mode: u32,
    /// What the file says.
    pub region: Region,
}

/// Why a region could not be read.
#[derive(Debug, Error)]
pub enum RegionReadError {
    /// The entry's name has the shape of a region's, but no decimal id.
    #[error(
        "{}: not a name that a region's writer gives; remove the file if it is not yours",
        name.as_encoded_bytes().escape_ascii()
    )]
    Malformed {
        /// The entry's name as it is, which need not be text.
        name: OsString,
    },
    /// The reader may not open the file. From version 3 on regions have mode 0600.
    #[error("{name}: no right to open the region; run as its owner or as root")]
    PermissionDenied {
        /// The file's name.
        name: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file does not exist, or no longer.
    #[error("{name}: there is no such region, or no longer")]
    Vanished {
        /// The file's name.
        name: String,
    },
    /// A link, directory, FIFO, socket or device stands where the region should be.
    #[error("{name}: not a regular file; another process has taken the region's name")]
    NotARegularFile {
        /// The file's name.
        name: String,
    },
    /// Opening, examining or reading failed.
    #[error("{name}: cannot {step} the region")]
    Io {
        /// The file's name.
        name: String,
        /// What was tried.
        step: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file had another length in each read.
    #[error("{name}: the file changes its size while it is read; ask again")]
    SizeChanges {
        /// The file's name.
        name: String,
    },
    /// The content is not a region that can be shown.
    #[error("{name}: cannot interpret the region")]
    Decode {
        /// The file's name.
        name: String,
        /// What is wrong with it.
        #[source]
        source: DecodeError,
    },
}

impl RegionReadError {
    /// The name of the entry.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        match self {
            Self::Malformed { name } => name,
            Self::PermissionDenied { name, .. }
            | Self::Vanished { name }
            | Self::NotARegularFile { name }
            | Self::Io { name, .. }
            | Self::SizeChanges { name }
            | Self::Decode { name, .. } => OsStr::new(name),
        }
    }
}

/// Why a directory could not be scanned.
#[derive(Debug, Error)]
#[error("cannot list {} for regions; check that it exists and may be read", directory.display())]
pub struct ScanError {
    /// The directory.
    pub directory: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// A name that has the shape of a region's: by id, then what is none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Region(u64),
    Malformed(OsString),
}

/// What a scan found.
#[derive(Debug)]
pub struct Scan {
    /// Each region or the reason why it could not be read, by id.
    pub regions: Vec<Result<RegionReading, RegionReadError>>,
    /// Files beyond [`MAX_REGIONS`], not read: how many of each user. They are taken in turns by owner, so
    /// that one user's many keep no other's from being read.
    pub left_out: BTreeMap<u32, u64>,
    /// Whether the directory has more than [`MAX_DIRECTORY_ENTRIES`], so that some were not seen.
    pub entries_left_out: bool,
}

/// Reads every region in `directory`, usually `/dev/shm`.
///
/// # Errors
/// When the directory cannot be opened or listed; the error of one region is in the result.
pub fn scan(directory: &Path, now: Now) -> Result<Scan, ScanError> {
    let failed = |source: Errno| ScanError { directory: directory.into(), source: source.into() };
    let handle = open_directory(directory).map_err(failed)?;
    let mut names = BTreeSet::new();
    let mut entries_left_out = false;
    let entries = Dir::read_from(&handle).map_err(failed)?;
    for (count, entry) in entries.enumerate() {
        let entry = entry.map_err(failed)?;
        if count == MAX_DIRECTORY_ENTRIES {
            entries_left_out = true;
            break;
        }
        match parse_file_name(entry.file_name().to_bytes()) {
            FileName::Region(id) => {
                names.insert(Name::Region(id));
            }
            FileName::Malformed => {
                let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
                names.insert(Name::Malformed(name));
            }
            FileName::Other => {}
        }
    }
    let left_out = turns::take(handle.as_fd(), &mut names, MAX_REGIONS);
    let regions = names.into_iter().map(|name| match name {
        Name::Region(id) => read_in(handle.as_fd(), id, now),
        Name::Malformed(name) => Err(RegionReadError::Malformed { name }),
    });
    Ok(Scan { regions: regions.collect(), left_out, entries_left_out })
}

/// Reads the region `name_id` in `directory`.
///
/// # Errors
/// As [`RegionReadError`] says.
pub fn read(directory: &Path, name_id: u64, now: Now) -> Result<RegionReading, RegionReadError> {
    let handle = open_directory(directory).map_err(|error| {
        if error == Errno::NOENT {
            RegionReadError::Vanished { name: file_name(name_id) }
        } else {
            failure(&file_name(name_id), "open the directory of", error)
        }
    })?;
    read_in(handle.as_fd(), name_id, now)
}

pub(super) fn open_directory(directory: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, directory, flags, Mode::empty())
}

fn failure(name: &str, step: &'static str, error: Errno) -> RegionReadError {
    RegionReadError::Io { name: name.into(), step, source: error.into() }
}

fn read_in(directory: impl AsFd, name_id: u64, now: Now) -> Result<RegionReading, RegionReadError> {
    let name = file_name(name_id);
    // NONBLOCK: a FIFO or a leased file must not make the reader wait.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = openat(directory, &name, flags, Mode::empty()).map_err(|error| match error {
        Errno::ACCESS | Errno::PERM => {
            RegionReadError::PermissionDenied { name: name.clone(), source: error.into() }
        }
        Errno::NOENT => RegionReadError::Vanished { name: name.clone() },
        // NOFOLLOW gives LOOP for a link; a socket gives NXIO.
        Errno::LOOP | Errno::NXIO => RegionReadError::NotARegularFile { name: name.clone() },
        _ => failure(&name, "open", error),
    })?;
    let stat = fstat(&file).map_err(|error| failure(&name, "examine", error))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(RegionReadError::NotARegularFile { name });
    }
    let region = settle(|| {
        let bytes = copy_out(&file, &name)?;
        decode(&bytes, now).map_err(|source| RegionReadError::Decode { name: name.clone(), source })
    })?;
    Ok(reading(name_id, &stat, region))
}

fn reading(name_id: u64, stat: &Stat, region: Region) -> RegionReading {
    let file = FileIdentity { device: stat.st_dev, inode: stat.st_ino };
    RegionReading { name_id, file, owner_uid: stat.st_uid, mode: stat.st_mode & 0o7777, region }
}

/// Copies a file's whole content; of one larger than any region only enough to name its version.
fn copy_out(file: &OwnedFd, name: &str) -> Result<Vec<u8>, RegionReadError> {
    for _ in 0..MAX_READS {
        let stat = fstat(file).map_err(|error| failure(name, "examine", error))?;
        let size_bytes = u64::try_from(stat.st_size).unwrap_or(0);
        let mut buffer = vec![0; MAX_REGION_BYTES + 1];
        let mut filled = 0;
        // A regular file gives everything at once; a short read that is not the end is possible.
        while filled < buffer.len() {
            let offset = u64::try_from(filled).expect("a buffer's length is a file offset");
            match pread(file, &mut buffer[filled..], offset) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(failure(name, "read", error)),
            }
        }
        buffer.truncate(filled);
        if filled > MAX_REGION_BYTES {
            let version = buffer.first_chunk::<4>().map(|first| u32::from_le_bytes(*first));
            let source = DecodeError::Unsupported { version, size_bytes };
            return Err(RegionReadError::Decode { name: name.into(), source });
        }
        if u64::try_from(filled) == Ok(size_bytes) {
            return Ok(buffer);
        }
    }
    Err(RegionReadError::SizeChanges { name: name.into() })
}

/// Reads again while totals and rows disagree, until they agree or disagree twice by the same
/// amounts: then the remainder is real and no update caught half-way.
fn settle(
    mut read_once: impl FnMut() -> Result<Region, RegionReadError>,
) -> Result<Region, RegionReadError> {
    let mut region = read_once()?;
    let mut before = disagreements(&region);
    for _ in 1..MAX_READS {
        if before.is_empty() {
            return Ok(region);
        }
        region = read_once()?;
        let after = disagreements(&region);
        if after == before {
            return Ok(region);
        }
        before = after;
    }
    if !before.is_empty() {
        region.findings.push(RegionFinding::Unsettled { reads: MAX_READS });
    }
    Ok(region)
}

fn disagreements(region: &Region) -> Vec<(RegionKind, i128)> {
    region.findings.iter().filter_map(RegionFinding::disagreement).collect()
}

#[cfg(test)]
mod tests {
    use super::super::layout::{Layout, LayoutVariant};
    use super::*;

    const NOW: Now = Now { monotonic_ns: 1, epoch_ns: 1_800_000_000_000_000_000 };

    /// A version 3 region with one process and these DRAM values.
    fn region(total: u64, row: u64) -> Region {
        let layout = Layout::of(LayoutVariant::V3);
        let mut bytes = vec![0; layout.size_bytes];
        bytes[0] = 3;
        let mut put = |at: usize, value: u64| {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        put(Layout::TOTALS, total);
        put(layout.process(0), 77);
        put(layout.process(0) + 8, row);
        decode(&bytes, NOW).expect("a made region is whole")
    }

    /// Settles over the given (total, row) pairs; gives the reads made, the pair kept and whether
    /// it settled.
    fn check(pairs: &[(u64, u64)], expected: (usize, usize, bool)) {
        let mut reads = 0;
        let settled = settle(|| {
            reads += 1;
            Ok(region(pairs[reads - 1].0, pairs[reads - 1].1))
        })
        .expect("no read fails");
        let unsettled = settled.findings.contains(&RegionFinding::Unsettled { reads: MAX_READS });
        let (total, row) = pairs[expected.1];
        assert_eq!(settled.totals.get(RegionKind::Dram), Some(total));
        assert_eq!(settled.rows_bytes(RegionKind::Dram), Some(u128::from(row)));
        assert_eq!((reads, !unsettled), (expected.0, expected.2));
    }

    #[test]
    fn a_torn_read_is_repeated_and_a_real_remainder_is_kept() {
        check(&[(10, 10)], (1, 0, true));
        check(&[(10, 7), (10, 10)], (2, 1, true));
        check(&[(10, 7), (10, 7)], (2, 1, true));
        // The numbers move, the remainder stays: it is real.
        check(&[(10, 7), (25, 22)], (2, 1, true));
        check(&[(10, 7), (10, 8), (9, 9)], (3, 2, true));
        check(&[(10, 7), (10, 8), (10, 9), (10, 5)], (4, 3, false));
    }
}
