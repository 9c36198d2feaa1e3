//! What a running service takes over of the files that its configuration names.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use telltale_harness::Scratch;

use super::{Serving, serve};
use crate::command::PATIENCE;

const FIRST: &str = "first-token-of-this-test";
const SECOND: &str = "second-token-of-this-test";

fn written(place: &Scratch, name: &str, text: &str) -> PathBuf {
    let path = place.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

/// The status of an answer to whoever has this token.
fn status(address: &str, token: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
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
    service.says("stays as it was: TLS for gRPC needs both");
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
