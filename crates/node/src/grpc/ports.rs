//! TCP ports whose certificates may change while they are served.
//!
//! A change begins another server on the same listening socket and tells the one before to end its
//! connections: calls that go on are answered under the certificate that they began with, new
//! connections are made under the new one, and nobody is refused in between.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use telltale_schema::text::with_causes;
use tokio::net::TcpListener;
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tonic::transport::Server;

use super::incoming::{Incoming, Source};
use super::options::{self, TlsFiles};
use super::{Entrance, GrpcOptions, OptionsError, ServeError, builder, serve_on};
use crate::access::Caller;
use telltale_server::log;

/// How connections to TCP ports are served from now on.
#[derive(Clone)]
pub(super) struct Way {
    server: Server,
    /// Who callers are before they show a token.
    caller: Caller,
    files: Option<TlsFiles>,
}

impl Way {
    /// The way of these options, with their files as they are now.
    pub(super) fn of(options: &GrpcOptions) -> Result<Self, OptionsError> {
        let files = options.files()?;
        let server = options::server(builder(), files.as_ref())?;
        Ok(Self { server, caller: options.caller(), files })
    }
}

impl std::fmt::Debug for Way {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Way({:?}, TLS: {})", self.caller, self.files.is_some())
    }
}

/// Follows the options, and looks at their files each time that they are read again.
pub(super) async fn follow(
    mut options: Receiver<GrpcOptions>,
    ports: Vec<SocketAddr>,
    way: Sender<Way>,
) -> Infallible {
    while options.changed().await.is_ok() {
        let now = options.borrow_and_update().clone();
        let checked = ports.iter().try_for_each(|port| now.check(*port));
        match checked.and_then(|()| Way::of(&now)) {
            Ok(new) if new.files == way.borrow().files => {}
            Ok(new) => {
                log::info("gRPC takes new connections with the TLS files as they are now");
                way.send_replace(new);
            }
            Err(error) => {
                log::error(&format!("gRPC's TLS stays as it was: {}", with_causes(&error)));
            }
        }
    }
    std::future::pending().await
}

/// Serves a port until the call to stop.
pub(super) async fn serve(
    listener: std::net::TcpListener,
    entrance: Entrance,
    mut way: Receiver<Way>,
) -> Result<(), ServeError> {
    let mut servers = JoinSet::new();
    loop {
        let Way { server, caller, .. } = way.borrow_and_update().clone();
        let again = |listener: &std::net::TcpListener| -> io::Result<TcpListener> {
            TcpListener::from_std(listener.try_clone()?)
        };
        let source = Source::Tcp(again(&listener).map_err(ServeError::Listen)?, caller);
        let incoming = Incoming::new(source, entrance.gate.clone(), entrance.policy.clone());
        let (replace, replaced) = channel(false);
        let stopped = entrance.stopped.clone();
        servers.spawn(serve_on(server, incoming, entrance.routes.clone(), [stopped, replaced]));
        loop {
            tokio::select! {
                Ok(()) = way.changed() => {
                    replace.send_replace(true);
                    break;
                }
                // One that was replaced ends when its last call has; the newest at the call to stop.
                ended = servers.join_next() => match ended {
                    // Only a panic keeps a task from its result, and that has been told.
                    Some(result) => result.unwrap_or(Ok(())).map_err(ServeError::Server)?,
                    None => return Ok(()),
                },
            }
        }
    }
}
