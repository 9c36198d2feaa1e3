//! A node of an older version: it answers with the bytes that it was given.

use std::convert::Infallible;
use std::net::{Ipv4Addr, TcpListener};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use telltale_wire::telemetry::{Payload, RawCodec};
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Bytes, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};

/// A node whose `GetSnapshot` answers so, until it is dropped.
pub(crate) struct OlderNode {
    pub(crate) address: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone)]
struct Answers(Vec<u8>);

impl OlderNode {
    pub(crate) fn that_sends(message: Vec<u8>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let serving = tonic::transport::Server::builder()
                    .add_service(Answers(message))
                    .serve_with_incoming(TcpListenerStream::new(listener));
                tokio::select! {
                    ended = serving => ended.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { address, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for OlderNode {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

impl NamedService for Answers {
    const NAME: &'static str = "telltale.telemetry.v1.Telemetry";
}

impl Service<http::Request<Body>> for Answers {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        assert!(request.uri().path().ends_with("/GetSnapshot"), "{}", request.uri());
        let this = self.clone();
        Box::pin(async move { Ok(Grpc::new(RawCodec).unary(this, request).await) })
    }
}

impl UnaryService<Bytes> for Answers {
    type Response = Payload;
    type Future = BoxFuture<Response<Payload>, Status>;

    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        let payload = Payload { shared: Bytes::new(), own: self.0.clone() };
        Box::pin(async move { Ok(Response::new(payload)) })
    }
}
