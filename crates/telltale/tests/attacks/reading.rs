//! Mallory wants to read what is Ada's.

use serde_json::json;
use telltale_harness::wait_until;

use crate::attacks::actor::Actor;
use crate::attacks::asking;
use crate::attacks::fixture::{
    ADA, ADAS_BYTES, Fixture, MALLORY, TIMEOUT, process, shows_nothing_of_ada, used,
};

/// What the kernel says to one who may not (`EACCES`).
const FORBIDDEN: i64 = 13;

#[test]
fn files_and_sockets_of_another_user_are_closed() {
    let Some(fixture) = Fixture::set("files_and_sockets_of_another_user_are_closed") else {
        return;
    };
    let pid = fixture.ada.id();
    let entries = std::fs::read_dir(&fixture.stage.run).unwrap().map(|entry| entry.unwrap().path());
    let hers: Vec<_> =
        entries.filter(|path| path.to_str().unwrap().contains(&format!("_{pid}"))).collect();
    assert_eq!(hers.len(), 2, "her ledger and her endpoint: {hers:?}");
    let history = fixture.stage.state.join("history.db");
    let closed = [&hers[0], &hers[1], &fixture.stage.state, &history, &fixture.stage.token];
    let said = fixture.mallory(json!({ "role": "read", "paths": closed })).says();
    assert_eq!(said, json!(vec![FORBIDDEN; 5]), "{closed:?}");
    // She herself is let in.
    let said = Actor::start(ADA, &fixture.part(json!({ "role": "read", "paths": hers }))).says();
    assert!(said.as_array().unwrap().iter().all(serde_json::Value::is_string), "{said}");
}

#[test]
fn grpc_shows_each_user_its_own_now_and_before() {
    let Some(fixture) = Fixture::set("grpc_shows_each_user_its_own_now_and_before") else { return };
    let mallorys = fixture.stage.workload(MALLORY, 5);
    fixture.serves_beside(5);
    let shown = fixture.seen_by(MALLORY);
    assert_eq!((shown.processes.len(), shown.withheld_processes), (1, 1));
    assert!(process(&shown, mallorys.id()).is_some());
    shows_nothing_of_ada(&fixture, &serde_json::to_string(&shown).unwrap());
    // The sums are for all: none takes her memory for free memory.
    assert_eq!(used(&shown), Some(ADAS_BYTES + 5));
    let past = |uid| {
        let part =
            json!({ "role": "past", "socket": fixture.stage.socket(), "of": fixture.ada.id() });
        Actor::start(uid, &part).says()
    };
    wait_until("her series to be recorded", TIMEOUT, || {
        let series = past(ADA)["series"]["Ok"]["series"].to_string();
        series.contains(&fixture.ada.id().to_string())
    });
    let hers = past(ADA);
    assert!(hers["report"]["Ok"].to_string().contains(&fixture.ada.id().to_string()), "{hers}");
    let his = past(MALLORY);
    assert!(his["report"]["Err"].as_str().unwrap().contains("no process"), "{his}");
    for answer in ["series", "then", "alerts", "watched"] {
        assert!(!his[answer].to_string().contains("\"Err\""), "{his}");
        shows_nothing_of_ada(&fixture, &his[answer].to_string());
    }
}

#[test]
fn http_shows_devices_alone_to_who_has_no_token() {
    let Some(fixture) = Fixture::set("http_shows_devices_alone_to_who_has_no_token") else {
        return;
    };
    let paths = ["/metrics", "/api/v1/snapshot", "/api/v1/history?seconds=60&metric=memory_live"];
    for path in paths {
        let answer = fixture.get(path);
        assert_eq!(answer.status, 200, "{path}");
        shows_nothing_of_ada(&fixture, &answer.body);
        shows_nothing_of_ada(&fixture, &answer.head);
    }
    let mut stream = asking::connect(fixture.service.http.unwrap());
    let head = "GET /api/v1/stream HTTP/1.0\r\nHost: localhost\r\n\r\n";
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stream)).map(Result::unwrap);
    let event = lines.find(|line| line.starts_with("data: {")).unwrap();
    shows_nothing_of_ada(&fixture, &event);
    // The socket file reports who asks, so Mallory is shown what is his: nothing.
    let part = json!({ "role": "http", "socket": fixture.stage.http_socket(), "path": "/api/v1/snapshot" });
    let said = fixture.mallory(part.clone()).says();
    assert_eq!(said[0], 200);
    shows_nothing_of_ada(&fixture, said[1].as_str().unwrap());
    let said = Actor::start(ADA, &part).says();
    assert!(said[1].as_str().unwrap().contains(&format!("\"pid\":{}", fixture.ada.id())), "{said}");
}

#[test]
fn a_wrong_token_is_refused_and_counted() {
    let Some(fixture) = Fixture::set("a_wrong_token_is_refused_and_counted") else { return };
    let address = fixture.service.http.unwrap();
    let guesses = ["Bearer x", "Bearer 0123456789abcdef0123456789abcdeF", "Basic YTpi", ""];
    for guess in guesses {
        let answer =
            asking::get(address, "/api/v1/snapshot", &[&format!("Authorization: {guess}")]);
        assert_eq!(answer.status, 401, "{guess}");
        shows_nothing_of_ada(&fixture, &answer.body);
    }
    fixture.metric_reaches("telltale_http_requests_total", &[("code", "401")], 4.0);
    let refused = asking::wait(async {
        let client = telltale_client::connect(&fixture.stage.socket()).await.unwrap();
        client.with_token("not-the-service-s").unwrap().snapshot(false).await
    });
    assert!(refused.unwrap_err().to_string().contains("not the service's token"));
}

#[test]
fn reflection_reports_what_can_be_asked_and_nothing_of_anybody() {
    let Some(fixture) = Fixture::set("reflection_tells_what_can_be_asked") else { return };
    // What it answers is made when the program is built: no process is in it. It is asked raw, for
    // the list of services.
    let mut stream = asking::connect_locally(&fixture.stage.socket());
    let path = b"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let mut headers = vec![0x83, 0x86, 0x44, u8::try_from(path.len()).unwrap()];
    headers.extend(path);
    headers.extend([0x41, 0x01, b'x', 0x40, 0x02, b't', b'e', 0x08]);
    headers.extend(b"trailers");
    headers.extend([0x5f, 0x10]);
    headers.extend(b"application/grpc");
    // ServerReflectionRequest { list_services: "" }.
    let message = [0, 0, 0, 0, 2, 0x3a, 0];
    use std::io::{Read, Write};
    stream.write_all(asking::GREETING).unwrap();
    stream.write_all(&asking::frame(0x1, 0x4, 1, &headers)).unwrap();
    stream.write_all(&asking::frame(0x0, 0x1, 1, &message)).unwrap();
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    wait_until("its answer", TIMEOUT, || {
        let count = stream.read(&mut buffer).unwrap();
        said.extend_from_slice(&buffer[..count]);
        String::from_utf8_lossy(&said).contains("telltale.telemetry.v1.Telemetry")
    });
    shows_nothing_of_ada(&fixture, &String::from_utf8_lossy(&said));
}
