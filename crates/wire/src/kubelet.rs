//! What the kubelet's PodResources API (v1) is asked and what it answers.
//!
//! The kubelet runs as root and is still a stranger here: its answer is counted and measured before
//! anything is built from it. Where its socket is and when it is asked is not decided here.

use prost::Message as _;
use tonic::Status;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;

#[allow(unreachable_pub, missing_docs, clippy::pedantic)]
#[path = "generated/kubelet_podresources_v1.rs"]
pub mod message;

use crate::shape::{self, FieldLimit, ShapeError};
use crate::telemetry::{Payload, RawCodec};
use message::numbers::{
    claim_resource, container_devices, container_resources, dynamic_resource,
    list_pod_resources_response, pod_resources,
};
use message::{ListPodResourcesResponse, PodResources};

/// The method that lists all pods with what is allocated to them.
pub const LIST: &str = "/v1.PodResourcesLister/List";

/// Bytes of the longest answer that is taken.
pub const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Limited fields in one answer, all together.
const MAX_PARTS: usize = 1 << 16;
/// The longest name of a namespace or a container, by the rules of Kubernetes (RFC 1123 label).
const MAX_LABEL_BYTES: usize = 63;
/// The longest name of a pod, a driver, a pool or a device (RFC 1123 subdomain).
const MAX_NAME_BYTES: usize = 253;
/// The longest name of a resource: a domain, a slash and a label.
const MAX_RESOURCE_BYTES: usize = MAX_NAME_BYTES + 1 + MAX_LABEL_BYTES;

/// Why the kubelet's answer cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// It refused, or broke off.
    #[error("the kubelet did not answer: {}", .0.message())]
    Refused(#[source] Box<Status>),
    /// The answer breaks a limit.
    #[error("the kubelet's answer breaks a limit")]
    Limit(#[from] ShapeError),
    /// The answer is no such message.
    #[error("the kubelet's answer is no list of pods")]
    Malformed(#[source] prost::DecodeError),
}

impl From<Status> for ListError {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

const fn many(
    number: u32,
    name: &'static str,
    max_count: usize,
    max_bytes: usize,
    inner: &'static [FieldLimit],
) -> FieldLimit {
    FieldLimit { number, name, max_count, max_bytes, inner }
}

const fn text(number: u32, name: &'static str, max_bytes: usize) -> FieldLimit {
    many(number, name, 1, max_bytes, &[])
}

const ANSWER: &[FieldLimit] =
    &[many(list_pod_resources_response::POD_RESOURCES, "pods", 4096, MAX_ANSWER_BYTES, POD)];

const POD: &[FieldLimit] = &[
    text(pod_resources::NAME, "name of a pod", MAX_NAME_BYTES),
    text(pod_resources::NAMESPACE, "namespace of a pod", MAX_LABEL_BYTES),
    many(pod_resources::CONTAINERS, "containers of a pod", 256, MAX_ANSWER_BYTES, CONTAINER),
];

const CONTAINER: &[FieldLimit] = &[
    text(container_resources::NAME, "name of a container", MAX_LABEL_BYTES),
    many(container_resources::DEVICES, "resources of a container", 1024, MAX_ANSWER_BYTES, DEVICES),
    many(
        container_resources::DYNAMIC_RESOURCES,
        "claims of a container",
        256,
        MAX_ANSWER_BYTES,
        CLAIM,
    ),
];

const DEVICES: &[FieldLimit] = &[
    text(container_devices::RESOURCE_NAME, "name of a resource", MAX_RESOURCE_BYTES),
    many(container_devices::DEVICE_IDS, "devices of a container", 4096, MAX_NAME_BYTES, &[]),
];

const CLAIM: &[FieldLimit] = &[many(
    dynamic_resource::CLAIM_RESOURCES,
    "devices of a claim",
    256,
    MAX_ANSWER_BYTES,
    CLAIMED,
)];

const CLAIMED: &[FieldLimit] = &[
    text(claim_resource::DRIVER_NAME, "name of a driver", MAX_NAME_BYTES),
    text(claim_resource::POOL_NAME, "name of a pool", MAX_NAME_BYTES),
    text(claim_resource::DEVICE_NAME, "name of a claimed device", MAX_NAME_BYTES),
];

/// All pods of the node, as the kubelet at the other end of `channel` tells them.
///
/// # Errors
/// When it does not answer, or its answer cannot be used.
pub async fn list(channel: Channel) -> Result<Vec<PodResources>, ListError> {
    let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
    grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
    // The request is the empty message.
    let request = tonic::Request::new(Payload::default());
    let answer = grpc.unary(request, PathAndQuery::from_static(LIST), RawCodec).await?;
    pods(answer.get_ref())
}

/// The pods of an answer's bytes.
///
/// # Errors
/// When they are no such answer, or break a limit.
pub fn pods(bytes: &[u8]) -> Result<Vec<PodResources>, ListError> {
    shape::check_together(bytes, ANSWER, MAX_PARTS)?;
    let answer = ListPodResourcesResponse::decode(bytes).map_err(ListError::Malformed)?;
    Ok(answer.pod_resources)
}

#[cfg(test)]
mod tests {
    use super::message::{ContainerResources, ListPodResourcesResponse, PodResources};
    use super::{ListError, pods};
    use proptest::prelude::*;
    use prost::Message as _;

    fn answer(pods: Vec<PodResources>) -> Vec<u8> {
        ListPodResourcesResponse { pod_resources: pods }.encode_to_vec()
    }

    #[test]
    fn what_newer_kubelets_add_is_skipped() {
        let container = ContainerResources { name: "train".into(), ..Default::default() };
        let pod = PodResources {
            name: "gpt-0".into(),
            namespace: "research".into(),
            containers: vec![container],
        };
        let mut bytes = answer(vec![pod.clone()]);
        // cpu_ids and memory of ContainerResources, and an unknown field 15.
        bytes.extend([0x7a, 2, b'h', b'i']);
        assert_eq!(pods(&bytes).unwrap(), [pod]);
    }

    #[test]
    fn an_answer_that_would_be_large_in_memory_is_refused_before_it_is_built() {
        let empty = PodResources::default();
        let many = pods(&answer(vec![empty; 4097]));
        assert!(matches!(many, Err(ListError::Limit(_))), "{many:?}");
        let long = PodResources { name: "x".repeat(254), ..Default::default() };
        assert!(matches!(pods(&answer(vec![long])), Err(ListError::Limit(_))));
        let containers = vec![ContainerResources::default(); 256];
        let full = PodResources { containers, ..Default::default() };
        let all = pods(&answer(vec![full; 300]));
        assert!(matches!(all, Err(ListError::Limit(_))), "all parts together");
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = pods(&bytes);
        }
    }
}
