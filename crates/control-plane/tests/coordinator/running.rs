//! A coordinator that runs within the test, and what can be asked of it.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use telltale_cluster::detection::DetectionSettings;
use telltale_cluster::policy::{Job, Policy};
use telltale_cluster::rank::WorkersPerNode;
use telltale_control_plane::server::{AccessFiles, Plan, ServeError, Server};
use telltale_control_plane::store::{JournalSettings, StoreLocation};
use telltale_server::listen::Address;
use telltale_wire::cluster::Client;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};

/// How long anything in a test may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A coordinator on two ports of loopback.
pub(crate) struct Running {
    pub(crate) grpc: SocketAddr,
    /// The port of HTTP; that of gRPC, where there is none.
    pub(crate) http: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), ServeError>>,
}

/// A job of `nodes` nodes with one worker each, kept in a journal in `directory`.
pub(crate) fn plan(directory: &Path, nodes: u32) -> Plan {
    let any_port: Address = "127.0.0.1:0".parse().unwrap();
    Plan {
        job: Job { name: "job".to_owned(), slots: nodes, workers: WorkersPerNode::new(1).unwrap() },
        policy: Policy { prepare_deadline: TIMEOUT, ..Policy::default() },
        detection: DetectionSettings::default(),
        store: StoreLocation::Journal(JournalSettings { directory: directory.join("journal") }),
        grpc: vec![any_port.clone()],
        http: vec![any_port],
        names: Vec::new(),
        access: AccessFiles::default(),
        connections: 64,
        resets_other_job: false,
    }
}

impl Running {
    /// Starts one, and waits until it leads where that can be asked without a certificate.
    pub(crate) async fn start(plan: Plan) -> Self {
        let can_ask = plan.access.certificate.is_none();
        let running = Self::begin(plan);
        let http = running.http;
        let ready = || async { !can_ask || get(http, "/readyz", None).await.0 == 200 };
        until("the coordinator leads", ready, |ready| *ready).await;
        running
    }

    /// Starts one.
    pub(crate) fn begin(plan: Plan) -> Self {
        let server = Server::bind(plan).unwrap();
        let grpc = port(&server.grpc_addresses());
        let http = server.http_addresses();
        let http = if http.is_empty() { grpc } else { port(&http) };
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        Self { grpc, http, stop: Some(stop), task }
    }

    /// Why it ends by itself.
    pub(crate) async fn failure(self) -> ServeError {
        within("the coordinator ends", self.task).await.unwrap().unwrap_err()
    }

    /// Ends it as SIGTERM does.
    pub(crate) async fn end(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        within("the coordinator ends", self.task).await.unwrap().unwrap();
    }

    pub(crate) fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap().connect_lazy()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.channel())
    }

    /// The value of a metric, by its name with its labels.
    pub(crate) async fn metric(&self, series: &str) -> u64 {
        let text = get(self.http, "/metrics", None).await.1;
        let prefix = format!("telltale_coordinator_{series} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
        line.unwrap_or_else(|| panic!("no {series} in {text}")).parse().unwrap()
    }

    /// All counters of this name by their label.
    pub(crate) async fn metrics(&self, name: &str) -> BTreeMap<String, u64> {
        let text = get(self.http, "/metrics", None).await.1;
        let prefix = format!("telltale_coordinator_{name}{{");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&prefix));
        lines
            .map(|line| {
                let (labels, value) = line.split_once("} ").unwrap();
                let label = labels.split('"').nth(1).unwrap();
                (label.to_owned(), value.parse().unwrap())
            })
            .collect()
    }
}

/// The first port among what is listened to.
fn port(addresses: &[Address]) -> SocketAddr {
    let port = addresses.iter().find_map(|address| match address {
        Address::Tcp(port) => Some(*port),
        Address::Unix(_) => None,
    });
    port.unwrap_or_else(|| panic!("no port: {addresses:?}"))
}

/// Asks by HTTP/1.1: the status and the body.
pub(crate) async fn get(
    port: SocketAddr,
    path: &str,
    authorization: Option<&str>,
) -> (u16, String) {
    let authorization =
        authorization.map(|it| format!("Authorization: {it}\r\n")).unwrap_or_default();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {port}\r\n{authorization}Connection: close\r\n\r\n");
    let asked = tokio::task::spawn_blocking(move || {
        let stream = TcpStream::connect(port).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        answer(stream, &request)
    });
    asked.await.unwrap()
}

/// The same at a socket file.
pub(crate) async fn get_at(socket: PathBuf, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let asked = tokio::task::spawn_blocking(move || {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        answer(stream, &request)
    });
    asked.await.unwrap()
}

fn answer(mut stream: impl Read + Write, request: &str) -> (u16, String) {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Waits for something, but not for ever.
pub(crate) async fn within<T>(what: &str, it: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(TIMEOUT, it).await;
    ended.unwrap_or_else(|_| panic!("{what}: not within {TIMEOUT:?}"))
}

/// Asks until the answer is as it should be.
pub(crate) async fn until<T, F: Future<Output = T>>(
    what: &str,
    mut ask: impl FnMut() -> F,
    is_so: impl Fn(&T) -> bool,
) -> T {
    let start = Instant::now();
    loop {
        let found = ask().await;
        if is_so(&found) {
            return found;
        }
        assert!(start.elapsed() < TIMEOUT, "{what}: not within {TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Runs a test within a runtime of its own.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime: Runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test);
    runtime.shutdown_background();
}
