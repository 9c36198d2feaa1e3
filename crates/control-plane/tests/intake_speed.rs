//! How much `/log_ccl` takes in a second, over real sockets with real clients on the same machine.
//!
//! Times are printed, not judged, unless they are asked for (`TELLTALE_LONG_TESTS=1`, in a release
//! build); what is judged always is that nothing is lost.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use telltale_cluster::epoch::Epoch;
use telltale_control_plane::intake::server::{IntakeServer, MAX_WAITING_WISHES, ServerOptions};
use telltale_control_plane::intake::{Intake, Scope};
use telltale_harness::{long, wait_until};
use telltale_server::listen::{Address, Listener};
use tokio::sync::{mpsc, watch};

const CONNECTIONS: usize = 4;
const BATCH: usize = 1000;
const LEAST_POSTS_PER_SECOND: f64 = 20_000.0;
const LEAST_EVENTS_PER_SECOND: f64 = 500_000.0;

/// A server in a thread of its own, which tells at the end what processor time it took.
struct Served {
    intake: Intake,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: JoinHandle<Duration>,
}

impl Served {
    fn new() -> Self {
        let (listener, _) = Listener::bind(&"127.0.0.1:0".parse().unwrap(), None).unwrap();
        let Some(Address::Tcp(address)) = listener.address() else { panic!("a port") };
        let intake = Intake::new();
        intake.begin(Scope { epoch: Epoch::new(1), world_size: 64, ranks: 0..8 });
        let (stop, stopped) = watch::channel(false);
        let for_server = intake.clone();
        let thread = spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let (wishes, _wished) = mpsc::channel(MAX_WAITING_WISHES);
                let options = ServerOptions::default();
                let server =
                    IntakeServer::new(vec![listener], for_server, wishes, options).unwrap();
                server.run(stopped).await;
            });
            let used = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).unwrap())
        });
        Self { intake, address, stop, thread }
    }

    /// Posts `posts` bodies of `entries` entries each over each connection, and gives how long it took
    /// and the server's processor time.
    fn take(self, posts: usize, entries: usize) -> (Duration, Duration) {
        let begin = Instant::now();
        let clients: Vec<JoinHandle<()>> = (0..CONNECTIONS)
            .map(|client| {
                let (address, request) = (self.address, request(client, entries));
                spawn(move || post(address, &request, posts))
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        let all = u64::try_from(CONNECTIONS * posts * entries).unwrap();
        let counted = || self.intake.view().counts.tracker.taken == all;
        wait_until("all entries are counted", Duration::from_secs(60), counted);
        let took = begin.elapsed();
        assert_eq!(self.intake.view().counts.queue_full, 0);
        self.stop.send_replace(true);
        (took, self.thread.join().unwrap())
    }
}

/// A post of entries as the original writes them: transfers of eight ranks to all others, and now and
/// then a collective.
fn request(client: usize, entries: usize) -> Vec<u8> {
    let entry = |index: usize| {
        let (rank, peer) = ((client + index) % 8, (index * 7 + 9) % 64);
        let place = format!(
            r#""context_rank":{rank},"context_size":64,"startTime":1702339200{index:06},"endTime":1702339201{index:06},"filename":"gloo/transport/tcp/buffer.cc","finished":true"#
        );
        if index % 10 == 9 {
            format!(
                r#"{{"opType":"allreduce","algorithm":"ring","dataType":"float32","count":65536,"rootRank":-1,{place}}}"#
            )
        } else {
            format!(r#"{{"opType":"send","remoteRank":{peer},"bytes":262144,{place}}}"#)
        }
    };
    let body: Vec<String> = (0..entries).map(entry).collect();
    let body = body.join("\n");
    let head = format!(
        "POST /log_ccl HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head, body].concat().into_bytes()
}

/// Posts one after the other on one connection, each when the last one is answered.
fn post(address: SocketAddr, request: &[u8], posts: usize) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut answer = [0; 1024];
    for _ in 0..posts {
        stream.write_all(request).unwrap();
        let mut length = 0;
        // The answer is known and short: it ends with its body.
        while !answer[..length].ends_with(br#"{"message":"Processed"}"#) {
            let read = stream.read(&mut answer[length..]).unwrap();
            length += read;
            let text = String::from_utf8_lossy(&answer[..length]);
            assert!(read > 0 && text.starts_with("HTTP/1.1 200"), "{text}");
        }
    }
}

fn rate(count: usize, took: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap()) / took.as_secs_f64()
}

fn is_judged() -> bool {
    long() && !cfg!(debug_assertions)
}

#[test]
fn single_posts_on_kept_connections() {
    let posts = if cfg!(debug_assertions) { 250 } else { 50_000 };
    let (took, used) = Served::new().take(posts, 1);
    let all = CONNECTIONS * posts;
    let each_us = used.as_secs_f64() * 1e6 / f64::from(u32::try_from(all).unwrap());
    println!("single posts: {:.0} a second, {each_us:.1} us of the server each", rate(all, took));
    assert!(!is_judged() || rate(all, took) >= LEAST_POSTS_PER_SECOND);
}

#[test]
fn events_in_batches() {
    let posts = if cfg!(debug_assertions) { 5 } else { 1000 };
    let bytes = request(0, BATCH).len() / BATCH;
    let (took, used) = Served::new().take(posts, BATCH);
    let all = CONNECTIONS * posts * BATCH;
    let each_ns = used.as_secs_f64() * 1e9 / f64::from(u32::try_from(all).unwrap());
    println!(
        "batches of {BATCH}: {:.0} events of {bytes} bytes a second, {each_ns:.0} ns of the server each",
        rate(all, took)
    );
    assert!(!is_judged() || rate(all, took) >= LEAST_EVENTS_PER_SECOND);
}
