//! Whether a connection moves: what came when, what was taken when, and what follows for a client that
//! says nothing, takes nothing, or asks for nothing without end.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::end::End;
use super::frames::Frames;
use super::limits::{Limits, Protocol};
use super::stream::Stream;

/// How long a client of HTTP/2 may take to say so.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// Frames of no request that a client may send: at once, a second, and one for so many bytes that it
/// gets. Clients of gRPC measure the way by a PING beside data; the answer to one has 17 bytes.
const IDLE_FRAMES: u64 = 1000;
const IDLE_FRAMES_A_SECOND: u64 = 100;
const BYTES_FOR_AN_IDLE_FRAME: u64 = 64;

/// How the bytes of a connection move.
#[derive(Debug)]
pub struct Movement {
    moved: Mutex<Moved>,
    /// Notified when the connection has to end at once.
    is_over: Notify,
}

#[derive(Debug)]
struct Moved {
    began: Instant,
    /// When a byte came or went last.
    last: Instant,
    /// When a byte came last.
    heard: Instant,
    /// Bytes that were sent.
    said: u64,
    /// Since when the client has not taken what is there for it.
    stalled: Option<Instant>,
    frames: Frames,
}

/// A stream that notes its movement.
#[derive(Debug)]
pub(super) struct Noting {
    stream: Stream,
    protocol: Protocol,
    movement: Arc<Movement>,
}

// === impl Movement ===

impl Default for Movement {
    fn default() -> Self {
        let now = Instant::now();
        let moved = Moved {
            began: now,
            last: now,
            heard: now,
            said: 0,
            stalled: None,
            frames: Frames::default(),
        };
        Self { moved: Mutex::new(moved), is_over: Notify::new() }
    }
}

impl Movement {
    /// When a byte came or went last.
    pub fn last(&self) -> Instant {
        self.moved().last
    }

    /// Ends when the connection has to, by these limits.
    pub(super) async fn fails(&self, limits: &Limits) -> End {
        loop {
            let judged = self.moved().judge(limits, Instant::now());
            match judged {
                Ok(left) => tokio::select! {
                    () = tokio::time::sleep(left) => {}
                    () = self.is_over.notified() => {}
                },
                Err(end) => return end,
            }
        }
    }

    /// Whether what came is another protocol's.
    pub(super) fn is_foreign(&self, limits: &Limits) -> bool {
        self.moved().is_foreign(limits.protocol)
    }

    fn moved(&self) -> std::sync::MutexGuard<'_, Moved> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Moved ===

impl Moved {
    /// How long it can be waited for, or why it must end.
    fn judge(&self, limits: &Limits, now: Instant) -> Result<Duration, End> {
        if self.is_foreign(limits.protocol) {
            return Err(End::Malformed);
        }
        if self.floods(now) {
            return Err(End::Flood);
        }
        let stalled = (limits.stall, self.stalled.unwrap_or(now));
        let silent = match limits.protocol {
            // Its head's limit is the library's own.
            Protocol::Http1 => stalled,
            // What lives answers when it is asked.
            Protocol::Http2(http2) | Protocol::Either(http2) if self.frames.is_spoken() => {
                (http2.keep_alive.0 + http2.keep_alive.1, self.heard)
            }
            Protocol::Http2(_) => (GREETING_TIMEOUT, self.began),
            Protocol::Either(_) if self.frames.is_foreign() => stalled,
            Protocol::Either(_) => (limits.head, self.began),
        };
        let left = |(most, since): (Duration, Instant)| {
            let left = most.saturating_sub(now.saturating_duration_since(since));
            if left.is_zero() { Err(End::Slow) } else { Ok(left) }
        };
        Ok(left(stalled)?.min(left(silent)?))
    }

    fn is_foreign(&self, protocol: Protocol) -> bool {
        matches!(protocol, Protocol::Http2(_)) && self.frames.is_foreign()
    }

