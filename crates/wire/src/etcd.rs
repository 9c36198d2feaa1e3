//! What etcd is asked and what it answers (`proto/etcd.proto`), by one of its members.
//!
//! Its own client for Rust needs `protoc` to be built, and nothing else here does. An answer is counted
//! and measured before anything is built from it. Which member is asked, how long, and what is made
//! of a failure is not decided here.

use prost::Message;
use prost::bytes::Bytes;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status};

#[allow(unreachable_pub, missing_docs, clippy::pedantic, clippy::enum_variant_names)]
#[path = "generated/etcdserverpb.rs"]
pub mod message;

use crate::shape::{self, FieldLimit};
use crate::telemetry::{Payload, RawCodec};
use message::numbers::{range_response, response_op, txn_response};
use message::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseRevokeRequest, RangeRequest, RangeResponse, TxnRequest, TxnResponse,
};

/// Bytes of the longest answer that is taken.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Keys and steps in one answer, all together.
const MAX_PARTS: usize = 1 << 14;

const RANGE: &str = "/etcdserverpb.KV/Range";
const TRANSACTION: &str = "/etcdserverpb.KV/Txn";
const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
const REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";

/// A member that is cut off from the others refuses what is asked with this, rather than to let it
/// wait (etcd's `WithRequireLeader`).
const REQUIRE_LEADER: (&str, &str) = ("hasleader", "true");

const fn many(number: u32, name: &'static str, max_count: usize) -> FieldLimit {
    FieldLimit { number, name, max_count, max_bytes: MAX_ANSWER_BYTES, inner: &[] }
}

const RANGE_ANSWER: &[FieldLimit] = &[many(range_response::KVS, "keys", 4096)];
const STEP: &[FieldLimit] =
    &[FieldLimit { inner: RANGE_ANSWER, ..many(response_op::RESPONSE_RANGE, "keys of a step", 1) }];
const TRANSACTION_ANSWER: &[FieldLimit] =
    &[FieldLimit { inner: STEP, ..many(txn_response::RESPONSES, "steps", 128) }];

/// A member of an etcd cluster.
#[derive(Debug, Clone)]
pub struct Member {
    grpc: tonic::client::Grpc<Channel>,
}

// === impl Member ===

impl Member {
    /// The member at the other end of this channel.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        Self { grpc: tonic::client::Grpc::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES) }
    }

    /// Some keys.
    ///
    /// # Errors
    /// When the member refuses, is out of reach, or its answer cannot be used.
    pub async fn range(&mut self, request: &RangeRequest) -> Result<RangeResponse, Status> {
        let bytes = self.unary(RANGE, request).await?;
        checked(&bytes, RANGE_ANSWER)
    }

    /// Some steps at once.
    ///
    /// # Errors
    /// As [`Self::range`].
    pub async fn transact(&mut self, request: &TxnRequest) -> Result<TxnResponse, Status> {
        let bytes = self.unary(TRANSACTION, request).await?;
        checked(&bytes, TRANSACTION_ANSWER)
    }

    /// A new lease.
    ///
    /// # Errors
    /// As [`Self::range`].
    pub async fn grant(
        &mut self,
        request: &LeaseGrantRequest,
    ) -> Result<LeaseGrantResponse, Status> {
        let bytes = self.unary(GRANT, request).await?;
        checked(&bytes, &[])
    }

    /// Ends a lease.
    ///
    /// # Errors
    /// As [`Self::range`]; also when there is no such lease.
    pub async fn revoke(&mut self, request: &LeaseRevokeRequest) -> Result<(), Status> {
        self.unary(REVOKE, request).await.map(drop)
    }

    /// Renews a lease once.
    ///
    /// # Errors
    /// As [`Self::range`].
    pub async fn keep_alive(
        &mut self,
        request: &LeaseKeepAliveRequest,
    ) -> Result<LeaseKeepAliveResponse, Status> {
        self.ready().await?;
        let messages = tokio_stream::once(payload(request));
        let path = PathAndQuery::from_static(KEEP_ALIVE);
        let answers = self.grpc.streaming(with_leader(Request::new(messages)), path, RawCodec);
        let first = answers.await?.into_inner().message().await?;
        let bytes =
            first.ok_or_else(|| Status::unavailable("the answers ended before one came"))?;
        checked(&bytes, &[])
    }

    async fn unary(&mut self, path: &'static str, request: &impl Message) -> Result<Bytes, Status> {
        self.ready().await?;
        let request = with_leader(Request::new(payload(request)));
        let answer = self.grpc.unary(request, PathAndQuery::from_static(path), RawCodec).await?;
        Ok(answer.into_inner())
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))
    }
}

fn payload(message: &impl Message) -> Payload {
    Payload { shared: Bytes::new(), own: message.encode_to_vec() }
}

fn with_leader<T>(mut request: Request<T>) -> Request<T> {
    let (name, value) = REQUIRE_LEADER;
    request.metadata_mut().insert(name, MetadataValue::from_static(value));
    request
}

fn checked<T: Message + Default>(bytes: &[u8], limits: &'static [FieldLimit]) -> Result<T, Status> {
    let unusable = |error: &dyn std::error::Error| {
        Status::data_loss(format!("the member's answer cannot be used: {error}"))
    };
    shape::check_together(bytes, limits, MAX_PARTS).map_err(|error| unusable(&error))?;
    T::decode(bytes).map_err(|error| unusable(&error))
}

#[cfg(test)]
mod tests {
    use super::message::{KeyValue, ResponseOp, response_op};
    use super::*;
    use proptest::prelude::*;

    fn answer(keys: usize, steps: usize) -> Vec<u8> {
        let range = RangeResponse { header: None, kvs: vec![KeyValue::default(); keys] };
        let step = ResponseOp { response: Some(response_op::Response::ResponseRange(range)) };
        TxnResponse { header: None, succeeded: true, responses: vec![step; steps] }.encode_to_vec()
    }

    #[test]
    fn an_answer_that_would_be_large_in_memory_is_refused_before_it_is_built() {
        let check = |bytes: Vec<u8>| checked::<TxnResponse>(&bytes, TRANSACTION_ANSWER);
        assert_eq!(check(answer(2, 3)).unwrap().responses.len(), 3);
        for (keys, steps) in [(4097, 1), (0, 129), (4096, 5)] {
            let error = check(answer(keys, steps)).unwrap_err();
            assert!(error.message().contains("cannot be used"), "{keys} keys, {steps} steps");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = checked::<TxnResponse>(&bytes, TRANSACTION_ANSWER);
        }
    }
}
