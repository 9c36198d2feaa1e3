//! `telltale serve`: its start, its inputs, and its end.

mod legacy;
mod outlives;
mod reload;
mod sockets;
mod systemd;

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use telltale_harness::{ChildGuard, Scratch};

use crate::cli::command::{TIMEOUT, said, telltale};

/// A service whose log is read.
pub(crate) struct Serving {
    child: ChildGuard,
    log: Lines<BufReader<ChildStderr>>,
}

impl Serving {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = ChildGuard::spawn(command.stderr(Stdio::piped()));
        let log = BufReader::new(child.child().stderr.take().unwrap()).lines();
        Self { child, log }
    }

    /// Reads the log up to the line that has `words`.
    #[track_caller]
    pub(crate) fn says(&mut self, words: &str) -> String {
        let mut others = Vec::new();
        for line in self.log.by_ref().map(Result::unwrap) {
            if line.contains(words) {
                return line;
            }
            others.push(line);
        }
        panic!("it ended without saying {words:?}, but: {others:#?}")
    }

    /// Its pid.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn hang_up(&self) {
        let pid = Pid::from_raw(i32::try_from(self.id()).unwrap()).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
    }

    /// Ends it so that it can clean up nothing.
    pub(crate) fn kill(mut self) {
        self.child.kill();
    }

    #[track_caller]
    pub(crate) fn end(mut self) {
        self.child.terminate();
        let status = self.child.wait_within("the service to end", TIMEOUT);
        assert_eq!(status.code(), Some(0));
    }
}

/// A service for an empty machine, with all of its files in `place`.
pub(crate) fn serve(place: &Scratch) -> Command {
    let mut command = telltale();
    let within = |name: &str| {
        let path = place.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    command.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME").env_remove("TELLTALE_CONFIG");
    command.arg("serve").arg("--root").arg(within("root"));
    command.arg("--runtime-dir").arg(within("run")).arg("--state-dir").arg(within("state"));
    // The port by default may be taken; tests of HTTP take one that is free.
    command.env("TELLTALE_HTTP_LISTEN", "unix:http.sock");
    command
}

#[test]
fn it_answers_by_grpc_about_now_and_before() {
    let place = Scratch::new();
    let mut service = Serving::start(serve(&place).args(["--interval", "0.1"]));
    service.says("collecting");
    let socket = place.join("run").join(telltale_node::grpc::SOCKET_NAME);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = telltale_client::connect(&socket).await.unwrap();
        let one = client.snapshot(false).await.unwrap();
        let fresh = client.snapshot(true).await.unwrap();
        assert!(fresh.taken_at > one.taken_at);
        let mut updates = client.watch(std::time::Duration::ZERO).await.unwrap();
        let first = updates.next().await.unwrap().unwrap();
        let second = updates.next().await.unwrap().unwrap();
        assert!(second.sequence > first.sequence && second.snapshot.is_some());
    });
    service.end();
    assert!(!socket.exists());

    // The history has what the service before saw.
    let mut service = Serving::start(serve(&place).args(["--http", "off"]));
    service.says("collecting");
    let past = runtime.block_on(async {
        let mut client = telltale_client::connect(&socket).await.unwrap();
        let now = client.snapshot(false).await.unwrap().taken_at;
        client.snapshot_at(now).await.unwrap()
    });
    assert_eq!(past.sequence, None);
    service.end();
}

#[test]
fn several_hosts_have_the_same_fields_as_this_one_in_json() {
    let place = Scratch::new();
    let mut service = Serving::start(&mut serve(&place));
    service.says("collecting");
    let fields = |arguments: &[&str], at: &str| -> Vec<String> {
        let found = said(telltale().args(["smi", "--json"]).args(arguments));
        let json: Value = serde_json::from_str(&found.out).unwrap_or_else(|_| panic!("{found:?}"));
        json.pointer(at).and_then(Value::as_object).unwrap().keys().cloned().collect()
    };
    let (root, run) = (place.join("root"), place.join("run"));
    let here = ["--root", root.to_str().unwrap(), "--runtime-dir", run.to_str().unwrap()];
    let socket = format!("unix:{}", run.join(telltale_node::grpc::SOCKET_NAME).display());
    for at in ["", "/host"] {
        let from_host = fields(&["--hosts", &socket], &format!("/hosts/0/snapshot{at}"));
        assert_eq!(from_host, fields(&here, at), "{at}");
    }
    service.end();
}

