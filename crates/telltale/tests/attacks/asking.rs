//! Questions to the service, byte by byte where a test wants that.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use telltale_schema::snapshot::Snapshot;

use crate::attacks::fixture::TIMEOUT;

/// The preface and an empty SETTINGS frame, with which an HTTP/2 client begins.
pub(crate) const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// An answer of HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Runs a future on a runtime of its own, with an end to waiting.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let waited = runtime.block_on(async { tokio::time::timeout(TIMEOUT, future).await });
    waited.expect("what must come takes too long")
}

/// What this process's user is shown by gRPC.
pub(crate) fn snapshot(socket: &Path) -> Result<Snapshot, String> {
    wait(async {
        let client = telltale_client::connect(socket).await;
        let mut client = client.map_err(|error| error.to_string())?;
        client.snapshot(true).await.map_err(|error| error.to_string())
    })
}

/// A connection by TCP that does not wait for ever.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// A connection by a socket file that does not wait for ever.
pub(crate) fn connect_locally(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// Asks for a path by TCP, with these lines in the head.
pub(crate) fn get(address: SocketAddr, path: &str, lines: &[&str]) -> Answer {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"))
}

/// Sends these bytes by TCP and reads one answer.
pub(crate) fn send(address: SocketAddr, request: &str) -> Answer {
    said(connect(address), request)
}

/// Asks for a path at a socket file.
pub(crate) fn get_locally(socket: &Path, path: &str) -> Answer {
    said(connect_locally(socket), &format!("GET {path} HTTP/1.1\r\nHost: any.example\r\n\r\n"))
}

fn said(mut stream: impl Read + Write, request: &str) -> Answer {
    // One that refuses may have closed before all was sent.
    let _ = stream.write_all(request.as_bytes());
    answer(&mut BufReader::new(stream)).expect("an answer")
}

/// Reads one answer; none where the connection ends instead.
pub(crate) fn answer(stream: &mut impl BufRead) -> Option<Answer> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some(Answer { status, head, body: String::from_utf8(body).unwrap() })
}

/// How long the other end keeps this connection, on which nothing is sent any more.
pub(crate) fn closed_after(stream: &mut impl Read) -> Duration {
    let begun = Instant::now();
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return begun.elapsed(),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                return begun.elapsed();
            }
            Err(error) => panic!("still open after {:?}: {error}", begun.elapsed()),
        }
    }
}

/// A frame of HTTP/2.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}
