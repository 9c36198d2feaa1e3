//! The container that a process runs in, and the pod that the container belongs to.

use serde::{Deserialize, Serialize};

/// A container, as named by the process's cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Container {
    /// The container's id.
    pub id: String,
    /// The engine: `docker`, `containerd`, `cri-o`, `podman`.
    pub engine: String,
    /// The Kubernetes pod's uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// What the node's Kubernetes calls the pod; none where that could not be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Pod>,
}

/// A pod by its names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Pod {
    /// The namespace it is in.
    pub namespace: String,
    /// Its name there.
    pub name: String,
    /// What the pod calls the container; none where several could be meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The devices that the kubelet has allocated to the container, as far as it was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated: Vec<AllocatedDevices>,
}

/// Devices of one kind that are allocated to a container.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AllocatedDevices {
    /// The resource of a device plugin, or the driver of a claim.
    pub resource: String,
    /// The devices, as their plugin names them; of a claim `pool/device`.
    pub ids: Vec<String>,
}
