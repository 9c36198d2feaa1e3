//! The agent's HTTP as its clients use it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread::JoinHandle;

use telltale_harness::{Scratch, skip, wait_until};
use telltale_server::listen::Address;

use super::*;
use crate::intake::{IntakeCounts, Scope};
use telltale_cluster::epoch::Epoch;

mod tls;

const SEND: &str = r#"{"opType":"send","remoteRank":1,"bytes":64,"context_rank":0,"context_size":4,"startTime":10,"endTime":40,"filename":"x.cc","finished":true}"#;
const TOKEN: &str = "0123456789abcdef";

/// An agent's HTTP on a loopback port and a socket, with an epoch that runs.
struct Served {
    place: Scratch,
    address: SocketAddr,
    intake: Intake,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new() -> Self {
        Self::at("127.0.0.1:0", true, None)
    }

    fn at(port: &str, has_token: bool, tls: Option<TlsFiles>) -> Self {
        let place = Scratch::new();
        let (tcp, _) = Listener::bind(&port.parse().unwrap(), None).unwrap();
        let Some(Address::Tcp(address)) = tcp.address() else { panic!("a port") };
        let path = Address::Unix(place.join("agent.sock"));
        let (unix, file) = Listener::bind(&path, None).unwrap();
        std::fs::write(place.join("token"), TOKEN).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(place.join("token"), private).unwrap();
        let token = has_token.then(|| Token::read(&place.join("token")).unwrap());
        let intake = Intake::new();
        intake.begin(Scope { epoch: Epoch::new(1), world_size: 4, ranks: 0..2 });
        let (stop, stopped) = watch::channel(false);
        let (wishes, mut wished) = mpsc::channel::<Wish>(MAX_WAITING_WISHES);
        let for_server = intake.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let options = ServerOptions { token, tls, ..ServerOptions::default() };
                let server =
                    IntakeServer::new(vec![tcp, unix], for_server, wishes, options).unwrap();
                tokio::spawn(async move {
                    while let Some(wish) = wished.recv().await {
                        let outcome = match wish.order {
                            NodeOrder::Remove => {
                                Err(Unmet::Refused(String::from("no such node is known")))
                            }
                            NodeOrder::Activate | NodeOrder::Restart => Ok(()),
                        };
                        let _ = wish.answer.send(outcome);
                    }
                });
                server.run(stopped).await;
                drop(file);
            });
        });
        Self { place, address, intake, stop, thread: Some(thread) }
    }

    fn counts(&self) -> IntakeCounts {
        self.intake.view().counts
    }

    /// The answer to these bytes on TCP, until the server closes.
    fn ask(&self, bytes: &[u8]) -> String {
        ask(TcpStream::connect(self.address).unwrap(), bytes)
    }

    fn ask_unix(&self, bytes: &[u8]) -> String {
        ask(UnixStream::connect(self.place.join("agent.sock")).unwrap(), bytes)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))));
    }
}

