//! Counts and lengths inside an encoded message, checked before anything is decoded from it.
//!
//! A few bytes of protobuf can stand for a large structure (an empty submessage takes two), so a
//! decoder that first builds and then counts lets a peer choose how much memory it takes. This
//! walk allocates nothing.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// What is allowed for one field.
#[derive(Debug)]
pub(crate) struct FieldLimit {
    /// The field's number.
    pub(crate) number: u32,
    /// What it is called in an error.
    pub(crate) name: &'static str,
    /// How often it may appear in one message.
    pub(crate) max_count: usize,
    /// Bytes it may have each time.
    pub(crate) max_bytes: usize,
    /// Limits of the message it holds; empty for text, numbers and messages without own limits.
    pub(crate) inner: &'static [FieldLimit],
}

/// A message that may be there so often; it is no longer than the one that it is in.
pub(crate) const fn many(
    number: u32,
    name: &'static str,
    max_count: usize,
    inner: &'static [FieldLimit],
) -> FieldLimit {
    FieldLimit { number, name, max_count, max_bytes: usize::MAX, inner }
}

/// A message that may be there once; protobuf lets a writer repeat it, the last one then counts.
pub(crate) const fn once(
    number: u32,
    name: &'static str,
    inner: &'static [FieldLimit],
) -> FieldLimit {
    many(number, name, 1, inner)
}

/// Text that may be so long.
pub(crate) const fn text(number: u32, name: &'static str, max_bytes: usize) -> FieldLimit {
    FieldLimit { number, name, max_count: 1, max_bytes, inner: &[] }
}

/// How a message breaks its limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A field appears too often.
    #[error("more than {limit} of {field}")]
    TooMany {
        /// The field.
        field: &'static str,
        /// How many are allowed.
        limit: usize,
    },
    /// A field is too long.
    #[error("{field} has more than {limit_bytes} bytes")]
    TooLong {
        /// The field.
        field: &'static str,
        /// How many bytes are allowed.
        limit_bytes: usize,
    },
    /// There are too many limited fields together.
    #[error("more than {limit} parts in one message")]
    TooManyParts {
        /// How many are allowed.
        limit: usize,
    },
    /// The bytes are no protobuf message.
    #[error("not a protobuf message")]
    Malformed(#[source] prost::DecodeError),
    /// A field announces more bytes than there are.
    #[error("the message ends within a field")]
    Truncated,
}

/// Fields that may have their own limit in one message.
const MAX_LIMITED_FIELDS: usize = 16;

/// Checks `message` and the messages in it against `limits`.
pub(crate) fn check(message: &[u8], limits: &'static [FieldLimit]) -> Result<(), ShapeError> {
    let mut unlimited = usize::MAX;
    walk(message, limits, &mut unlimited)
}

/// As [`check`], and against a limit on all limited fields together, at whatever depth.
#[cfg(feature = "grpc")]
pub(crate) fn check_together(
    message: &[u8],
    limits: &'static [FieldLimit],
    max_parts: usize,
) -> Result<(), ShapeError> {
    let mut left = max_parts;
    walk(message, limits, &mut left).map_err(|error| match error {
        ShapeError::TooManyParts { .. } => ShapeError::TooManyParts { limit: max_parts },
        other => other,
    })
}

fn walk(
    mut message: &[u8],
    limits: &'static [FieldLimit],
    parts_left: &mut usize,
) -> Result<(), ShapeError> {
    assert!(limits.len() <= MAX_LIMITED_FIELDS, "a message has more limits than fit");
    let mut counts = [0usize; MAX_LIMITED_FIELDS];
    while !message.is_empty() {
        let (number, wire_type) = decode_key(&mut message).map_err(ShapeError::Malformed)?;
        let found = limits.iter().zip(&mut counts).find(|(limit, _)| limit.number == number);
        let Some((limit, count)) = found else {
            skip_field(wire_type, number, &mut message, DecodeContext::default())
                .map_err(ShapeError::Malformed)?;
            continue;
        };
        *count += 1;
        *parts_left = parts_left.checked_sub(1).ok_or(ShapeError::TooManyParts { limit: 0 })?;
        if *count > limit.max_count {
            return Err(ShapeError::TooMany { field: limit.name, limit: limit.max_count });
        }
        if wire_type != WireType::LengthDelimited {
            skip_field(wire_type, number, &mut message, DecodeContext::default())
                .map_err(ShapeError::Malformed)?;
            continue;
        }
        let length = decode_varint(&mut message).map_err(ShapeError::Malformed)?;
        let length = usize::try_from(length).map_err(|_| ShapeError::Truncated)?;
        if length > limit.max_bytes {
            let (field, limit_bytes) = (limit.name, limit.max_bytes);
            return Err(ShapeError::TooLong { field, limit_bytes });
        }
        let (inner, rest) = message.split_at_checked(length).ok_or(ShapeError::Truncated)?;
        if !limit.inner.is_empty() {
            walk(inner, limit.inner, parts_left)?;
        }
        message = rest;
    }
    Ok(())
}
