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

use std::io;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
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
/// Connections that wait at once to be let in; others stay in the kernel's queue meanwhile.
const MOST_WAITING: usize = 64;
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
        let waiting = Arc::new(Semaphore::new(MOST_WAITING));
        let stopped = stop.clone();
        loop {
            let accepted = tokio::select! {
                // An error means that the sender is gone, which is as good as the call.
                _ = stop.wait_for(|stop| *stop) => break,
                accepted = accept(&socket, &waiting) => accepted,
                Some(_) = running.join_next() => continue,
            };
            match accepted {
                Ok((stream, place)) => {
                    let door = self.clone();
                    running.spawn(connection::enter(door, stream, place, stopped.clone()));
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

/// The next connection, once fewer than [`MOST_WAITING`] wait to be let in.
async fn accept(
    socket: &Socket,
    waiting: &Arc<Semaphore>,
) -> io::Result<(Stream, OwnedSemaphorePermit)> {
    let place = Arc::clone(waiting).acquire_owned().await.map_err(io::Error::other)?;
    Ok((socket.accept().await?, place))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Lets the first connection wait for ever, and all others in.
    #[derive(Default)]
    struct Slow(AtomicBool);

    impl Keeper for Slow {
        fn admit<'a>(&'a self, _: &'a Stream) -> Admission<'a> {
            let is_first = !self.0.swap(true, Ordering::Relaxed);
            Box::pin(async move {
                if is_first {
                    std::future::pending::<()>().await;
                }
                Some(Guest::new(()))
            })
        }

        fn ended(&self, _: End) {}
    }

    #[test]
    fn one_that_waits_to_be_let_in_keeps_no_other_waiting() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (stop, stopped) = watch::channel(false);
        let (listener, address) = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            (listener, address)
        });
        let asking = std::thread::spawn(move || {
            let _waiting = TcpStream::connect(address).unwrap();
            let mut other = TcpStream::connect(address).unwrap();
            other.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            other.write_all(b"GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            let read = other.read_to_string(&mut answer);
            stop.send(true).unwrap();
            read.map(|_| answer)
        });
        let minute = Duration::from_secs(60);
        let limits = Limits { protocol: Protocol::Http1, head: minute, stall: minute };
        let (tls, router) = (Arc::new(Tls::default()), axum::Router::new());
        let door = Door { limits, tls, keeper: Arc::new(Slow::default()), router };
        runtime.block_on(door.serve(Socket::Tcp(listener), stopped));
        let answer = asking.join().unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }
}
