//! Snapshots with a filter: the rows that the query language chooses, of what the reader may see.

use std::io::{BufReader, Write};

use serde_json::Value;
use telltale_query::Query;
use telltale_schema::snapshot::Snapshot;

use super::server::{Server, TOKEN, answer};
use super::{event, fixture};

/// A text as it stands in an address.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[test]
fn the_rows_are_those_that_the_language_chooses() {
    let server = Server::new();
    let whole = fixture::everything();
    for filter in ["name == train", "device == 1001", "user == ada or /zzz/", "temperature > 200C"]
    {
        let expected = Query::parse(filter).unwrap().select(&whole);
        assert_ne!(expected, *whole, "{filter}");
        let path = format!("/api/v1/snapshot?filter={}", encoded(filter));
        let found = server.get_all(&path);
        let read: Snapshot = serde_json::from_str(&found.body).unwrap();
        assert_eq!(read, expected, "{filter}");
        let reported: Value = serde_json::from_str(&found.body).unwrap();
        assert!(reported["alerts"].is_array() && reported["reader"]["sees"] == "everything");
        let tag = format!("If-None-Match: {}", found.header("etag").unwrap());
        let token = format!("Authorization: Bearer {TOKEN}");
        assert_eq!(server.get(&path, &[&tag, &token]).status, 304);
    }
    let all = server.get_all("/api/v1/snapshot?filter=%20");
    assert_eq!(serde_json::from_str::<Snapshot>(&all.body).unwrap(), *whole);
}

#[test]
fn a_filter_without_the_token_is_asked_of_devices_alone() {
    let server = Server::new();
    for filter in ["name == train", "/ada/", "not name == train", "pid > 0"] {
        let found = server.get(&format!("/api/v1/snapshot?filter={}", encoded(filter)), &[]);
        let read: Snapshot = serde_json::from_str(&found.body).unwrap();
        assert_eq!((read.devices.len(), read.processes.len()), (0, 0), "{filter}");
        assert_eq!(read.left_out.unwrap().processes, 0, "{filter}");
    }
}

#[test]
fn what_is_no_filter_is_refused_with_its_column() {
    let server = Server::new();
    let cases = [
        ("filter=usr%20==%20root", "filter, column 1: there is no field `usr`; did you", Some(1)),
        ("filter=dram+%3E+2Gi", "filter, column 8: `dram` is an amount of memory", Some(8)),
        ("filter=user", "filter, column 5: the query ends here", Some(5)),
        ("filtre=user", "there is no parameter filtre; there is filter", None),
        ("filter=pid==1&filter=pid==2", "filter is there twice", None),
    ];
    for (asked, words, column) in cases {
        for path in ["/api/v1/snapshot", "/api/v1/stream"] {
            let refused = server.get(&format!("{path}?{asked}"), &[]);
            assert_eq!(refused.status, 400, "{asked}");
            assert_eq!(refused.header("content-type"), Some("application/problem+json"));
            let reported: Value = serde_json::from_str(&refused.body).unwrap();
            assert!(reported["detail"].as_str().unwrap().starts_with(words), "{reported}");
            assert_eq!(reported["column"].as_u64(), column, "{asked}");
        }
    }
}

#[test]
fn a_stream_goes_on_with_the_rows_of_each_snapshot() {
    let server = Server::new();
    let filter = "name == train";
    let expected = Query::parse(filter).unwrap().select(&fixture::everything());
    let mut stream = server.connect();
    let head = format!(
        "GET /api/v1/stream?filter={} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n",
        encoded(filter)
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    assert_eq!(answer(&mut stream, true).status, 200);
    assert_eq!(event(&mut stream)[0].0, "retry");
    for _ in 0..2 {
        let reported = event(&mut stream);
        assert_eq!(reported[1].1, "snapshot");
        assert_eq!(serde_json::from_str::<Snapshot>(&reported[2].1).unwrap(), expected);
        server.publisher.as_ref().unwrap().publish(fixture::everything(), fixture::own_metrics());
    }
}
