//! A Unix socket that takes what the NCCL plugin posts, as a node's agent does, and counts it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

/// Connections in all: each rank keeps one, and makes a new one where that failed.
const MAX_CONNECTIONS: usize = 4096;
/// Bytes of one line of a request's head, lines of it, and bytes of a body.
const MAX_LINE_BYTES: u64 = 8192;
const MAX_LINES: usize = 64;
const MAX_BODY_BYTES: u64 = 16 << 20;
/// How long a peer may be silent.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What was posted so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Received(Arc<AtomicU64>);

impl Received {
    /// Listens at `socket` until this process ends.
    pub(super) fn listen(socket: &Path) -> Result<Self, String> {
        let listener = UnixListener::bind(socket)
            .map_err(|error| format!("cannot listen at {}: {error}", socket.display()))?;
        let received = Self::default();
        let mine = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().take(MAX_CONNECTIONS).flatten() {
                let mine = mine.clone();
                std::thread::spawn(move || mine.serve(&stream));
            }
        });
        Ok(received)
    }

    /// All-reduces that have ended.
    pub(super) fn reductions(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Answers one request after another, until one is not understood.
    fn serve(&self, stream: &UnixStream) {
        if stream.set_read_timeout(Some(TIMEOUT)).is_err() {
            return;
        }
        let mut reader = BufReader::new(stream);
        let mut writer = stream;
        while let Some(body) = body(&mut reader) {
            let Ok(Value::Array(records)) = serde_json::from_slice(&body) else { return };
            let ended =
                |record: &&Value| record["opType"] == "allreduce" && record["finished"] == true;
            let count = records.iter().filter(ended).count();
            self.0.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
            if writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").is_err() {
                return;
            }
        }
    }
}

/// The body of the next request.
fn body(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = None;
    for _ in 0..MAX_LINES {
        let mut line = String::new();
        reader.by_ref().take(MAX_LINE_BYTES).read_line(&mut line).ok().filter(|read| *read > 0)?;
        if line == "\r\n" {
            let length = length.filter(|length| *length <= MAX_BODY_BYTES)?;
            let mut body = Vec::new();
            reader.by_ref().take(length).read_to_end(&mut body).ok()?;
            return (u64::try_from(body.len()) == Ok(length)).then_some(body);
        }
        let field = line.split_once(':');
        if let Some((_, value)) =
            field.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            length = value.trim().parse::<u64>().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::body;
    use std::io::Cursor;

    #[test]
    fn requests_follow_one_another_and_nonsense_ends_them() {
        let text = "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\n[1]";
        let mut reader = Cursor::new(text);
        assert_eq!(body(&mut reader).as_deref(), Some(&b"[]"[..]));
        assert_eq!(body(&mut reader).as_deref(), Some(&b"[1]"[..]));
        assert_eq!(body(&mut reader), None);
        for bad in [
            "POST / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n[]",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n[]",
            &"a: b\r\n".repeat(100),
        ] {
            assert_eq!(body(&mut Cursor::new(bad)), None, "{bad}");
        }
    }
}
