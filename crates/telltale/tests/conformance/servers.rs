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
    /// Where it answers HTTP.
    pub(crate) address: SocketAddr,
    /// Connections that it lets in.
    pub(crate) most_connections: usize,
    /// Where HTTP/2 is spoken, if anywhere.
    http2: Option<SocketAddr>,
    log: PathBuf,
    process: ChildGuard,
    _coordinator: Option<ChildGuard>,
    places: Vec<Scratch>,
}

/// All three.
pub(crate) fn all() -> Vec<Server> {
    // A crowd's other ends are here.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    vec![service(), coordinator(), agent()]
}

impl Server {
    /// The same server where it speaks HTTP/2; none where it does not.
    pub(crate) fn speaking_http2(self) -> Option<Self> {
        let address = self.http2?;
        Some(Self { address, ..self })
    }

    /// How many files it has open.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap().count()
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    fn ready(self) -> Self {
        let sockets = [Some(self.address), self.http2];
        let is_there =
            || sockets.iter().flatten().all(|address| TcpStream::connect(address).is_ok());
        wait_until("the server to listen", Duration::from_secs(60), is_there);
        self
    }
}

/// A port that nobody has, below those that the kernel gives to clients: a crowd takes thousands of these.
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

fn started(program: &str, place: &Scratch, arguments: &[&str]) -> ChildGuard {
    let log = fs::File::create(place.join("log")).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    ChildGuard::spawn(&mut command)
}

fn service() -> Server {
    let (place, address, grpc) = (Scratch::new(), free(), free());
    let state = place.join("state");
    let run = place.join("run");
    fs::create_dir(&run).unwrap();
    let process = started(
        env!("CARGO_BIN_EXE_telltale-serve"),
        &place,
        &[
            "--http",
            &address.to_string(),
            "--grpc",
            &grpc.to_string(),
            "--state-dir",
            state.to_str().unwrap(),
            "--runtime-dir",
            run.to_str().unwrap(),
        ],
    );
    Server {
        name: "service",
        address,
        // 128 of HTTP and 256 of gRPC; the rest is what it reads.
        most_connections: 128 + 256,
        http2: Some(grpc),
        log: place.join("log"),
        process,
        _coordinator: None,
        places: vec![place],
    }
    .ready()
}

fn coordinator() -> Server {
    let (place, address, grpc) = (Scratch::new(), free(), free());
    let journal = place.join("journal");
    let process = started(
        env!("CARGO_BIN_EXE_telltale-coordinator"),
        &place,
        &[
            "--nodes",
            "2",
            "--journal",
            journal.to_str().unwrap(),
            "--listen",
            &grpc.to_string(),
            "--http",
            &address.to_string(),
        ],
    );
    Server {
        name: "coordinator",
        address,
        most_connections: 16_384,
        http2: Some(grpc),
        log: place.join("log"),
        process,
        _coordinator: None,
        places: vec![place],
    }
    .ready()
}

fn agent() -> Server {
    let Server { process: coordinator, http2, mut places, .. } = coordinator();
    let beside = places.remove(0);
    let (place, address) = (Scratch::new(), free());
    let state = place.join("agent");
    let process = started(
        env!("CARGO_BIN_EXE_telltale-agent"),
        &place,
        &[
            "--coordinator",
            &http2.unwrap().to_string(),
            "--address",
            "127.0.0.1",
            "--node",
            "a",
            "--state",
            state.to_str().unwrap(),
            "--listen",
            &address.to_string(),
            "--",
            "sleep",
            "600",
        ],
    );
    Server {
        name: "agent",
        address,
        most_connections: 2048,
        http2: Some(address),
        log: place.join("log"),
        process,
        _coordinator: Some(coordinator),
        places: vec![place, beside],
    }
    .ready()
}
