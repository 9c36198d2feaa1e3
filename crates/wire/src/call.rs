//! A way to a gRPC service whose messages are bytes here: the path of each call, and the token that goes
//! with it. What an answer means, and what a refusal does, is the clients' to say.

use prost::Message;
use prost::bytes::Bytes;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::tokio_stream::Stream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use crate::telemetry::{Payload, RawCodec};

/// A text that is no token.
#[derive(Debug, thiserror::Error)]
#[error("a token has printable ASCII characters alone")]
pub struct TokenTextError;

/// A service at the other end of a channel.
#[derive(Debug, Clone)]
pub struct ServiceChannel {
    service: &'static str,
    grpc: tonic::client::Grpc<Channel>,
    authorization: Option<MetadataValue<Ascii>>,
}

// === impl ServiceChannel ===

impl ServiceChannel {
    /// A way to the service of this full name, whose answers have this many bytes at most.
    pub fn new(channel: Channel, service: &'static str, most_bytes: usize) -> Self {
        let grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(most_bytes);
        Self { service, grpc, authorization: None }
    }

    /// The same way, with the service's token on each call.
    pub fn with_token(mut self, token: &str) -> Result<Self, TokenTextError> {
        let mut value: MetadataValue<Ascii> =
            format!("Bearer {token}").parse().map_err(|_| TokenTextError)?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// One question, one answer.
    pub async fn unary(
        &mut self,
        method: &'static str,
        request: &impl Message,
    ) -> Result<Bytes, Status> {
        let (path, request) = (self.prepare(method).await?, self.request(payload(request)));
        Ok(self.grpc.unary(request, path, RawCodec).await?.into_inner())
    }

    /// One question, many answers.
    pub async fn answers(
        &mut self,
        method: &'static str,
        request: &impl Message,
    ) -> Result<Streaming<Bytes>, Status> {
        let (path, request) = (self.prepare(method).await?, self.request(payload(request)));
        Ok(self.grpc.server_streaming(request, path, RawCodec).await?.into_inner())
    }

    /// Messages both ways.
    pub async fn exchange(
        &mut self,
        method: &'static str,
        messages: impl Stream<Item = Payload> + Send + 'static,
    ) -> Result<Streaming<Bytes>, Status> {
        let (path, request) = (self.prepare(method).await?, self.request(messages));
        Ok(self.grpc.streaming(request, path, RawCodec).await?.into_inner())
    }

    fn request<Body>(&self, body: Body) -> Request<Body> {
        let mut request = Request::new(body);
        if let Some(authorization) = &self.authorization {
            request.metadata_mut().insert("authorization", authorization.clone());
        }
        request
    }

    async fn prepare(&mut self, method: &'static str) -> Result<PathAndQuery, Status> {
        let failed = |error: tonic::transport::Error| Status::from_error(Box::new(error));
        self.grpc.ready().await.map_err(failed)?;
        let path = format!("/{}/{method}", self.service);
        Ok(path.parse().expect("the names of a service and a method make a path"))
    }
}

/// A message as the transport takes it.
pub fn payload(message: &impl Message) -> Payload {
    Payload { shared: Bytes::new(), own: message.encode_to_vec() }
}
