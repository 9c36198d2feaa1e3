//! Mallory wants to be taken for another user at the service's port, which knows its callers by the
//! kernel: by its own connection, through proxies, through a browser, and out of a container.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};

use telltale_harness::{as_user, skip};

use crate::attacks::actor::for_everyone;
use crate::attacks::asking::{self, send};
use crate::attacks::fixture::{ADA, Fixture, MALLORY, shows_nothing_of_ada};

const PATHS: [&str; 3] =
    ["/metrics", "/api/v1/snapshot", "/api/v1/history?seconds=60&metric=memory_live"];

/// A fixture whose service knows callers on the loopback, as it does by default.
fn set(test: &str) -> Option<Fixture> {
    Fixture::with(test, |_, command| {
        command.env_remove("TELLTALE_LOOPBACK_USERS");
        command.args(["--grpc", "127.0.0.1:0", "--grpc", "unix:telemetry.sock"]);
    })
}

/// What `telltale smi --hosts` shows a user by gRPC.
fn shown_by_hosts(fixture: &Fixture, uid: u32) -> String {
    let mut command = Command::new(for_everyone(env!("CARGO_BIN_EXE_telltale").as_ref()));
    let host = fixture.service.grpc.unwrap().to_string();
    command.args(["smi", "--json", "--hosts", &host]).env("HOME", fixture.stage.place.path());
    text(as_user(uid, uid, command).output().unwrap())
}

/// What `program` with these arguments and a script of bash gets, which asks the port for a path.
fn asked(uid: u32, program: &[&str], address: SocketAddr, path: &str) -> String {
    let script = format!(
        "exec 3<>/dev/tcp/{}/{} && printf 'GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\n\
         Connection: close\\r\\n\\r\\n' >&3 && cat <&3",
        address.ip(),
        address.port()
    );
    let words: Vec<&str> = program.iter().copied().chain(["bash", "-c", &script]).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    text(as_user(uid, uid, command).output().unwrap())
}

