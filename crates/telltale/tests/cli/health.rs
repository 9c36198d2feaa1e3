//! `telltale health`: what each state of a real service comes to for a probe.

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use telltale_harness::{Scratch, wait_until};

use crate::cli::command::{Said, TIMEOUT, said, telltale};
use crate::cli::serve::{Serving, serve};

/// The command for the service in `place`.
fn health(place: &Scratch, more: &[&str]) -> Said {
    said(telltale().arg("health").arg("--runtime-dir").arg(place.join("run")).args(more))
}

fn as_json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

fn socket(place: &Scratch) -> String {
    format!("unix:{}", place.join("run/telemetry.sock").display())
}

#[test]
fn a_service_that_serves_is_status_0() {
    let place = Scratch::new();
    let mut service = Serving::start(&mut serve(&place));
    service.says("collecting");
    let plain = health(&place, &[]);
    assert_eq!((plain.status, plain.out.as_str()), (Some(0), "serving\n"), "{plain:?}");
    let named = health(&place, &["--endpoint", &socket(&place), "--json"]);
    let expected = json!({"endpoint": socket(&place), "status": "serving", "reason": null});
    assert_eq!((named.status, as_json(&named)), (Some(0), expected));
    service.end();
    let gone = health(&place, &["--json"]);
    assert_eq!((gone.status, as_json(&gone)["status"].as_str()), (Some(2), Some("unreachable")));
}

#[test]
fn a_service_that_has_nothing_new_is_status_1() {
    let place = Scratch::new();
    let mut service = Serving::start(serve(&place).args(["--interval", "0.1"]));
    service.says("collecting");
    wait_until("the service to serve", TIMEOUT, || health(&place, &[]).status == Some(0));
    // The kernel blocks readers of this, as a driver that hangs does.
    let module = place.join("root/sys/module/tenstorrent");
    fs::create_dir_all(&module).unwrap();
    assert!(Command::new("mkfifo").arg(module.join("version")).status().unwrap().success());
    wait_until("the service to be stuck", TIMEOUT, || health(&place, &[]).status == Some(1));
    let said = health(&place, &["--json"]);
    assert_eq!((said.status, as_json(&said)["status"].as_str()), (Some(1), Some("not_serving")));
    assert_eq!(health(&place, &[]).out, "not serving\n");
}

#[test]
fn a_service_that_cannot_be_reached_is_status_2() {
    let place = Scratch::new();
    health(&place, &[]).complains(2, &["no runtime directory"]);
    fs::create_dir(place.join("run")).unwrap();
    let words = ["no service at", "telemetry.sock", "telltale serve"];
    health(&place, &[]).complains(2, &words);
    health(&place, &["--endpoint", "127.0.0.1:1"]).complains(2, &["no service answers", ":1"]);
    let mut service = Serving::start(&mut serve(&place));
    service.says("collecting");
    let tls = ["--endpoint", &socket(&place), "--authority", "/nonexistent"];
    health(&place, &tls).complains(2, &["TLS is for ports"]);
    // A stopped process accepts connections and says nothing.
    let pid = Pid::from_raw(i32::try_from(service.id()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    health(&place, &["--timeout", "0.3"]).complains(2, &["did not answer within 0.3 s"]);
}

#[test]
fn a_port_is_asked_by_address_and_by_name() {
    let place = Scratch::new();
    // A socket that is handed over has a port that no other can have.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut service = Serving::start(&mut handed_over(&place, listener));
    service.says("collecting");
    for host in ["127.0.0.1", "localhost"] {
        let endpoint = format!("{host}:{port}");
        let said = health(&place, &["--endpoint", &endpoint, "--json"]);
        let expected = json!({"endpoint": endpoint, "status": "serving", "reason": null});
        assert_eq!((said.status, as_json(&said)), (Some(0), expected));
    }
    service.end();
}

#[test]
fn what_is_no_endpoint_is_wrong_usage() {
    for bad in ["", "9436", "http://node7:9436", "unix:"] {
        let said = said(telltale().args(["health", "--endpoint", bad]));
        assert_eq!(said.status, Some(64), "{bad}: {said:?}");
    }
    let alone = said(telltale().args(["health", "--authority", "x.pem"]));
    assert_eq!(alone.status, Some(64), "{alone:?}");
    assert!(alone.err.contains("--endpoint"), "{alone:?}");
}

/// A service that is given `listener` for gRPC, as systemd would.
fn handed_over(place: &Scratch, listener: TcpListener) -> Command {
    let inner = serve(place);
    let mut command = Command::new("sh");
    // A shell hands its own standard input over in the place of the first socket.
    command.args(["-c", "LISTEN_PID=$$ exec \"$@\" 3<&0 0</dev/null", "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    let variables = inner.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(variables).env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", "grpc");
    command.current_dir(Path::new("/")).stdin(Stdio::from(OwnedFd::from(listener)));
    command
}
