//! A node service on sockets of its own, in a thread of its own.

use std::future::Future;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use telltale_client::ServiceAddress;
use telltale_harness::Scratch;
use telltale_node::access::AccessPolicy;
use telltale_node::grpc::{GrpcOptions, GrpcServeError, GrpcService, SOCKET_NAME};
use telltale_node::service::{Publisher, ServiceMetrics};
use telltale_schema::clock::Timestamp;
use telltale_schema::snapshot::Snapshot;
use telltale_server::listen::{Address, Listener, SocketFile};
use telltale_server::token::Token;
use tokio::sync::oneshot;

/// How long a test waits for what must come.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// What the service takes for its token.
pub(crate) const TOKEN: &str = "a-token-of-the-tests";

/// A service that publishes what it is given; dropping it ends it.
pub(crate) struct Served {
    publisher: Publisher,
    scratch: Scratch,
    port: Option<SocketAddr>,
    files: Vec<SocketFile>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), GrpcServeError>>>,
}

/// Runs a future on a runtime of its own, with an end to waiting.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(TIMEOUT, future).await }).expect("in time")
}

/// A machine of which only the time is known.
pub(crate) fn snapshot(seconds: u64) -> Arc<Snapshot> {
    Arc::new(Snapshot::empty(Timestamp(seconds * 1_000_000_000)))
}

impl Served {
    /// A service with these options.
    pub(crate) fn with(options: &GrpcOptions) -> Self {
        let scratch = Scratch::new();
        let run = scratch.join("run");
        std::fs::create_dir(&run).unwrap();
        std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o700)).unwrap();
        let token = scratch.join("token");
        std::fs::write(&token, TOKEN).unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
        let policy = AccessPolicy::of_directory(&run).unwrap();
        let policy = Arc::new(policy.with_token(Token::read(&token).unwrap()));
        let metrics = ServiceMetrics::at_start(Timestamp(0));
        let hour = Duration::from_secs(3600);
        let (publisher, _) = Publisher::new(hour, snapshot(1), metrics).unwrap();
        let bind = |address: &Address| Listener::bind(address, Some(&run)).unwrap();
        let (listeners, files): (Vec<_>, Vec<_>) = options.listen.iter().map(bind).unzip();
        let port = listeners.iter().find_map(|one| one.address()?.port());
        let service = GrpcService::new(listeners, options).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let control = publisher.control();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let stopped = async {
                let _ = stopped.await;
            };
            runtime.unwrap().block_on(service.serve(control, policy, stopped))
        });
        let (stop, thread) = (Some(stop), Some(thread));
        let files = files.into_iter().flatten().collect();
        Self { publisher, scratch, port, files, stop, thread }
    }

    /// Publishes another state.
    pub(crate) fn publish(&self, snapshot: Arc<Snapshot>) {
        self.publisher.publish(snapshot, ServiceMetrics::at_start(Timestamp(0)));
    }

    /// Its socket file.
    pub(crate) fn socket(&self) -> PathBuf {
        self.scratch.join("run").join(SOCKET_NAME)
    }

    /// Its port, by the name that its certificate has.
    pub(crate) fn port(&self) -> ServiceAddress {
        let port = self.port.expect("it listens on a port").port();
        format!("localhost:{port}").parse().unwrap()
    }

    /// Ends it, and waits until it has ended.
    pub(crate) fn end(&mut self) {
        drop(self.stop.take());
        self.files.clear();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server panicked").expect("it was served to the end");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}
