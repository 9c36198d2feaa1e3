//! gRPC: the telemetry service on a Unix socket and, if wanted, on a TCP port.
//!
//! Everything is answered from what was published last; only an explicit fresh call makes the
//! service collect. Callers, connections, calls and messages are limited, and what is refused is
//! counted. Who may see what is decided in [`crate::access`].

mod alerts;
mod calls;
mod connect;
mod encodings;
mod filter;
mod gate;
mod health;
mod history;
mod incoming;
mod options;
mod ports;
mod probe;
mod reach;
mod report;
mod stop;
mod watch;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use telltale_wire::telemetry::DESCRIPTORS;
use tokio::net::UnixListener;
use tokio::sync::watch::{Receiver, channel};
use tokio::task::JoinSet;
use tonic::Status;
use tonic::codegen::http::Extensions;
use tonic::metadata::{KeyRef, MetadataMap};
use tonic::service::Routes;
use tonic::transport::Server;
use tonic_health::pb::health_server::HealthServer;

use crate::access::{AccessPolicy, Caller, Sight, sight};
use crate::history::SharedReader;
use crate::service::{Tally, View};
use calls::Telemetry;
use encodings::Encodings;
use gate::{Gate, Limits, Permit};
use health::Truth;
use history::History;
use incoming::{GREETING_PATIENCE, Incoming, Source};
use ports::Way;
use telltale_server::listen::{Address, Listener};

pub use alerts::ask_alerts;
pub use connect::{ConnectError, connect};
pub use history::query_history;
pub use options::{GrpcOptions, OptionsError, SOCKET_NAME};
pub use probe::{Health, HealthEndpoint, HealthError, ask_health};
pub use reach::{PreparedTls, ReachError, TlsToPort, in_the_way, reach};
pub use report::report_process;
use stop::until_stop;

/// Connections of one user who does not see everything.
const MOST_CONNECTIONS_EACH: usize = 16;
/// Connections that are kept for those who see everything.
const CONNECTION_RESERVE: usize = 16;
/// Calls at a time, those included whose answer the client has not taken yet.
const CALLS: Limits = Limits { all: 512, each: 32, reserve: 64 };
/// Calls at a time on one connection.
const MOST_STREAMS: u32 = 128;
/// Bytes of one call's request, and of all requests of a connection, that wait to be read.
const STREAM_WINDOW_BYTES: u32 = 16 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 64 << 10;
/// Bytes of a request's headers.
const MOST_HEADER_BYTES: u32 = 16 << 10;
/// Streams that a client reset before they were answered; beyond, the connection is closed.
const MOST_RESETS: usize = 32;
/// How often a silent client is asked whether it lives, and how long it may take to answer.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_PATIENCE: Duration = Duration::from_secs(20);
/// How long connections may take to end after the call to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// A service on its sockets, whose options make sense; nobody is answered yet.
#[derive(Debug)]
pub struct GrpcService {
    listeners: Vec<Listener>,
    way: Way,
    following: Option<Receiver<GrpcOptions>>,
    most_connections: usize,
    history: Option<History>,
}

