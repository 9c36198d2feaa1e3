//! Messages as bytes: what is encoded once is sent to many, and what is received is checked
//! before anything is built from it.

use prost::bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Bytes that a stream's buffer has from the start.
const BUFFER_BYTES: usize = 1 << 10;
/// Buffered bytes from which on the transport is given them.
const YIELD_BYTES: usize = 32 << 10;

/// An encoded message, the first part of which may be shared with others.
#[derive(Debug, Clone, Default)]
pub struct Payload {
    /// Fields that are the same for everyone.
    pub shared: Bytes,
    /// Fields of this message alone.
    pub own: Vec<u8>,
}

/// A codec that leaves messages as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct RawCodec;

impl Codec for RawCodec {
    type Encode = Payload;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self::Encoder {
        Self
    }

    fn decoder(&mut self) -> Self::Decoder {
        Self
    }
}

impl Encoder for RawCodec {
    type Item = Payload;
    type Error = Status;

    fn encode(&mut self, payload: Payload, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.reserve(payload.shared.len() + payload.own.len());
        to.put_slice(&payload.shared);
        to.put_slice(&payload.own);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER_BYTES, YIELD_BYTES)
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER_BYTES, YIELD_BYTES)
    }
}
