//! How connections end.

/// How a connection ended, as far as a server counts that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All is well, or its client went away.
    Fine,
    /// The TLS handshake failed, or took too long.
    Handshake,
    /// Its client sent or took nothing for too long.
    Slow,
    /// What came is not what is spoken here.
    Malformed,
    /// The head of a request has too many bytes.
    TooLarge,
    /// It sent frames that ask for nothing, and no end of them.
    Flood,
    /// It did nothing, and another one needed its place.
    MadeRoom,
}
