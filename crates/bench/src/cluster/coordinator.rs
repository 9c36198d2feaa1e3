//! The coordinator's process, and what the system and its own metrics say of it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The series that counts how long messages wait.
const WAITS: &str = "telltale_coordinator_report_wait_seconds_bucket{le=\"";

/// A coordinator that runs; it is killed when this is dropped.
pub(super) struct Coordinator {
    child: Child,
    grpc: SocketAddr,
    http: SocketAddr,
}

/// How many messages waited no longer than each bound, in seconds; the bounds are in order.
pub(super) type Waits = Vec<(f64, u64)>;

impl Coordinator {
    pub(super) fn start(telltale: &Path, directory: &Path, nodes: u32) -> io::Result<Self> {
        let mut child = Command::new(telltale)
            .arg("coordinator")
            .arg("--journal")
            .arg(directory.join("journal"))
            .args(["--nodes", &nodes.to_string(), "--workers", "8"])
            .args(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stderr.take().expect("it was asked for"));
        let mut lines = lines.lines();
        let mut found = BTreeMap::new();
        let mut started = || -> io::Result<()> {
            loop {
                let line = lines.next().ok_or_else(|| io::Error::other("it ended"))??;
                for what in ["operators on ", "HTTP on "] {
                    if let Some((_, address)) = line.split_once(what) {
                        found.insert(what, address.parse().map_err(io::Error::other)?);
                    }
                }
                if line.contains("elected leader, term") {
                    return Ok(());
                }
            }
        };
        started()?;
        // What it goes on to say is read, so that it never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        let missing = || io::Error::other("it does not say where it listens");
        let grpc = found.get("operators on ").copied().ok_or_else(missing)?;
        let http = found.get("HTTP on ").copied().ok_or_else(missing)?;
        Ok(Self { child, grpc, http })
    }

    pub(super) fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// Processor time so far (proc_pid_stat(5): the fields utime and stime, in clock ticks).
    pub(super) fn cpu(&self) -> io::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        let ticks: u64 =
            fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        let each = rustix::param::clock_ticks_per_second();
        Ok(Duration::from_secs_f64(ticks as f64 / each as f64))
    }

    /// Memory that is resident.
    pub(super) fn resident_bytes(&mut self) -> io::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        Ok(kibibytes.ok_or_else(|| io::Error::other("no VmRSS"))? * 1024.0)
    }

    /// How long messages waited so far.
    pub(super) fn waits(&self) -> io::Result<Waits> {
        let mut stream = TcpStream::connect(self.http)?;
        let host = self.http;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let lines = text.lines().filter_map(|line| line.strip_prefix(WAITS));
        let waits: Waits = lines
            .filter_map(|line| {
                let (bound, count) = line.split_once("\"} ")?;
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
                Some((bound, count.parse().ok()?))
            })
            .collect();
        if waits.is_empty() { Err(io::Error::other("no waits in its metrics")) } else { Ok(waits) }
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How many messages there were.
pub(super) fn count(waits: &Waits) -> u64 {
    waits.last().map_or(0, |(_, count)| *count)
}

/// The least bound that this share of the messages between two looks did not exceed.
pub(super) fn quantile_ns(before: &Waits, after: &Waits, share: f64) -> f64 {
    let wanted = (count(after) - count(before)) as f64 * share;
    let mut pairs = before.iter().zip(after);
    let found = pairs.find(|((_, before), (_, after))| (after - before) as f64 >= wanted);
    found.map_or(f64::INFINITY, |((bound, _), _)| bound * 1e9)
}
