//! A sensor is added to a copy of the tree by one declaration and one line in its source; the copy is built, and every
//! output has it. It takes a build of all.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use telltale_harness::{ChildGuard, Scratch, long, skip, wait_until};
use xtask::repository;

const DECLARATION: &str = r#"
[[sensor]]
field = "inlet_temperature_celsius"
doc = "Temperature of the air that comes in."
proto = 99
type = "float"
metric = "telltale_device_temperature_celsius"
label = { sensor = "inlet" }
history = NUMBER
title = "inlet temperature"
help = "temperature of the air that comes in"
decimals = 1
heading = "INLET"
show = ["table", "graph", "csv"]
later = true
"#;
/// The source's line, and the one before it.
const LINE: &str = r#"    hwmon("temp9_input", MILLI, -40.0, 150.0, |to, value| to.inlet_temperature_celsius = value),"#;
const BEFORE: &str =
    r#"    hwmon("temp1_input", MILLI, -40.0, 150.0, |to, value| to.temperature_celsius = value),"#;
const SOURCE: &str = "crates/collector/src/tenstorrent/fields.rs";
const SENSORS: &str = "crates/schema/sensors.toml";

#[test]
fn a_sensor_is_one_declaration_and_one_line_in_its_source() {
    if !long() {
        let name = "xtask::new_sensor::a_sensor_is_one_declaration_and_one_line_in_its_source";
        return skip(name, "it builds a copy of the tree; TELLTALE_LONG_TESTS=1 runs it");
    }
    let scratch = Scratch::within(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let tree = scratch.join("tree");
    copy(&repository::root(), &tree);
    declare(&tree);
    run(cargo(&tree).args(["run", "--quiet", "-p", "xtask", "--", "generate"]));
    run(cargo(&tree).args(["build", "--quiet", "-p", "telltale", "--bin", "telltale"]));

    let made = |path: &str| fs::read_to_string(tree.join(path)).unwrap();
    for (path, words) in [
        ("docs/query.md", "| `inlet_temperature` | a temperature | temperature of the air"),
        ("docs/snapshot.schema.json", "\"inlet_temperature_celsius\""),
        ("deploy/grafana/telltale.json", "\"title\": \"Inlet temperature\""),
        ("crates/wire/proto/telemetry.proto", "NumberReading inlet_temperature_celsius = 99;"),
    ] {
        assert!(made(path).contains(words), "{path} lacks {words}");
    }

    let machine = Machine::start(target(&tree).join("debug/telltale"), &scratch);
    machine.on_the_command_line();
    machine.in_a_recording();
    machine.by_the_service();
}

/// Copies what is tracked, as it is in the working tree.
fn copy(from: &Path, to: &Path) {
    let list = Command::new("git").arg("-C").arg(from).args(["ls-files", "-z"]).output().unwrap();
    for path in String::from_utf8(list.stdout).unwrap().split_terminator('\0') {
        // One that is deleted and not committed is still listed.
        if from.join(path).is_file() {
            fs::create_dir_all(to.join(path).parent().unwrap()).unwrap();
            fs::copy(from.join(path), to.join(path)).unwrap();
        }
    }
}

fn declare(tree: &Path) {
    let sensors = fs::read_to_string(tree.join(SENSORS)).unwrap();
    let kept = sensors.lines().filter(|line| line.starts_with("history = ")).count();
    let entry = DECLARATION.replace("NUMBER", &kept.to_string());
    // Sensors of one metric are in the order of their series.
    let behind = sensors.find("\n[[sensor]]\nfield = \"temperature_limit_celsius\"").unwrap();
    let (first, rest) = sensors.split_at(behind);
    fs::write(tree.join(SENSORS), format!("{first}{entry}{rest}")).unwrap();
    let source = fs::read_to_string(tree.join(SOURCE)).unwrap();
    assert!(source.contains(BEFORE));
    fs::write(tree.join(SOURCE), source.replace(BEFORE, &format!("{BEFORE}\n{LINE}"))).unwrap();
}

fn target(tree: &Path) -> PathBuf {
    tree.join("target")
}

fn cargo(tree: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(tree).env("CARGO_TARGET_DIR", target(tree)).env("CARGO_INCREMENTAL", "0");
    cargo.env_remove("RUSTFLAGS").env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The copy's program, and an emulated machine whose chip has the sensor.
struct Machine {
    telltale: PathBuf,
    root: PathBuf,
    runtime: PathBuf,
    state: PathBuf,
    _emulator: ChildGuard,
}

impl Machine {
    fn start(telltale: PathBuf, scratch: &Scratch) -> Self {
        let [root, runtime, state] = ["root", "run", "state"].map(|name| scratch.join(name));
        for directory in [&root, &runtime, &state] {
            fs::create_dir(directory).unwrap();
        }
        let mut emulate = Command::new(&telltale);
        emulate.args(["emulate", "--machine", "n150", "--root"]).arg(&root).stdout(Stdio::null());
        let emulator = ChildGuard::spawn(&mut emulate);
        // The other one is the host's.
        let sensor = || {
            let all = fs::read_dir(root.join("sys/class/hwmon")).ok()?.flatten();
            let chip = all.map(|one| one.path()).find(|one| one.join("power1_label").is_file());
            chip.map(|chip| chip.join("temp9_input"))
        };
        wait_until("the machine is there", Duration::from_secs(30), || sensor().is_some());
        fs::write(sensor().unwrap(), "31500\n").unwrap();
        Self { telltale, root, runtime, state, _emulator: emulator }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.telltale);
        command.args(arguments).arg("--root").arg(&self.root);
        command.arg("--runtime-dir").arg(&self.runtime).env("HOME", &self.state);
        command
    }

    fn on_the_command_line(&self) {
        let table = run(&mut self.command(&["smi"]));
        assert!(table.contains("INLET") && table.contains("32 C"), "{table}");
        let details = run(&mut self.command(&["smi", "--details"]));
        assert!(details.contains("inlet temperature     31.5 C"), "{details}");
        let json: Value =
            serde_json::from_str(&run(&mut self.command(&["smi", "--json"]))).unwrap();
        assert_eq!(value(&json), 31.5);
        let csv = run(&mut self.command(&["smi", "--csv"]));
        assert!(csv.contains("inlet_temperature_celsius") && csv.contains(",31.5,"), "{csv}");
        let chosen =
            ["smi", "--query-device", "inlet_temperature", "--format", "csv,noheader,nounits"];
        assert_eq!(run(&mut self.command(&chosen)).trim(), "31.5");
        for (query, found) in
            [("inlet_temperature > 31C", true), ("inlet_temperature > 32C", false)]
        {
            let json = run(&mut self.command(&["smi", "--json", "--filter", query]));
            let json: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["devices"].as_array().unwrap().len() == 1, found, "{query}");
        }
    }

    fn in_a_recording(&self) {
        let file = self.state.join("recording");
        let name = file.to_str().unwrap();
        run(&mut self.command(&["record", name, "--every", "0.1", "--for", "0.5"]));
        let json = run(Command::new(&self.telltale).args(["smi", "--json", "--replay", name]));
        assert_eq!(value(&serde_json::from_str(&json).unwrap()), 31.5);
    }

    /// Prometheus, the page, the history, gRPC, and OTLP.
    fn by_the_service(&self) {
        let (receiver, received) = receiver();
        let [http, grpc] = [free_port(), free_port()];
        let configuration = self.state.join("telltale.toml");
        fs::write(
            &configuration,
            format!("[otlp]\nendpoint = \"http://127.0.0.1:{receiver}\"\nprotocol = \"http\"\ninterval_seconds = 1\ntimeout_seconds = 1\n"),
        )
        .unwrap();
        let mut serve = self.command(&["serve", "--interval", "0.2", "--no-nvml"]);
        serve
            .arg("--config")
            .arg(&configuration)
            .arg("--state-dir")
            .arg(self.state.join("history"));
        serve.args([
            "--http",
            &format!("127.0.0.1:{http}"),
            "--grpc",
            &format!("127.0.0.1:{grpc}"),
        ]);
        let _service = ChildGuard::spawn(serve.stdout(Stdio::null()));
        let ask = |path: &str| get(http, path);
        wait_until("the service collects", Duration::from_secs(30), || {
            ask("/metrics").contains("sensor=\"inlet\"} 31.5")
        });
        assert!(ask("/assets/sensors.js").contains("\"name\":\"inlet_temperature\""));
        wait_until("the history has it", Duration::from_secs(60), || {
            ask("/api/v1/history?metric=inlet_temperature&seconds=60").contains("31.5")
        });
        let remote = format!("127.0.0.1:{grpc}");
        let json = run(Command::new(&self.telltale).args(["smi", "--json", "--hosts", &remote]));
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value(&json["hosts"][0]["snapshot"]), 31.5);
        wait_until("OTLP has it", Duration::from_secs(30), || {
            let bytes = received.lock().unwrap();
            let has = |words: &[u8]| bytes.windows(words.len()).any(|part| part == words);
            has(b"hw.sensor_location") && has(b"inlet")
        });
    }
}

/// What the sensor says of the first device.
fn value(snapshot: &Value) -> f64 {
    snapshot["devices"][0]["telemetry"]["inlet_temperature_celsius"]["value"]
        .as_f64()
        .unwrap_or(f64::NAN)
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn get(port: u16, path: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return String::new() };
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ended_early = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Takes whatever is posted, and says that all is well.
fn receiver() -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = Arc::new(Mutex::new(Vec::new()));
    let kept = received.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            let mut bytes = [0; 65_536];
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                kept.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
            let _gone = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    (port, received)
}
