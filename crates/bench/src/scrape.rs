//! Metrics as a scraper gets them: how long a text takes to make, and how many samples a second are
//! served, beside all-smi and Debian's node exporter where they are installed.
//!
//! The servers run as they would in use, one at a time being asked; each request is a whole scrape
//! over one connection that is kept.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use telltale_node::CollectOptions;
use telltale_node::samples::{SampleOptions, Sampler};
use telltale_node::service::{Service, ServiceOptions};
use telltale_wire::exposition::Format;

use crate::machine::{BusyMachine, CHIPS};
use crate::sample::{Effort, Figures, interleave, time_ns};
use crate::table::{Row, Table, Target, Unit};

/// Workloads in a full or quick run.
const WORKLOADS: u64 = 64;
/// Workloads when only the working is shown.
const FEW_WORKLOADS: u64 = 3;
/// The samples that the target for encoding names: one for each chip and each pair of chip and
/// process.
const NAMED_SAMPLES: f64 = 2080.0;
/// Scrapes of ours and of all-smi in one repeat; of the node exporter, which is slower, fewer.
const SCRAPES: u64 = 500;
const SCRAPES_OF_EXPORTER: u64 = 50;
/// How long a server may take to answer for the first time.
const PATIENCE: Duration = Duration::from_secs(20);
/// Whoever sends this sees processes.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server that runs, and a connection to it.
struct Served {
    child: Child,
    request: String,
    stream: BufReader<TcpStream>,
    samples: u64,
    bytes: usize,
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    /// Starts a server at `address` and waits for its first answer.
    fn start(command: &mut Command, address: SocketAddr) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        let began = Instant::now();
        let stream = loop {
            match TcpStream::connect(address) {
                Ok(stream) => break stream,
                Err(error) if began.elapsed() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        stream.set_nodelay(true)?;
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        );
        let stream = BufReader::with_capacity(256 << 10, stream);
        let mut served = Self { child, request, stream, samples: 0, bytes: 0 };
        // Some need a collection or two before they have everything.
        std::thread::sleep(Duration::from_secs(2));
        let mut body = Vec::new();
        served.scrape(&mut body)?;
        let text = String::from_utf8_lossy(&body);
        let samples = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        (served.samples, served.bytes) = (samples.count() as u64, body.len());
        if served.samples == 0 { Err(io::Error::other("no samples")) } else { Ok(served) }
    }

    /// Asks once and reads the whole answer.
    fn scrape(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        self.stream.get_mut().write_all(self.request.as_bytes())?;
        let (mut length, mut chunked) = (0, false);
        let mut line = String::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            chunked |= line == "transfer-encoding: chunked";
            if line.is_empty() {
                break;
            }
        }
        body.clear();
        if !chunked {
            body.resize(length, 0);
            return self.stream.read_exact(body);
        }
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
            let end = body.len();
            body.resize(end + size, 0);
            self.stream.read_exact(&mut body[end..])?;
            self.stream.read_line(&mut String::new())?;
            if size == 0 {
                return Ok(());
            }
        }
    }

    /// Scrapes so often; nanoseconds for each sample, and the 99th of 100 scrapes.
    fn scrapes(&mut self, count: u64) -> (f64, f64) {
        let (mut body, mut each) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let began = Instant::now();
            self.scrape(&mut body).expect("a server that answered answers again");
            each.push(began.elapsed().as_nanos() as f64);
        }
        let sum: f64 = each.iter().sum();
        each.sort_by(f64::total_cmp);
        let place = (each.len() * 99).div_ceil(100).max(1) - 1;
        (sum / (count * self.samples) as f64, each[place])
    }
}

/// An address that was free a moment ago.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn on_the_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

fn ours(telltale: &Path, busy: &BusyMachine) -> io::Result<Served> {
    let (address, token) = (free_address()?, busy.root().join("token"));
    std::fs::write(&token, TOKEN)?;
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let mut command = Command::new(telltale);
    command.arg("serve").arg("--root").arg(busy.root()).args(["--http", &address.to_string()]);
    command.arg("--token-file").arg(token).arg("--state-dir").arg(busy.root().join("state"));
    // The workloads have one name and one user; with their pids they are as many rows.
    command.env("TELLTALE_HTTP_SERIES_PROCESS_PIDS", "true");
    Served::start(&mut command, address)
}

fn all_smi() -> Option<io::Result<Served>> {
    let program = on_the_path("all-smi")?;
    let start = || {
        let address = free_address()?;
        let mut command = Command::new(program);
        command.args(["api", "-i", "1", "-p", &address.port().to_string()]);
        // Without this it writes a line to its log for each request.
        Served::start(command.env("RUST_LOG", "error"), address)
    };
    Some(start())
}

