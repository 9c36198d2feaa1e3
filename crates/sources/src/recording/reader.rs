//! Reads a recording that anybody may have written: every length is checked before it is believed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use telltale_schema::calendar;
use telltale_schema::clock::Timestamp;
use telltale_schema::snapshot::Snapshot;

use super::{HEAD, HEADER_BYTES, MAX_FRAMES, MAX_MEMBER_BYTES, TRAILER_BYTES};
use crate::open_file;
use crate::received::{MAX_SNAPSHOT_BYTES, ReceivedError, snapshot_in};

/// Where a snapshot is in the file, and of when it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    from: u64,
    bytes: u64,
    /// When its collection began.
    pub at: Timestamp,
}

/// A recording that can be checked.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: File,
    frames: Vec<Frame>,
    /// Bytes at its end that are no snapshot: a crash left them, or one is being written.
    torn_bytes: u64,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It cannot be read.
    #[error("it cannot be read")]
    Read(#[from] io::Error),
    /// It is no file of bytes.
    #[error("it is no regular file")]
    Kind,
    /// It is something else.
    #[error("it is no recording of `telltale record`")]
    Foreign,
    /// It has something else behind its snapshots.
    #[error("it has bytes behind its first {0} snapshots that are no snapshot")]
    Damaged(usize),
    /// It has more than is checked.
    #[error("it has more than {MAX_FRAMES} snapshots")]
    Long,
}

/// Why a recording is of no use.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be opened.
    #[error("{} cannot be replayed; name a file that `telltale record` wrote", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: RecordingError,
    },
    /// It has nothing.
    #[error("{} has no snapshot yet", .0.display())]
    Empty(PathBuf),
    /// It begins after the moment that was asked for.
    #[error("{} begins at {}, after that moment; give a later one", .path.display(), calendar::format(*.begins))]
    Early {
        /// The file.
        path: PathBuf,
        /// The time of its first snapshot.
        begins: Timestamp,
    },
    /// A snapshot's bytes cannot be had.
    #[error("snapshot {number} of {} cannot be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Which snapshot, from 1.
        number: usize,
        /// The system's reason, or gzip's.
        source: io::Error,
    },
    /// A snapshot is too long once it is unpacked.
    #[error("snapshot {number} of {} is longer than {MAX_SNAPSHOT_BYTES} bytes", .path.display())]
    Long {
        /// The file.
        path: PathBuf,
        /// Which snapshot, from 1.
        number: usize,
    },
    /// A snapshot is none.
    #[error("snapshot {number} of {} cannot be used", .path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// Which snapshot, from 1.
        number: usize,
        /// What is wrong with it.
        source: ReceivedError,
    },
}

// === impl Recording ===

impl Recording {
    /// Opens a recording with at least one snapshot.
    ///
    /// # Errors
    /// When the file cannot be read, is something else, or has no snapshot yet.
    pub fn open(path: &Path) -> Result<Self, ReplayError> {
        let failed = |source| ReplayError::Open { path: path.into(), source };
        let file = open_file::open(path).map_err(|error| failed(error.into()))?;
        let Scan { frames, end, .. } = scan(&file).map_err(failed)?;
        let length = file.metadata().map_err(|error| failed(error.into()))?.len();
        if frames.is_empty() {
            return Err(ReplayError::Empty(path.into()));
        }
        Ok(Self { path: path.into(), file, frames, torn_bytes: length.saturating_sub(end) })
    }

    /// Its snapshots, in their order.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Bytes at its end that are no whole snapshot.
    #[must_use]
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// The place of the last snapshot that is not after `moment`; the first one's where all are.
    #[must_use]
    pub fn place_at(&self, moment: Timestamp) -> usize {
        self.frames.iter().rposition(|frame| frame.at <= moment).unwrap_or(0)
    }