    /// Whether there are more frames of no request than a client has reason for.
    fn floods(&self, now: Instant) -> bool {
        let idle = self.frames.idle();
        idle > IDLE_FRAMES && {
            let seconds = now.saturating_duration_since(self.began).as_secs();
            idle > IDLE_FRAMES
                + IDLE_FRAMES_A_SECOND * seconds
                + self.said / BYTES_FOR_AN_IDLE_FRAME
        }
    }
}

// === impl Noting ===

impl Noting {
    /// Notes what moves on `stream` in `movement`.
    pub(super) fn new(stream: Stream, protocol: Protocol, movement: Arc<Movement>) -> Self {
        Self { stream, protocol, movement }
    }

    fn note_written(&self, outcome: &Poll<io::Result<usize>>) {
        let mut moved = self.movement.moved();
        match outcome {
            Poll::Ready(written) => {
                moved.last = Instant::now();
                moved.stalled = None;
                moved.said += written.as_ref().map_or(0, |written| *written as u64);
            }
            Poll::Pending => {
                moved.stalled.get_or_insert_with(Instant::now);
            }
        }
    }
}

impl AsyncRead for Noting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        if outcome.is_ready() {
            let now = Instant::now();
            let mut moved = self.movement.moved();
            (moved.last, moved.heard) = (now, now);
            if self.protocol.http2().is_some() {
                moved.frames.hear(&buffer.filled()[before..]);
                if moved.is_foreign(self.protocol) || moved.floods(now) {
                    self.movement.is_over.notify_one();
                }
            }
        }
        outcome
    }
}

impl AsyncWrite for Noting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_written(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note_written(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::limits::Http2;

    const LIMITS: Limits = Limits {
        protocol: Protocol::Http2(Http2 {
            streams: 8,
            stream_window: 1 << 16,
            connection_window: 1 << 16,
            keep_alive: (Duration::from_secs(30), Duration::from_secs(20)),
        }),
        head: Duration::from_secs(20),
        stall: Duration::from_secs(30),
    };
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    fn after(seconds: u64, change: impl FnOnce(&mut Moved)) -> Result<u64, End> {
        let movement = Movement::default();
        let mut moved = movement.moved();
        change(&mut moved);
        let now = moved.began + Duration::from_secs(seconds);
        moved.judge(&LIMITS, now).map(|left| left.as_secs())
    }

    #[test]
    fn a_client_speaks_at_once_and_answers_when_it_is_asked() {
        assert_eq!(after(9, |_| {}), Ok(1));
        assert_eq!(after(10, |_| {}), Err(End::Slow), "it has said nothing");
        assert_eq!(after(10, |moved| moved.frames.hear(&PREFACE[..20])), Err(End::Slow));
        assert_eq!(after(49, |moved| moved.frames.hear(PREFACE)), Ok(1));
        assert_eq!(after(50, |moved| moved.frames.hear(PREFACE)), Err(End::Slow));
        assert_eq!(after(0, |moved| moved.frames.hear(b"GET /")), Err(End::Malformed));
    }

    #[test]
    fn a_client_that_takes_nothing_is_not_waited_for() {
        let stalled = |moved: &mut Moved| {
            moved.frames.hear(PREFACE);
            moved.stalled = Some(moved.began);
        };
        assert_eq!(after(29, stalled), Ok(1));
        assert_eq!(after(30, stalled), Err(End::Slow));
    }

    #[test]
    fn pings_without_end_are_a_flood_and_those_beside_data_are_none() {
        let ping = [&[0, 0, 8, 6, 0, 0, 0, 0, 0][..], b"12345678"].concat();
        let pings = |count: usize, said: u64| {
            let ping = ping.clone();
            move |moved: &mut Moved| {
                moved.frames.hear(PREFACE);
                moved.frames.hear(&ping.repeat(count));
                moved.said = said;
            }
        };
        assert!(after(0, pings(1000, 0)).is_ok());
        // What they are answered with makes no room for as many.
        assert_eq!(after(0, pings(1400, 1400 * 17)), Err(End::Flood));
        assert!(after(10, pings(2000, 0)).is_ok(), "a hundred a second are no flood");
        assert!(after(0, pings(20_000, 20_000 << 10)).is_ok(), "one beside each KiB of data");
    }
}
