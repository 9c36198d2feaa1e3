//! Mallory asks for more than anybody needs to.

use std::io::{BufReader, Write};

use serde_json::json;
use telltale_schema::clock::Timestamp;
use telltale_schema::history::{HistoryQuery, Subjects};

use crate::attacks::asking::{self, GREETING, closed_after, connect, connect_locally, frame};
use crate::attacks::fixture::Fixture;

#[test]
fn a_grpc_request_that_is_too_long_is_refused() {
    let Some(fixture) = Fixture::set("a_grpc_request_that_is_too_long_is_refused") else { return };
    let query = |devices: usize| HistoryQuery {
        from: Timestamp(0),
        to: Timestamp(u64::MAX),
        step_ms: Some(u64::MAX),
        subjects: Subjects::All,
        devices: vec![String::from("251732099"); devices],
        processes: Vec::new(),
        metrics: Vec::new(),
    };
    for devices in [400, 100_000] {
        let refused = asking::wait(async {
            let mut client = telltale_client::connect(&fixture.stage.socket()).await.unwrap();
            client.history(&query(devices)).await
        });
        refused.unwrap_err();
        fixture.still_serves();
    }
    // A message that says that it is longer than memory.
    let path = b"/telltale.telemetry.v1.Telemetry/GetSnapshot";
    let mut headers = vec![0x83, 0x86, 0x44, u8::try_from(path.len()).unwrap()];
    headers.extend(path);
    headers.extend([0x41, 0x01, b'x', 0x5f, 0x10]);
    headers.extend(b"application/grpc");
    let mut stream = connect_locally(&fixture.stage.socket());
    stream.write_all(GREETING).unwrap();
    stream.write_all(&frame(0x1, 0x4, 1, &headers)).unwrap();
    stream.write_all(&frame(0x0, 0x0, 1, &[0, 0xff, 0xff, 0xff, 0xff])).unwrap();
    fixture.still_serves();
    // A frame that is longer than any may be, and headers without end.
    for bytes in [vec![0xff, 0xff, 0xff, 0x1, 0x4, 0, 0, 0, 3], frame(0x1, 0, 3, &[0x40; 16_384])] {
        let mut stream = connect_locally(&fixture.stage.socket());
        stream.write_all(GREETING).unwrap();
        let _ = stream.write_all(&bytes);
        for _ in 0..64 {
            let _ = stream.write_all(&frame(0x9, 0, 3, &[0x40; 16_384]));
        }
        closed_after(&mut stream);
    }
    fixture.still_serves();
}

#[test]
fn an_http_request_that_is_too_long_is_refused_and_counted() {
    let Some(fixture) = Fixture::set("an_http_request_that_is_too_long_is_refused") else { return };
    let long = "a".repeat(20_000);
    let many: String = (0..100).map(|number| format!("X-{number}: a\r\n")).collect();
    let heads = [
        format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET /api/v1/history?metric={long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"),
        format!("{long} / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {long}\r\n\r\n"),
    ];
    for head in &heads {
        let mut stream = connect(fixture.service.http.unwrap());
        // It may hang up before all is sent.
        let _ = stream.write_all(head.as_bytes());
        if let Some(answer) = asking::answer(&mut BufReader::new(stream)) {
            assert!((400..500).contains(&answer.status), "{} to {}", answer.status, &head[..30]);
        }
    }
    fixture.metric_reaches(
        "telltale_http_refused_connections_total",
        &[("reason", "malformed")],
        5.0,
    );
    // Many small questions in one request are as many as there may be.
    let spans = "metric=power&".repeat(900);
    let answer = fixture.get(&format!("/api/v1/history?seconds=60&{spans}"));
    assert!(answer.status == 200 || answer.status == 400, "{}", answer.status);
    fixture.still_serves();
}

#[test]
fn questions_about_all_of_time_have_short_answers() {
    let Some(fixture) = Fixture::set("questions_about_all_of_time_have_short_answers") else {
        return;
    };
    let queries = [
        "from_unix_ms=0&to_unix_ms=18446744073709551615&step_ms=1",
        "seconds=18446744073709551615",
        "seconds=0",
        "seconds=-1",
        "seconds=1e308",
        "seconds=315360000&step_ms=1",
    ];
    for query in queries {
        let answer = fixture.get(&format!("/api/v1/history?{query}"));
        assert!([200, 400, 404].contains(&answer.status), "{query}: {}", answer.status);
        assert!(answer.body.len() < 4 << 20, "{query}: {} bytes", answer.body.len());
    }
    let mut many = fixture.mallory(json!({
        "role": "crowd", "count": 60, "address": fixture.service.http.unwrap().to_string(),
        "bytes": "GET /api/v1/history?seconds=315360000&step_ms=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    }));
    many.says();
    fixture.still_serves();
}
