//! A server of metrics that runs, ours or a rival's, and one connection to it that is kept.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::BusyMachine;

/// How long a server may take to answer for the first time.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A client that sends this sees processes.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server that runs, and a connection to it.
#[derive(Debug)]
pub(crate) struct Served {
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
                Err(error) if began.elapsed() > TIMEOUT => return Err(error),
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

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Samples of a scrape.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// Bytes of a scrape.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Asks once and reads the whole answer.
    pub(crate) fn scrape(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
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
    pub(crate) fn scrapes(&mut self, count: u64) -> (f64, f64) {
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

/// Where the program of this name is, if it is installed.
fn on_the_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// The service on this machine, with these arguments beside the needed ones.
pub(crate) fn ours(serve: &Path, busy: &BusyMachine, arguments: &[&str]) -> io::Result<Served> {
    let (address, token) = (free_address()?, busy.root().join("token"));
    std::fs::write(&token, TOKEN)?;
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let mut command = Command::new(serve);
    command.arg("--root").arg(busy.root()).args(["--http", &address.to_string()]);
    command.arg("--token-file").arg(token).arg("--state-dir").arg(busy.root().join("state"));
    command.args(arguments);
    // The workloads have one name and one user; with their pids they are as many rows.
    command.env("TELLTALE_HTTP_SERIES_PROCESS_PIDS", "true");
    Served::start(&mut command, address)
}

/// all-smi's server, where it is installed.
pub(crate) fn all_smi() -> Option<io::Result<Served>> {
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

/// Debian's, likewise.
pub(crate) fn node_exporter() -> Option<io::Result<Served>> {
    let program = on_the_path("prometheus-node-exporter")?;
    let start = || {
        let address = free_address()?;
        let mut command = Command::new(program);
        command.arg(format!("--web.listen-address={address}"));
        Served::start(&mut command, address)
    };
    Some(start())
}
