//! gRPC: the coordinator's service, beside it health and the description of itself.

mod attend;
mod calls;

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use telltale_server::door::{Http2, Limits, Protocol};
use telltale_wire::cluster::SERVICE;
use telltale_wire::cluster::{DESCRIPTORS, MAX_NODE_MESSAGE_BYTES, MAX_REQUEST_BYTES, RawCodec};
use tokio::sync::watch;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService};
use tonic::service::Routes;
use tonic_health::ServingStatus;

use super::access::Access;
use super::counters::{Counters, RefusalReason};
use super::mailbox::Mailbox;
use super::peer::{STRANGER, is_stranger};
use super::standing::Standing;
use attend::Attend;
use calls::{Call, Method};

pub(super) use attend::Gate;

/// What a connection may take.
pub(super) const LIMITS: Limits = Limits {
    protocol: Protocol::Http2(Http2 {
        streams: 256,
        stream_window: 256 << 10,
        connection_window: 1 << 20,
        keep_alive: (Duration::from_secs(20), Duration::from_secs(10)),
    }),
    head: Duration::from_secs(15),
    stall: Duration::from_secs(30),
};

/// What all calls share.
#[derive(Debug, Clone)]
pub(super) struct Serving {
    pub(super) mailbox: Mailbox,
    pub(super) access: Arc<Access>,
    pub(super) counters: Arc<Counters>,
    pub(super) gate: Arc<Gate>,
    /// The job's name.
    pub(super) job: Arc<str>,
}

/// The coordinator's service.
#[derive(Debug, Clone)]
struct Coordinator(Serving);

/// Every service on a port.
pub(super) fn routes(serving: Serving, mut stands: watch::Receiver<Standing>) -> Router {
    let (reporter, health) = tonic_health::server::health_reporter();
    // The empty name says that the program runs; the service's, that it leads.
    tokio::spawn(async move {
        loop {
            let status = if stands.borrow_and_update().leads {
                ServingStatus::Serving
            } else {
                ServingStatus::NotServing
            };
            reporter.set_service_status(SERVICE, status).await;
            if stands.changed().await.is_err() {
                return;
            }
        }
    });
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let built = "descriptors are made by our own compiler";
    Routes::new(Coordinator(serving))
        .add_service(health)
        .add_service(reflection().build_v1().expect(built))
        .add_service(reflection().build_v1alpha().expect(built))
        .prepare()
        .into_axum_router()
}

// === impl Coordinator ===

impl NamedService for Coordinator {
    const NAME: &'static str = SERVICE;
}

impl Service<http::Request<Body>> for Coordinator {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let serving = self.0.clone();
        Box::pin(async move {
            serving.counters.calls.add(1);
            if is_stranger(request.extensions()) {
                serving.counters.refuse(RefusalReason::Stranger);
                return Ok(Status::permission_denied(STRANGER).into_http());
            }
            let header = request.headers().get(http::header::AUTHORIZATION);
            if !serving.access.admits(header.and_then(|value| value.to_str().ok())) {
                serving.counters.refuse(RefusalReason::Token);
                let text = "the call must carry this coordinator's token; see --token-file";
                return Ok(Status::unauthenticated(text).into_http());
            }
            let method = method_of(request.uri().path()).unwrap_or_default();
            if method == "Attend" {
                let mut grpc =
                    Grpc::new(RawCodec).max_decoding_message_size(MAX_NODE_MESSAGE_BYTES);
                return Ok(grpc.streaming(Attend(serving), request).await);
            }
            let Some(method) = Method::of_name(method) else {
                return Ok(Status::unimplemented("no such method here").into_http());
            };
            let mut grpc = Grpc::new(RawCodec).max_decoding_message_size(MAX_REQUEST_BYTES);
            Ok(grpc.unary(Call { mailbox: serving.mailbox, method }, request).await)
        })
    }
}

/// What is called of our service, by the whole path: the router hands over all that begins with our
/// service's name, and a longer path with one of our methods at its end belongs to none.
fn method_of(path: &str) -> Option<&str> {
    path.strip_prefix('/')?.strip_prefix(SERVICE)?.strip_prefix('/')
}

#[cfg(test)]
mod tests {
    use super::{SERVICE, method_of};

    #[test]
    fn a_method_is_what_follows_the_service_and_nothing_else() {
        for (path, method) in [
            (format!("/{SERVICE}/Restart"), Some("Restart")),
            (format!("/{SERVICE}/x/Restart"), Some("x/Restart")),
            (format!("/other/{SERVICE}/Restart"), None),
            (format!("/x{SERVICE}/Restart"), None),
            (String::from("/other.Service/Restart"), None),
        ] {
            assert_eq!(method_of(&path), method, "{path}");
        }
    }
}