#[test]
fn grpc_can_be_off_and_is_not_served_openly() {
    let place = Scratch::new();
    let mut service = Serving::start(serve(&place).args(["--grpc", "off"]));
    service.says("collecting");
    assert!(!place.join("run").join(telltale_node::grpc::SOCKET_NAME).exists());
    service.end();
    let output = serve(&place).args(["--grpc", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("readable on the network"), "{text}");
}

#[test]
fn a_part_that_cannot_be_had_ends_it_before_it_says_that_it_collects() {
    let place = Scratch::new();
    for (variable, value, words) in [
        ("TELLTALE_HTTP_LISTEN", "0.0.0.0:0", "there is no token"),
        ("TELLTALE_OTLP_HEADERS", "nameless", "is no header for OTLP"),
    ] {
        let mut command = serve(&place);
        command.env(variable, value).env("TELLTALE_OTLP_ENDPOINT", "http://127.0.0.1:9");
        let said = said(command.args(["--grpc", "off"]));
        assert_eq!(said.status, Some(2), "{said:?}");
        assert!(said.err.contains(words) && !said.err.contains("collecting each"), "{}", said.err);
    }
}

#[test]
fn an_interval_that_cannot_be_is_refused_with_what_can() {
    for interval in ["0", "0.01", "-1", "3601", "nan", "inf", "often"] {
        let place = Scratch::new();
        let said = said(serve(&place).arg(format!("--interval={interval}")));
        assert_eq!(said.status, Some(64), "{said:?}");
        assert!(said.err.contains("not a number of seconds from 0.1 to 3600"), "{}", said.err);
    }
}

#[test]
fn a_state_directory_that_was_named_and_cannot_be_used_ends_it() {
    let place = Scratch::new();
    fs::write(place.join("file"), "").unwrap();
    let mut command = telltale();
    command.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME").env_remove("TELLTALE_CONFIG");
    command.args(["serve", "--http", "off", "--grpc", "off", "--root"]).arg(place.path());
    command.arg("--runtime-dir").arg(place.join("run"));
    // The unnamed one is done without.
    let state = place.join("file");
    let mut by_default = Command::new(command.get_program());
    by_default.args(command.get_args()).env("HOME", place.path());
    fs::write(place.join("var"), "").unwrap();
    let mut service = Serving::start(&mut by_default);
    service.says("no history is kept: cannot use the state directory");
    service.says("collecting each");
    service.end();
    let said = said(command.arg("--state-dir").arg(&state));
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(said.err.contains("cannot use the state directory"), "{}", said.err);
}

#[test]
fn it_collects_until_a_signal_and_ends_cleanly() {
    for interrupt in [true, false] {
        let place = Scratch::new();
        let mut service = Serving::start(serve(&place).args(["--interval", "0.2"]));
        assert!(service.says("collecting").ends_with(" info: collecting each 0.2 s"));
        if interrupt {
            service.child.interrupt();
        } else {
            service.child.terminate();
        }
        service.says("ending");
        let status = service.child.wait_within("the service to end", TIMEOUT);
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn a_root_that_is_not_there_is_reported() {
    let mut command = telltale();
    let said = said(command.args(["serve", "--root", "/nonexistent"]));
    assert_eq!(said.status, Some(2));
    assert!(said.err.contains("/nonexistent"), "{said:?}");
}

#[test]
fn a_hang_up_has_the_configuration_read_again_and_a_bad_one_changes_nothing() {
    let place = Scratch::new();
    let file = place.join("t.toml");
    fs::write(&file, "interval_seconds = 7\n").unwrap();
    let mut service = Serving::start(serve(&place).arg("--config").arg(&file));
    service.says("collecting each 7 s");
    fs::write(&file, "interval_seconds = 9\nlog_level = \"warn\"\n[nonsense]\n").unwrap();
    service.hang_up();
    let line = service.says("the configuration stays as it was");
    assert!(line.contains(" error: ") && line.contains("t.toml:3:2: unknown key"), "{line}");
    fs::write(&file, "interval_seconds = 9\n").unwrap();
    service.hang_up();
    service.says("configuration read again; collecting each 9 s");
    // Hidden by an argument, so it is no change.
    fs::write(&file, "root = \"/elsewhere\"\nlog_level = \"debug\"\n").unwrap();
    service.hang_up();
    assert!(service.says("").contains("collecting each 1 s"));
    service.end();
}

#[test]
fn what_a_running_service_cannot_change_is_named() {
    let place = Scratch::new();
    let file = place.join("t.toml");
    fs::write(&file, "").unwrap();
    let root = place.join("root");
    fs::create_dir(&root).unwrap();
    let mut command = telltale();
    command.args(["serve", "--http", "off", "--config"]).arg(&file).env("TELLTALE_ROOT", &root);
    command.env("TELLTALE_RUNTIME_DIR", place.path());
    let mut service = Serving::start(&mut command);
    service.says("collecting");
    fs::write(&file, "state_dir = \"/elsewhere\"\n").unwrap();
    service.hang_up();
    service.says("warn: state_dir has changed, which takes effect after a restart");
    service.end();
}

#[test]
fn a_configuration_that_makes_no_sense_is_reported_and_nothing_starts() {
    let place = Scratch::new();
    let file = place.join("t.toml");
    fs::write(&file, "interval_second = 7\n").unwrap();
    let words = ["t.toml:1:1: unknown key `interval_second`; did you mean `interval_seconds`?"];
    said(serve(&place).arg("--config").arg(&file)).complains(2, &words);
    let mut check = telltale();
    said(check.args(["config", "check"]).arg(&file)).complains(2, &words);
    let words = ["the variable TELLTALE_INTERVAL_SECONDS is wrong", "0.1 to 3600"];
    said(serve(&place).env("TELLTALE_INTERVAL_SECONDS", "0")).complains(2, &words);
    said(serve(&place).args(["--config", "/nonexistent"])).complains(2, &["cannot read"]);
}

#[test]
fn what_the_service_would_refuse_is_reported_before_it_begins() {
    let place = Scratch::new();
    let file = place.join("t.toml");
    let checked = |text: &str, more: &[&str]| {
        fs::write(&file, text).unwrap();
        let mut check = telltale();
        check.env("HOME", place.path()).args(["config", "check"]).args(more);
        said(check.arg(&file))
    };
    let half = format!("\n[grpc]\ncertificate = {:?}\n", place.join("none"));
    checked(&half, &[]).complains(2, &["t.toml:3: grpc.certificate: TLS needs both"]);
    let two = "token_file = \"/none\"\nstate_dir = \"/dev/null/x\"\n";
    let found = checked(two, &[]);
    assert_eq!((found.status, found.err.lines().count()), (Some(2), 2), "{found:?}");
    for words in ["t.toml:2: state_dir: cannot use", "t.toml:1: token_file: cannot read"] {
        assert!(found.err.contains(words), "{found:?}");
    }
    assert_eq!(checked(two, &["--syntax-only"]).status, Some(0));
    // What is checked is what the service refuses; and variables count where no file is named.
    fs::write(&file, &half).unwrap();
    let refused = said(serve(&place).arg("--config").arg(&file));
    assert!(refused.err.contains("gRPC cannot be served: TLS needs both"), "{refused:?}");
    let mut check = telltale();
    check.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME").env_remove("TELLTALE_CONFIG");
    check.env("TELLTALE_HTTP_LISTEN", "0.0.0.0:9435").args(["config", "check"]);
    let words = ["TELLTALE_HTTP_LISTEN: http.listen: other machines reach", "no token"];
    said(&mut check).complains(2, &words);
}

#[test]
fn a_configuration_file_that_is_a_pipe_or_a_device_is_not_waited_for() {
    let place = Scratch::new();
    let pipe = place.join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    for path in [pipe.as_path(), Path::new("/dev/zero"), place.path()] {
        let words = [path.to_str().unwrap(), "it is no regular file"];
        said(telltale().args(["config", "check"]).arg(path)).complains(2, &words);
        said(serve(&place).arg("--config").arg(path)).complains(2, &words);
    }
}

fn shown(place: &Path, more: &[&str]) -> String {
    let mut command = telltale();
    command.env("HOME", place).env_remove("XDG_CONFIG_HOME").env_remove("TELLTALE_CONFIG");
    command.env("TELLTALE_LOG_LEVEL", "debug").env("TELLTALE_LOG_LEVL", "debug");
    let said = said(command.args(["config", "show", "--interval", "5"]).args(more));
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.err.contains("nothing reads the variable TELLTALE_LOG_LEVL"), "{said:?}");
    said.out
}

#[test]
fn each_key_is_shown_with_its_value_and_where_that_comes_from() {
    let place = Scratch::new();
    let file = place.join(".config/telltale/telltale.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "\nruntime_dir = \"/r\"\n").unwrap();
    let text = shown(place.path(), &[]);
    let line = |key: &str| {
        let found = text.lines().find(|line| line.contains(key));
        found.unwrap_or_else(|| panic!("{text}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("runtime_dir"), format!("runtime_dir = \"/r\" # {}:2", file.display()));
    assert_eq!(line("log_level"), "log_level = \"debug\" # TELLTALE_LOG_LEVEL");
    assert_eq!(line("interval_seconds"), "interval_seconds = 5.0 # --interval");
    assert_eq!(line("state_dir"), "# state_dir is not set # default");
    // As it is shown, it is a configuration.
    let copy = place.join("copy.toml");
    fs::write(&copy, &text).unwrap();
    let mut check = telltale();
    let said = said(check.args(["config", "check"]).arg(&copy));
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    let json: serde_json::Value = serde_json::from_str(&shown(place.path(), &["--json"])).unwrap();
    let row = json.as_array().unwrap().iter().find(|row| row["key"] == "interval_seconds");
    let expected = serde_json::json!({
        "key": "interval_seconds",
        "variable": "TELLTALE_INTERVAL_SECONDS",
        "kind": "number",
        "value": 5.0,
        "origin": "--interval",
    });
    assert_eq!(row, Some(&expected));
}
