//! One suite for the HTTP of all three servers, as they are installed: what a client may do wrong or
//! differently meets the same answer at the node service, the coordinator and the agent.
#![allow(clippy::unwrap_used)]

mod servers;

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use telltale_harness::rounds;

use servers::{Server, all};

/// How long an answer may take here: much longer than it does, because machines are busy.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A crowd of connections: more than most servers here let in, and what a machine's limit on open files
/// has room for; a tenth of it unless long tests are wanted.
const CROWD: [u32; 2] = [1000, 10_000];

impl Server {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", self.name, self.log()));
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// The head of a request for the metrics, without its end.
    fn head(&self, more: &str) -> String {
        format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n{more}", self.address)
    }

    /// The answer to these bytes, until the server closes.
    fn ask(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server may close before it has read everything.
        let _ = stream.write_all(bytes);
        Answer::read(stream)
    }

    /// The answer to a request for the metrics with these headers.
    fn metrics(&self, headers: &str) -> Answer {
        self.ask(self.head(&format!("Connection: close\r\n{headers}\r\n")).as_bytes())
    }
}

/// What came back.
struct Answer {
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            Ok(_) => {}
            // Closed before everything was read.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("no end of an answer: {error}"),
        }
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.map_or(bytes.len(), |end| end + 4);
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let body = bytes.split_off(end);
        let is_chunked = head.contains("transfer-encoding: chunked");
        Self { head, body: if is_chunked { joined(&body) } else { body } }
    }

    /// The status; 0 where the connection was closed without a word.
    fn status(&self) -> u16 {
        let status = self.head.split(' ').nth(1);
        status.map_or(0, |status| status.parse().unwrap_or_else(|_| panic!("{}", self.head)))
    }

    fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line.starts_with(header))
    }
}

/// The chunks of a body in one.
fn joined(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let length = std::str::from_utf8(&body[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            break;
        }
        whole.extend(&body[end + 2..end + 2 + length]);
        body = &body[end + 2 + length + 2..];
    }
    whole
}

#[test]
fn what_is_no_request_is_refused_and_what_is_one_is_answered() {
    for server in all() {
        let name = server.name;
        for (bytes, expected) in [
            (&b"\x00\xff\xfe nothing of the kind\r\n\r\n"[..], &[0, 400][..]),
            (b"GET /metrics\r\n\r\n", &[0, 400]),
            (b"GET /metrics HTTP/9.9\r\n\r\n", &[0, 400, 505]),
            (b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n", &[400, 421]),
            (
                b"GET /metrics HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n",
                &[421],
            ),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS where there is none", &[0, 400]),
        ] {
            let shown = String::from_utf8_lossy(bytes).into_owned();
            let status = server.ask(bytes).status();
            assert!(expected.contains(&status), "{name}: {shown:?}: {status}");
        }
        assert_eq!(server.metrics("").status(), 200, "{name}: others are answered as ever");
    }
}

#[test]
fn a_head_with_too_many_bytes_or_headers_is_refused() {
    for server in all() {
        let name = server.name;
        let long = format!("X-Long: {}\r\n", "x".repeat(64 << 10));
        let many: String = (0..100).map(|number| format!("X-{number}: 1\r\n")).collect();
        for headers in [long, many] {
            let status = server.metrics(&headers).status();
            assert!([0, 400, 431].contains(&status), "{name}: {status}");
        }
        assert_eq!(server.metrics("X-Fine: 1\r\n").status(), 200, "{name}");
    }
}

#[test]
fn a_client_that_sends_no_more_still_gets_its_answer() {
    for server in all() {
        let mut stream = server.connect();
        stream.write_all(server.head("\r\n").as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let answer = Answer::read(stream);
        assert_eq!(answer.status(), 200, "{}", server.name);
        assert!(!answer.body.is_empty(), "{}", server.name);
    }
}

#[test]
fn a_request_that_comes_byte_by_byte_is_one() {
    for server in all() {
        let mut stream = server.connect();
        stream.set_nodelay(true).unwrap();
        for byte in server.head("Connection: close\r\n\r\n").as_bytes() {
            stream.write_all(&[*byte]).unwrap();
        }
        assert_eq!(Answer::read(stream).status(), 200, "{}", server.name);
    }
}

#[test]
fn slow_clients_keep_no_other_waiting() {
    for server in all() {
        // Heads that do not end, and clients that ask and take nothing.
        let mut slow = Vec::new();
        for number in 0..40 {
            let mut stream = server.connect();
            let end = if number % 2 == 0 { "X-Slow: " } else { "\r\n" };
            stream.write_all(server.head(end).as_bytes()).unwrap();
            slow.push(stream);
        }
        let began = Instant::now();
        assert_eq!(server.metrics("").status(), 200, "{}", server.name);
        assert!(began.elapsed() < TIMEOUT, "{}", server.name);
    }
}

#[test]
fn the_format_is_the_one_that_is_asked_for() {
    for server in all() {
        let name = server.name;
        let open = "content-type: application/openmetrics-text";
        let text = "content-type: text/plain";
        for (accept, expected) in [
            ("application/openmetrics-text;version=1.0.0", open),
            ("text/plain;version=0.0.4", text),
            // What is wanted least is not what comes.
            ("application/openmetrics-text;q=0, text/plain;q=0.1", text),
            ("application/openmetrics-text;q=0.1, text/plain;q=0.9", text),
        ] {
            let answer = server.metrics(&format!("Accept: {accept}\r\n"));
            assert_eq!(answer.status(), 200, "{name}: {accept}");
            assert!(answer.has(expected), "{name}: {accept}: {}", answer.head);
        }
        assert_eq!(server.metrics("Accept: image/png\r\n").status(), 406, "{name}");
    }
}

#[test]
fn gzip_is_sent_to_those_who_take_it_and_to_no_other() {
    for server in all() {
        let name = server.name;
        let accept = "Accept: text/plain\r\n";
        let plain = server.metrics(accept);
        assert!(!plain.has("content-encoding"), "{name}: {}", plain.head);
        let refused = server.metrics(&format!("{accept}Accept-Encoding: gzip;q=0\r\n"));
        assert!(!refused.has("content-encoding"), "{name}: {}", refused.head);
        let packed = server.metrics(&format!("{accept}Accept-Encoding: gzip\r\n"));
        assert!(packed.has("content-encoding: gzip"), "{name}: {}", packed.head);
        assert!(packed.has("vary:"), "{name}: a cache has to tell them apart: {}", packed.head);
        let mut text = String::new();
        GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
        // Values move on meanwhile, and families come for some time after the start.
        let names = |text: &str| {
            let lines = text.lines().filter(|line| line.starts_with("# TYPE"));
            lines.map(str::to_owned).collect::<BTreeSet<_>>()
        };
        let plain = names(&String::from_utf8_lossy(&plain.body));
        assert!(!plain.is_empty() && names(&text).is_superset(&plain), "{name}: {text}");
    }
}

/// HTTP/2 from the first byte, at those who speak it: the preface, our settings, then these frames.
fn over_http2(server: &Server, frames: &[u8]) -> TcpStream {
    let mut stream = server.connect();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&settings).unwrap();
    stream.write_all(frames).unwrap();
    stream
}

/// Whether the server ends this connection while these frames are sent, over and over.
fn is_ended(mut stream: TcpStream, frames: &[u8]) -> bool {
    stream.set_nonblocking(true).unwrap();
    let began = Instant::now();
    let mut answer = [0; 16 << 10];
    while began.elapsed() < TIMEOUT {
        match stream.read(&mut answer) {
            Ok(0) => return true,
            Err(error) if error.kind() != ErrorKind::WouldBlock => return true,
            _ => {}
        }
        match stream.write(frames) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return true,
        }
    }
    false
}

