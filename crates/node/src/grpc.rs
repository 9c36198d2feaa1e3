//! gRPC: the telemetry service on a Unix socket and, if wanted, on a TCP port.
//!
//! Everything is answered from what was published last; only an explicit fresh call makes the
//! service collect. Callers, connections, calls and messages are limited, and what is refused is
//! counted. Who may see what is decided in [`crate::access`].

mod alerts;
mod calls;
mod encodings;
mod filter;
mod gate;
mod health;
mod history;
mod keeper;
mod options;
mod stop;
mod watch;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use telltale_wire::telemetry::DESCRIPTORS;
use tokio::sync::watch::{Receiver, channel};
use tokio::task::JoinSet;
use tonic::Status;
use tonic::codegen::http::Extensions;
use tonic::metadata::{KeyRef, MetadataMap};
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;

use crate::access::{AccessPolicy, Caller, Visibility, visibility};
use crate::certificates;
use crate::history::SharedReader;
use crate::service::{Control, Tally, View};
use calls::Telemetry;
use encodings::Encodings;
use gate::{Gate, GateLimits, Permit};
use health::Truth;
use history::History;
use keeper::GrpcKeeper;
use telltale_server::door;
use telltale_server::door::{Door, Http2, Protocol, Socket, Tls};
use telltale_server::listen::{Address, Listener};

pub use options::{GrpcOptions, OptionsError, SOCKET_NAME};
use stop::until_stop;

/// Connections of one user who does not see everything.
const MOST_CONNECTIONS_EACH: usize = 16;
/// Connections that are kept for those who see everything.
const CONNECTION_RESERVE: usize = 16;
/// Calls at a time, those included whose answer the client has not taken yet.
const CALLS: GateLimits = GateLimits { all: 512, each: 32, reserve: 64 };
/// What a connection may take.
const LIMITS: door::Limits = door::Limits {
    protocol: Protocol::Http2(Http2 {
        streams: 128,
        stream_window: 16 << 10,
        connection_window: 64 << 10,
        keep_alive: (Duration::from_secs(30), Duration::from_secs(20)),
    }),
    head: Duration::from_secs(20),
    stall: Duration::from_secs(30),
};

/// A service on its sockets, whose options make sense; no client is answered yet.
#[derive(Debug)]
pub struct GrpcService {
    listeners: Vec<Listener>,
    tls: Tls,
    following: Option<Receiver<GrpcOptions>>,
    most_connections: usize,
    history: Option<History>,
}

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
pub enum GrpcServeError {
    /// A listening socket cannot be used.
    #[error("a gRPC socket cannot be listened on")]
    Listen(#[source] io::Error),
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
        let tls = Tls::new(options.tls_files()?)?;
        let most_connections = options.connections.get();
        Ok(Self { listeners, tls, following: None, most_connections, history: None })
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
        control: Control,
        policy: Arc<AccessPolicy>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), GrpcServeError> {
        let Self { listeners, tls, following, most_connections, history } = self;
        let limits = GateLimits {
            all: most_connections,
            each: MOST_CONNECTIONS_EACH,
            reserve: CONNECTION_RESERVE,
        };
        let gate = Gate::new(limits, control.tally("grpc_connections"));
        let (stopping, stopped) = channel(false);
        let routes = routes(&control, Arc::clone(&policy), history, stopped.clone());
        let tls = Arc::new(tls);
        let door = Door {
            limits: LIMITS,
            tls: Arc::clone(&tls),
            keeper: Arc::new(GrpcKeeper { gate, policy, tls: Arc::clone(&tls) }),
            router: routes,
        };
        let addresses = listeners.iter().filter_map(Listener::address);
        let ports: Vec<SocketAddr> = addresses.filter_map(Address::port).collect();
        let mut serving = JoinSet::new();
        for listener in listeners {
            let socket = Socket::new(listener).map_err(GrpcServeError::Listen)?;
            serving.spawn(door.clone().serve(socket, stopped.clone()));
        }
        let files = |options: &GrpcOptions| -> Result<_, OptionsError> {
            ports.iter().try_for_each(|port| options.check(*port))?;
            Ok(options.tls_files()?)
        };
        let following = certificates::follow(following, files, &tls, "gRPC");
        tokio::select! {
            () = stop => {}
            never = following => match never {},
        }
        stopping.send_replace(true);
        while serving.join_next().await.is_some() {}
        Ok(())
    }
}

/// Every service, on every socket.
fn routes(
    control: &Control,
    policy: Arc<AccessPolicy>,
    history: Option<History>,
    stop: Receiver<bool>,
) -> Router {
    let calls = Gate::new(CALLS, control.tally("grpc_calls"));
    let skipped = control.tally("grpc_watch");
    let encodings = Encodings::default();
    let serving = Arc::new(Serving {
        view: control.view(),
        policy,
        encodings,
        history,
        calls,
        skipped,
        stop,
    });
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
        .into_axum_router()
}

// === impl Serving ===

impl Serving {
    /// What the caller of a request may see, and the right to go on.
    fn enter(
        &self,
        extensions: &Extensions,
        metadata: &MetadataMap,
    ) -> Result<(Visibility, Permit), Status> {
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
        let visibility = visibility(&self.policy, &caller);
        let permit = self.calls.enter(&caller, visibility);
        let full =
            || Status::resource_exhausted("too many calls at a time; end some and try again");
        Ok((visibility, permit.ok_or_else(full)?))
    }
}