fn text(output: Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether Ada's process is in an answer of JSON.
fn shows_ada(fixture: &Fixture, text: &str) -> bool {
    text.contains(&format!("\"pid\":{}", fixture.ada.id()))
}

#[test]
fn at_the_port_each_user_sees_its_own_and_root_everything() {
    let Some(fixture) = set("at_the_port_each_user_sees_its_own_and_root_everything") else {
        return;
    };
    let address = fixture.service.http.unwrap();
    let snapshot = fixture.get("/api/v1/snapshot").body;
    assert!(shows_ada(&fixture, &snapshot), "root: {snapshot}");
    let metrics = fixture.get("/metrics").body;
    assert!(metrics.contains(&format!("user=\"{ADA}\"")), "root: {metrics}");
    assert!(shows_ada(&fixture, &shown_by_hosts(&fixture, 0)), "root by gRPC");
    let hers = asked(ADA, &["env"], address, "/api/v1/snapshot");
    assert!(shows_ada(&fixture, &hers), "Ada: {hers}");
    assert!(shows_ada(&fixture, &shown_by_hosts(&fixture, ADA)), "Ada by gRPC");
    // Another user's connection is another user's.
    for path in PATHS {
        let his = asked(MALLORY, &["env"], address, path);
        assert!(his.starts_with("HTTP/1.1 200 OK"), "{his}");
        shows_nothing_of_ada(&fixture, &his);
    }
    let his = shown_by_hosts(&fixture, MALLORY);
    assert!(his.contains("\"devices\""), "{his}");
    shows_nothing_of_ada(&fixture, &his);
    fixture.still_serves();
}

#[test]
fn what_a_proxy_or_a_page_of_another_site_asks_for_is_nobodys() {
    let Some(fixture) = set("what_a_proxy_or_a_page_of_another_site_asks_for_is_nobodys") else {
        return;
    };
    let address = fixture.service.http.unwrap();
    // All of these are root's connections.
    for line in [
        "X-Forwarded-For: 192.0.2.7",
        "X-Forwarded-Proto: https",
        "Forwarded: for=192.0.2.7",
        "Via: 1.1 proxy",
        "X-Real-IP: 192.0.2.7",
        "Origin: https://mallory.example",
        "Origin: http://localhost:8080",
        "Origin: null",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ] {
        for path in PATHS {
            let answer = asking::get(address, path, &[line]);
            assert_eq!(answer.status, 200, "{line}");
            shows_nothing_of_ada(&fixture, &answer.body);
        }
    }
    let port = address.port();
    for head in [
        String::from("GET /api/v1/snapshot HTTP/1.0\r\nHost: localhost"),
        String::from("GET /api/v1/snapshot HTTP/1.1\r\nHost: 192.0.2.7"),
        format!("GET /api/v1/snapshot HTTP/1.1\r\nHost: 10.1.2.3:{port}"),
        // As it comes through a proxy that is not configured to change the target.
        String::from("GET http://10.1.2.3/api/v1/snapshot HTTP/1.1\r\nHost: localhost"),
        format!("GET http://10.1.2.3:{port}/api/v1/snapshot HTTP/1.1\r\nHost: 127.0.0.1:{port}"),
    ] {
        let answer = send(address, &format!("{head}\r\n\r\n"));
        assert_eq!(answer.status, 200, "{head}");
        shows_nothing_of_ada(&fixture, &answer.body);
    }
    // A page of the service's own asks for who shows it.
    for host in [format!("127.0.0.1:{port}"), format!("[::1]:{port}"), format!("localhost:{port}")]
    {
        let lines = format!("Host: {host}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin");
        let head = format!("GET /api/v1/snapshot HTTP/1.1\r\n{lines}\r\n\r\n");
        assert!(shows_ada(&fixture, &send(address, &head).body), "{host}");
        let head = format!("GET http://{host}/api/v1/snapshot HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert!(shows_ada(&fixture, &send(address, &head).body), "a target with {host}");
    }
}

#[test]
fn a_caller_that_sends_no_more_after_its_request_is_known() {
    let Some(fixture) = set("a_caller_that_sends_no_more_after_its_request_is_known") else {
        return;
    };
    let request = "GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let ask = || {
        let mut stream = asking::connect(fixture.service.http.unwrap());
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        asking::answer(&mut BufReader::new(stream)).unwrap()
    };
    let known = (0..100).filter(|_| shows_ada(&fixture, &ask().body)).count();
    assert_eq!(known, 100, "root is root each time");
}

#[test]
fn a_service_that_may_not_ask_knows_nobody_and_says_what_to_change() {
    const TEST: &str = "a_service_that_may_not_ask_knows_nobody_and_says_what_to_change";
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/attacks/without_netlink.c");
    let mut fixture = Fixture::with(TEST, |stage, command| {
        let program = stage.place.join("without_netlink");
        telltale_harness::compile_c(source.as_ref(), &program, &[]);
        *command = within(&program, command);
        command.env_remove("TELLTALE_LOOPBACK_USERS");
    });
    let Some(fixture) = &mut fixture else { return };
    fixture.service.says("add AF_NETLINK to RestrictAddressFamilies=");
    for path in PATHS {
        for _ in 0..3 {
            shows_nothing_of_ada(fixture, &fixture.get(path).body);
        }
    }
    fixture.still_serves();
    let rest = fixture.service.end();
    assert!(!rest.contains("AF_NETLINK"), "it is logged once: {rest}");
}

/// A command that runs within another one.
fn within(program: &std::path::Path, inner: &Command) -> Command {
    let mut command = Command::new(program);
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[test]
fn a_port_that_is_forwarded_shows_what_its_forwarder_may_see() {
    let Some(fixture) = set("a_port_that_is_forwarded_shows_what_its_forwarder_may_see") else {
        return;
    };
    // Root asks at a port of Mallory's, whose program passes it on: the service's caller is Mallory.
    let address = fixture.service.http.unwrap();
    let ours = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = ours.local_addr().unwrap().port();
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{} 4<>/dev/tcp/127.0.0.1/{port}\ncat <&4 >&3 &\ncat <&3 >&4",
        address.port()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]);
    let _forwarder = telltale_harness::ChildGuard::spawn(&mut as_user(MALLORY, MALLORY, command));
    let mut stream: TcpStream = ours.accept().unwrap().0;
    stream.set_read_timeout(Some(crate::attacks::fixture::TIMEOUT)).unwrap();
    let head = "GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    // The forwarder keeps its end open after the service has closed its own.
    let answer = asking::answer(&mut BufReader::new(stream)).unwrap();
    assert_eq!(answer.status, 200);
    shows_nothing_of_ada(&fixture, &answer.body);
}

#[test]
fn a_container_on_the_loopback_is_the_user_who_made_it() {
    const TEST: &str = "a_container_on_the_loopback_is_the_user_who_made_it";
    let Some(fixture) = set(TEST) else { return };
    let address = fixture.service.http.unwrap();
    // As user 0 of its own namespace, which shares the machine's loopback.
    let container = ["unshare", "--user", "--map-root-user"];
    let mut probe = Command::new(container[0]);
    probe.args(&container[1..]).arg("true");
    if !as_user(MALLORY, MALLORY, probe).status().is_ok_and(|status| status.success()) {
        return skip(&format!("attacks::{TEST}"), "needs user namespaces for every user");
    }
    for path in PATHS {
        let his = asked(MALLORY, &container, address, path);
        assert!(his.starts_with("HTTP/1.1 200 OK"), "{his}");
        shows_nothing_of_ada(&fixture, &his);
    }
    // With a loopback of its own, the same address is another place.
    let apart = ["unshare", "--user", "--map-root-user", "--net"];
    assert_eq!(asked(MALLORY, &apart, address, "/api/v1/snapshot"), "");
    fixture.still_serves();
}
