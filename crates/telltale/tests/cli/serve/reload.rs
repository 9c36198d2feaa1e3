//! What a running service takes over of the files that its configuration names.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use telltale_harness::Scratch;
use telltale_harness::authority::{Authority, Wish};

use super::{Serving, serve};
use crate::cli::command::{TIMEOUT, said, telltale};

const FIRST: &str = "first-token-of-this-test";
const SECOND: &str = "second-token-of-this-test";

fn written(place: &Scratch, name: &str, text: &str) -> PathBuf {
    let path = place.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

/// The status of an answer to a client with this token.
fn status(address: &str, token: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close");
    stream
        .write_all(format!("GET /api/v1/snapshot HTTP/1.1\r\n{head}\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_token_is_read_again_and_a_bad_one_changes_nothing() {
    let place = Scratch::new();
    let token = written(&place, "token", FIRST);
    let mut command = serve(&place);
    command.env("TELLTALE_TOKEN_FILE", &token).args(["--http", "127.0.0.1:0"]);
    let mut service = Serving::start(&mut command);
    let line = service.says("http listens on ");
    let address = line.rsplit(' ').next().unwrap().to_owned();
    service.says("collecting");
    let seen = || (status(&address, FIRST), status(&address, SECOND));
    let answers = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    assert_eq!(seen(), answers("200", "401"));

    written(&place, "token", SECOND);
    service.hang_up();
    service.says("configuration read again");
    assert_eq!(seen(), answers("401", "200"));

    written(&place, "token", "short");
    service.hang_up();
    let line = service.says("the configuration stays as it was");
    assert!(line.contains("the token file"), "{line}");
    assert_eq!(seen(), answers("401", "200"));
    service.end();
}

#[test]
fn certificates_that_do_not_go_together_are_refused_and_what_needs_a_restart_is_named() {
    let place = Scratch::new();
    let file = written(&place, "t.toml", "");
    let mut command = serve(&place);
    let mut service = Serving::start(command.arg("--config").arg(&file));
    service.says("collecting");
    let half = format!("[grpc]\ncertificate = {:?}\n", written(&place, "c.pem", "x"));
    written(&place, "t.toml", &half);
    service.hang_up();
    service.says("stays as it was: TLS needs both");
    written(&place, "t.toml", "[grpc]\nconnections = 7\n[http]\npublic = true\n");
    service.hang_up();
    service.says("grpc.connections has changed, which takes effect after a restart");
    service.says("http.public has changed, which takes effect after a restart");
    // It is said for as long as it is so, and of no other key.
    service.hang_up();
    service.says("configuration read again");
    service.says("grpc.connections has changed, which takes effect after a restart");
    service.says("http.public has changed, which takes effect after a restart");
    written(&place, "t.toml", "[http]\nstreams = 3\n");
    service.hang_up();
    service.says("configuration read again");
    let line = service.says("");
    assert!(line.contains("http.streams has changed, which takes effect"), "{line}");
    written(&place, "t.toml", "");
    service.hang_up();
    service.says("configuration read again");
    service.hang_up();
    let line = service.says("");
    assert!(line.contains("configuration read again"), "{line}");
    service.end();
}

#[test]
fn http_speaks_tls_and_keeps_a_good_certificate_over_one_that_callers_would_refuse() {
    let (place, authority) = (Scratch::new(), Authority::new("one"));
    let [certificate, key] = authority.server().write(place.path(), "own");
    let callers = place.join("callers.pem");
    fs::write(&callers, authority.pem()).unwrap();
    let file = written(
        &place,
        "t.toml",
        &format!(
            "[http]\ncertificate = {certificate:?}\nkey = {key:?}\nclient_authority = {callers:?}\n"
        ),
    );
    let mut command = serve(&place);
    command.args(["--http", "127.0.0.1:0", "--config"]).arg(&file);
    let mut service = Serving::start(&mut command);
    let line = service.says("http listens on ");
    let port: u16 = line.rsplit(':').next().unwrap().parse().unwrap();
    service.says("collecting");
    let request = b"GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let is_answered = || {
        let answer = authority.ask(port, Some(&authority.client()), request);
        answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    };
    assert!(is_answered());
    assert!(authority.ask(port, None, request).is_err(), "callers need a certificate");
    let mut plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
    plain.write_all(request).unwrap();
    let mut answer = Vec::new();
    let _refused = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "nothing is understood without TLS");

    let expired = authority.sign(&Wish { valid: -172_800..-86_400, ..Wish::default() });
    expired.write(place.path(), "own");
    service.hang_up();
    let line = service.says("keeping HTTP's TLS files");
    assert!(line.contains("has expired"), "{line}");
    assert!(is_answered());
    let checked = said(telltale().args(["config", "check"]).arg(&file));
    assert_eq!(checked.status, Some(2), "{checked:?}");
    assert!(
        checked.err.contains("http.certificate: ") && checked.err.contains("has expired"),
        "{checked:?}"
    );
    authority.server().write(place.path(), "own");
    service.hang_up();
    service.says("HTTP takes new connections with the TLS files as they are now");
    assert!(is_answered());
    service.end();
}
