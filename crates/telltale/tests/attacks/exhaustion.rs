//! Mallory takes as much as he can get: connections, descriptors, names.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::json;
use telltale_harness::wait_until;

use crate::attacks::actor::Actor;
use crate::attacks::fixture::{
    ADA, EVE, Fixture, SERVICE, Service, Stage, TIMEOUT, no_source_fails, process,
};

#[test]
fn one_user_cannot_take_all_grpc_connections() {
    let Some(fixture) = Fixture::set("one_user_cannot_take_all_grpc_connections") else { return };
    let mut crowd = fixture.mallory(json!({
        "role": "crowd", "count": 300, "socket": fixture.stage.socket(), "bytes": ""
    }));
    crowd.says();
    // All but his share.
    let name = [("queue", "grpc_connections")];
    fixture.metric_reaches("telltale_queue_dropped_total", &name, 284.0);
    fixture.still_serves();
}

#[test]
fn one_user_cannot_take_all_http_connections() {
    let Some(fixture) = Fixture::set("one_user_cannot_take_all_http_connections") else { return };
    let address = fixture.service.http.unwrap().to_string();
    let ask = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // Silent ones, those within a request, and those that are served all the time.
    for (bytes, is_busy) in [("", false), ("GET /metr", false), (ask, true)] {
        for place in
            [json!({ "address": address }), json!({ "socket": fixture.stage.http_socket() })]
        {
            let mut part =
                json!({ "role": "crowd", "count": 300, "bytes": bytes, "busy": is_busy });
            part.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
            let mut crowd = fixture.mallory(part);
            crowd.says();
            fixture.still_serves();
        }
    }
    // Refused, or sent away for another.
    fixture.metric_reaches("telltale_http_refused_connections_total", &[], 100.0);
}

