//! docs/migrate.md, sentence by sentence: a service in the place of the allocation server, asked by
//! that server's own clients (`client.c`, in the three forms of its messages), and what dashboards
//! and scripts find instead of what they had.
//!
//! Sentences about the three forms and contradictions are tried in `telltale-node`
//! (`collecting/legacy.rs`, `legacy/`), those about regions in [`crate::cli::regions`], the table in
//! `telltale smi` beside it.

mod arriving;
mod limits;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use serde_json::Value;
use telltale_harness::{ChildGuard, Scratch, compile_c, wait_until};
use telltale_schema::metric::DEFINITIONS;

use crate::cli::command::{Running, TIMEOUT, emulate, said, telltale};
use crate::cli::serve::Serving;

/// A machine and a service that has the old server's socket.
struct Bench {
    place: Scratch,
    root: PathBuf,
    _machine: ChildGuard,
    service: Serving,
}

/// The first form of a message: an allocation of so many bytes of DRAM.
fn alloc(bytes: u64, buffer: u64) -> [u8; 112] {
    let mut message = [0; 112];
    message[0] = 1;
    message[8..16].copy_from_slice(&bytes.to_le_bytes());
    message[24..32].copy_from_slice(&buffer.to_le_bytes());
    message
}

/// A client of the allocation server.
struct Client {
    guard: ChildGuard,
    output: BufReader<ChildStdout>,
}

