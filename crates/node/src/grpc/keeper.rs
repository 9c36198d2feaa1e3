//! Who is let in to gRPC's sockets, and who it is until it shows a token.

use std::sync::Arc;

use telltale_server::door::{Admission, End, Guest, Keeper, Stream, Tls};

use super::gate::Gate;
use crate::access::{AccessPolicy, Caller, visibility};

/// The keeper of all sockets.
#[derive(Debug)]
pub(super) struct GrpcKeeper {
    pub(super) gate: Arc<Gate>,
    pub(super) policy: Arc<AccessPolicy>,
    pub(super) tls: Arc<Tls>,
}

impl GrpcKeeper {
    /// Who has connected; none where a socket file's client is gone.
    async fn caller(&self, stream: &Stream) -> Option<Caller> {
        match stream {
            Stream::Unix(stream) => Caller::of_socket(stream).ok(),
            // Only those with a certificate get through the handshake.
            _ if self.tls.asks_for_certificates() => Some(Caller::Certificate),
            Stream::Tcp(stream) => Some(self.policy.tcp_caller(stream).await),
            Stream::Tls(_) => None,
        }
    }
}

impl Keeper for GrpcKeeper {
    fn admit<'a>(&'a self, stream: &'a Stream) -> Admission<'a> {
        Box::pin(async move {
            let caller = self.caller(stream).await?;
            let permit = self.gate.enter(&caller, visibility(&self.policy, &caller))?;
            Some(Guest::new(permit).with(Arc::new(caller)))
        })
    }

    fn ended(&self, _: End) {}
}
