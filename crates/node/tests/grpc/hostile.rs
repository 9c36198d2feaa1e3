//! Clients that mean harm: too many of them, garbage, floods, and silence.

use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use telltale_harness::{needs_root, wait_until};
use telltale_node::grpc::GrpcOptions;

use crate::grpc::machine::{ALICE, machine};
use crate::grpc::serving::{Served, TIMEOUT, wait};

/// The preface and an empty SETTINGS frame, with which a client begins.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn connected(served: &Served) -> UnixStream {
    let stream = UnixStream::connect(served.socket()).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
    stream
}

/// Whether the server closes this connection.
fn is_closed(stream: &mut UnixStream) -> bool {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

fn answers(served: &Served) -> bool {
    wait(async {
        match telltale_client::connect(&served.socket()).await {
            Ok(mut client) => client.snapshot(false).await.is_ok(),
            Err(_) => false,
        }
    })
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

#[test]
fn a_thousand_connections_too_many_are_closed_and_the_others_work() {
    let options =
        GrpcOptions { connections: NonZeroUsize::new(40).unwrap(), ..GrpcOptions::default() };
    let served = Served::with(machine(1, 1), &options, |policy| policy);
    let mut kept = Vec::new();
    for _ in 0..40 {
        let mut stream = connected(&served);
        stream.write_all(GREETING).unwrap();
        // Its own greeting says that it has let us in.
        stream.read_exact(&mut [0; 9]).unwrap();
        kept.push(stream);
    }
    for _ in 0..1000 {
        assert!(is_closed(&mut connected(&served)));
    }
    assert!(served.refused("grpc_connections") >= 1000);
    drop(kept);
    wait_until("there to be room", TIMEOUT, || answers(&served));
}

#[test]
fn one_user_cannot_take_all_connections() {
    if !needs_root("node::one_user_cannot_take_all_connections") {
        return;
    }
    let served = Served::installed(machine(1, 1));
    let script = format!(
        "import socket, sys\n\
         def one():\n\
         \ts = socket.socket(socket.AF_UNIX)\n\
         \ts.connect({:?})\n\
         \treturn s\n\
         all = [one() for _ in range(300)]\n\
         print('connected', flush=True)\n\
         sys.stdin.read()",
        served.socket().display().to_string()
    );
    let mut command = Command::new("python3");
    command.arg("-c").arg(script);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut command = telltale_harness::as_user(ALICE, ALICE, command);
    let mut hog = telltale_harness::ChildGuard::spawn(&mut command);
    let mut said = [0; 10];
    hog.child().stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    wait_until("most to be refused", TIMEOUT, || served.refused("grpc_connections") == 284);
    assert!(answers(&served), "the others still get in");
}

#[test]
fn calls_whose_answers_nobody_takes_are_limited() {
    let served = Served::of(machine(1, 1));
    wait(async {
        let mut watched = Vec::new();
        let mut refused = None;
        'all: for _ in 0..8 {
            let mut client = served.client().await;
            for _ in 0..100 {
                match client.watch(Duration::ZERO).await {
                    Ok(updates) => watched.push((client.clone(), updates)),
                    Err(error) => {
                        refused = Some(error.to_string());
                        break 'all;
                    }
                }
            }
        }
        assert_eq!(watched.len(), 512);
        assert!(refused.is_some_and(|text| text.contains("too many calls")));
        watched.clear();
    });
    assert!(served.refused("grpc_calls") >= 1);
    wait_until("the calls to be given up", TIMEOUT, || answers(&served));
}

#[test]
fn garbage_ends_the_connection_it_came_on() {
    let served = Served::of(machine(1, 1));
    let long = vec![b'A'; 1 << 16];
    let cases: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        &long,
        &[GREETING, &frame(0x1, 0x4, 1, b"\xff\xff\xff\xff")].concat(),
        &[GREETING, &frame(0x0, 0x0, 7, b"data of no stream")].concat(),
    ];
    for bytes in cases {
        let mut stream = connected(&served);
        // The server may close before all is written.
        let _ = stream.write_all(bytes);
        assert!(is_closed(&mut stream), "{bytes:?}");
    }
    assert!(answers(&served));
}

#[test]
fn floods_end_the_connection_they_came_on() {
    let served = Served::of(machine(1, 1));
    // HPACK: POST, http, a path of one byte; then the stream is reset at once.
    let request = [0x83, 0x86, 0x44, 0x01, b'/', 0x41, 0x01, b'x'];
    let rapid_resets = |number: u32| {
        let stream = number * 2 + 1;
        [frame(0x1, 0x5, stream, &request), frame(0x3, 0, stream, &[0, 0, 0, 8])].concat()
    };
    // A header block that never ends.
    let continuation = |number: u32| {
        let kind = if number == 0 { 0x1 } else { 0x9 };
        frame(kind, 0, 1, &[0x00; 1024])
    };
    let floods: [&dyn Fn(u32) -> Vec<u8>; 2] = [&rapid_resets, &continuation];
    for flood in floods {
        let mut stream = connected(&served);
        stream.write_all(GREETING).unwrap();
        let broken = (0..200_000).any(|number| stream.write_all(&flood(number)).is_err());
        assert!(broken || is_closed(&mut stream), "it may go on for ever");
        assert!(answers(&served));
    }
}

#[test]
fn a_client_that_never_reads_takes_little_memory() {
    let served = Served::of(machine(8, 100));
    let path = b"/telltale.telemetry.v1.Telemetry/GetSnapshot";
    let mut headers = vec![0x83, 0x86, 0x44, u8::try_from(path.len()).unwrap()];
    headers.extend(path);
    headers.extend([0x41, 0x01, b'x', 0x40, 0x02, b't', b'e', 0x08]);
    headers.extend(b"trailers");
    headers.extend([0x5f, 0x10]);
    headers.extend(b"application/grpc");
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
        pages * rustix::param::page_size()
    };
    let before = resident();
    let mut stream = connected(&served);
    stream.write_all(GREETING).unwrap();
    for number in 0..128 {
        let id = number * 2 + 1;
        stream.write_all(&frame(0x1, 0x4, id, &headers)).unwrap();
        stream.write_all(&frame(0x0, 0x1, id, &[0, 0, 0, 0, 0])).unwrap();
    }
    assert!(answers(&served));
    let grown = resident().saturating_sub(before);
    assert!(grown < 128 << 20, "{grown} bytes for one connection");
}
