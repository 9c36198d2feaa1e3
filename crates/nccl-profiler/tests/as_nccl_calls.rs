//! The library, called by a C program as NCCL calls it, and what an agent then receives.
#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use telltale_harness::{Scratch, cargo_library_directory, compile_c, wait_until};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name)
}

fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        cargo_library_directory("telltale-nccl-profiler", "nccl_profiler_telltale")
            .join("libnccl_profiler_telltale.so")
    })
}

/// What NCCL searches for with `NCCL_PROFILER_PLUGIN=telltale`.
const INSTALLED: &str = "libnccl-profiler-telltale.so";

/// What an agent has received.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<Value>>>);

impl Listener {
    /// Listens at `socket`.
    fn listen(socket: &Path) -> Self {
        let reported = Self::default();
        let listener = UnixListener::bind(socket).unwrap();
        let mine = reported.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mine = mine.clone();
                std::thread::spawn(
                    move || while mine.answer(stream.as_ref().unwrap()).is_some() {},
                );
            }
        });
        reported
    }

    fn answer(&self, stream: &UnixStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let mut bytes = None;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                bytes = Some(value.trim().parse::<usize>().unwrap());
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; bytes.unwrap()];
        reader.read_exact(&mut body).ok()?;
        let Value::Array(records) = serde_json::from_slice(&body).unwrap() else {
            panic!("no array: {}", String::from_utf8_lossy(&body));
        };
        self.0.lock().unwrap().extend(records);
        let mut stream = stream;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").ok()
    }

    fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    /// The records, once there are as many.
    fn wait(&self, records: usize) -> Vec<Value> {
        let what = format!("{records} records");
        wait_until(&what, Duration::from_secs(20), || self.all().len() >= records);
        self.all()
    }
}

/// A running harness.
struct Harness(Child);