/// What connections need to get in.
#[derive(Clone)]
struct Entrance {
    gate: Arc<Gate>,
    policy: Arc<AccessPolicy>,
    routes: Routes,
    /// Becomes true when all is to end.
    stopped: Receiver<bool>,
}

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A listening socket cannot be used.
    #[error("a gRPC socket cannot be listened on")]
    Listen(#[source] io::Error),
    /// The server failed.
    #[error("the gRPC server failed")]
    Server(#[source] tonic::transport::Error),
}

/// What all calls share.
#[derive(Debug)]
struct Serving {
    view: View,
    policy: Arc<AccessPolicy>,
    encodings: Encodings,
    history: Option<History>,
    calls: Arc<Gate>,
    /// States that watchers were too slow for.
    skipped: Tally,
    /// Becomes true when streams shall end.
    stop: Receiver<bool>,
}

// === impl GrpcService ===

impl GrpcService {
    /// A service on these sockets.
    ///
    /// # Errors
    /// When the options do not fit together or to a socket, or a file that they name cannot be
    /// used.
    pub fn new(listeners: Vec<Listener>, options: &GrpcOptions) -> Result<Self, OptionsError> {
        for listener in &listeners {
            if let Some(Address::Tcp(address)) = listener.address() {
                options.check(address)?;
            }
        }
        let way = Way::of(options)?;
        let most_connections = options.connections.get();
        Ok(Self { listeners, way, following: None, most_connections, history: None })
    }

    /// The same service, which takes over the certificates of options that are read again.
    #[must_use]
    pub fn following(mut self, options: Receiver<GrpcOptions>) -> Self {
        self.following = Some(options);
        self
    }

    /// The same service, which answers questions about the past from this history.
    #[must_use]
    pub fn with_history(mut self, reader: SharedReader) -> Self {
        self.history = Some(History::new(reader));
        self
    }

    /// Serves until `stop` ends; then lets calls finish for a short time. Needs a tokio runtime with
    /// I/O and time.
    ///
    /// # Errors
    /// When a socket cannot be listened on.
    pub async fn serve(
        self,
        view: View,
        policy: Arc<AccessPolicy>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let Self { listeners, way, following, most_connections, history } = self;
        let limits = Limits {
            all: most_connections,
            each: MOST_CONNECTIONS_EACH,
            reserve: CONNECTION_RESERVE,
        };
        let gate = Gate::new(limits, view.tally("grpc_connections"));
        let (stopping, stopped) = channel(false);
        let routes = routes(view, Arc::clone(&policy), history, stopped.clone());
        let entrance = Entrance { gate, policy, routes, stopped };
        let (renew, way) = channel(way);
        let addresses = listeners.iter().filter_map(Listener::address);
        let ports = addresses.filter_map(|address| match address {
            Address::Tcp(port) => Some(port),
            Address::Unix(_) => None,
        });
        let ports = ports.collect();
        let mut serving = JoinSet::new();
        for listener in listeners {
            match listener {
                Listener::Unix(listener) => {
                    let listener = UnixListener::from_std(listener).map_err(ServeError::Listen)?;
                    serving.spawn(serve_file(listener, entrance.clone()));
                }
                Listener::Tcp(listener) => {
                    serving.spawn(ports::serve(listener, entrance.clone(), way.clone()));
                }
            }
        }
        let following = async {
            match following {
                Some(options) => ports::follow(options, ports, renew).await,
                None => std::future::pending().await,
            }
        };
        let ended = async {
            while let Some(result) = serving.join_next().await {
                // Only a panic keeps a task from its result, and that has been told.
                result.unwrap_or(Ok(()))?;
            }
            Ok(())
        };
        let stop = async {
            stop.await;
            // Whoever waits for it holds a receiver.
            let _ = stopping.send(true);
        };
        tokio::pin!(ended);
        tokio::select! {
            result = &mut ended => return result,
            () = stop => {}
            never = following => match never {},
        }
        match tokio::time::timeout(STOP_PATIENCE, ended).await {
            Ok(result) => result,
            // Calls that still go on are cut off.
            Err(_) => Ok(()),
        }
    }
}

fn builder() -> Server {
    Server::builder()
        .max_concurrent_streams(MOST_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_max_header_list_size(MOST_HEADER_BYTES)
        .http2_max_pending_accept_reset_streams(Some(MOST_RESETS))
        .http2_max_local_error_reset_streams(Some(MOST_RESETS))
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_PATIENCE))
}

/// Every service, on every socket.
fn routes(
    view: View,
    policy: Arc<AccessPolicy>,
    history: Option<History>,
    stop: Receiver<bool>,
) -> Routes {
    let calls = Gate::new(CALLS, view.tally("grpc_calls"));
    let skipped = view.tally("grpc_watch");
    let encodings = Encodings::default();
    let serving = Arc::new(Serving { view, policy, encodings, history, calls, skipped, stop });
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let built = "descriptors are made by our own compiler";
    Routes::new(Telemetry(Arc::clone(&serving)))
        .add_service(HealthServer::new(Truth(serving)))
        .add_service(reflection().build_v1().expect(built))
        .add_service(reflection().build_v1alpha().expect(built))
        .prepare()
}

/// Serves the Unix socket until the call to stop.
async fn serve_file(listener: UnixListener, entrance: Entrance) -> Result<(), ServeError> {
    let Entrance { gate, policy, routes, stopped } = entrance;
    let incoming = Incoming::new(Source::Unix(listener), gate, policy);
    let never = stopped.clone();
    serve_on(builder(), incoming, routes, [stopped, never]).await.map_err(ServeError::Server)
}

/// Serves on one socket until one of the calls to stop.
async fn serve_on(
    mut server: Server,
    incoming: Incoming,
    routes: Routes,
    [mut one, mut other]: [Receiver<bool>; 2],
) -> Result<(), tonic::transport::Error> {
    let stop = async move {
        // An error means that nobody can call to stop any more, which is as good as the call.
        tokio::select! {
            _ = one.wait_for(|stop| *stop) => {}
            _ = other.wait_for(|stop| *stop) => {}
        }
    };
    server.add_routes(routes).serve_with_incoming_shutdown(incoming, stop).await
}

// === impl Serving ===

impl Serving {
    /// What the caller of a request may see, and the right to go on.
    fn enter(
        &self,
        extensions: &Extensions,
        metadata: &MetadataMap,
    ) -> Result<(Sight, Permit), Status> {
        let caller =
            extensions.get::<Arc<Caller>>().map_or(Caller::Anonymous, |one| (**one).clone());
        let caller = caller.asking_with(metadata.keys().map(|key| match key {
            KeyRef::Ascii(name) => name.as_str(),
            KeyRef::Binary(name) => name.as_str(),
        }));
        let header = metadata.get("authorization").map(|value| value.to_str().unwrap_or_default());
        let caller = self.policy.authorized(caller, header).ok_or_else(|| {
            Status::unauthenticated("this is not the service's token; leave it out, or ask for it")
        })?;
        let sight = sight(&self.policy, &caller);
        let permit = self.calls.enter(&caller, sight);
        let full =
            || Status::resource_exhausted("too many calls at a time; end some and try again");
        Ok((sight, permit.ok_or_else(full)?))
    }
}
