//! Services on ports of this machine, each as if it were another one; and ports without a server.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use telltale_collector::{CollectOptions, Collector};
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;
use telltale_node::access::AccessPolicy;
use telltale_node::grpc::{GrpcOptions, GrpcService};
use telltale_node::service::{Publisher, ServiceMetrics};
use telltale_schema::clock::Timestamp;
use telltale_server::listen::{Address, Listener};
use tokio::sync::watch;
use tokio::task::JoinSet;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Services that all show the same n300.
pub(crate) struct HostServices {
    pub(crate) addresses: Vec<String>,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HostServices {
    /// So many, on free ports.
    pub(crate) fn of(count: usize) -> Self {
        Self::at(&vec![LOOPBACK; count])
    }

    /// One at each of these addresses.
    pub(crate) fn at(places: &[SocketAddr]) -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("m");
        let _machine =
            Machine::create(&root, MachineKind::N300, &MachineOptions::default()).unwrap();
        let collect = CollectOptions { root, ..CollectOptions::default() };
        let snapshot = Arc::new(Collector::new(collect).unwrap().collect());
        let metrics = ServiceMetrics::at_start(Timestamp(1));
        let (publisher, _) = Publisher::new(Duration::from_secs(3600), snapshot, metrics).unwrap();
        let policy = Arc::new(AccessPolicy::of_directory(scratch.path()).unwrap());
        let options = GrpcOptions::default();
        let mut addresses = Vec::new();
        let mut services = Vec::new();
        for place in places {
            let (listener, _) = Listener::bind(&Address::Tcp(*place), None).unwrap();
            let Some(Address::Tcp(address)) = listener.address() else { panic!("a port") };
            addresses.push(address.to_string());
            services.push(GrpcService::new(vec![listener], &options).unwrap());
        }
        let (stop, stopped) = watch::channel(());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut serving = JoinSet::new();
                for service in services {
                    let (control, policy) = (publisher.control(), Arc::clone(&policy));
                    let mut stopped = stopped.clone();
                    let until = async move { while stopped.changed().await.is_ok() {} };
                    serving.spawn(service.serve(control, policy, until));
                }
                while let Some(ended) = serving.join_next().await {
                    ended.unwrap().unwrap();
                }
            });
            drop(publisher);
        });
        Self { addresses, stop: Some(stop), thread: Some(thread) }
    }

    /// All of them end; comes back when their ports are free.
    pub(crate) fn stop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for HostServices {
    fn drop(&mut self) {
        self.stop.take();
    }
}

/// A port where connections are made and nothing is ever said.
pub(crate) fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// A port without a listener.
pub(crate) fn refused() -> String {
    silent().1
}
