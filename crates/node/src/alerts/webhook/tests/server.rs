//! A server that answers as a test says, request by request, then refuses connections.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rcgen::{CertifiedKey, KeyPair};
use serde_json::Value;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// How a request is answered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reply {
    Status(u16),
    /// To a forbidden place.
    Redirect,
    /// Bytes that are no HTTP.
    Garbage,
    /// The end of the connection.
    HangUp,
    /// Nothing, until the other end has had enough.
    Silence,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    requests: Receiver<(String, Value)>,
    scheme: &'static str,
}

impl Server {
    pub(super) fn start(replies: Vec<Reply>) -> Self {
        Self::with(replies, "http", None)
    }

    pub(super) fn start_tls(replies: Vec<Reply>, certified: &CertifiedKey<KeyPair>) -> Self {
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        Self::with(replies, "https", Some(Arc::new(config)))
    }

    fn with(replies: Vec<Reply>, scheme: &'static str, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        // It ends with the last reply, or with the test. A connection without a request gets none.
        std::thread::spawn(move || {
            let mut replies = replies.into_iter().peekable();
            while let Some(&reply) = replies.peek() {
                let Ok((socket, _)) = listener.accept() else { return };
                socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let asked = match &tls {
                    None => answer(socket, reply, &sender),
                    Some(config) => {
                        let connection = ServerConnection::new(Arc::clone(config)).unwrap();
                        answer(StreamOwned::new(connection, socket), reply, &sender)
                    }
                };
                if asked.is_some() {
                    replies.next();
                }
            }
        });
        Self { address, requests, scheme }
    }

    pub(super) fn url(&self) -> String {
        let Self { scheme, address, .. } = self;
        match *scheme {
            "https" => format!("https://localhost:{}/hook", address.port()),
            _ => format!("{scheme}://{address}/hook?a=b"),
        }
    }

    /// Whether there was no other request.
    pub(super) fn is_done(&self) -> bool {
        self.requests.try_recv().is_err()
    }

    /// The next request: its head and its body.
    #[track_caller]
    pub(super) fn request(&self) -> (String, Value) {
        self.requests.recv_timeout(Duration::from_secs(20)).expect("a request")
    }
}

/// Reads a request and answers it; none when the other end does not send one.
fn answer(
    mut stream: impl Read + Write,
    reply: Reply,
    requests: &Sender<(String, Value)>,
) -> Option<()> {
    let mut reader = BufReader::new(&mut stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    requests.send((head, serde_json::from_slice(&body).unwrap())).ok()?;
    let text = match reply {
        Reply::Status(code) => format!("HTTP/1.1 {code} X\r\nContent-Length: 0\r\n\r\n"),
        Reply::Redirect => String::from(
            "HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        ),
        Reply::Garbage => String::from("\x00\x01 this is not HTTP\r\n\r\n"),
        Reply::HangUp => String::new(),
        Reply::Silence => {
            // Until the other end closes.
            let _ = stream.read(&mut [0]);
            return Some(());
        }
    };
    // The other end may have had enough.
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    Some(())
}
