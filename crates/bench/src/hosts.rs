//! `telltale smi --hosts` with 256 machines, every tenth of them silent: how long its first frame takes.
//!
//! The machines are services of this process on ports of the loopback, without TLS, which all show one
//! emulated n300; a silent one takes connections and never says a word.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use telltale_collector::{CollectOptions, Collector};
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_node::access::AccessPolicy;
use telltale_node::grpc::{GrpcOptions, GrpcService};
use telltale_node::service::{Control, Publisher, ServiceMetrics};
use telltale_schema::clock::Timestamp;
use telltale_schema::fleet::{Fleet, HostState};
use telltale_server::listen::{Address, Listener};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::rundir::RunDirectory;
use crate::sample::{Effort, Measurements, interleave};
use crate::table::{Row, Table, Target, Unit};

/// Machines, and those of them that are silent.
const HOSTS: usize = 256;
const SILENT: usize = 26;
/// The same when only the working is shown.
const FEW_HOSTS: usize = 10;
const FEW_SILENT: usize = 1;
/// What the first frame is held to.
const TARGET_NS: f64 = 500e6;
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Services on ports of their own, in one thread.
struct HostServices {
    addresses: Vec<SocketAddr>,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    _publisher: Publisher,
}

/// What one run of the command did until its first frame.
struct First {
    elapsed_ns: f64,
    fleet: Fleet,
}

/// Measures, with `telltale` for the program.
///
/// # Errors
/// When a service or the program cannot be started, or the program says something else.
pub fn table(telltale: &Path, effort: Effort) -> io::Result<Table> {
    let (hosts, silent) = match effort {
        Effort::Once => (FEW_HOSTS, FEW_SILENT),
        Effort::Full | Effort::Quick => (HOSTS, SILENT),
    };
    let directory = RunDirectory::create()?;
    let host_services = HostServices::start(&directory.path().join("m"), hosts - silent)?;
    let still = (0..silent).map(|_| TcpListener::bind(LOOPBACK)).collect::<io::Result<Vec<_>>>()?;
    let mut names: Vec<String> = host_services.addresses.iter().map(ToString::to_string).collect();
    for listener in &still {
        names.push(listener.local_addr()?.to_string());
    }
    let list = directory.path().join("hosts");
    fs::write(&list, names.join("\n"))?;
    let list = format!("@{}", list.display());
    let mut failed = None;
    let mut there = Vec::new();
    let ask = || match first_frame(telltale, &list) {
        Ok(First { elapsed_ns, fleet }) => {
            there.push(fleet.count(HostState::Answering) as f64);
            elapsed_ns
        }
        Err(error) => {
            failed.get_or_insert(error);
            f64::INFINITY
        }
    };
    let [elapsed] = interleave(effort.repeats(), [Box::new(ask)]);
    if let Some(error) = failed {
        return Err(error);
    }
    let row = |what: String, unit, ours, target| Row {
        what,
        unit,
        ours: Some(ours),
        baseline: None,
        target,
    };
    let target = Target { at_most: Some(TARGET_NS), ..Target::default() };
    let rows = vec![
        row(format!("first frame of {hosts} hosts, {silent} silent"), Unit::Time, elapsed, target),
        row(
            format!("hosts in it, of {} that answer", hosts - silent),
            Unit::Count,
            // The first run goes unrecorded, here as there.
            Measurements::new(there.split_off(1)),
            Target::default(),
        ),
    ];
    let note = String::from("the first frame waits 350 ms at most for those who are slow");
    let heading = String::from("Many machines, asked by telltale smi --hosts");
    Ok(Table { heading, rows, remarks: vec![note] })
}

/// Starts the command, and takes its first frame.
fn first_frame(telltale: &Path, list: &str) -> io::Result<First> {
    let mut command = Command::new(telltale);
    command.args(["smi", "--hosts", list, "--json", "--watch", "60", "--timeout", "5"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let began = Instant::now();
    let mut child = command.spawn()?;
    let mut line = String::new();
    let output = child.stdout.take().expect("its output was asked for");
    let read = BufReader::new(output).read_line(&mut line);
    let elapsed_ns = began.elapsed().as_nanos() as f64;
    child.kill()?;
    child.wait()?;
    read?;
    let fleet = serde_json::from_str(&line).map_err(io::Error::other)?;
    Ok(First { elapsed_ns, fleet })
}

// === impl HostServices ===

impl HostServices {
    fn start(root: &Path, count: usize) -> io::Result<Self> {
        let machine = Machine::create(root, MachineKind::N300, &MachineOptions::default());
        let _machine = machine.map_err(io::Error::other)?;
        let collect = CollectOptions { root: root.into(), ..CollectOptions::default() };
        let snapshot = Collector::new(collect).map_err(io::Error::other)?.collect();
        let values = ServiceMetrics::at_start(Timestamp(1));
        let (publisher, _) = Publisher::new(Duration::from_secs(3600), Arc::new(snapshot), values)?;
        let policy = Arc::new(AccessPolicy::of_directory(root)?);
        let (mut addresses, mut services) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (listener, _) =
                Listener::bind(&Address::Tcp(LOOPBACK), None).map_err(io::Error::other)?;
            if let Some(Address::Tcp(address)) = listener.address() {
                addresses.push(address);
            }
            let service = GrpcService::new(vec![listener], &GrpcOptions::default());
            services.push(service.map_err(io::Error::other)?);
        }
        let (stop, stopped) = watch::channel(());
        let control = publisher.control();
        let thread = std::thread::spawn(move || serve(services, &control, &policy, &stopped));
        let (stop, thread) = (Some(stop), Some(thread));
        Ok(Self { addresses, stop, thread, _publisher: publisher })
    }
}

impl Drop for HostServices {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported it.
            let _ = thread.join();
        }
    }
}

fn serve(
    services: Vec<GrpcService>,
    control: &Control,
    policy: &Arc<AccessPolicy>,
    stopped: &watch::Receiver<()>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut serving = JoinSet::new();
        for service in services {
            let mut stopped = stopped.clone();
            let until = async move { while stopped.changed().await.is_ok() {} };
            serving.spawn(service.serve(control.clone(), Arc::clone(policy), until));
        }
        while let Some(ended) = serving.join_next().await {
            ended.map_err(io::Error::other)?.map_err(io::Error::other)?;
        }
        Ok(())
    })
}
