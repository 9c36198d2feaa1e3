//! A coordinator at a socket file and at a port of the loopback: root and its own user may call, no other
//! else without the token.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use telltale_harness::{ChildGuard, Scratch, as_user, needs_root, wait_until};

const TIMEOUT: Duration = Duration::from_secs(60);
const STRANGER: u32 = 61_052;
const TOKEN: &str = "a-token-of-the-tests";

fn telltale() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_telltale"));
    // What another user's command leaves is not searched for in our own directories.
    command.env_remove("XDG_RUNTIME_DIR").current_dir("/");
    command
}

fn written(path: &Path, mode: u32) {
    fs::write(path, TOKEN).expect("a token file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
}

#[test]
fn another_user_is_shut_out_where_no_token_reports_who_may_call() {
    if !needs_root(
        "telltale::cluster::another_user_is_shut_out_where_no_token_reports_who_may_call",
    ) {
        return;
    }
    for (has_token, is_port) in [(false, false), (true, false), (false, true), (true, true)] {
        let place = Scratch::new();
        place.set_mode(0o755);
        let address = if is_port {
            let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
            port.expect("a free port").to_string()
        } else {
            format!("unix:{}", place.join("coordinator.sock").display())
        };
        let [own, theirs] = ["own", "theirs"].map(|name| place.join(name));
        written(&own, 0o600);
        written(&theirs, 0o600);
        std::os::unix::fs::chown(&theirs, Some(STRANGER), Some(STRANGER)).expect("root may");
        let mut command = telltale();
        command.args(["coordinator", "--nodes", "1", "--no-http", "--log-level", "error"]);
        command.arg("--journal").arg(place.join("journal"));
        command.args(["--listen", &address]);
        if has_token {
            command.arg("--token-file").arg(&own);
        }
        let _coordinator = ChildGuard::spawn(&mut command);
        let ask = |token: Option<&Path>| {
            let mut command = telltale();
            command.args(["cluster", "status", "--json", "--coordinator", &address]);
            if let Some(token) = token {
                command.arg("--token-file").arg(token);
            }
            command
        };
        let reported =
            |output: &Output| String::from_utf8_lossy(&output.stdout).contains("\"job\"");
        wait_until("the coordinator answers its own user", TIMEOUT, || {
            reported(&ask(has_token.then_some(&own)).output().expect("it runs"))
        });
        let as_stranger =
            |token| as_user(STRANGER, STRANGER, ask(token)).output().expect("it runs");
        let without = as_stranger(None);
        assert!(!reported(&without) && without.status.code() == Some(2), "{without:?}");
        if !has_token {
            let why = String::from_utf8_lossy(&without.stderr);
            let reason = match is_port {
                true => "only root and the coordinator's own user may call",
                false => "perhaps it serves its own user and root alone, or has just ended",
            };
            assert!(why.contains(reason), "{why}");
        }
        let with = as_stranger(Some(&theirs));
        assert_eq!(reported(&with), has_token, "{with:?}");
    }
}
