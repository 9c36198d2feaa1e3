//! The server as clients meet it, byte by byte.

mod filtering;
mod server;

use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use telltale_harness::exposition::parse;
use telltale_harness::{Scratch, skip, wait_until};
use telltale_schema::clock::Clock;
use telltale_schema::history::HistoryAnswer;
use telltale_schema::snapshot::Snapshot;

use super::{HttpOptions, HttpService};
use crate::access::AccessPolicy;
use crate::history::{HistoryOptions, HistoryWriter, SharedReader, database_in};
use crate::samples::tests::fixture;
use server::{Server, TOKEN, answer};
use telltale_collector::clock::SystemClock;
use telltale_server::listen::Listener;

/// What no one without rights may see of the fixture.
const PRIVATE: [&str; 5] = ["train", "serve", "ada", "--secret", "cccccccc"];

#[test]
fn a_scrape_gets_the_format_that_it_asks_for() {
    let server = Server::new();
    let plain = server.get("/metrics", &[]);
    assert_eq!(plain.status, 200);
    assert_eq!(plain.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    parse(&plain.body, false).unwrap();
    let accept =
        "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    let open = server.get("/metrics", &[accept]);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(open.header("content-type"), Some(kind));
    parse(&open.body, true).unwrap();
    assert!(open.header("vary").is_some_and(|vary| vary.contains("accept")));
    let neither = server.get("/metrics", &["Accept: image/png"]);
    assert_eq!(neither.status, 406);
    assert_eq!(neither.header("content-type"), Some("application/problem+json"));
}

#[test]
fn a_head_has_the_length_and_no_body() {
    let server = Server::new();
    let whole = server.get("/metrics", &[]);
    let head = server.send("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(head.header("content-length"), whole.header("content-length"));
}

#[test]
fn a_long_scrape_comes_in_parts_and_is_whole() {
    let processes = (1..=1000).map(|pid| fixture::process(pid, &format!("job{pid}"), "ada", 500));
    let snapshot = fixture::snapshot(vec![fixture::device(1)], processes.collect());
    let server = Server::with(HttpOptions::default(), snapshot);
    for _ in 0..2 {
        let mut stream = server.connect();
        let head = format!(
            "GET /metrics HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        let answer = answer(&mut stream, true);
        assert_eq!((answer.status, answer.header("content-length")), (200, None));
        let mut body = String::new();
        stream.read_to_string(&mut body).unwrap();
        assert!(body.len() > 512 << 10, "{}", body.len());
        let families = parse(&body, false).unwrap();
        let processes = families.iter().find(|family| family.name == "telltale_processes").unwrap();
        assert_eq!(processes.samples.len(), 1000);
    }
}

#[test]
fn processes_are_for_those_who_may_see_them() {
    let server = Server::new();
    for path in ["/metrics", "/api/v1/snapshot"] {
        let anyone = server.get(path, &[]);
        assert_eq!(anyone.status, 200);
        assert!(anyone.body.contains("1001"), "devices are there");
        for text in PRIVATE {
            assert!(!anyone.body.contains(text), "{path} shows {text}: {}", anyone.body);
        }
        let all = server.get_all(path);
        assert!(all.body.contains("train") && all.body.contains("ada"), "{path}");
        for wrong in ["Bearer wrong-token-0123456789abcdef0", "Basic x", "Bearer", "\u{e9}"] {
            let refused = server.get(path, &[&format!("Authorization: {wrong}")]);
            assert_eq!(refused.status, 401, "{wrong}");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        }
    }
    // Counts of processes on a device are the same for all.
    let line = "telltale_device_processes{device=\"1001\"} 2";
    assert!(server.get("/metrics", &[]).body.contains(line));
}

#[test]
fn the_kernel_says_who_asks_on_the_unix_socket() {
    if !telltale_harness::needs_root("http::the_kernel_says_who_asks_on_the_unix_socket") {
        return;
    }
    let server = Server::new();
    assert!(server.get_locally("/api/v1/snapshot").body.contains("ada"), "root sees all");
}

#[test]
fn a_snapshot_is_json_and_not_sent_twice() {
    let server = Server::new();
    let first = server.get_all("/api/v1/snapshot");
    let read: Snapshot = serde_json::from_str(&first.body).unwrap();
    assert_eq!(read, *fixture::everything());
    let tag = first.header("etag").unwrap();
    let token = format!("Authorization: Bearer {TOKEN}");
    for known in [
        tag.to_owned(),
        format!("\"x\", {tag}"),
        tag.trim_start_matches("W/").to_owned(),
        "*".to_owned(),
    ] {
        let again = server.get("/api/v1/snapshot", &[&format!("If-None-Match: {known}"), &token]);
        assert_eq!((again.status, again.body.as_str()), (304, ""), "{known}");
    }
    // One who may see less has other bytes, and another tag.
    let less = server.get("/api/v1/snapshot", &[&format!("If-None-Match: {tag}")]);
    assert_eq!(less.status, 200);
    server.publisher.as_ref().unwrap().publish(fixture::everything(), fixture::own_metrics());
    let next = server.get("/api/v1/snapshot", &[&format!("If-None-Match: {tag}"), &token]);
    assert_eq!(next.status, 200);
}

#[test]
fn alerts_are_beside_the_snapshot_for_those_who_may_see_them() {
    let mut server = Server::new();
    let publisher = server.publisher.as_mut().unwrap();
    publisher.set_alerts(Arc::new(crate::alerts::states_fixture()));
    publisher.publish(fixture::everything(), fixture::own_metrics());
    let reported = |body: &str| {
        let read: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(read["devices"].is_array(), "the snapshot is there");
        (read["alerts"].as_array().unwrap().len(), read["withheld_alerts"].clone())
    };
    assert_eq!(reported(&server.get_all("/api/v1/snapshot").body), (7, 0.into()));
    assert_eq!(reported(&server.get("/api/v1/snapshot", &[]).body), (4, 3.into()));
}

#[test]
fn a_reader_is_reported_how_much_it_sees() {
    let server = Server::new();
    let reported =
        |body: &str| serde_json::from_str::<serde_json::Value>(body).unwrap()["reader"].clone();
    let reader = |sees: &str| {
        serde_json::json!({
            "sees": sees, "has_token": true, "has_history": false, "knows_loopback": false
        })
    };
    let everything = reader("everything");
    assert_eq!(reported(&server.get_all("/api/v1/snapshot").body), everything);
    assert_eq!(reported(&server.get("/api/v1/snapshot", &[]).body), reader("devices"));
}

#[test]
fn health_is_reported_as_it_is() {
    let mut server = Server::new();
    assert_eq!(server.get("/-/healthy", &[]).status, 200);
    assert_eq!(server.get("/-/ready", &[]).status, 200);
    // The collecting thread ends.
    drop(server.publisher.take());
    assert_eq!(server.get("/-/healthy", &[]).status, 200);
    let not = server.get("/-/ready", &[]);
    assert_eq!(not.status, 503);
    assert!(not.body.contains("stopped collecting"), "{}", not.body);
}

#[test]
fn definitions_are_told() {
    let server = Server::new();
    let all = server.get("/api/v1/metrics", &[]).body;
    let all: Vec<serde_json::Value> = serde_json::from_str(&all).unwrap();
    assert_eq!(all.len(), telltale_schema::metric::DEFINITIONS.len());
    let live = all.iter().find(|it| it["name"] == "telltale_process_memory_live_bytes").unwrap();
    assert_eq!((&live["kind"], &live["unit"]), (&"gauge".into(), &"bytes".into()));
}

#[test]
fn what_is_not_there_or_not_allowed_is_a_problem_in_json() {
    let server = Server::new();
    let paths = [
        "/metrics/",
        "//metrics",
        "/%6detrics",
        "/./metrics",
        "/../metrics",
        "/api/v1/snapshot/..",
        "/-/../metrics",
        "/metrics;a=b",
        "/etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/metrics%00",
    ];
    for path in paths {
        let refused = server.get(path, &[]);
        assert_eq!(refused.status, 404, "{path}");
        assert_eq!(refused.header("content-type"), Some("application/problem+json"), "{path}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&refused.body).unwrap()["status"],
            404
        );
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONFUSE"] {
        let refused =
            server.send(&format!("{method} /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(refused.status, 405, "{method}");
        let allowed = refused.header("allow").unwrap_or_default().to_ascii_uppercase();
        assert!(allowed.contains("GET") && allowed.contains("HEAD"), "{allowed}");
        assert_eq!(refused.header("access-control-allow-origin"), None);
    }
}

#[test]
fn only_own_names_are_answered_so_that_no_site_reads_along() {
    let server = Server::new();
    let port = server.address.port();
    for host in ["localhost", "127.0.0.1", &format!("127.0.0.1:{port}"), "[::1]:1"] {
        let answer = server.send(&format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(answer.status, 200, "{host}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example"] {
        let answer = server.send(&format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(answer.status, 421, "{host}");
        let whole = "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert_eq!(server.send(whole).status, 421);
    }
    for head in [
        "GET /metrics HTTP/1.1\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
    ] {
        assert_eq!(server.send(head).status, 400, "{head}");
    }
}

#[test]
fn answers_are_of_no_use_to_other_sites() {
    let server = Server::new();
    let origin = "Origin: https://evil.example";
    for path in ["/metrics", "/api/v1/snapshot", "/-/healthy", "/nothing"] {
        let answer = server.get(path, &[origin]);
        for (name, value) in [
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("cross-origin-resource-policy", "same-origin"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
        assert!(!answer.head.to_ascii_lowercase().contains("access-control"), "{}", answer.head);
        assert!(answer.header("cache-control").is_some());
    }
}

#[test]
fn bodies_and_long_heads_are_refused() {
    let server = Server::new();
    for lines in ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"] {
        let answer = server.send(&format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{lines}"));
        assert_eq!(answer.status, 413);
        assert_eq!(answer.header("connection"), Some("close"));
    }
    let long = "a".repeat(20_000);
    let many: String = (0..100).map(|number| format!("X-{number}: a\r\n")).collect();
    for head in [
        format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"),
        // Two lengths, by which two servers would read two requests.
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 9\r\n\r\n"
            .to_owned(),
        "this is not HTTP\r\n\r\n".to_owned(),
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nA\u{0}: b\r\n\r\n".to_owned(),
    ] {
        let mut stream = server.connect();
        // The server may have closed before all of it was sent.
        let _ = stream.write_all(head.as_bytes());
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        let refused = said.is_empty() || said.starts_with("HTTP/1.1 4");
        assert!(refused, "{said} for {}", &head[..40]);
    }
    assert_eq!(server.get("/-/healthy", &[]).status, 200);
}

#[test]
fn a_connection_is_used_again_and_one_that_does_nothing_makes_room() {
    let options =
        HttpOptions { connections: NonZeroUsize::new(4).unwrap(), ..HttpOptions::default() };
    let server = Server::with(options, fixture::everything());
    let mut kept = BufReader::new(server.connect());
    for _ in 0..3 {
        kept.get_mut().write_all(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        assert_eq!(answer(&mut kept, false).status, 200);
    }
    // Many that begin a request and never end it do not keep others out.
    let slow: Vec<_> = (0..12)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"GET /metr").unwrap();
            stream
        })
        .collect();
    let healthy = || {
        let mut stream = server.connect();
        let asked = stream.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut said = [0; 12];
        asked.is_ok() && stream.read_exact(&mut said).is_ok() && said == *b"HTTP/1.1 200"
    };
    wait_until("somebody new is answered", Duration::from_secs(15), healthy);
    let text = server.get_all("/metrics").body;
    let refused = |why: &str| {
        let line = format!("telltale_http_refused_connections_total{{reason=\"{why}\"}} ");
        text.lines().find_map(|it| it.strip_prefix(&line)?.parse::<u64>().ok()).unwrap()
    };
    assert!(refused("too_many") + refused("made_room") >= 8, "{text}");
    drop(slow);
}

/// Reads one event: its fields by name. Requests of version 1.0 have answers without chunks.
fn event(stream: &mut impl BufRead) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream ended");
        match line.trim_end_matches('\n').split_once(": ") {
            Some((name, value)) => fields.push((name.to_owned(), value.to_owned())),
            None if !fields.is_empty() => return fields,
            None => {}
        }
    }
}

#[test]
fn a_stream_reports_each_snapshot_and_what_was_missed() {
    let server = Server::new();
    let publisher = server.publisher.as_ref().unwrap();
    for _ in 2..=7 {
        publisher.publish(fixture::everything(), fixture::own_metrics());
    }
    let mut stream = server.connect();
    let head = "GET /api/v1/stream HTTP/1.0\r\nHost: localhost\r\nLast-Event-ID: 3\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let head = answer(&mut stream, true);
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(event(&mut stream), [("retry".to_owned(), "2000".to_owned())]);
    let lag = event(&mut stream);
    assert_eq!(lag[0].1, "lag");
    assert_eq!(lag[1].1, "{\"missed\":3}");
    let first = event(&mut stream);
    assert_eq!((first[0].1.as_str(), first[1].1.as_str()), ("7", "snapshot"));
    let read: Snapshot = serde_json::from_str(&first[2].1).unwrap();
    assert_eq!(read.devices.len(), 2);
    assert!(read.processes.is_empty(), "without a token");
    publisher.publish(fixture::everything(), fixture::own_metrics());
    let second = event(&mut stream);
    assert_eq!(second[0], ("id".to_owned(), "8".to_owned()));
}

#[test]
fn a_stream_that_asks_for_usage_has_it_read_while_it_is_open() {
    let server = Server::new();
    let publisher = server.publisher.as_ref().unwrap();
    for bad in ["usage", "usage=1", "usage=true&usage=true"] {
        let refused = server.get(&format!("/api/v1/stream?{bad}"), &[]);
        assert_eq!(refused.status, 400, "{bad}");
    }
    // One that may see devices alone gets nothing of it, and so nothing is read for it.
    let mut anonymous = server.connect();
    let head = "GET /api/v1/stream?usage=true HTTP/1.0\r\nHost: localhost\r\n\r\n";
    anonymous.write_all(head.as_bytes()).unwrap();
    let mut anonymous = BufReader::new(anonymous);
    assert_eq!(answer(&mut anonymous, true).status, 200);
    assert!(!publisher.is_usage_watched());
    let mut stream = server.connect();
    let head = format!(
        "GET /api/v1/stream?usage=true HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    assert_eq!(answer(&mut stream, true).status, 200);
    assert!(publisher.is_usage_watched());
    drop(stream);
    wait_until("an end of it", Duration::from_secs(20), || {
        publisher.publish(fixture::everything(), fixture::own_metrics());
        !publisher.is_usage_watched()
    });
}

#[test]
fn streams_are_bounded_and_end_with_the_service() {
    let options = HttpOptions { streams: 2, ..HttpOptions::default() };
    let server = Server::with(options, fixture::everything());
    let request =
        b"GET /api/v1/stream HTTP/1.0\r\nHost: localhost\r\nLast-Event-ID: nonsense\r\n\r\n";
    let mut open: Vec<_> = (0..2)
        .map(|_| {
            let mut stream = BufReader::new(server.connect());
            stream.get_mut().write_all(request).unwrap();
            assert_eq!(answer(&mut stream, true).status, 200);
            stream
        })
        .collect();
    assert_eq!(server.get("/api/v1/stream", &[]).status, 503);
    // One that goes away leaves its place.
    drop(open.pop());
    let publisher = server.publisher.as_ref().unwrap();
    let again = || {
        publisher.publish(fixture::everything(), fixture::own_metrics());
        let mut stream = BufReader::new(server.connect());
        stream.get_mut().write_all(request).unwrap();
        answer(&mut stream, true).status == 200
    };
    wait_until("a stream is free again", Duration::from_secs(10), again);
    server.stop().unwrap();
    let mut rest = Vec::new();
    let _ = open[0].read_to_end(&mut rest);
}

#[test]
fn a_reader_that_takes_nothing_costs_no_memory() {
    let server = Server::new();
    let mut stream = server.connect();
    let head = format!(
        "GET /api/v1/stream HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    assert_eq!(answer(&mut stream, true).status, 200);
    // Far more than sockets have room for; without a reader.
    let publisher = server.publisher.as_ref().unwrap();
    for _ in 0..5000 {
        publisher.publish(fixture::everything(), fixture::own_metrics());
    }
    let newest = server.view.latest().sequence;
    // It receives the newest, of few in between, and how many it missed.
    let (mut reported, mut missed, mut last) = (0u64, 0u64, 0u64);
    let mut first = None;
    while last < newest {
        let fields = event(&mut stream);
        match fields.iter().find(|(name, _)| name == "event").map(|(_, value)| value.as_str()) {
            Some("lag") => {
                let data: serde_json::Value = serde_json::from_str(&fields[1].1).unwrap();
                missed += data["missed"].as_u64().unwrap();
            }
            Some("snapshot") => {
                reported += 1;
                last = fields[0].1.parse().unwrap();
                first.get_or_insert(last);
            }
            _ => {}
        }
    }
    // What was published before its stream began, it did not miss.
    let since = newest - first.unwrap() + 1;
    assert_eq!(reported + missed, since, "{reported} reported, {missed} missed");
    assert!(reported < since, "{reported} reported of {since}");
}

#[test]
fn a_port_that_others_reach_needs_a_token_or_a_word() {
    let scratch = Scratch::new();
    let policy = || std::sync::Arc::new(AccessPolicy::new(4_000_000, None));
    let everything = fixture::everything();
    let (_publisher, view) =
        crate::service::Publisher::new(Duration::from_secs(1), everything, fixture::own_metrics())
            .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = |options: HttpOptions| {
        let listener = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let listeners = vec![Listener::Tcp(listener)];
        runtime.block_on(async {
            let service = HttpService::new(listeners, options, false)?;
            let served = service.serve(view.clone(), policy(), async {});
            served.await.unwrap_or_else(|never| match never {});
            Ok::<(), super::HttpServeError>(())
        })
    };
    let refused = outcome(HttpOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("there is no token") && refused.contains("http.public"), "{refused}");
    outcome(HttpOptions { public: true, ..HttpOptions::default() }).unwrap();
    drop(scratch);
}

#[test]
fn prometheus_has_nothing_to_say_of_a_scrape() {
    let server = Server::new();
    match telltale_harness::exposition::promtool(&server.get_all("/metrics").body) {
        None => skip("http::prometheus_has_nothing_to_say_of_a_scrape", "there is no promtool"),
        Some(said) => assert_eq!(said, ""),
    }
}

#[test]
fn the_page_and_its_files_are_there_under_a_policy_that_lets_them_load_each_other_alone() {
    let server = Server::new();
    let page = server.get("/", &[]);
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"));
    let mut files = 0;
    for name in page.body.split("\"assets/").skip(1).filter_map(|rest| rest.split('"').next()) {
        let file = server.get(&format!("/assets/{name}"), &[]);
        assert_eq!(file.status, 200, "{name}");
        let tag = file.header("etag").unwrap();
        let again = server.get(&format!("/assets/{name}"), &[&format!("If-None-Match: {tag}")]);
        assert_eq!((again.status, again.body.as_str()), (304, ""), "{name}");
        files += 1;
    }
    assert!(files > 3, "{files}");
    for absent in ["/assets/", "/assets/none.js", "/assets/../page.rs", "/assets/%2e%2e%2fpage.rs"]
    {
        assert_eq!(server.get(absent, &[]).status, 404, "{absent}");
    }
}

#[test]
fn the_past_is_answered_as_far_as_the_caller_may_see_it() {
    let scratch = Scratch::new();
    let (clock, options) = (Arc::new(SystemClock), HistoryOptions::default());
    let second = Duration::from_secs(1);
    let writer = HistoryWriter::start(scratch.path(), &options, second, clock).unwrap();
    let mut snapshot = Snapshot::clone(&fixture::everything());
    snapshot.taken_at = SystemClock.now();
    writer.offer(Arc::new(snapshot));
    drop(writer);
    let reader = SharedReader::new(database_in(scratch.path()));
    let options = HttpOptions::default();
    let server = Server::with_history(options, fixture::everything(), Some(reader));
    let path = "/api/v1/history?seconds=60&metric=memory_live&metric=space";
    let all: HistoryAnswer = serde_json::from_str(&server.get_all(path).body).unwrap();
    assert!(all.series.iter().any(|series| series.process.is_some()), "{all:?}");
    let anyone = server.get(path, &[]);
    let devices: HistoryAnswer = serde_json::from_str(&anyone.body).unwrap();
    assert!(devices.series.iter().any(|series| series.device.is_some()));
    for text in PRIVATE {
        assert!(!anyone.body.contains(text), "{text}");
    }
    assert_eq!(server.get("/api/v1/history?form=1", &[]).status, 400);
    assert_eq!(server.get("/api/v1/history?metric=none", &[]).status, 404);
}

#[test]
fn without_a_history_that_is_said() {
    assert_eq!(Server::new().get("/api/v1/history", &[]).status, 404);
    let reader = SharedReader::new("/none/history.sqlite".into());
    let server = Server::with_history(HttpOptions::default(), fixture::everything(), Some(reader));
    assert_eq!(server.get("/api/v1/history", &[]).status, 503);
}
