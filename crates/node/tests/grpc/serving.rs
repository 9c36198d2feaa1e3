//! A service on sockets of its own, in a thread of its own, and clients for it.

use std::future::Future;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use telltale_client::Client;
use telltale_harness::Scratch;
use telltale_node::access::AccessPolicy;
use telltale_node::grpc::{GrpcOptions, GrpcServeError, GrpcService, SOCKET_NAME};
use telltale_node::history::SharedReader;
use telltale_node::service::{Publisher, View};
use telltale_schema::snapshot::Snapshot;
use telltale_server::listen::{Address, Listener, SocketFile};
use tokio::sync::{oneshot, watch};

use crate::grpc::machine::own_metrics;

/// How long a test waits for what must come.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// The user and group as which the tests' service is installed.
pub(crate) const SERVICE: u32 = 61_000;

/// A service that publishes what it is given.
pub(crate) struct Served {
    pub(crate) publisher: Publisher,
    pub(crate) view: View,
    pub(crate) address: Option<SocketAddr>,
    /// The options, for when they are read again.
    pub(crate) renewed: watch::Sender<GrpcOptions>,
    files: Vec<SocketFile>,
    pub(crate) scratch: Scratch,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), GrpcServeError>>>,
}

/// Runs a future on a runtime of its own, with an end to waiting.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let waited =
        runtime.expect("a runtime").block_on(async { tokio::time::timeout(TIMEOUT, future).await });
    waited.expect("what must come takes too long")
}

/// A runtime directory of a user's own.
fn private() -> Scratch {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("run")).expect("the scratch directory is ours");
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(scratch.join("run"), mode).expect("it is ours");
    scratch
}

impl Served {
    /// A service as root or a user starts it, on its Unix socket.
    pub(crate) fn of(snapshot: Arc<Snapshot>) -> Self {
        Self::with(snapshot, &GrpcOptions::default(), |policy| policy)
    }

    /// A service in a directory as the installation makes it: mode 3777, of the group that sees
    /// everything. The socket's directory is reachable for every user. Needs root.
    pub(crate) fn installed(snapshot: Arc<Snapshot>) -> Self {
        let scratch = Scratch::new();
        scratch.set_mode(0o755);
        std::fs::create_dir(scratch.join("run")).expect("the scratch directory is ours");
        chown(scratch.join("run"), Some(SERVICE), Some(SERVICE)).expect("root may");
        let mode = std::fs::Permissions::from_mode(0o3777);
        std::fs::set_permissions(scratch.join("run"), mode).expect("it is ours");
        Self::start(scratch, snapshot, &GrpcOptions::default(), |policy| policy, None)
    }

    /// A service on its Unix socket that answers about the past from this database.
    pub(crate) fn remembering(snapshot: Arc<Snapshot>, database: PathBuf) -> Self {
        Self::with_history(snapshot, &GrpcOptions::default(), database)
    }

    pub(crate) fn with_history(
        snapshot: Arc<Snapshot>,
        options: &GrpcOptions,
        database: PathBuf,
    ) -> Self {
        Self::start(private(), snapshot, options, |policy| policy, Some(database))
    }

    pub(crate) fn with(
        snapshot: Arc<Snapshot>,
        options: &GrpcOptions,
        change: impl FnOnce(AccessPolicy) -> AccessPolicy,
    ) -> Self {
        Self::start(private(), snapshot, options, change, None)
    }

    fn start(
        scratch: Scratch,
        snapshot: Arc<Snapshot>,
        options: &GrpcOptions,
        change: impl FnOnce(AccessPolicy) -> AccessPolicy,
        database: Option<PathBuf>,
    ) -> Self {
        let path = scratch.join("run");
        let policy = Arc::new(change(AccessPolicy::of_directory(&path).expect("a directory")));
        let interval = Duration::from_secs(3600);
        let (publisher, view) =
            Publisher::new(interval, snapshot, own_metrics()).expect("an event descriptor");
        let (mut listeners, mut files) = (Vec::new(), Vec::new());
        for address in &options.listen {
            let (listener, file) = Listener::bind(address, Some(&path)).expect("free sockets");
            listeners.push(listener);
            files.extend(file);
        }
        let port = |listener: &Listener| match listener.address()? {
            Address::Tcp(address) => Some(address),
            Address::Unix(_) => None,
        };
        let address = listeners.iter().find_map(port);
        let (renewed, following) = watch::channel(options.clone());
        let service = GrpcService::new(listeners, options).expect("options that fit");
        let mut service = service.following(following);
        if let Some(database) = database {
            service = service.with_history(SharedReader::new(database));
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let served = publisher.control();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let stopped = async {
                let _ = stopped.await;
            };
            runtime.expect("a runtime").block_on(service.serve(served, policy, stopped))
        });
        let (stop, thread) = (Some(stop), Some(thread));
        Self { publisher, view, address, renewed, files, scratch, stop, thread }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.scratch.join("run").join(SOCKET_NAME)
    }

    pub(crate) async fn client(&self) -> Client {
        telltale_client::connect(&self.socket()).await.expect("it is served")
    }

    /// What was refused or left out so far, by the name of the limit.
    pub(crate) fn refused(&self, limit: &'static str) -> u64 {
        self.publisher.control().tally(limit).total()
    }

    /// Tells it to stop.
    pub(crate) fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Stops it, and reports how it ended.
    pub(crate) fn stop(&mut self) -> Result<(), GrpcServeError> {
        self.ask_to_stop();
        self.files.clear();
        self.thread.take().map_or(Ok(()), |thread| thread.join().expect("the server panicked"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let result = self.stop();
        if !std::thread::panicking() {
            result.expect("it was served to the end");
        }
    }
}
