//! The door of every server: accepts connections on a socket, asks its keeper whom it lets in, shakes
//! hands where there are certificates, and answers HTTP/1.1, HTTP/2 and gRPC within limits. What is
//! answered is a router; who may come in, and what is counted, is the keeper's.

mod connection;
mod end;
mod flaw;
mod frames;
mod keeper;
mod limits;
mod movement;
mod stream;
mod tls;

use std::time::Duration;
use tracing::debug;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

pub use connection::Door;
pub use end::End;
pub use flaw::Flaw;
pub use keeper::{Admission, Guest, Keeper};
pub use limits::{Http2, Limits, Protocol};
pub use movement::Movement;
pub use stream::{Certificate, Socket, Stream};
pub use tls::{Tls, TlsError, TlsFiles, read_pem};

/// How long no connection is accepted after accepting failed, as it does while descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long connections may take to end once it is time to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

impl Door {
    /// Accepts on a socket until it is time to stop, then waits a little until connections have ended;
    /// what still goes on is cut off.
    pub async fn serve(mut self, socket: Socket, mut stop: watch::Receiver<bool>) {
        if !matches!(self.limits.protocol, Protocol::Http2(_)) {
            // gRPC has a compression of its own. The level is the one that costs least.
            let gzip = CompressionLayer::new().quality(CompressionLevel::Fastest);
            self.router = self.router.layer(gzip);
        }
        let mut running = JoinSet::new();
        let stopped = stop.clone();
        loop {
            let accepted = tokio::select! {
                // An error means that the sender is gone, which is as good as the call.
                _ = stop.wait_for(|stop| *stop) => break,
                accepted = socket.accept() => accepted,
                Some(_) = running.join_next() => continue,
            };
            match accepted {
                // Asked at once, while the client is most likely there.
                Ok(stream) => {
                    let Some(guest) = self.keeper.admit(&stream).await else { continue };
                    running.spawn(connection::serve(self.clone(), stream, guest, stopped.clone()));
                }
                Err(error) => {
                    debug!("a connection could not be accepted: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        let ended = async { while running.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(STOP_TIMEOUT, ended).await;
    }
}