#[test]
fn floods_of_frames_end_their_connection_alone() {
    let ping = [&[0, 0, 8, 6, 0, 0, 0, 0, 0][..], b"12345678"].concat();
    let settings = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    let unknown = vec![0, 0, 0, 0xbe, 0, 0, 0, 0, 0];
    for server in all().into_iter().map(Server::speaking_http2) {
        for (what, frame) in [("ping", &ping), ("settings", &settings), ("unknown", &unknown)] {
            let stream = over_http2(&server, &[]);
            assert!(is_ended(stream, &frame.repeat(50)), "{}: {what}", server.name);
        }
    }
}

#[test]
fn requests_that_are_reset_at_once_end_their_connection() {
    for server in all().into_iter().map(Server::speaking_http2) {
        let mut frames = Vec::new();
        for stream in (1..2001_u32).step_by(2) {
            let id = stream.to_be_bytes();
            // POST, http, / of HPACK's static table, with the end of head and stream; then CANCEL.
            frames.extend([0, 0, 3, 1, 5, id[0], id[1], id[2], id[3], 0x83, 0x86, 0x84]);
            frames.extend([0, 0, 4, 3, 0, id[0], id[1], id[2], id[3], 0, 0, 0, 8]);
        }
        let stream = over_http2(&server, &[]);
        let idle = [0, 0, 0, 4, 1, 0, 0, 0, 0];
        let mut stream = stream;
        let ended = stream.write_all(&frames).is_err() || is_ended(stream, &idle);
        assert!(ended, "{}", server.name);
    }
}

#[test]
fn a_crowd_of_idle_connections_leaves_the_server_within_its_limits() {
    let [quick, long] = CROWD;
    for server in all() {
        let name = server.name;
        let mut crowd = Vec::new();
        for _ in 0..rounds(quick, long) {
            match TcpStream::connect_timeout(&server.address, TIMEOUT) {
                Ok(stream) => crowd.push(stream),
                Err(error) => {
                    panic!("{name}: after {}: {error}\n{}", crowd.len(), server.log())
                }
            }
        }
        assert!(server.descriptors() <= server.most_connections + 100, "{name}: too many are open");
        drop(crowd);
        // Those who come after the crowd are answered.
        let began = Instant::now();
        let answered = || {
            let mut stream = TcpStream::connect(server.address).ok()?;
            stream.set_read_timeout(Some(TIMEOUT)).ok()?;
            stream.write_all(server.head("Connection: close\r\n\r\n").as_bytes()).ok()?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).ok()?;
            answer.starts_with(b"HTTP/1.1 200").then_some(())
        };
        while answered().is_none() {
            assert!(began.elapsed() < TIMEOUT, "{name} answers no request after the crowd");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
