//! HTTP: the page, metrics for Prometheus, the service's health, snapshots as JSON and as a stream,
//! and the history.
//!
//! Everything is answered from what was published last. Any local user reaches a loopback port, and
//! a browser can be made to; so a TCP port shows callers without a token the devices and, on the
//! loopback, what the user may see whom the kernel names; it answers only
//! under names that are its own, and hands nothing to other sites. On a Unix socket the kernel says
//! who asks. Nothing here reads a request's body or changes anything.

mod answers;
mod body_parts;
mod cache;
mod counts;
mod files;
mod filter;
mod guard;
mod history;
mod options;
mod slots;
mod stream;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use tokio::sync::watch::Receiver;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::access::AccessPolicy;
use crate::certificates;
use crate::history::SharedReader;
use crate::service::View;
use cache::Cache;
use counts::HttpCounts;
use slots::{Connections, HttpKeeper};
use telltale_server::door::{Door, Limits, Protocol, Socket, Tls};
use telltale_server::hosts::Hosts;
use telltale_server::listen::{Address, Listener};

pub use options::{DEFAULT_PORT, HttpOptions, OptionsError};

/// Streams besides those of the options, for those who see everything.
const KEPT_STREAMS: usize = 8;

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
pub enum HttpServeError {
    /// The options do not allow these sockets.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// A listening socket cannot be used.
    #[error("an HTTP socket cannot be listened on")]
    Listen(#[source] io::Error),
}

/// What all requests share.
#[derive(Debug)]
struct App {
    view: View,
    policy: Arc<AccessPolicy>,
    hosts: Hosts,
    cache: Cache,
    counts: Arc<HttpCounts>,
    streams: Arc<Semaphore>,
    kept_streams: Arc<Semaphore>,
    /// Where series over time come from, if a history is kept.
    history: Option<SharedReader>,
    /// Becomes true when streams shall end.
    stop: watch::Receiver<bool>,
}

/// HTTP on its sockets, whose options make sense; it does not answer yet.
#[derive(Debug)]
pub struct HttpService {
    sockets: Vec<Socket>,
    options: HttpOptions,
    tls: Arc<Tls>,
    following: Option<Receiver<HttpOptions>>,
    history: Option<SharedReader>,
}

// === impl HttpService ===

impl HttpService {
    /// HTTP on these sockets, of a service with a token or without. Needs a tokio runtime.
    ///
    /// # Errors
    /// When a socket cannot be used, or the options do not allow it, or a file that they name cannot be used.
    pub fn new(
        listeners: Vec<Listener>,
        options: HttpOptions,
        has_token: bool,
    ) -> Result<Self, HttpServeError> {
        let mut sockets = Vec::new();
        for listener in listeners {
            if let Some(Address::Tcp(address)) = listener.address() {
                options.check(address, has_token)?;
            }
            sockets.push(Socket::new(listener).map_err(HttpServeError::Listen)?);
        }
        let tls = options.tls_files().and_then(Tls::new).map_err(OptionsError::Tls)?;
        Ok(Self { sockets, options, tls: Arc::new(tls), following: None, history: None })
    }

    /// The same, which takes over the certificates of options that are read again.
    #[must_use]
    pub fn following(mut self, options: Receiver<HttpOptions>) -> Self {
        self.following = Some(options);
        self
    }

    /// The same, which answers questions about the past from this history.
    #[must_use]
    pub fn with_history(mut self, reader: SharedReader) -> Self {
        self.history = Some(reader);
        self
    }

    /// Serves until `stop` ends, then lets connections end what they are doing.
    ///
    /// # Errors
    /// None.
    pub async fn serve(
        self,
        view: View,
        policy: Arc<AccessPolicy>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Infallible> {
        let Self { sockets, options, tls, following, history } = self;
        let (stopping, stopped) = watch::channel(false);
        let counts = Arc::new(HttpCounts::default());
        let app = Arc::new(App {
            hosts: Hosts::new(&options.hosts),
            cache: Cache::new(options.series),
            counts: Arc::clone(&counts),
            streams: Arc::new(Semaphore::new(options.streams)),
            kept_streams: Arc::new(Semaphore::new(KEPT_STREAMS)),
            stop: stopped.clone(),
            history,
            view,
            policy: Arc::clone(&policy),
        });
        let connections = Connections::new(options.connections.get(), policy, counts);
        let door = Door {
            limits: Limits {
                protocol: Protocol::Http1,
                head: Duration::from_secs_f64(options.head_seconds),
                stall: Duration::from_secs_f64(options.stall_seconds),
            },
            tls: Arc::clone(&tls),
            keeper: Arc::new(HttpKeeper { connections: Arc::new(connections), tls: tls.clone() }),
            router: router(&app),
        };
        let mut serving = JoinSet::new();
        for socket in sockets {
            serving.spawn(door.clone().serve(socket, stopped.clone()));
        }
        let following = certificates::follow(following, HttpOptions::tls_files, &tls, "HTTP");
        tokio::select! {
            () = stop => {}
            () = forget_what_is_old(&app) => {}
            never = following => match never {},
        }
        stopping.send_replace(true);
        while serving.join_next().await.is_some() {}
        Ok(())
    }
}

/// Lets go of the texts of each publication when the next one is there. Never ends.
async fn forget_what_is_old(app: &App) {
    let mut published = app.view.subscribe();
    while published.changed().await.is_ok() {
        let sequence = published.borrow_and_update().sequence;
        app.cache.forget_before(sequence);
    }
    // The collecting thread has ended, which others tell.
    std::future::pending().await
}

fn router(app: &Arc<App>) -> Router {
    Router::new()
        .route("/", get(files::index))
        .route("/assets/{name}", get(files::asset))
        .route("/metrics", get(answers::metrics))
        .route("/-/healthy", get(answers::healthy))
        .route("/-/ready", get(answers::ready))
        .route("/api/v1/snapshot", get(answers::snapshot))
        .route("/api/v1/stream", get(stream::stream))
        .route("/api/v1/history", get(history::history))
        .route("/api/v1/metrics", get(answers::definitions))
        .fallback(answers::not_found)
        .method_not_allowed_fallback(answers::method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(app), guard::guard))
        .with_state(Arc::clone(app))
}

#[cfg(test)]
mod tests;