impl Client {
    /// Sends a message (type, device, bytes, kind, buffer); says "sent", or what was answered.
    fn say(&mut self, message: &str) -> String {
        writeln!(self.guard.child().stdin.as_mut().unwrap(), "{message}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

/// The service's command, its files in `place`.
fn serve(place: &Scratch, root: &Path) -> Command {
    let run = place.join("run");
    fs::create_dir_all(&run).unwrap();
    let mut command = telltale();
    command.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME").env_remove("TELLTALE_CONFIG");
    command.env("TELLTALE_HISTORY_WRITE_SECONDS", "1");
    command.args(["serve", "--interval", "0.2", "--root"]).arg(root).arg("--runtime-dir").arg(run);
    command.arg("--state-dir").arg(place.join("state"));
    command.arg("--http").arg(format!("unix:{}", place.join("http.sock").display()));
    command
}

impl Bench {
    fn of(kind: &str) -> Self {
        let place = Scratch::new();
        let root = place.join("m");
        let machine = emulate(kind, &root, &[]);
        let mut command = serve(&place, &root);
        command.arg("--legacy-allocation-socket").arg(place.join("allocation.sock"));
        let mut service = Serving::start(&mut command);
        service.says("collecting");
        Self { place, root, _machine: machine, service }
    }

    fn socket(&self) -> PathBuf {
        self.place.join("allocation.sock")
    }

    fn client(&self, form: u32) -> Client {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/legacy/client.c");
        let program = self.place.join(format!("client_{form}"));
        if !program.exists() {
            compile_c(&source, &program, &[&format!("-DFORM={form}")]);
        }
        let mut command = Command::new(&program);
        command.arg(self.socket()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut guard = ChildGuard::spawn(&mut command);
        let output = BufReader::new(guard.child().stdout.take().unwrap());
        Client { guard, output }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = UnixStream::connect(self.place.join("http.sock")).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{path}: {head}");
        body.to_owned()
    }

    /// A process as JSON has it now, if it is there.
    fn process(&self, pid: u32) -> Option<Value> {
        let snapshot: Value = serde_json::from_str(&self.get("/api/v1/snapshot")).unwrap();
        let mut processes = snapshot["processes"].as_array().unwrap().iter();
        processes.find(|one| one["pid"] == pid).cloned()
    }

    /// What a process has of a kind on its first device.
    fn kind(&self, pid: u32, kind: &str) -> Value {
        let process = self.process(pid).unwrap_or_default();
        let kinds = process["devices"][0]["kinds"].as_array().cloned().unwrap_or_default();
        kinds.into_iter().find(|one| one["kind"] == kind).unwrap_or_default()
    }

    fn comes_to(&self, pid: u32, kind: &str, bytes: u64) {
        wait_until(&format!("{bytes} bytes of {kind}"), TIMEOUT, || {
            self.kind(pid, kind)["live_bytes"].as_u64().unwrap_or(0) == bytes
        });
    }

    /// The value of a series in the metrics.
    fn metric(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let metrics = self.get("/metrics");
        let is_it =
            |line: &&str| line.starts_with(name) && labels.iter().all(|label| line.contains(label));
        metrics.lines().find(is_it)?.rsplit(' ').next()?.parse().ok()
    }

    /// `telltale smi` of this service.
    fn smi(&self, arguments: &[&str]) -> String {
        let socket = self.place.join("run/telemetry.sock");
        let host = format!("unix:{}", socket.display());
        let reported = said(telltale().args(["smi", "--hosts", &host]).args(arguments));
        assert_eq!((reported.status, reported.err.as_str()), (Some(0), ""), "{reported:?}");
        reported.out
    }
}

#[test]
fn clients_are_processes_in_every_output() {
    let bench = Bench::of("p150");
    let mut client = bench.client(128);
    let pid = client.guard.id();
    for message in ["1 0 5000 0 64", "1 0 700 0 65", "2 0 0 0 65"] {
        assert_eq!(client.say(message), "sent");
    }
    let own_metrics =
        ["live_bytes", "live_buffers", "peak_bytes", "allocations", "allocated_bytes"];
    wait_until("all three messages", TIMEOUT, || {
        let dram = bench.kind(pid, "dram");
        own_metrics.map(|name| dram[name].as_u64()) == [5000, 1, 5700, 2, 5700].map(Some)
    });
    assert_eq!(bench.process(pid).unwrap()["known_by"], "legacy");
    let live = ["kind=\"dram\"", "process=\"client_128\""];
    wait_until("its metric", TIMEOUT, || {
        bench.metric("telltale_process_memory_live_bytes", &live) == Some(5000.0)
    });
    let csv = bench.smi(&["--csv", "--details"]);
    assert!(csv.lines().any(|row| row.contains("client_128") && row.contains("legacy")), "{csv}");
    assert!(bench.smi(&[]).contains("(legacy) "), "{}", bench.smi(&[]));
    let details = bench.smi(&["--details"]);
    assert!(details.contains("its messages to the legacy allocation socket"), "{details}");
    let history = || {
        let mut command = telltale();
        command.args(["history", "--json", "--process", "client_128", "--state-dir"]);
        said(command.arg(bench.place.join("state")).args(["--metric", "live_bytes"])).out
    };
    wait_until("its history", TIMEOUT, || history().contains("5000"));
}

#[test]
fn what_the_server_got_wrong_is_right() {
    let bench = Bench::of("n150");
    let (mut one, mut other) = (bench.client(128), bench.client(144));
    let pids = [one.guard.id(), other.guard.id()];
    // The same address of two processes is two buffers.
    for (client, message) in [(&mut one, "1 0 1000 0 64"), (&mut other, "1 0 30 0 64")] {
        client.say(message);
    }
    bench.comes_to(pids[0], "dram", 1000);
    bench.comes_to(pids[1], "dram", 30);
    // A second ALLOC replaces the first, and one FREE frees it.
    other.say("1 0 50 0 64");
    bench.comes_to(pids[1], "dram", 50);
    assert_eq!(bench.process(pids[1]).unwrap()["faults"]["reused_live_addresses"], 1);
    other.say("2 0 0 0 64");
    bench.comes_to(pids[1], "dram", 0);
    // System memory is the host's, L1_SMALL is 3, TRACE is 4; kernels by what they are for.
    for message in ["1 0 1 2 1", "1 0 2 3 2", "1 0 3 4 3", "10 0 4 0 4", "10 0 5 1 5", "10 0 6 2 6"]
    {
        other.say(message);
    }
    let kinds = ["system_memory", "l1_small", "trace"];
    let kernels = ["kernel_application", "kernel_fabric", "kernel_dispatch"];
    for (kind, bytes) in kinds.into_iter().chain(kernels).zip(1..) {
        bench.comes_to(pids[1], kind, bytes);
    }
    // DRAM and L1 at one address: the one that came last is freed.
    for message in ["1 0 100 0 900", "1 0 200 1 900", "2 0 0 0 900"] {
        one.say(message);
    }
    bench.comes_to(pids[0], "l1", 0);
    bench.comes_to(pids[0], "dram", 1100);
    // What cannot be is refused and counted.
    for message in ["2 0 0 0 4711", "1 9 10 0 1", "1 0 18446744073709551615 0 2"] {
        one.say(message);
    }
    for reason in ["unknown_free", "unknown_device", "too_large"] {
        let label = format!("reason=\"{reason}\"");
        wait_until(reason, TIMEOUT, || {
            bench.metric("telltale_legacy_refused_total", &[&label]) == Some(1.0)
        });
    }
    // Circular buffers and kernels go with their process, at once.
    other.say("8 0 70 0 70");
    bench.comes_to(pids[1], "cb", 70);
    other.guard.kill();
    wait_until("the killed one to be gone", TIMEOUT, || bench.process(pids[1]).is_none());
    assert_eq!(bench.kind(pids[0], "dram")["live_bytes"], 1100);
}

#[test]
fn a_pid_in_a_message_is_not_believed() {
    let bench = Bench::of("n150");
    let mut liar = UnixStream::connect(bench.socket()).unwrap();
    let mut message = alloc(77, 1);
    // Said to be process 1's.
    message[20] = 1;
    liar.write_all(&message).unwrap();
    bench.comes_to(std::process::id(), "dram", 77);
    assert!(bench.process(1).is_none());
    wait_until("it to be counted", TIMEOUT, || {
        let label = "reason=\"pid_ignored\"";
        bench.metric("telltale_legacy_refused_total", &[label]) == Some(1.0)
    });
}

#[test]
fn viewers_are_reported_everybody_on_the_device() {
    let bench = Bench::of("n150");
    let mut replay = telltale();
    replay.args(["replay", "train", "--loop", "--root"]).arg(&bench.root);
    replay.arg("--runtime-dir").arg(bench.place.join("run"));
    let replay = Running::start(&mut replay);
    wait_until("its memory", TIMEOUT, || {
        bench.kind(replay.child.id(), "dram")["live_bytes"].as_u64() > Some(0)
    });
    let mut client = bench.client(144);
    client.say("1 0 5000 0 64");
    bench.comes_to(client.guard.id(), "dram", 5000);
    // Of a user who does not report here too.
    wait_until("more than its own", TIMEOUT, || {
        let reported = client.say("3 0 0 0 0");
        let dram = reported.split("dram ").nth(1).and_then(|rest| rest.split(' ').next());
        dram.unwrap().parse::<u64>().unwrap() > 5000
    });
    assert!(client.say("6 -1 0 0 0").ends_with("devices 1"));
    assert!(client.say("6 0 0 0 0").contains("total 12884901888 arch 2 "));
    // DUMP_REMAINING and DUMP_KERNELS have no answer, and what follows them has its own.
    for dump in ["5 0 0 0 0", "12 0 0 0 0"] {
        assert_eq!(client.say(dump), "sent");
        assert!(client.say("6 -1 0 0 0").starts_with("type 7 "));
    }
}

#[test]
fn there_are_as_many_devices_as_the_machine_has() {
    let bench = Bench::of("galaxy-wormhole");
    let mut client = bench.client(112);
    assert!(client.say("6 -1 0 0 0").ends_with("devices 32"));
    client.say("1 31 5000 0 64");
    bench.comes_to(client.guard.id(), "dram", 5000);
}

#[test]
fn a_process_that_also_has_a_row_counts_once_by_the_row() {
    let bench = Bench::of("n150");
    let shm = bench.root.join("dev/shm");
    fs::create_dir_all(&shm).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/regions.py");
    let mut command = Command::new("python3");
    command
        .arg(script)
        .arg("keep")
        .arg(&shm)
        .args([crate::cli::regions::UMD_ID.to_string().as_str(), "3"]);
    command.arg("1000").arg(bench.socket()).stdin(Stdio::piped());
    let mut both = Running::start(&mut command);
    assert_eq!(both.line(), "kept");
    bench.comes_to(both.child.id(), "dram", 1000);
    assert_eq!(bench.process(both.child.id()).unwrap()["known_by"], "region");
    wait_until("its message", TIMEOUT, || {
        bench.metric("telltale_legacy_messages_total", &["alloc"]) == Some(1.0)
    });
    assert_eq!(bench.kind(both.child.id(), "dram")["live_bytes"], 1000);
}

#[test]
fn the_socket_is_everybodys_and_one_services() {
    let bench = Bench::of("n150");
    let mode = fs::metadata(bench.socket()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o666);
    let elsewhere = Scratch::new();
    // One that is served already.
    let reported = |socket: &Path| {
        let mut command = serve(&elsewhere, &bench.root);
        said(command.arg("--legacy-allocation-socket").arg(socket))
    };
    assert_eq!(reported(&bench.socket()).status, Some(2));
    // What is no socket is left alone.
    let (file, link) = (elsewhere.join("file"), elsewhere.join("link"));
    fs::write(&file, "mine").unwrap();
    symlink(bench.socket(), &link).unwrap();
    for path in [&file, &link] {
        assert_eq!(reported(path).status, Some(2), "{path:?}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    // A socket that no process serves is replaced; here the configuration names it.
    let stale = elsewhere.join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    let configuration = elsewhere.join("telltale.toml");
    fs::write(&configuration, format!("[legacy]\nsocket = {stale:?}\n")).unwrap();
    let mut command = serve(&elsewhere, &bench.root);
    let mut second = Serving::start(command.arg("--config").arg(&configuration));
    second.says("collecting");
    UnixStream::connect(&stale).unwrap();
    second.end();
    // Switched off, there is none.
    bench.service.end();
    assert!(!bench.place.join("allocation.sock").exists());
}

#[test]
fn dashboards_find_what_the_page_names() {
    let bench = Bench::of("p150");
    let replay = {
        let mut command = telltale();
        command.args(["replay", "train", "--loop", "--root"]).arg(&bench.root);
        Running::start(command.arg("--runtime-dir").arg(bench.place.join("run")))
    };
    wait_until("its memory", TIMEOUT, || {
        bench.kind(replay.child.id(), "dram")["live_bytes"].as_u64() > Some(0)
    });
    // What was refused has a series once something was.
    let mut client = bench.client(112);
    client.say("2 0 0 0 1");
    wait_until("it to be refused", TIMEOUT, || {
        bench.metric("telltale_legacy_refused_total", &["unknown_free"]) == Some(1.0)
    });
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/migrate.md");
    let page = fs::read_to_string(page).unwrap();
    let words = page.split('`').filter(|word| {
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        let name = word.split('{').next().unwrap_or_default();
        name.starts_with("telltale_") && name.chars().all(is_name)
    });
    let names: Vec<&str> = words.collect();
    assert!(names.len() >= 12, "{names:?}");
    let metrics = bench.get("/metrics");
    for name in names {
        let (name, label) = name
            .split_once('{')
            .map_or((name, ""), |(name, rest)| (name, rest.trim_end_matches('}')));
        // What did not happen yet has no series, and its help.
        let is_it = |line: &str| {
            let is_described = line.starts_with("# TYPE ") && label.is_empty();
            (is_described || !line.starts_with('#')) && line.contains(name) && line.contains(label)
        };
        // What only NVIDIA's GPUs have is in no answer about this machine.
        let is_of_gpus = |line: &str| line.starts_with("| `DCGM") && line.contains(name);
        let is_known = || DEFINITIONS.iter().any(|known| known.name == name);
        let is_elsewhere = page.lines().any(is_of_gpus) && is_known();
        let is_there = metrics.lines().any(is_it);
        assert!(is_there || is_elsewhere, "{name} {label} is not in {metrics}");
    }
    // No pid but of holders, unless it is asked for, and samples without a time of their own.
    let samples: Vec<&str> = metrics.lines().filter(|line| !line.starts_with('#')).collect();
    let mut with_pid = samples.iter().filter(|line| line.contains("pid=\""));
    assert!(with_pid.all(|line| line.starts_with("telltale_holder_")), "{metrics}");
    let rest = |line: &str| line.rsplit_once('}').map_or(line, |(_, rest)| rest).to_owned();
    assert!(samples.iter().all(|line| rest(line).split_whitespace().count() <= 2), "{metrics}");
    for path in ["/-/healthy", "/-/ready"] {
        bench.get(path);
    }
    assert_eq!(bench.metric("telltale_source_up", &["tenstorrent"]), Some(1.0));
}

#[test]
fn an_error_makes_its_source_down_and_is_counted() {
    let bench = Bench::of("n150");
    let is = |up: f64| {
        wait_until(&format!("the source to be {up}"), TIMEOUT, || {
            bench.metric("telltale_source_up", &["source=\"ledgers\""]) == Some(up)
        });
    };
    is(1.0);
    let broken = bench.place.join("run/ledger_1_1.tt");
    fs::write(&broken, "no ledger").unwrap();
    is(0.0);
    let errors = bench.metric("telltale_source_errors_total", &["source=\"ledgers\""]);
    assert!(errors >= Some(1.0), "{errors:?}");
    fs::remove_file(&broken).unwrap();
    is(1.0);
}
