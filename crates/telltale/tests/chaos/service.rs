//! The real service, what it answers, and what it costs.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use telltale_harness::exposition::{ParsedFamily, parse};
use telltale_harness::{ChildGuard, wait_until};
use telltale_schema::snapshot::Snapshot;

use crate::chaos::workload::TIMEOUT;

/// Within which `/-/healthy` must answer: what Kubernetes' probes wait at most by habit, on a machine
/// with more to do than it can.
pub(crate) const HEALTHY_WITHIN: Duration = Duration::from_secs(5);
/// Lines of the log that are kept for who checks a failure.
const MAX_LINES: usize = 400;

/// Variables that change what the service does.
const VARIABLES: [&str; 4] =
    ["TELLTALE_CONFIG", "TELLTALE_ROOT", "TT_METRICS_SOCKET_DIR", "XDG_CONFIG_HOME"];

/// A service.
#[derive(Debug)]
pub(crate) struct Service {
    child: ChildGuard,
    /// Where it answers HTTP.
    pub(crate) http: PathBuf,
    /// Where it answers gRPC.
    pub(crate) grpc: PathBuf,
    log: Arc<Mutex<VecDeque<String>>>,
}

/// What a service takes of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Memory that is resident, in KiB.
    pub(crate) resident_kib: u64,
    /// Threads.
    pub(crate) threads: u64,
    /// Open descriptors.
    pub(crate) descriptors: usize,
}

/// Metrics as they were scraped.
#[derive(Debug)]
pub(crate) struct Metrics(Vec<ParsedFamily>);

/// Where the service's files are: its sockets beside what it watches, and its history.
pub(crate) fn command(root: &Path, state: &Path) -> Command {
    let mut serve = Command::new(env!("CARGO_BIN_EXE_telltale"));
    VARIABLES.iter().for_each(|name| {
        serve.env_remove(name);
    });
    serve.args(["serve", "--interval", "0.2", "--root"]).arg(root).arg("--state-dir").arg(state);
    serve.arg("--http").arg(format!("unix:{}", http_socket(root).display()));
    serve.env("HOME", root.parent().unwrap()).env("TELLTALE_HISTORY_WRITE_SECONDS", "1");
    serve.env("TELLTALE_HISTORY_MAX_MEBIBYTES", "16").stdin(Stdio::null());
    serve
}

fn http_socket(root: &Path) -> PathBuf {
    root.parent().unwrap().join("http.sock")
}

// === impl Service ===

impl Service {
    /// Starts one over the machine at `root`; comes back when it answers.
    pub(crate) fn start(root: &Path, state: &Path) -> Self {
        let mut child = ChildGuard::spawn(command(root, state).stderr(Stdio::piped()));
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let (kept, errors) = (Arc::clone(&log), child.child().stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap();
                if kept.len() == MAX_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        let grpc = root.join("run/tt").join(telltale_node::grpc::SOCKET_NAME);
        let mut service = Self { child, http: http_socket(root), grpc, log };
        wait_until("the service to answer", TIMEOUT, || {
            assert!(service.child.is_running(), "it ended: {}", service.said());
            let collects = |line: &String| line.contains("collecting each");
            service.log.lock().unwrap().iter().any(collects)
        });
        service
    }

    /// The end of its log.
    pub(crate) fn said(&self) -> String {
        self.log.lock().unwrap().iter().fold(String::new(), |all, line| all + line + "\n")
    }

    /// Kills it as a machine without memory does.
    pub(crate) fn kill(mut self) {
        self.child.kill();
    }

    /// Ends it as systemd does.
    pub(crate) fn end(mut self) {
        self.child.terminate();
        let status = self.child.wait_within("the service to end", TIMEOUT);
        assert_eq!(status.code(), Some(0), "{}", self.said());
        let said = self.said();
        assert!(!said.contains("panicked"), "{said}");
    }

    /// Has it read its configuration again.
    pub(crate) fn reload(&self) {
        kill_process(self.pid(), Signal::HUP).unwrap();
    }

    /// Lets no file of its grow beyond so many bytes; gives the limit before.
    pub(crate) fn limit_files(&self, limit: Rlimit) -> Rlimit {
        prlimit(Some(self.pid()), Resource::Fsize, limit).unwrap()
    }

    /// Its pid.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    /// What it takes of the machine now.
    pub(crate) fn cost(&self) -> Cost {
        let place = PathBuf::from(format!("/proc/{}", self.child.id()));
        let status = std::fs::read_to_string(place.join("status")).unwrap();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        let descriptors = std::fs::read_dir(place.join("fd")).unwrap().count();
        Cost { resident_kib: number("VmRSS:"), threads: number("Threads:"), descriptors }
    }

    /// Its metrics, which must be as the format has it.
    pub(crate) fn metrics(&self) -> Metrics {
        let (status, body) = get(&self.http, "/metrics");
        assert_eq!(status, "HTTP/1.1 200 OK");
        Metrics(parse(&body, false).unwrap_or_else(|wrong| panic!("{wrong}")))
    }

    /// A snapshot that asked everybody just now.
    pub(crate) fn fresh(&self) -> Snapshot {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut client = telltale_client::connect(&self.grpc).await.unwrap();
            client.snapshot(true).await.unwrap()
        })
    }
}

// === impl Metrics ===

impl Metrics {
    /// The sum of the series of this name that have these labels; none when there is no such.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let samples = self.0.iter().flat_map(|family| &family.samples);
        let having = samples.filter(|sample| {
            let has = |(label, value): &(&str, &str)| {
                sample.labels.get(*label).is_some_and(|found| found == value)
            };
            sample.name == name && labels.iter().all(has)
        });
        having.map(|sample| sample.value).reduce(|sum, value| sum + value)
    }
}

/// Asks by HTTP: the status line and the body of the answer.
#[track_caller]
pub(crate) fn get(socket: &Path, path: &str) -> (String, String) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(HEALTHY_WITHIN)).unwrap();
    stream.set_write_timeout(Some(HEALTHY_WITHIN)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap_or_else(|error| {
        panic!("{path} was not answered within {HEALTHY_WITHIN:?}: {error}")
    });
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}