fn node_exporter() -> Option<io::Result<Served>> {
    let program = on_the_path("prometheus-node-exporter")?;
    let start = || {
        let address = free_address()?;
        let mut command = Command::new(program);
        command.arg(format!("--web.listen-address={address}"));
        Served::start(&mut command, address)
    };
    Some(start())
}

/// How long the samples of the machine take to make and to write, and how many there are.
fn making(busy: &BusyMachine, effort: Effort) -> io::Result<([Figures; 2], usize)> {
    let collect = CollectOptions { root: busy.root().to_owned(), ..CollectOptions::default() };
    let interval = Duration::from_secs(3600);
    let service = Service::start(ServiceOptions { collect, interval }).map_err(io::Error::other)?;
    let published = service.view().latest();
    let options = SampleOptions { process_pids: true, ..SampleOptions::default() };
    let mut sampler = Sampler::new(options);
    let mut other = Sampler::new(options);
    let samples = sampler.sample(&published, &published.snapshot, None);
    let count = samples.count();
    let (rounds, mut text) = (effort.operations(200), String::new());
    let figures = interleave(
        effort.repeats(),
        [
            Box::new(|| {
                let all = || {
                    for _ in 0..rounds {
                        samples.encode(Format::Text, &mut text);
                    }
                };
                time_ns(rounds, all) * NAMED_SAMPLES / count as f64
            }),
            Box::new(|| {
                let all = || {
                    for _ in 0..rounds {
                        other.sample(&published, &published.snapshot, None);
                    }
                };
                time_ns(rounds, all)
            }),
        ],
    );
    Ok((figures, count))
}

/// What making a text costs, and how fast it is served.
///
/// # Errors
/// When the machine or a server cannot be started.
pub fn table(worker: &Path, telltale: &Path, effort: Effort) -> io::Result<Table> {
    let workloads = if effort == Effort::Once { FEW_WORKLOADS } else { WORKLOADS };
    let busy = BusyMachine::start(worker, workloads)?;
    let ([encoding, sampling], count) = making(&busy, effort)?;
    let mut ours = ours(telltale, &busy)?;
    let mut rivals = [all_smi().transpose()?, node_exporter().transpose()?];
    let mut remarks =
        vec![format!("ours: {} samples, {} bytes a scrape", ours.samples, ours.bytes)];
    for (rival, name) in rivals.iter().zip(["all-smi", "prometheus-node-exporter"]) {
        remarks.push(match rival {
            Some(rival) => {
                format!("{name}: {} samples, {} bytes a scrape", rival.samples, rival.bytes)
            }
            None => format!("{name} is not installed and has no figure"),
        });
    }
    let [mut each, mut slow] = [Vec::new(), Vec::new()];
    let mut others = [Vec::new(), Vec::new()];
    let counts = [SCRAPES, SCRAPES_OF_EXPORTER].map(|count| effort.operations(count));
    for round in 0..=effort.repeats() {
        let (sample, p99) = ours.scrapes(counts[0]);
        let of_others = [0, 1].map(|at| rivals[at].as_mut().map(|it| it.scrapes(counts[at]).0));
        // The first round is not recorded.
        if round > 0 {
            each.push(sample);
            slow.push(p99);
            for (figures, figure) in others.iter_mut().zip(of_others) {
                figures.extend(figure);
            }
        }
    }
    let [of_smi, of_exporter] =
        others.map(|figures| (!figures.is_empty()).then(|| Figures::new(figures)));
    let each = Figures::new(each);
    let row = |what: &str, ours: &Figures, baseline, target| Row {
        what: what.to_owned(),
        unit: Unit::Time,
        ours: Some(ours.clone()),
        baseline,
        target,
    };
    let at_most = |most| Target { at_most: Some(most), ..Target::default() };
    let times = |times| Target { times_better: Some(times), ..Target::default() };
    Ok(Table {
        heading: format!(
            "Metrics of {CHIPS} chips x {} processes; a sample served is a share of a scrape",
            busy.workloads()
        ),
        rows: vec![
            row("write 2,080 samples as text", &encoding, None, at_most(100e3)),
            row(&format!("make {count} samples of a snapshot"), &sampling, None, Target::default()),
            row("a scrape over loopback, 99 of 100", &Figures::new(slow), None, at_most(5e6)),
            row("a sample served; baseline: all-smi api", &each, of_smi, times(5.0)),
            row("a sample served; baseline: node exporter", &each, of_exporter, times(20.0)),
        ],
        remarks,
    })
}
