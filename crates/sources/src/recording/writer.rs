//! Writes a recording: each snapshot in one piece, so that a crash costs the last one at most.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use flate2::{Compression, Crc, write::DeflateEncoder};
use rustix::fs::{FlockOperation, OFlags, flock};
use telltale_schema::clock::Timestamp;
use telltale_schema::snapshot::{Snapshot, UnfitSnapshot};

use super::reader::{RecordingError, ReplayError, Scan, Tail, read_snapshot, scan};
use super::{HEAD, HEADER_BYTES, MAX_FRAMES, MAX_MEMBER_BYTES};
use crate::received::MAX_SNAPSHOT_BYTES;

/// A recording that is being written.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    /// Where the next member goes.
    end: u64,
    frames: usize,
    max_bytes: u64,
}

/// Why nothing is recorded (any more).
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be had.
    #[error("cannot record to {}; name a file that this user may write", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It leads elsewhere, where another user may have put it.
    #[error("{} is a symbolic link, which is not followed; name the file itself", .0.display())]
    Link(PathBuf),
    /// Another process writes it.
    #[error("{} is being recorded by another telltale; name another file", .0.display())]
    Taken(PathBuf),
    /// It is something else, which is not written to.
    #[error("{} is there and is not to be added to; name another file", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        source: RecordingError,
    },
    /// Its last snapshot cannot be read.
    #[error("the last snapshot of {} is damaged, and none is added; name another file", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How.
        source: ReplayError,
    },
    /// Its last snapshot is none that this program can use: a newer one wrote it.
    #[error("{} is of another Telltale and is not added to; name another file", .path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ReplayError,
    },
    /// It has all that it may have.
    #[error("{} has its {max_bytes} bytes, and recording ended; --max-mebibytes allows more", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// The most that it may have.
        max_bytes: u64,
    },
    /// A snapshot is more than anybody reads.
    #[error(
        "a snapshot was not written to {}, and recording ended: all processes have {bytes} bytes as \
         JSON, and no more than {MAX_SNAPSHOT_BYTES} are replayed; `telltale top` shows \
         them without a recording", .path.display()
    )]
    Large {
        /// The file.
        path: PathBuf,
        /// What it has.
        bytes: usize,
    },
    /// A snapshot has more processes or devices than anybody reads.
    #[error("a snapshot was not written to {}, and recording ended", .path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// Of what it has more.
        source: UnfitSnapshot,
    },
    /// A snapshot was not written; those before it are.
    #[error("a snapshot was not written to {}, and recording ended; make room", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

// === impl Recorder ===

impl Recorder {
    /// Opens a recording to add to, or makes one that no other user can read. What a crash left at its
    /// end is cut off.
    ///
    /// # Errors
    /// When the file cannot be written, or is not one to add to.
    pub fn open(path: &Path, max_bytes: u64) -> Result<Self, RecordError> {
        let failed = |source| RecordError::Open { path: path.into(), source };
        let flags = i32::try_from(OFlags::NOFOLLOW.bits()).expect("a flag fits");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let file = options.open(path).map_err(|error| {
            match error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
                true => RecordError::Link(path.into()),
                false => failed(error),
            }
        })?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(RecordError::Taken(path.into())),
            Err(error) => return Err(failed(error.into())),
        }
        let foreign = |source| RecordError::Foreign { path: path.into(), source };
        let Scan { frames, end, tail } = scan(&file).map_err(foreign)?;
        if tail == Tail::Foreign {
            // Snapshots may be behind it, and they are not ours to cut off.
            return Err(foreign(RecordingError::Damaged(frames.len())));
        }
        if let Some(last) = frames.last() {
            read_snapshot(path, &file, *last, frames.len()).map_err(|source| match source {
                ReplayError::Unfit { .. } => RecordError::Other { path: path.into(), source },
                _ => RecordError::Damaged { path: path.into(), source },
            })?;
        }
        file.set_len(end).map_err(failed)?;
        Ok(Self { path: path.into(), file, end, frames: frames.len(), max_bytes })
    }

    /// How many snapshots it has.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Adds a snapshot.
    ///
    /// # Errors
    /// When it was not written: the file is full, or no reader would take the snapshot.
    pub fn add(&mut self, snapshot: &Snapshot) -> Result<(), RecordError> {
        let failed = |source| RecordError::Write { path: self.path.clone(), source };
        // What no reader takes would be found out when it is too late.
        snapshot
            .check()
            .map_err(|source| RecordError::Unfit { path: self.path.clone(), source })?;
        let line = line(snapshot).map_err(failed)?;
        if u64::try_from(line.len()).unwrap_or(u64::MAX) > MAX_SNAPSHOT_BYTES {
            return Err(RecordError::Large { path: self.path.clone(), bytes: line.len() });
        }
        let member = member(&line, snapshot.taken_at).map_err(failed)?;
        let length = u64::try_from(member.len()).unwrap_or(u64::MAX);
        let end = self.end.saturating_add(length);
        if end > self.max_bytes || length > MAX_MEMBER_BYTES || self.frames >= MAX_FRAMES {
            return Err(RecordError::Full { path: self.path.clone(), max_bytes: self.max_bytes });
        }
        if let Err(source) = self.file.write_all_at(&member, self.end) {
            // As a crash would leave it, it could not be read beyond; that this fails too is no worse.
            let _ = self.file.set_len(self.end);
            return Err(failed(source));
        }
        self.end = end;
        self.frames += 1;
        Ok(())
    }
}

/// A snapshot as a line of JSON.
pub(super) fn line(snapshot: &Snapshot) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(snapshot).map_err(io::Error::other)?;
    line.push(b'\n');
    Ok(line)
}

/// A snapshot's line as a member of gzip.
pub(super) fn member(line: &[u8], taken_at: Timestamp) -> io::Result<Vec<u8>> {
    let mut member = HEAD.to_vec();
    member.resize(HEADER_BYTES, 0);
    let mut encoder = DeflateEncoder::new(member, Compression::fast());
    encoder.write_all(line)?;
    let mut member = encoder.finish()?;
    let mut check = Crc::new();
    check.update(line);
    member.extend(check.sum().to_le_bytes());
    member.extend(check.amount().to_le_bytes());
    let length = u64::try_from(member.len()).unwrap_or(u64::MAX);
    member[HEAD.len()..][..8].copy_from_slice(&length.to_le_bytes());
    member[HEAD.len() + 8..][..8].copy_from_slice(&taken_at.0.to_le_bytes());
    Ok(member)
}