    /// The last snapshot that is not after `moment`.
    ///
    /// # Errors
    /// As [`Recording::snapshot`], and when the recording begins later.
    pub fn snapshot_at(&self, moment: Timestamp) -> Result<Snapshot, ReplayError> {
        match self.frames.first() {
            Some(first) if moment < first.at => {
                Err(ReplayError::Early { path: self.path.clone(), begins: first.at })
            }
            _ => self.snapshot(self.place_at(moment)),
        }
    }

    /// The snapshot at a place that there is.
    ///
    /// # Errors
    /// When its bytes are damaged, or of a newer Telltale.
    ///
    /// # Panics
    /// When there is no such place in [`Recording::frames`].
    pub fn snapshot(&self, place: usize) -> Result<Snapshot, ReplayError> {
        read_snapshot(&self.path, &self.file, self.frames[place], place + 1)
    }
}

/// The snapshot of a frame; `path` and its `number` are what errors name.
pub(super) fn read_snapshot(
    path: &Path,
    file: &File,
    frame: Frame,
    number: usize,
) -> Result<Snapshot, ReplayError> {
    let failed = |source| ReplayError::Read { path: path.into(), number, source };
    let length = usize::try_from(frame.bytes).map_err(|it| failed(io::Error::other(it)))?;
    let mut member = vec![0; length];
    file.read_exact_at(&mut member, frame.from).map_err(failed)?;
    let mut line = Vec::new();
    let unpacked = GzDecoder::new(&member[..]);
    unpacked.take(MAX_SNAPSHOT_BYTES + 1).read_to_end(&mut line).map_err(failed)?;
    if u64::try_from(line.len()).unwrap_or(u64::MAX) > MAX_SNAPSHOT_BYTES {
        return Err(ReplayError::Long { path: path.into(), number });
    }
    snapshot_in(&line).map_err(|source| ReplayError::Unfit { path: path.into(), number, source })
}

/// What a file has.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) frames: Vec<Frame>,
    /// Where the last whole one ends.
    pub(super) end: u64,
    pub(super) tail: Tail,
}

/// What is behind the last whole snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing, or what a crash left: the beginning of a snapshot, or zeros in its place.
    Torn,
    /// Something that no `telltale record` writes.
    Foreign,
}

/// The frames of a file.
pub(super) fn scan(file: &File) -> Result<Scan, RecordingError> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(RecordingError::Kind);
    }
    let mut frames = Vec::new();
    let mut from = 0;
    loop {
        let frame = match frame(file, from, metadata.len()) {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            // Behind snapshots that are ours. Readers have those.
            Err(RecordingError::Foreign) if !frames.is_empty() => {
                return Ok(Scan { frames, end: from, tail: Tail::Foreign });
            }
            Err(error) => return Err(error),
        };
        if frames.len() >= MAX_FRAMES {
            return Err(RecordingError::Long);
        }
        from += frame.bytes;
        frames.push(frame);
    }
    Ok(Scan { frames, end: from, tail: Tail::Torn })
}

/// The frame that begins here; none where the file ends before it does.
fn frame(file: &File, from: u64, end: u64) -> Result<Option<Frame>, RecordingError> {
    let mut header = [0; HEADER_BYTES];
    let there = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX).min(HEADER_BYTES);
    file.read_exact_at(&mut header[..there], from)?;
    if from > 0 && header.iter().all(|byte| *byte == 0) {
        // A file system may have the length of what was written before a power cut, and not the bytes.
        return Ok(None);
    }
    let known = there.min(HEAD.len());
    if header[..known] != HEAD[..known] {
        return Err(RecordingError::Foreign);
    }
    if there < HEADER_BYTES {
        return Ok(None);
    }
    let number = |at: usize| {
        let bytes = header[at..at + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes)
    };
    let (bytes, at) = (number(HEAD.len()), Timestamp(number(HEAD.len() + 8)));
    let least = u64::try_from(HEADER_BYTES + TRAILER_BYTES).expect("a small number");
    if !(least..=MAX_MEMBER_BYTES).contains(&bytes) {
        return Err(RecordingError::Foreign);
    }
    Ok((bytes <= end - from).then_some(Frame { from, bytes, at }))
}
