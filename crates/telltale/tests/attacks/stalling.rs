//! Mallory begins and does not go on, or takes nothing of what he asked for. Each limit is waited
//! for until it comes.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use telltale_harness::{long, skip, wait_until};

use crate::attacks::actor::Actor;
use crate::attacks::asking::{self, GREETING, closed_after, connect, connect_locally};
use crate::attacks::fixture::{ADA, Fixture, TIMEOUT};

/// Before this, a limit of so many seconds has not come.
fn at_least(seconds: u64) -> Duration {
    Duration::from_secs(seconds) - Duration::from_millis(100)
}

#[test]
fn a_grpc_client_that_does_not_greet_is_hung_up_on() {
    let Some(fixture) = Fixture::set("a_grpc_client_that_does_not_greet") else { return };
    let mut silent = connect_locally(&fixture.stage.socket());
    let mut slow = connect_locally(&fixture.stage.socket());
    slow.write_all(&GREETING[..10]).unwrap();
    for stream in [&mut silent, &mut slow] {
        let took = closed_after(stream);
        assert!(took < at_least(60), "{took:?}");
    }
    fixture.still_serves();
}

#[test]
fn a_tls_handshake_that_stands_still_is_hung_up_on() {
    let test = "a_tls_handshake_that_stands_still";
    let Some(fixture) = Fixture::with(test, |stage, command| {
        let (certificate, key) = (stage.place.join("server.pem"), stage.place.join("server.key"));
        let made = std::process::Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .args(["-nodes", "-days", "2", "-subj", "/CN=localhost", "-out"])
            .arg(&certificate)
            .arg("-keyout")
            .arg(&key)
            .stderr(std::process::Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            return;
        }
        for path in [&certificate, &key] {
            std::os::unix::fs::chown(path, Some(crate::attacks::fixture::SERVICE), None).unwrap();
        }
        command.args(["--grpc", "unix:telemetry.sock", "--grpc", "127.0.0.1:0"]);
        command.env("TELLTALE_GRPC_CERTIFICATE", certificate).env("TELLTALE_GRPC_KEY", key);
    }) else {
        return;
    };
    let Some(address) = fixture.service.grpc else {
        return skip(&format!("attacks::{test}"), "there is no openssl to make a certificate");
    };
    let mut silent = connect(address);
    let mut slow = connect(address);
    // The beginning of a ClientHello, whose rest never comes.
    slow.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]).unwrap();
    for stream in [&mut silent, &mut slow] {
        let took = closed_after(stream);
        assert!(took < at_least(60), "{took:?}");
    }
    fixture.still_serves();
}

#[test]
fn a_watcher_that_takes_nothing_is_left_out_and_hung_up_on() {
    let test = "a_watcher_that_takes_nothing";
    if !long() {
        return skip(&format!("attacks::{test}"), "takes a minute; TELLTALE_LONG_TESTS=1 runs it");
    }
    let Some(fixture) = Fixture::set(test) else { return };
    let mut stream = connect_locally(&fixture.stage.socket());
    let path = b"/telltale.telemetry.v1.Telemetry/Watch";
    let mut headers = vec![0x83, 0x86, 0x44, u8::try_from(path.len()).unwrap()];
    headers.extend(path);
    headers.extend([0x41, 0x01, b'x', 0x40, 0x02, b't', b'e', 0x08]);
    headers.extend(b"trailers");
    headers.extend([0x5f, 0x10]);
    headers.extend(b"application/grpc");
    stream.write_all(GREETING).unwrap();
    stream.write_all(&asking::frame(0x1, 0x4, 1, &headers)).unwrap();
    stream.write_all(&asking::frame(0x0, 0x1, 1, &[0, 0, 0, 0, 0])).unwrap();
    // Nothing is read, so that the server's pings are not answered either.
    let begun = Instant::now();
    wait_until("it to be hung up on", Duration::from_secs(120), || {
        begun.elapsed() > at_least(50) && stream.write_all(&[0; 4096]).is_err()
    });
    fixture.still_serves();
}

