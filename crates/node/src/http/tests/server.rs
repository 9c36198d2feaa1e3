//! A server in a thread of its own, and a client that sends whatever bytes a test wants.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use telltale_harness::Scratch;
use telltale_schema::snapshot::Snapshot;

use crate::access::AccessPolicy;
use crate::history::SharedReader;
use crate::http::{HttpOptions, HttpServeError, HttpService};
use crate::samples::tests::fixture;
use crate::service::{Publisher, View};
use telltale_server::listen::Listener;
use telltale_server::token::Token;

/// The token of all servers here.
pub(super) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) socket: PathBuf,
    pub(super) publisher: Option<Publisher>,
    pub(super) view: View,
    _scratch: Scratch,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), HttpServeError>>>,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Server {
    pub(super) fn new() -> Self {
        Self::with(HttpOptions::default(), fixture::everything())
    }

    pub(super) fn with(options: HttpOptions, snapshot: Arc<Snapshot>) -> Self {
        Self::with_history(options, snapshot, None)
    }

    pub(super) fn with_history(
        options: HttpOptions,
        snapshot: Arc<Snapshot>,
        history: Option<SharedReader>,
    ) -> Self {
        let scratch = Scratch::new();
        let token = scratch.join("token");
        std::fs::write(&token, TOKEN).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&token, mode).unwrap();
        // A user that no test runs as, so that only the token and root see everything.
        let policy = AccessPolicy::new(4_000_000, None).with_token(Token::read(&token).unwrap());
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, socket) = (tcp.local_addr().unwrap(), scratch.join("http.sock"));
        let unix = UnixListener::bind(&socket).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(&socket, mode).unwrap();
        tcp.set_nonblocking(true).unwrap();
        unix.set_nonblocking(true).unwrap();
        let listeners = vec![Listener::Tcp(tcp), Listener::Unix(unix)];
        let interval = Duration::from_secs(3600);
        let (publisher, view) = Publisher::new(interval, snapshot, fixture::own_metrics()).unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let served = view.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let stopped = async { stopped.await.unwrap_or(()) };
            runtime.unwrap().block_on(async {
                let policy = Arc::new(policy);
                let mut service = HttpService::new(listeners, options, policy.has_token())?;
                if let Some(history) = history {
                    service = service.with_history(history);
                }
                service.serve(served, policy, stopped).await.unwrap_or_else(|never| match never {});
                Ok(())
            })
        });
        let (stop, thread) = (Some(stop), Some(thread));
        let publisher = Some(publisher);
        Self { address, socket, publisher, view, _scratch: scratch, stop, thread }
    }

    /// A connection by TCP.
    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends these bytes by TCP and reads one answer.
    pub(super) fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        answer(&mut BufReader::new(stream), request.starts_with("HEAD"))
    }

    /// Asks for a path by TCP, with these lines in the head.
    pub(super) fn get(&self, path: &str, lines: &[&str]) -> Answer {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"))
    }

    /// The same with the token.
    pub(super) fn get_all(&self, path: &str) -> Answer {
        self.get(path, &[&format!("Authorization: Bearer {TOKEN}")])
    }

    /// Asks for a path by the Unix socket.
    pub(super) fn get_locally(&self, path: &str) -> Answer {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: any.example\r\n\r\n").unwrap();
        answer(&mut BufReader::new(stream), false)
    }

    /// Ends the server, and gives back what it ended with.
    pub(super) fn stop(mut self) -> Result<(), HttpServeError> {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}

/// Reads one answer.
pub(super) fn answer(stream: &mut impl BufRead, is_head: bool) -> Answer {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = stream.read_line(&mut head).unwrap();
        assert_ne!(read, 0, "the connection ended after {head:?}");
    }
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap();
    let length = header(&head, "content-length").and_then(|length| length.parse::<usize>().ok());
    let mut body = vec![0; if is_head { 0 } else { length.unwrap_or(0) }];
    stream.read_exact(&mut body).unwrap();
    Answer { status, head, body: String::from_utf8(body).unwrap() }
}

/// The value of a header in a head.
pub(super) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}
