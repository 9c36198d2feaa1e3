//! What is spoken on a socket, and what a connection may take.

use std::time::Duration;

/// What is spoken on a socket.
#[derive(Debug, Clone, Copy)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 from the first byte, as gRPC is.
    Http2(Http2),
    /// Either, as the first bytes say.
    Either(Http2),
}

/// What a connection of HTTP/2 may take.
#[derive(Debug, Clone, Copy)]
pub struct Http2 {
    /// Requests at once.
    pub streams: u32,
    /// Bytes of one request that wait to be read.
    pub stream_window: u32,
    /// Bytes of all requests that wait to be read.
    pub connection_window: u32,
    /// How often a silent client is asked whether it lives, and how long it may take to answer.
    pub keep_alive: (Duration, Duration),
}

/// What a connection may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// What is spoken.
    pub protocol: Protocol,
    /// How long the head of an HTTP/1.1 request may take to come, the wait for it included.
    pub head: Duration,
    /// How long a client may take nothing of what is there for it.
    pub stall: Duration,
}

impl Protocol {
    /// The limits of HTTP/2, where that is spoken.
    pub(super) fn http2(self) -> Option<Http2> {
        match self {
            Self::Http1 => None,
            Self::Http2(http2) | Self::Either(http2) => Some(http2),
        }
    }
}
