//! The three servers, as the programs that units and images run.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use telltale_harness::{ChildGuard, Scratch, wait_until};

/// A server that runs.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    /// Where it is asked.
    pub(crate) address: SocketAddr,
    /// Connections that it lets in.
    pub(crate) most_connections: usize,
    /// Where it speaks HTTP/2.
    http2: SocketAddr,
    log: PathBuf,
    process: ChildGuard,
    /// The coordinator of an agent, and the directory; both end with this.
    _beside: Option<Box<Server>>,
    _place: Scratch,
}

/// All three.
pub(crate) fn all() -> Vec<Server> {
    // A crowd's other ends are here.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    vec![service(), coordinator(), agent()]
}

impl Server {
    /// The same server, asked where it speaks HTTP/2.
    pub(crate) fn speaking_http2(self) -> Self {
        Self { address: self.http2, ..self }
    }

    /// How many files it has open.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap().count()
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

/// A free port, below those that the kernel gives to clients: a crowd takes thousands of these.
fn free() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let from = 20_000 + u16::try_from(std::process::id() % 100).unwrap() * 100;
        let address = SocketAddr::from(([127, 0, 0, 1], from + number % 100));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// Where a server listens, and how many connections it lets in.
struct Sockets {
    http: SocketAddr,
    http2: SocketAddr,
    most_connections: usize,
}

impl Server {
    fn start(name: &'static str, program: &str, sockets: Sockets, arguments: &[&str]) -> Self {
        let place = Scratch::new();
        let log = place.join("log");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(place.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap());
        let process = ChildGuard::spawn(&mut command);
        let Sockets { http, http2, most_connections } = sockets;
        let is_there = || [http, http2].iter().all(|address| TcpStream::connect(address).is_ok());
        wait_until("the server to listen", Duration::from_secs(60), is_there);
        Self {
            name,
            address: http,
            most_connections,
            http2,
            log,
            process,
            _beside: None,
            _place: place,
        }
    }
}

fn service() -> Server {
    let (http, http2) = (free(), free());
    // 128 of HTTP and 256 of gRPC; the rest is what it reads.
    let sockets = Sockets { http, http2, most_connections: 128 + 256 };
    let (http, http2) = (http.to_string(), http2.to_string());
    let arguments =
        ["--http", &http, "--grpc", &http2, "--state-dir", "state", "--runtime-dir", "run"];
    Server::start("service", env!("CARGO_BIN_EXE_telltale-serve"), sockets, &arguments)
}

fn coordinator() -> Server {
    let (http, http2) = (free(), free());
    let sockets = Sockets { http, http2, most_connections: 16_384 };
    let (http, http2) = (http.to_string(), http2.to_string());
    let arguments = ["--nodes", "2", "--journal", "journal", "--listen", &http2, "--http", &http];
    Server::start("coordinator", env!("CARGO_BIN_EXE_telltale-coordinator"), sockets, &arguments)
}

fn agent() -> Server {
    let beside = coordinator();
    let listens = free();
    let sockets = Sockets { http: listens, http2: listens, most_connections: 2048 };
    let (listens, coordinator) = (listens.to_string(), beside.http2.to_string());
    let of_the_node = ["--address", "127.0.0.1", "--node", "a", "--state", "state"];
    let of_the_job = ["--coordinator", &coordinator, "--listen", &listens, "--", "sleep", "600"];
    let arguments = [&of_the_node[..], &of_the_job].concat();
    let agent = env!("CARGO_BIN_EXE_telltale-agent");
    Server { _beside: Some(Box::new(beside)), ..Server::start("agent", agent, sockets, &arguments) }
}