#[test]
fn one_user_cannot_take_all_streams() {
    let Some(fixture) = Fixture::set("one_user_cannot_take_all_streams") else { return };
    let address = fixture.service.http.unwrap();
    let mut crowd = fixture.mallory(json!({
        "role": "crowd", "count": 60, "address": address.to_string(),
        "bytes": "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
    }));
    crowd.says();
    fixture.metric_reaches("telltale_http_requests_total", &[("code", "503")], 1.0);
    fixture.still_serves();
    // Clients that see everything have streams of its own.
    use std::io::Write;
    let mut stream = crate::attacks::asking::connect(address);
    let token = crate::attacks::fixture::TOKEN;
    let head = format!(
        "GET /api/v1/stream HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let answer = crate::attacks::asking::answer(&mut std::io::BufReader::new(stream)).unwrap();
    assert_eq!(answer.status, 200);
}

#[test]
fn a_service_without_descriptors_comes_back() {
    let Some(stage) = Stage::set("a_service_without_descriptors_comes_back") else { return };
    let inner = {
        let mut command = stage.command();
        command.arg("--legacy-allocation-socket").arg(stage.run.join("legacy.sock"));
        command
    };
    // Fewer than its own limits allow, so that they run out before these are met.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 96; exec \"$@\"", "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.arg0("sh");
    let service: Service = stage.serve(command);
    let ada = stage.workload(ADA, crate::attacks::fixture::ADAS_BYTES);
    let fixture = Fixture { ada, service, stage };
    fixture.still_serves();
    let places = [
        json!({ "address": fixture.service.http.unwrap().to_string() }),
        json!({ "socket": fixture.stage.http_socket() }),
        json!({ "socket": fixture.stage.socket() }),
        json!({ "socket": fixture.stage.run.join("legacy.sock") }),
    ];
    let mut crowds = Vec::new();
    for place in places {
        let mut part = json!({ "role": "crowd", "count": 150 });
        part.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        let mut crowd = fixture.mallory(part);
        crowd.says();
        crowds.push(crowd);
    }
    // What needs no descriptor goes on: it still collects.
    let pid = fixture.service.child.id();
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
    drop(crowds);
    fixture.still_serves();
}

#[test]
fn one_user_cannot_take_all_names_of_the_directory() {
    let Some(fixture) = Fixture::set("one_user_cannot_take_all_names_of_the_directory") else {
        return;
    };
    // More silent endpoints than are asked in one round, under numbers before all others; and more
    // ledgers than are followed, of which each is refused.
    // Her name is left free: what happens to one that is taken is a test of squatting.
    let part = json!({ "role": "endpoint", "bytes": 77, "waits": true });
    let mut hers = Actor::start(ADA, &fixture.part(part));
    let mut crowds = Vec::new();
    for number in 0..5u64 {
        crowds.push(fixture.mallory(json!({ "role": "entries", "kind": "socket", "count": 600,
            "before": "metrics_", "after": ".sock", "from": number * 600 + 1,
            "except": hers.id() })));
        crowds.push(fixture.mallory(json!({ "role": "entries", "kind": "file", "count": 1200,
            "before": "ledger_", "after": "_7.tt", "from": number * 1200 + 1 })));
    }
    // What is no socket is asked in each round, as none there keeps silent.
    crowds.push(fixture.mallory(json!({ "role": "entries", "kind": "file", "count": 2100,
        "before": "metrics_", "after": ".sock", "from": 5_000_000 })));
    crowds.iter_mut().for_each(|one| drop(one.says()));
    // A process of Ada's begins, with nothing but an endpoint.
    hers.begin();
    hers.says();
    wait_until("her new process to be seen", TIMEOUT, || {
        process(&fixture.whole(), hers.id()).is_some()
    });
    fixture.serves_beside(77);
    let name = [("source", "endpoints")];
    fixture.metric_reaches("telltale_source_notes_total", &name, 1.0);
    // Nor did any in a round before.
    for source in ["ledgers", "endpoints"] {
        let errors = fixture.metric("telltale_source_errors_total", &[("source", source)]);
        assert!(errors < 0.5, "{source}: {errors}");
    }
    no_source_fails(&fixture.whole());
    assert_ne!(SERVICE, ADA);
}

#[test]
fn one_user_cannot_take_all_ledgers_that_are_followed() {
    let Some(fixture) = Fixture::set("one_user_cannot_take_all_ledgers") else { return };
    // Each is a whole one of a process that ended, as any user can make them.
    let mut maker = fixture.mallory(json!({ "role": "copies", "count": 5000 }));
    maker.says();
    let mut hers = Actor::start(ADA, &fixture.part(json!({ "role": "ledger", "bytes": 77 })));
    hers.says();
    fixture.serves_beside(77);
    // With a second user there are more than are followed of all.
    let part = json!({ "role": "copies", "count": 1100, "from": 2_000_000 });
    let mut second = Actor::start(EVE, &fixture.part(part));
    second.says();
    let note = format!("user {EVE}");
    wait_until("what was left out to be a note", TIMEOUT, || {
        let whole = fixture.whole();
        no_source_fails(&whole);
        whole.sources.iter().flat_map(|source| &source.notes).any(|one| one.subject == note)
    });
    fixture.serves_beside(77);
}

#[test]
fn one_user_cannot_hide_regions_or_make_their_source_fail() {
    let Some(fixture) = Fixture::set("one_user_cannot_hide_regions") else { return };
    let shm = fixture.stage.machine.root().join("dev/shm");
    fs::create_dir_all(&shm).unwrap();
    fs::set_permissions(&shm, Permissions::from_mode(0o1777)).unwrap();
    // Ada's region, of the first layout, whose total is in no row.
    let id = fixture.stage.chips[0].composite_id().unwrap().value;
    let mut region = vec![0; 9280];
    region[..4].copy_from_slice(&1u32.to_le_bytes());
    region[24..32].copy_from_slice(&(id >> 8).to_le_bytes());
    region[48..56].copy_from_slice(&77u64.to_le_bytes());
    let path = shm.join(telltale_ledger::region::file_name(id));
    fs::write(&path, region).unwrap();
    chown(&path, Some(ADA), Some(ADA)).unwrap();
    fixture.serves_beside(77);
    let mut odd = fixture.mallory(json!({ "role": "odd_names", "directory": shm }));
    let mut many = fixture.mallory(json!({ "role": "entries", "directory": shm, "kind": "file",
        "before": "tt_device_", "after": "_memory", "count": 1100 }));
    odd.says();
    many.says();
    fixture.metric_reaches("telltale_source_notes_total", &[("source", "regions")], 1103.0);
    no_source_fails(&fixture.whole());
    fixture.serves_beside(77);
}
