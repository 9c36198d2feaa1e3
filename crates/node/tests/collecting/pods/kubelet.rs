//! A gRPC server that stands for the kubelet: it answers List with bytes of the test's choice.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use prost::Message;
use telltale_wire::kubelet::LIST;
use telltale_wire::kubelet::message::{
    ClaimResource, ContainerDevices, ContainerResources, DynamicResource, ListPodResourcesResponse,
    PodResources,
};
use telltale_wire::telemetry::{Payload, RawCodec};
use tokio::sync::oneshot;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Bytes, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};

/// A kubelet that serves until it is dropped.
pub(super) struct Kubelet {
    socket: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone)]
struct Lister(Vec<u8>);

impl Kubelet {
    pub(super) fn serve(socket: &Path, answer: Vec<u8>) -> Self {
        let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::UnixListener::from_std(listener).unwrap();
                let serving = tonic::transport::Server::builder()
                    .add_service(Lister(answer))
                    .serve_with_incoming(UnixListenerStream::new(listener));
                tokio::select! {
                    ended = serving => ended.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { socket: socket.to_owned(), stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
        std::fs::remove_file(&self.socket).unwrap();
    }
}

impl NamedService for Lister {
    const NAME: &'static str = "v1.PodResourcesLister";
}

impl Service<http::Request<Body>> for Lister {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        assert_eq!(request.uri().path(), LIST);
        let this = self.clone();
        Box::pin(async move { Ok(Grpc::new(RawCodec).unary(this, request).await) })
    }
}

impl UnaryService<Bytes> for Lister {
    type Response = Payload;
    type Future = BoxFuture<Response<Payload>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        assert!(request.into_inner().is_empty(), "the request is the empty message");
        let payload = Payload { shared: Bytes::new(), own: self.0.clone() };
        Box::pin(async move { Ok(Response::new(payload)) })
    }
}

/// An answer with these pods.
pub(super) fn answer(pods: Vec<PodResources>) -> Vec<u8> {
    ListPodResourcesResponse { pod_resources: pods }.encode_to_vec()
}

/// A pod of one container with these devices, each listed by itself as for several NUMA nodes, and
/// one that was claimed.
pub(super) fn pod(
    namespace: &str,
    name: &str,
    container: &str,
    devices: &[(&str, &str)],
) -> PodResources {
    let device = |(resource, id): &(&str, &str)| ContainerDevices {
        resource_name: (*resource).to_owned(),
        device_ids: vec![(*id).to_owned()],
    };
    let claimed = ClaimResource {
        driver_name: "driver.example.com".to_owned(),
        pool_name: "pool".to_owned(),
        device_name: "claimed".to_owned(),
    };
    let container = ContainerResources {
        name: container.to_owned(),
        devices: devices.iter().map(device).collect(),
        dynamic_resources: vec![DynamicResource { claim_resources: vec![claimed] }],
    };
    PodResources {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        containers: vec![container],
    }
}
