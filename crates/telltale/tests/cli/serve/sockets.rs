//! The service's sockets: one service has them, a dead one leaves nothing in the way, and systemd
//! may hand them over.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

use telltale_harness::Scratch;

use super::{Serving, serve};
use crate::cli::command::{TIMEOUT, said};

/// A service with a socket in its runtime directory.
fn with_socket(place: &Scratch) -> Command {
    let mut command = serve(place);
    command.args(["--http", "unix:http.sock"]);
    command
}

/// The status line of an answer.
fn asked(socket: &Path) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_directory_in_its_place_is_named_and_stays() {
    let place = Scratch::new();
    let socket = place.join("run/http.sock");
    let mut service = with_socket(&place);
    std::fs::create_dir_all(socket.join("precious")).unwrap();
    let refused = said(&mut service);
    let words = format!("cannot listen on {}; a directory of user ", socket.display());
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.err.contains(&words), "{refused:?}");
    assert!(refused.err.contains("move it away if it is not needed, or choose another path"));
    assert!(socket.join("precious").is_dir());
    std::fs::remove_dir_all(&socket).unwrap();
    let mut service = Serving::start(&mut with_socket(&place));
    service.says("collecting");
    service.end();
}

#[test]
fn a_second_service_is_reported_who_is_there_and_harms_nothing() {
    let place = Scratch::new();
    let socket = place.join("run/http.sock");
    let mut first = Serving::start(&mut with_socket(&place));
    first.says("collecting");
    let process = format!("process {}", first.child.id());
    let of_one_state = said(&mut with_socket(&place));
    let without_state = said(with_socket(&place).env("TELLTALE_HISTORY_ENABLED", "false"));
    for (second, words) in
        [(of_one_state, ", has the state directory"), (without_state, " of user ")]
    {
        assert_eq!(second.status, Some(2), "{second:?}");
        let words = format!("{process}{words}");
        assert!(second.err.lines().last().unwrap().contains(&words), "{second:?}");
    }
    assert_eq!(asked(&socket), "HTTP/1.1 200 OK");
    first.end();
    assert!(!socket.exists());
}

#[test]
fn what_a_killed_service_left_is_in_nobody_s_way() {
    let place = Scratch::new();
    let socket = place.join("run/http.sock");
    let mut first = Serving::start(&mut with_socket(&place));
    first.says("collecting");
    first.child.kill();
    assert!(socket.exists());
    let mut second = Serving::start(&mut with_socket(&place));
    second.says("collecting");
    assert_eq!(asked(&socket), "HTTP/1.1 200 OK");
    second.end();
    assert!(!socket.exists());
}

#[test]
fn a_socket_that_was_handed_over_is_used_and_left_alone() {
    let place = Scratch::new();
    let socket = place.join("handed.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let inner = with_socket(&place);
    let mut command = Command::new("sh");
    // A shell hands its own standard input over in the place of the first socket.
    command.args(["-c", "LISTEN_PID=$$ exec \"$@\" 3<&0 0</dev/null", "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.env("HOME", place.path()).env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", "http");
    command.stdin(Stdio::from(OwnedFd::from(listener.try_clone().unwrap())));
    let mut service = Serving::start(&mut command);
    service.says("collecting");
    assert_eq!(asked(&socket), "HTTP/1.1 200 OK");
    assert!(!place.join("run/http.sock").exists(), "nothing beside what was handed over");
    service.end();
    assert!(socket.exists(), "it is systemd's");
}
