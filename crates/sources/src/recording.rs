//! Recordings: the snapshots of a machine one after another in a file, as `telltale record` writes and
//! `telltale smi --replay` reads them. docs/recordings.md has the format.
//!
//! Each snapshot is a gzip member of its own, so that `zcat` gives JSON lines. A member's header says
//! how long it is and of when, by which a reader finds any moment without reading what is before.
//! What a crash left at the end is no member and is left out.

mod reader;
mod writer;

pub use reader::{Frame, Recording, RecordingError, ReplayError};
pub use writer::{RecordError, Recorder};

/// What a member begins with: gzip, deflate, one extra field, no time, of an unknown system; 20 bytes
/// of extra fields, the first of which is ours and has 16.
const HEAD: [u8; 16] = [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, 20, 0, b'T', b't', 16, 0];
/// The head, and in our field the member's length and its snapshot's time, both little-endian.
const HEADER_BYTES: usize = HEAD.len() + 16;
/// The check and the length that end a member.
const TRAILER_BYTES: usize = 8;
/// Bytes of the longest member.
const MAX_MEMBER_BYTES: u64 = 64 << 20;
/// Snapshots of the longest recording.
const MAX_FRAMES: usize = 1 << 20;

#[cfg(test)]
mod tests;
