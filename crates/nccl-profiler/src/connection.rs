//! A kept HTTP/1.1 connection to the agent, for one kind of request.
//!
//! Everything has a deadline and a limit; whatever the other end does costs one bounded error.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::address::Address;

/// How long a connection, a write and a read may take each; the original's limit for a post.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(1);
/// The longest head of an answer, and the longest body that is read away to keep the connection.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// A stream of either kind.
trait SocketStream: Read + Write + Send {}
impl<S: Read + Write + Send> SocketStream for S {}

/// Posts, and keeps the connection between posts.
pub(crate) struct Connection {
    address: Address,
    open: Option<Box<dyn SocketStream>>,
}

impl Connection {
    pub(crate) fn new(address: Address) -> Self {
        Self { address, open: None }
    }

    /// Posts a JSON text to `/log_ccl`; gives the answer's status.
    ///
    /// A kept connection may have been closed by the other end meanwhile, so a post that finds one
    /// closed is sent again on a new one.
    pub(crate) fn post(&mut self, json: &str) -> io::Result<u16> {
        if let Some(mut kept) = self.open.take() {
            match exchange(kept.as_mut(), json) {
                Ok(answer) => return Ok(self.keep(kept, answer)),
                Err(error) if was_closed(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let mut fresh = connect(&self.address)?;
        let answer = exchange(fresh.as_mut(), json)?;
        Ok(self.keep(fresh, answer))
    }

    fn keep(&mut self, stream: Box<dyn SocketStream>, answer: HttpAnswer) -> u16 {
        self.open = answer.keeps.then_some(stream);
        answer.status
    }
}

fn was_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

fn connect(address: &Address) -> io::Result<Box<dyn SocketStream>> {
    Ok(match address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            Box::new(stream)
        }
        Address::Loopback(address) => {
            let stream = TcpStream::connect_timeout(address, TIMEOUT)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
    })
}

/// What an answer says that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HttpAnswer {
    status: u16,
    /// Whether the connection can be used again.
    keeps: bool,
}

fn exchange(stream: &mut dyn SocketStream, json: &str) -> io::Result<HttpAnswer> {
    let head = format!(
        "POST /log_ccl HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        json.len()
    );
    stream.write_all(&[head.as_bytes(), json.as_bytes()].concat())?;
    read_answer(stream)
}

fn read_answer(stream: &mut dyn Read) -> io::Result<HttpAnswer> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "the answer is no HTTP/1.1");
    let mut got = Vec::new();
    let head_bytes = loop {
        if let Some(at) = got.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        read_more(stream, &mut got)?;
    };
    let head = std::str::from_utf8(&got[..head_bytes]).map_err(|_| malformed())?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
    let status = status.and_then(|rest| rest.get(..3)?.parse().ok()).ok_or_else(malformed)?;
    let field = |name: &str| {
        head.split("\r\n").skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    let closes = field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let body_bytes = field("content-length").map(str::parse::<usize>);
    // A body in pieces is not read away; the next post has a new connection then.
    let Some(Ok(body_bytes)) = body_bytes else {
        return Ok(HttpAnswer { status, keeps: status == 204 });
    };
    let all = head_bytes.saturating_add(body_bytes);
    while got.len() < all {
        read_more(stream, &mut got)?;
    }
    Ok(HttpAnswer { status, keeps: !closes && got.len() == all })
}

fn read_more(stream: &mut dyn Read, got: &mut Vec<u8>) -> io::Result<()> {
    if got.len() >= MAX_ANSWER_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is too long"));
    }
    let mut piece = [0; 1024];
    match stream.read(&mut piece)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        bytes => {
            got.extend_from_slice(&piece[..bytes]);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_within_limits() {
        let long = "x".repeat(MAX_ANSWER_BYTES + 1);
        let kept = |status| Some(HttpAnswer { status, keeps: true });
        let last = |status| Some(HttpAnswer { status, keeps: false });
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", kept(200)),
            ("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n", last(400)),
            ("HTTP/1.1 204 No Content\r\n\r\n", kept(204)),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", last(200)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nmore", last(200)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nless", None),
            ("HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nless", None),
            ("SSH-2.0-x\r\n\r\n", None),
            ("HTTP/1.1 2", None),
            (long.as_str(), None),
        ] {
            assert_eq!(read_answer(&mut text.as_bytes()).ok(), expected, "{text:.40}");
        }
    }
}
