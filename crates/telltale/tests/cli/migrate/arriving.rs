//! How clients come to a service: by systemd's socket, without a runtime directory, from the old server.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

use serde_json::Value;
use telltale_harness::{Scratch, wait_until};

use super::{Bench, alloc, serve};
use crate::cli::command::{TIMEOUT, emulate, said, telltale};
use crate::cli::serve::Serving;

#[test]
fn a_socket_named_legacy_from_systemd_is_served() {
    let place = Scratch::new();
    let root = place.join("m");
    let machine = emulate("n150", &root, &[]);
    let socket = place.join("allocation.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let inner = serve(&place, &root);
    let mut command = Command::new("sh");
    // A shell hands its own standard input over in the place of the first socket.
    command.args(["-c", "LISTEN_PID=$$ exec \"$@\" 3<&0 0</dev/null", "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.env("HOME", place.path()).env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", "legacy");
    command.stdin(Stdio::from(OwnedFd::from(listener)));
    let mut service = Serving::start(&mut command);
    service.says("collecting");
    let bench = Bench { place, root, _machine: machine, service };
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(&alloc(77, 1)).unwrap();
    bench.comes_to(std::process::id(), "dram", 77);
    bench.service.end();
    assert!(socket.exists(), "it is systemd's");
}

#[test]
fn without_a_runtime_directory_the_service_warns_and_shows_them_alone() {
    let place = Scratch::new();
    let root = place.join("m");
    let machine = emulate("n150", &root, &[]);
    let mut command = serve(&place, &root);
    command.arg("--legacy-allocation-socket").arg(place.join("allocation.sock"));
    let run = place.join("run");
    fs::remove_dir(&run).unwrap();
    let mut service = Serving::start(&mut command);
    let line = service.says("do not learn of legacy processes");
    assert!(line.contains(" warn: without a runtime directory `telltale smi`"), "{line}");
    service.says("collecting");
    let bench = Bench { place, root, _machine: machine, service };
    let mut stream = UnixStream::connect(bench.socket()).unwrap();
    stream.write_all(&alloc(77, 1)).unwrap();
    bench.comes_to(std::process::id(), "dram", 77);
    let mut smi = telltale();
    smi.args(["smi", "--json", "--root"]).arg(&bench.root).arg("--runtime-dir").arg(run);
    let shown: Value = serde_json::from_str(&said(&mut smi).out).unwrap();
    assert_eq!(shown["processes"], Value::Array(Vec::new()), "{shown}");
}

#[test]
fn a_client_that_does_not_zero_its_messages_is_not_understood() {
    let bench = Bench::of("n150");
    let mut message = [0xa5; 112];
    // The fields of a request are set, and what is the answer's was never written.
    message[..40].copy_from_slice(&alloc(77, 1)[..40]);
    let mut stream = UnixStream::connect(bench.socket()).unwrap();
    stream.write_all(&message).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    // The connection is closed, by a reset where something is unread.
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
    wait_until("it to be counted", TIMEOUT, || {
        let label = "reason=\"contradictory_form\"";
        bench.metric("telltale_legacy_refused_total", &[label]) == Some(1.0)
    });
    assert!(bench.process(std::process::id()).is_none());
}

#[test]
fn a_client_of_the_old_server_connects_again_and_what_it_had_is_not_known() {
    let place = Scratch::new();
    let root = place.join("m");
    let machine = emulate("n150", &root, &[]);
    let socket = place.join("allocation.sock");
    // The old server, which ends.
    let server = UnixListener::bind(&socket).unwrap();
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(&alloc(1000, 1)).unwrap();
    drop(server);
    let mut command = serve(&place, &root);
    command.arg("--legacy-allocation-socket").arg(&socket);
    let mut service = Serving::start(&mut command);
    service.says("collecting");
    let bench = Bench { place, root, _machine: machine, service };
    // Its next message does not go through, so it connects and sends it again.
    let next = alloc(50, 2);
    stream.write_all(&next).unwrap_err();
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(&next).unwrap();
    bench.comes_to(std::process::id(), "dram", 50);
    // What it frees of before was never there.
    let mut free = alloc(0, 1);
    free[0] = 2;
    stream.write_all(&free).unwrap();
    wait_until("it to be counted", TIMEOUT, || {
        let label = "reason=\"unknown_free\"";
        bench.metric("telltale_legacy_refused_total", &[label]) == Some(1.0)
    });
    assert_eq!(bench.kind(std::process::id(), "dram")["live_bytes"], 50);
}
