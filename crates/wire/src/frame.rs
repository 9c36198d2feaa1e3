//! Messages cut out of a byte stream: a length in four bytes, little-endian, then the message.
//!
//! Both machines work on slices and never on sockets, so they fit blocking and non-blocking use.
//! Memory grows with the bytes that came, never with the length that was announced.

use crate::limits::MAX_FRAME_BYTES;

const PREFIX_BYTES: usize = 4;
/// A socket is read this many bytes at a time, so an announced length costs at most this much.
const READ_STEP_BYTES: usize = 64 << 10;

/// Why a stream cannot be cut into messages. The connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The announced length is above the limit.
    #[error("a message of {announced_bytes} bytes was announced, {limit_bytes} are allowed")]
    TooLong {
        /// What the prefix said.
        announced_bytes: u64,
        /// What this reader or writer allows.
        limit_bytes: usize,
    },
}

/// Collects one message after the other from whatever pieces arrive.
#[derive(Debug)]
pub struct FrameReader {
    limit_bytes: usize,
    prefix: [u8; PREFIX_BYTES],
    prefix_filled: usize,
    expected_bytes: usize,
    body: Vec<u8>,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self::with_limit(MAX_FRAME_BYTES)
    }
}

impl FrameReader {
    /// A reader that refuses messages above `limit_bytes` (at most [`MAX_FRAME_BYTES`]).
    pub fn with_limit(limit_bytes: usize) -> Self {
        Self {
            limit_bytes: limit_bytes.min(MAX_FRAME_BYTES),
            prefix: [0; PREFIX_BYTES],
            prefix_filled: 0,
            expected_bytes: 0,
            body: Vec::new(),
        }
    }

    /// How many bytes to read next at most: never past the end of the current message, so that
    /// what belongs to the next one stays in the socket. Never zero unless a message is complete.
    pub fn wanted_bytes(&self) -> usize {
        if self.prefix_filled < PREFIX_BYTES {
            PREFIX_BYTES - self.prefix_filled
        } else {
            (self.expected_bytes - self.body.len()).min(READ_STEP_BYTES)
        }
    }

    /// Takes what belongs to the current message from the front of `bytes` and says how many
    /// bytes that were; the rest must be pushed again after [`Self::take`].
    ///
    /// # Errors
    /// When the announced length is above the limit; the stream cannot be used any further.
    pub fn push(&mut self, bytes: &[u8]) -> Result<usize, FrameError> {
        let mut used = 0;
        if self.prefix_filled < PREFIX_BYTES {
            used = bytes.len().min(PREFIX_BYTES - self.prefix_filled);
            self.prefix[self.prefix_filled..self.prefix_filled + used]
                .copy_from_slice(&bytes[..used]);
            self.prefix_filled += used;
            if self.prefix_filled < PREFIX_BYTES {
                return Ok(used);
            }
            let announced = u32::from_le_bytes(self.prefix);
            self.expected_bytes = usize::try_from(announced)
                .ok()
                .filter(|length| *length <= self.limit_bytes)
                .ok_or(FrameError::TooLong {
                    announced_bytes: announced.into(),
                    limit_bytes: self.limit_bytes,
                })?;
        }
        let rest = &bytes[used..];
        let body = rest.len().min(self.expected_bytes.saturating_sub(self.body.len()));
        self.body.extend_from_slice(&rest[..body]);
        Ok(used + body)
    }

    /// Whether the current message is there in full.
    pub fn is_complete(&self) -> bool {
        self.prefix_filled == PREFIX_BYTES && self.body.len() == self.expected_bytes
    }

    /// Whether nothing of a message has come yet, so that an end of the stream is a clean one.
    pub fn is_empty(&self) -> bool {
        self.prefix_filled == 0
    }

    /// The current message, once it is complete; the reader then starts with the next one.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if !self.is_complete() {
            return None;
        }
        self.prefix_filled = 0;
        self.expected_bytes = 0;
        Some(std::mem::take(&mut self.body))
    }
}

/// `message` with its length in front.
///
/// # Errors
/// When it is longer than [`MAX_FRAME_BYTES`].
pub fn frame(message: &[u8]) -> Result<Vec<u8>, FrameError> {
    let too_long = FrameError::TooLong {
        announced_bytes: u64::try_from(message.len()).unwrap_or(u64::MAX),
        limit_bytes: MAX_FRAME_BYTES,
    };
    if message.len() > MAX_FRAME_BYTES {
        return Err(too_long);
    }
    let length = u32::try_from(message.len()).map_err(|_| too_long)?;
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + message.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(message);
    Ok(bytes)
}

/// Gives out one framed message in whatever pieces the socket takes.
#[derive(Debug)]
pub struct FrameWriter {
    bytes: Vec<u8>,
    sent: usize,
}

impl FrameWriter {
    /// A writer of `message`.
    ///
    /// # Errors
    /// When the message is longer than [`MAX_FRAME_BYTES`].
    pub fn new(message: &[u8]) -> Result<Self, FrameError> {
        Ok(Self { bytes: frame(message)?, sent: 0 })
    }

    /// What is still to be written; empty when all is done.
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Notes that the first `count` bytes of [`Self::pending`] were written.
    pub fn advance(&mut self, count: usize) {
        self.sent = self.sent.saturating_add(count).min(self.bytes.len());
    }

    /// Whether everything was written.
    pub fn is_done(&self) -> bool {
        self.sent == self.bytes.len()
    }
}