#[test]
fn a_head_that_does_not_end_is_given_up() {
    let Some(fixture) = Fixture::with("a_head_that_does_not_end_is_given_up", |_, command| {
        command.env("TELLTALE_HTTP_HEAD_SECONDS", "2");
    }) else {
        return;
    };
    let address = fixture.service.http.unwrap();
    let mut silent = connect(address);
    let mut slow = connect(address);
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHost: localh").unwrap();
    // One that sends a little periodically gains no time.
    let mut dribbling = connect(address);
    let mut reading = dribbling.try_clone().unwrap();
    let dribble = std::thread::spawn(move || {
        let _ = dribbling.write_all(b"GET / HTTP/1.1\r\n");
        while dribbling.write_all(b"X: y\r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    // One that has been answered may be idle as long.
    let mut idle = connect(address);
    idle.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    for stream in [&mut silent, &mut slow, &mut reading, &mut idle] {
        let took = closed_after(stream);
        assert!(took < at_least(20), "{took:?}");
    }
    dribble.join().unwrap();
    fixture.metric_reaches("telltale_http_refused_connections_total", &[("reason", "slow")], 3.0);
    fixture.still_serves();
}

#[test]
fn a_body_is_not_waited_for() {
    let Some(fixture) = Fixture::set("a_body_is_not_waited_for") else { return };
    for lines in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
        let mut stream = connect(fixture.service.http.unwrap());
        let head = format!("POST /metrics HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n\r\nslow");
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let answer = asking::answer(&mut reader).unwrap();
        assert_eq!(answer.status, 413, "{lines}");
        let mut rest = Vec::new();
        // It is over, although the body never came.
        let _ = reader.read_to_end(&mut rest);
        assert_eq!(rest, b"");
    }
    fixture.metric_reaches("telltale_http_requests_total", &[("code", "413")], 2.0);
    fixture.still_serves();
}

#[test]
fn a_stream_whose_reader_takes_nothing_is_given_up() {
    let Some(fixture) = Fixture::with("a_stream_whose_reader_takes_nothing", |_, command| {
        command.env("TELLTALE_HTTP_STALL_SECONDS", "1");
    }) else {
        return;
    };
    // On the socket file Mallory sees all that his own process registered, which is much.
    let mut own = fixture.mallory(json!({ "role": "endpoint", "bytes": 0, "metrics": "poisoned" }));
    own.says();
    let mut readers = fixture.mallory(json!({
        "role": "crowd", "count": 10, "socket": fixture.stage.http_socket(),
        "bytes": "GET /api/v1/stream HTTP/1.1\r\nHost: x\r\n\r\n"
    }));
    assert_eq!(readers.says(), 10);
    fixture.metric_reaches("telltale_http_refused_connections_total", &[("reason", "slow")], 10.0);
    fixture.still_serves();
    // So is one that takes nothing of an answer on a connection that it reuses.
    let before = fixture.metric("telltale_http_refused_connections_total", &[("reason", "slow")]);
    let mut stream: TcpStream = connect(fixture.service.http.unwrap());
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000);
    let pushing = std::thread::spawn(move || while stream.write_all(&request).is_ok() {});
    let name = [("reason", "slow")];
    fixture.metric_reaches("telltale_http_refused_connections_total", &name, before + 1.0);
    pushing.join().unwrap();
    fixture.still_serves();
}

#[test]
fn half_a_legacy_message_is_waited_for_and_no_longer() {
    let Some(fixture) = Fixture::with("half_a_legacy_message_is_waited_for", |stage, command| {
        command.arg("--legacy-allocation-socket").arg(stage.run.join("legacy.sock"));
    }) else {
        return;
    };
    let socket = fixture.stage.run.join("legacy.sock");
    let mut crowd = fixture.mallory(json!({
        "role": "crowd", "count": 40, "socket": socket, "bytes": "\u{1}\u{0}\u{0}\u{0}"
    }));
    crowd.says();
    fixture.still_serves();
    fixture.metric_reaches("telltale_legacy_refused_total", &[("reason", "slow")], 1.0);
    fixture.still_serves();
}

#[test]
fn an_endpoint_gives_up_those_who_do_not_go_on() {
    let Some(fixture) = Fixture::set("an_endpoint_gives_up_those_who_do_not_go_on") else { return };
    let endpoint = fixture.stage.run.join(format!("metrics_{}.sock", fixture.ada.id()));
    // Mallory does not get that far, so it is another program of Ada's.
    let mut crowd = Actor::start(
        ADA,
        &fixture.part(json!({
            "role": "crowd", "count": 100, "socket": endpoint, "bytes": "\u{4}"
        })),
    );
    crowd.says();
    fixture.still_serves();
    fixture.metric_reaches("telltale_endpoint_errors_total", &[("reason", "deadline")], 32.0);
    fixture.still_serves();
}

#[test]
fn endpoints_that_are_silent_keep_nobody_waiting() {
    let Some(fixture) = Fixture::set("endpoints_that_are_silent_keep_nobody_waiting") else {
        return;
    };
    let mut silent = fixture.mallory(json!({ "role": "entries", "kind": "socket",
        "before": "metrics_", "after": ".sock", "from": 910_000, "count": 50 }));
    silent.says();
    fixture.still_serves();
    let begun = Instant::now();
    for _ in 0..10 {
        fixture.whole();
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "ten fresh looks took {took:?}");
    fixture.metric_reaches("telltale_source_notes_total", &[("source", "endpoints")], 50.0);
    assert!(TIMEOUT > took);
}