fn ask(mut stream: impl Read + Write, bytes: &[u8]) -> String {
    // A server that refuses early may close before it has read all.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn request(method_and_path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method_and_path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-length: {length}\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

fn status(answer: &str) -> u16 {
    let word = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    word.unwrap_or_else(|| panic!("no status in {answer:?}"))
}

#[test]
fn posts_are_taken_on_tcp_and_on_the_socket() {
    let served = Served::new();
    let answer = served.ask(&request("POST /log_ccl", "", SEND));
    assert!(answer.ends_with(r#"{"message":"Processed"}"#), "{answer}");
    let array = format!("[{SEND},{SEND},{{}}]");
    let answer = served.ask_unix(&request("POST /log_ccl", "", &array));
    assert_eq!(status(&answer), 200, "{answer}");
    assert!(answer.contains(r#""refused":1"#) && answer.contains("opType is missing"), "{answer}");
    wait_until("entries are counted", Duration::from_secs(10), || {
        served.counts().tracker.taken == 3
    });
    for (bad, reason) in
        [("nonsense", "the body is not one object"), ("{}", "opType"), ("", "empty")]
    {
        let answer = served.ask(&request("POST /log_ccl", "", bad));
        assert_eq!(status(&answer), 400, "{answer}");
        assert!(answer.contains(reason), "{answer}");
    }
    assert_eq!((served.counts().malformed_posts, served.counts().refused), (2, 2));
}

#[test]
fn a_connection_is_kept_and_chunks_are_joined() {
    let served = Served::new();
    let one = format!(
        "POST /log_ccl HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{SEND}",
        SEND.len()
    );
    let (first, second) = SEND.split_at(40);
    let chunked = format!(
        "POST /log_ccl HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\
         connection: close\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    let answer = served.ask(format!("{one}{one}{chunked}").as_bytes());
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 3, "{answer}");
    wait_until("entries are counted", Duration::from_secs(10), || {
        served.counts().tracker.taken == 3
    });
}

#[test]
fn what_is_too_large_or_cut_is_refused() {
    let served = Served::new();
    let huge = " ".repeat(MAX_BODY_BYTES + 1);
    assert_eq!(status(&served.ask(&request("POST /log_ccl", "", &huge))), 413);
    let mut chunked =
        b"POST /log_ccl HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let megabyte = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    (0..6).for_each(|_| chunked.extend(&megabyte));
    assert_eq!(status(&served.ask(&chunked)), 413);
    let head =
        format!("POST /log_ccl HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(1 << 15));
    assert_eq!(status(&served.ask(head.as_bytes())), 431);
    assert_eq!(served.counts().received, 0);
    assert_eq!(status(&served.ask(&request("POST /log_ccl", "", SEND))), 200);
}

#[test]
fn web_pages_and_other_names_are_kept_out() {
    let served = Served::new();
    let origin = "origin: https://evil.example\r\n";
    assert_eq!(status(&served.ask(&request("POST /log_ccl", origin, SEND))), 403);
    let renamed = b"GET /metrics HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert_eq!(status(&served.ask(renamed)), 421);
    let nameless = b"GET /metrics HTTP/1.1\r\nconnection: close\r\n\r\n";
    assert_eq!(status(&served.ask(nameless)), 400);
    assert_eq!(status(&served.ask(&request("GET /nowhere", "", ""))), 404);
    assert_eq!(status(&served.ask(&request("GET /log_ccl", "", ""))), 405);
    assert_eq!(served.counts(), IntakeCounts::default());
}

#[test]
fn orders_need_the_token_or_the_own_user() {
    let served = Served::new();
    let wrong = "authorization: Bearer 0123456789abcdeF\r\n";
    for headers in ["", wrong, "authorization: Basic 0123456789abcdef\r\n"] {
        assert_eq!(status(&served.ask(&request("POST /restart", headers, ""))), 401, "{headers}");
    }
    let right = format!("authorization: Bearer {TOKEN}\r\n");
    let body =
        r#"{"new_rank":1,"world_size":2,"active_nodes":[{"node_id":"a","rank":0,"url":"b"}]}"#;
    assert_eq!(status(&served.ask(&request("POST /restart", &right, body))), 200);
    assert_eq!(status(&served.ask_unix(&request("POST /activate", "", ""))), 200);
    let answer = served.ask_unix(&request("POST /remove", "", ""));
    assert_eq!(status(&answer), 409, "{answer}");
    assert!(answer.contains("no such node is known"), "{answer}");
}

#[test]
fn values_are_those_of_the_original() {
    let served = Served::new();
    let lines: String = (0..40).map(|_| format!("{SEND}\n")).collect();
    assert_eq!(status(&served.ask(&request("POST /log_ccl", "", &lines))), 200);
    served.intake.sample_host();
    assert!(served.intake.observe(Epoch::new(1), &[]).is_some());
    let answer = served.ask(&request("GET /metrics", "", ""));
    let expected = r#"{"state":"active","rank":0,"world_size":4,"epoch":1,"ram_usage":"#;
    assert!(answer.contains(expected), "{answer}");
    assert!(answer.ends_with(r#""latencies":{"1":0.03}}"#), "{answer}");
    for (accept, kind, expected) in [
        ("text/plain;version=0.0.4", "text/plain; version=0.0.4", "outcome=\"taken\"} 40\n"),
        ("application/openmetrics-text;q=0.6,text/plain;q=0.3,*/*;q=0.2", "openmetrics", "# EOF\n"),
        ("application/json, text/plain", "application/json", "\"state\":\"active\""),
    ] {
        let answer = served.ask(&request("GET /metrics", &format!("accept: {accept}\r\n"), ""));
        assert!(answer.contains(kind) && answer.contains(expected), "{accept}: {answer}");
    }
    served.intake.end();
    let answer = served.ask(&request("GET /metrics", "", ""));
    assert!(answer.contains(r#"{"state":"standby","ram_usage":"#), "{answer}");
    assert!(answer.ends_with(r#","latencies":{}}"#), "{answer}");
}

#[test]
fn a_port_for_other_machines_needs_a_token() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let serve = || {
        let (listener, _) = Listener::bind(&"0.0.0.0:0".parse().unwrap(), None).unwrap();
        let (wishes, _wished) = mpsc::channel(1);
        IntakeServer::new(vec![listener], Intake::new(), wishes, ServerOptions::default()).map(drop)
    };
    let refused = serve().unwrap_err().to_string();
    assert!(refused.contains("there is neither a token nor"), "{refused}");
}

/// What curl answers when it speaks HTTP in this way.
fn curl(served: &Served, way: &str, times: usize) -> Option<String> {
    let version = Command::new("curl").arg("--version").output().ok()?;
    if !String::from_utf8_lossy(&version.stdout).contains("HTTP2") {
        return None;
    }
    let url = format!("http://{}/log_ccl", served.address);
    let mut command = Command::new("curl");
    command.args(["-sS", "--max-time", "20", "-w", "%{http_version} %{http_code}\n", way]);
    command.args(["-H", "content-type: application/json", "-d", SEND]);
    (0..times).for_each(|_| {
        command.arg(&url);
    });
    let output = command.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn http2_is_spoken_from_the_first_byte_and_an_upgrade_is_passed_over() {
    let served = Served::new();
    // An upgrade may be passed over (RFC 9110, 7.8), and HTTP/2 knows none any more (RFC 9113, 3.1).
    // Debian 12's curl cannot use a connection again that spoke HTTP/2 from its first byte.
    let ways = [
        ("--http2", "1.1 200", 3),
        ("--http2-prior-knowledge", "2 200", 1),
        ("--http1.1", "1.1 200", 3),
    ];
    for (way, expected, times) in ways {
        let Some(answer) = curl(&served, way, times) else {
            return skip("cluster::intake::server::http2", "curl with HTTP2 is not installed");
        };
        assert_eq!(answer.matches(expected).count(), times, "{way}: {answer}");
        assert_eq!(answer.matches("Processed").count(), times, "{way}: {answer}");
    }
    let all = || served.counts().tracker.taken == 7;
    wait_until("entries are counted", Duration::from_secs(10), all);
}
