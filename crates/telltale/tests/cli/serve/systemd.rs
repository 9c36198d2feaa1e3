//! What systemd gives the service, and what it reports: here by a socket and variables of our own.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use telltale_harness::Scratch;

use super::{Serving, serve};
use crate::cli::command::{TIMEOUT, said};

/// The socket on which systemd would listen.
struct Manager(UnixDatagram);

impl Manager {
    fn new(place: &Scratch) -> Self {
        let socket = UnixDatagram::bind(place.join("notify")).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self(socket)
    }

    /// The next message that begins with `words`.
    #[track_caller]
    fn hears(&self, words: &str) -> String {
        let mut buffer = [0; 4096];
        loop {
            let length = self.0.recv(&mut buffer).unwrap_or_else(|_| panic!("nobody says {words}"));
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.starts_with(words) {
                return text;
            }
        }
    }
}

#[test]
fn it_hears_of_readiness_life_reload_and_end() {
    let place = Scratch::new();
    let manager = Manager::new(&place);
    let mut command = serve(&place);
    command.env("NOTIFY_SOCKET", place.join("notify"));
    command.env("WATCHDOG_USEC", Duration::from_millis(100).as_micros().to_string());
    let service = Serving::start(&mut command);
    let ready = manager.hears("READY=1");
    assert!(ready.contains("STATUS=Devices: 0, processes: 0"), "{ready}");
    manager.hears("WATCHDOG=1");
    manager.hears("WATCHDOG=1");
    service.hang_up();
    assert!(manager.hears("RELOADING=1").contains("MONOTONIC_USEC="));
    manager.hears("READY=1");
    service.end();
    manager.hears("STOPPING=1");
}

#[test]
fn a_manager_that_is_not_there_is_no_reason_to_end() {
    let place = Scratch::new();
    let mut command = serve(&place);
    let mut service = Serving::start(command.env("NOTIFY_SOCKET", place.join("nobody")));
    service.says("cannot notify systemd of the service's state");
    service.end();
}

#[test]
fn a_socket_of_a_part_that_is_not_known_is_refused() {
    let place = Scratch::new();
    // A shell hands its own standard input over in the place of the first socket.
    let mut command = std::process::Command::new("sh");
    let inner = serve(&place);
    command.args(["-c", "LISTEN_PID=$$ exec \"$@\" 3<&0", "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", "nonsense");
    command.stdin(std::process::Stdio::null());
    said(&mut command).complains(2, &["named nonsense", "grpc, http"]);
    command.env("LISTEN_FDNAMES", "http");
    said(&mut command).complains(2, &["descriptor 0", "(http)", "no listening"]);
}
