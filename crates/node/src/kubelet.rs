//! The kubelet's list of what is allocated (PodResources, version 1), by gRPC over its socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use telltale_collector::{Allocated, KubeletError};
use telltale_wire::kubelet::message::{ContainerResources, PodResources};
use telltale_wire::kubelet::{ListError, list};
use tonic::transport::Endpoint;

/// Lists what the kubelet at this socket has allocated, within `deadline`.
///
/// # Errors
/// When there is no answer in time, or one that breaks a limit.
pub fn list_allocated(socket: &Path, deadline: Duration) -> Result<Vec<Allocated>, KubeletError> {
    let reach = |error: io::Error| KubeletError::Reach(Box::new(error));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(reach)?;
    let answer = runtime.block_on(async { tokio::time::timeout(deadline, exchange(socket)).await });
    runtime.shutdown_background();
    let pods = answer.map_err(|_| KubeletError::Late(deadline))??;
    Ok(pods.into_iter().flat_map(allocated).collect())
}

async fn exchange(socket: &Path) -> Result<Vec<PodResources>, KubeletError> {
    let unfit = || io::Error::other("the path has bytes that no gRPC address can have");
    let path = socket.to_str().ok_or_else(|| KubeletError::Reach(Box::new(unfit())))?;
    let endpoint = Endpoint::from_shared(format!("unix:{path}"))
        .map_err(|error| KubeletError::Reach(Box::new(error)))?;
    let channel = endpoint.connect().await.map_err(|error| KubeletError::Reach(Box::new(error)))?;
    list(channel).await.map_err(|error| match error {
        ListError::Refused(_) => KubeletError::Refused(Box::new(error)),
        ListError::Limit(_) | ListError::Malformed(_) => KubeletError::Implausible(Box::new(error)),
    })
}

fn allocated(pod: PodResources) -> impl Iterator<Item = Allocated> {
    let PodResources { name, namespace, containers } = pod;
    containers.into_iter().map(move |container| {
        let (pod, namespace) = (name.clone(), namespace.clone());
        Allocated { namespace, pod, devices: devices(&container), container: container.name }
    })
}

/// Plugged devices, and those of claims, which are named by pool and device.
fn devices(of: &ContainerResources) -> Vec<(String, String)> {
    let plugged = of
        .devices
        .iter()
        .flat_map(|one| one.device_ids.iter().map(|id| (one.resource_name.clone(), id.clone())));
    let claims = of.dynamic_resources.iter().flat_map(|claim| &claim.claim_resources);
    let claimed = claims
        .map(|one| (one.driver_name.clone(), format!("{}/{}", one.pool_name, one.device_name)));
    plugged.chain(claimed).collect()
}