impl Harness {
    fn start(scratch: &Scratch, version: &str, scenario: &str, variables: &[(&str, &str)]) -> Self {
        let program = scratch.join("harness");
        if !program.exists() {
            compile_c(&source("harness.c"), &program, &["-pthread", "-ldl", "-O1"]);
        }
        let mut command = Command::new(program);
        // By its name alone, where LD_LIBRARY_PATH says where it is: as NCCL asks for it.
        let is_installed = variables.iter().any(|(name, _)| *name == "LD_LIBRARY_PATH");
        let library = if is_installed { Path::new(INSTALLED) } else { library() };
        command.arg(library).args([version, scenario]);
        command.env("TELLTALE_LOG_CCL", format!("unix:{}", scratch.join("agent").display()));
        command.envs([("RANK", "3"), ("WORLD_SIZE", "8"), ("TELLTALE_EPOCH", "5")]);
        command.env_remove("TELLTALE_NCCL_EVENTS").envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Lets it end, and gives what it wrote.
    fn end(mut self) -> String {
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().unwrap();
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {reported}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The records without their times, which are checked and taken out.
fn timeless(mut records: Vec<Value>) -> (Vec<Value>, Vec<i64>) {
    let mut durations = Vec::new();
    for record in &mut records {
        let fields = record.as_object_mut().unwrap();
        let [start, end] = ["startTime", "endTime"].map(|name| {
            fields.remove(name).and_then(|value| value.as_i64()).expect("a whole number")
        });
        durations.push(if fields["finished"] == true { end - start } else { end });
        assert_eq!(fields.remove("filename"), Some(json!("nccl")));
        assert_eq!(fields.remove("epoch"), Some(json!(5)));
        assert_eq!(fields.remove("global_rank"), Some(json!(3)));
    }
    (records, durations)
}

#[test]
fn the_structures_are_laid_out_as_published() {
    let scratch = Scratch::new();
    compile_c(&source("layout.c"), &scratch.join("layout"), &["-std=c11"]);
}

#[test]
fn a_ring_between_nodes_is_reported_with_waits_for_others_left_out() {
    for version in ["v5", "v6"] {
        let scratch = Scratch::new();
        let reported = Listener::listen(&scratch.join("agent"));
        let harness = Harness::start(&scratch, version, "network", &[]);
        // Beside these, the beginnings of what lasted longer than two polls.
        wait_until("a collective that has ended", Duration::from_secs(20), || {
            let ended =
                |record: &Value| record["opType"] == "allreduce" && record["finished"] == true;
            reported.all().iter().any(ended)
        });
        let output = harness.end();
        assert!(output.starts_with("collectives are told") || output.contains("mask 0x5e"));
        let ended =
            reported.all().into_iter().filter(|record| record["finished"] == true).collect();
        let (mut records, durations) = timeless(ended);
        let by_kind = |record: &Value| record["opType"].as_str().unwrap().to_owned();
        let mut pairs: Vec<_> = records.drain(..).zip(durations).collect();
        pairs.sort_by_key(|(record, _)| by_kind(record));
        let (records, durations): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let place = |mut value: Value| {
            value["context_rank"] = json!(3);
            value["context_size"] = json!(8);
            value["finished"] = json!(true);
            value
        };
        assert_eq!(
            records,
            [
                place(json!({
                    "opType": "allreduce", "algorithm": "ring", "dataType": "float32",
                    "count": 1000, "bytes": 4000, "rootRank": 0, "sequence": 1,
                })),
                place(json!({"opType": "recv", "remoteRank": 2, "bytes": 4096, "sequence": 2})),
                place(json!({"opType": "send", "remoteRank": 4, "bytes": 6000, "sequence": 1})),
            ],
            "{version}"
        );
        // The device's own time; and of 5 ms of each step on the network, without 70 ms and 30 ms of
        // waiting for the device and the neighbour.
        assert_eq!(durations[0], 4_700);
        for duration in &durations[1..] {
            assert!((10_000..60_000).contains(duration), "{durations:?}");
        }
    }
}

#[test]
fn within_a_node_transfers_are_reported_by_their_kernels() {
    let scratch = Scratch::new();
    let reported = Listener::listen(&scratch.join("agent"));
    let harness = Harness::start(&scratch, "v6", "within", &[]);
    let (records, durations) = timeless(reported.wait(2));
    let expected = [("send", 1), ("recv", 2)].map(|(operation, number)| {
        json!({
            "opType": operation, "remoteRank": 6, "bytes": 1024, "context_rank": 3,
            "context_size": 8, "sequence": number, "finished": true,
        })
    });
    assert_eq!((records.as_slice(), durations), (&expected[..], vec![250, 500]));
    harness.end();
}

#[test]
fn what_the_script_installs_is_found_by_the_name_that_nccl_uses() {
    let scratch = Scratch::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("install.sh");
    let install = |built: &Path| {
        let mut command = Command::new(&script);
        command.args([Path::new("/lib"), built]).env("DESTDIR", scratch.join("stage"));
        command.output().unwrap()
    };
    let refused = install(scratch.path());
    let reported = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && reported.contains("build first"), "{reported}");
    let installed = install(library().parent().unwrap());
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let reported = Listener::listen(&scratch.join("agent"));
    let directory = scratch.join("stage/lib");
    let variables = [("LD_LIBRARY_PATH", directory.to_str().unwrap())];
    let harness = Harness::start(&scratch, "v6", "within", &variables);
    assert_eq!(reported.wait(2)[0]["opType"], "send");
    harness.end();
}

#[test]
fn a_process_group_has_the_name_of_its_communicator() {
    let scratch = Scratch::new();
    let reported = Listener::listen(&scratch.join("agent"));
    let harness = Harness::start(&scratch, "v6", "groups", &[]);
    let groups: Vec<Value> =
        reported.wait(2).iter().map(|record| record["group"].clone()).collect();
    assert_eq!(groups, ["nccl-0000000000000abc", "tp__0_"]);
    harness.end();
}

#[test]
fn what_hangs_is_reported_while_it_does_and_what_is_only_queued_is_not() {
    let scratch = Scratch::new();
    let reported = Listener::listen(&scratch.join("agent"));
    let harness = Harness::start(&scratch, "v6", "hang", &[]);
    let (records, ends) = timeless(reported.wait(2));
    let kinds: Vec<_> =
        records.iter().map(|record| (&record["opType"], &record["finished"])).collect();
    assert_eq!(kinds, [(&json!("send"), &json!(false)), (&json!("reducescatter"), &json!(false))]);
    assert_eq!(ends, [0, 0]);
    harness.end();
    assert_eq!(reported.all().len(), 2);
}

#[test]
fn misuse_and_strangers_are_survived_and_counted() {
    let scratch = Scratch::new();
    let _told = Listener::listen(&scratch.join("agent"));
    let output = Harness::start(&scratch, "v6", "misuse", &[]).end();
    // One operation of another process; six collectives of communicators that are not there.
    assert!(output.contains(" 7 of other processes"), "{output}");
}

#[test]
fn a_flood_without_an_agent_is_dropped_and_counted_and_stops_nobody() {
    let scratch = Scratch::new();
    let output = Harness::start(&scratch, "v5", "flood", &[]).end();
    let dropped = output.split(" alike left out, ").nth(1).and_then(|rest| rest.split(' ').next());
    assert!(dropped.unwrap().parse::<u32>().unwrap() > 0, "{output}");
}

#[test]
fn threads_lose_no_collective() {
    let scratch = Scratch::new();
    let reported = Listener::listen(&scratch.join("agent"));
    let harness = Harness::start(&scratch, "v6", "threads", &[]);
    let collectives = || {
        let all = reported.all();
        all.iter().filter(|record| record["opType"] == "allreduce").count()
    };
    wait_until("all collectives", Duration::from_secs(30), || collectives() >= 2_000);
    assert_eq!(collectives(), 2_000);
    let output = harness.end();
    assert!(output.contains(", 0 without a place"), "{output}");
}

#[test]
fn an_address_elsewhere_is_refused_and_nothing_is_asked_for() {
    let scratch = Scratch::new();
    for (address, said) in [
        ("192.0.2.1:80", "it is not on this host"),
        ("nonsense", "it is neither unix:/PATH nor an address with a port"),
    ] {
        let output =
            Harness::start(&scratch, "v6", "misuse_of_nothing", &[("TELLTALE_LOG_CCL", address)]);
        let output = output.end();
        assert!(output.contains(said) && output.contains("mask 0\n"), "{output}");
    }
}

/// Prints what a call costs NCCL's threads. The bound is for a busy machine and a build without
/// optimisation; docs/cluster-clients.md has the numbers.
#[test]
fn a_call_costs_little() {
    let scratch = Scratch::new();
    let _told = Listener::listen(&scratch.join("agent"));
    let output = Harness::start(&scratch, "v6", "measure", &[]).end();
    let mut costs = std::collections::BTreeMap::<&str, Vec<f64>>::new();
    for line in output.lines() {
        if let ["cost", name, cost] = line.split(' ').collect::<Vec<_>>()[..] {
            costs.entry(name).or_default().push(cost.parse().unwrap());
        }
    }
    assert_eq!(costs.len(), 7, "{output}");
    for (name, mut costs) in costs {
        costs.sort_by(f64::total_cmp);
        let median = costs[costs.len() / 2];
        println!("{name}: median {median} ns, of 10 pieces of 2,000 calls");
        assert!(median < 20_000.0, "{name}: {costs:?}");
    }
}
