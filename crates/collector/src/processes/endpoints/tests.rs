//! Peers of all kinds, each a thread that plays one part on its socket.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use telltale_harness::Scratch;
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::RecordingFaults;
use telltale_wire::{Query, QueryKind, Reply, Report, frame};

use super::{AskLimits, EndpointError, EndpointLocation, PeerAnswer, ask};

const PATIENT: AskLimits =
    AskLimits { peer: Duration::from_secs(20), all: Duration::from_secs(20) };
const QUICK: AskLimits =
    AskLimits { peer: Duration::from_millis(80), all: Duration::from_secs(20) };

fn report() -> Report {
    Report {
        identity: ProcessIdentity {
            boot_id: [1; 16],
            pid_namespace: 2,
            pid: std::process::id(),
            start_time_ticks: 3,
        },
        name: "peer".to_owned(),
        runtime: String::new(),
        started_at: None,
        uptime_ns: Some(4),
        devices: Vec::new(),
        faults: RecordingFaults::default(),
        programs: None,
        kernel_cache: None,
        metrics: Vec::new(),
        metrics_omitted: 0,
        ledger_follows: true,
    }
}

fn answer() -> Vec<u8> {
    frame(&Reply::Report(Box::new(report())).encode().unwrap()).unwrap()
}

/// Reads the question, as every peer here does first.
fn question(peer: &mut UnixStream) {
    let mut length = [0; 4];
    peer.read_exact(&mut length).unwrap();
    let mut body = vec![0; u32::from_le_bytes(length) as usize];
    peer.read_exact(&mut body).unwrap();
    assert_eq!(Query::decode(&body).unwrap().kind, QueryKind::All);
}

/// Listens at `name` and plays `part` with the first that connects.
fn peer(directory: &Path, name: &str, part: impl FnOnce(&mut UnixStream) + Send + 'static) {
    let listener = UnixListener::bind(directory.join(name)).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        part(&mut stream);
    });
}

fn ask_one(
    part: impl FnOnce(&mut UnixStream) + Send + 'static,
    limits: AskLimits,
) -> Result<PeerAnswer, EndpointError> {
    let scratch = Scratch::new();
    peer(scratch.path(), "peer", part);
    ask_named(&scratch, &["peer"], limits).remove(0)
}

fn ask_named(
    scratch: &Scratch,
    names: &[&str],
    limits: AskLimits,
) -> Vec<Result<PeerAnswer, EndpointError>> {
    let directory = RuntimeDirectory::open(scratch.path(), Purpose::Reading).unwrap();
    let query = Query::of(QueryKind::All);
    let places = names.iter().map(|name| EndpointLocation { directory: &directory, name, query });
    ask(&places.collect::<Vec<_>>(), limits)
}

/// Waits until the other side has gone.
fn until_hung_up(stream: &mut UnixStream) {
    let _ = stream.read(&mut [0; 1]);
}

#[test]
fn an_answer_comes_with_its_sender_and_its_ledger() {
    let answer = ask_one(
        |stream| {
            question(stream);
            let bytes = answer();
            let null = std::fs::File::open("/dev/null").unwrap();
            let descriptors = [null.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
            let parts = [IoSlice::new(&bytes)];
            sendmsg(&*stream, &parts, &mut control, SendFlags::empty()).unwrap();
        },
        PATIENT,
    )
    .unwrap();
    assert_eq!(answer.peer.pid, Some(std::process::id()));
    assert_eq!(answer.peer.uid, rustix::process::geteuid().as_raw());
    assert_eq!(*answer.report, report());
    assert!(answer.ledger.is_some());
}

#[test]
fn an_answer_in_pieces_is_put_together() {
    let answer = ask_one(
        |stream| {
            question(stream);
            for byte in answer() {
                stream.write_all(&[byte]).unwrap();
            }
        },
        PATIENT,
    );
    assert_eq!(*answer.unwrap().report, report());
}

#[test]
fn a_peer_that_dribbles_costs_its_time_and_no_more() {
    let started = Instant::now();
    let result = ask_one(
        |stream| {
            question(stream);
            // A byte, and then nothing before the other side gives up.
            let _ = stream.write_all(&answer()[..1]);
            until_hung_up(stream);
        },
        QUICK,
    );
    assert!(matches!(result, Err(EndpointError::TimedOut)), "{result:?}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn wrong_lengths_and_wrong_bytes_are_refused_at_once() {
    let refused = |bytes: Vec<u8>| {
        ask_one(
            move |stream| {
                question(stream);
                let _ = stream.write_all(&bytes);
                until_hung_up(stream);
            },
            PATIENT,
        )
    };
    let result = refused(u32::MAX.to_le_bytes().to_vec());
    assert!(matches!(result, Err(EndpointError::Frame(_))), "{result:?}");
    let result = refused(frame(b"\xff\xff\xff\xff").unwrap());
    assert!(matches!(result, Err(EndpointError::Reply(_))), "{result:?}");
    let result = refused(frame(b"").unwrap());
    assert!(matches!(result, Err(EndpointError::Reply(_))), "{result:?}");
}

#[test]
fn an_endless_talker_is_cut_off() {
    let result = ask_one(
        |stream| {
            question(stream);
            let megabyte = (1u32 << 20).to_le_bytes();
            let _ = stream.write_all(&megabyte);
            // Writes until the other side hangs up.
            while stream.write_all(&[0x55; 4096]).is_ok() {}
        },
        PATIENT,
    );
    assert!(matches!(result, Err(EndpointError::Reply(_))), "{result:?}");
}

#[test]
fn a_peer_that_hangs_up_early_is_one_error() {
    let result = ask_one(|_| {}, PATIENT);
    assert!(matches!(result, Err(EndpointError::HungUp)), "{result:?}");
    let result = ask_one(
        |stream| {
            question(stream);
            let _ = stream.write_all(&answer()[..20]);
        },
        PATIENT,
    );
    assert!(matches!(result, Err(EndpointError::HungUp)), "{result:?}");
}

#[test]
fn bad_peers_do_not_cost_the_good_ones_their_answer() {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("file"), "no socket").unwrap();
    drop(UnixListener::bind(scratch.join("dead")).unwrap());
    peer(scratch.path(), "silent", |stream| {
        question(stream);
        until_hung_up(stream);
    });
    let mut names: Vec<String> = ["file", "dead", "none", "silent"].map(str::to_owned).to_vec();
    for number in 0..200 {
        names.push(format!("good{number}"));
        peer(scratch.path(), &names[names.len() - 1], |stream| {
            question(stream);
            let _ = stream.write_all(&answer());
        });
    }
    let limits = AskLimits { peer: Duration::from_secs(3), ..PATIENT };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let answers = ask_named(&scratch, &names, limits);
    assert!(matches!(answers[0], Err(EndpointError::NotASocket)), "{:?}", answers[0]);
    assert!(matches!(answers[1], Err(EndpointError::NoListener)), "{:?}", answers[1]);
    assert!(matches!(answers[2], Err(EndpointError::Open(_))), "{:?}", answers[2]);
    assert!(matches!(answers[3], Err(EndpointError::TimedOut)), "{:?}", answers[3]);
    assert_eq!(answers[4..].iter().filter(|answer| answer.is_ok()).count(), 200);
}
