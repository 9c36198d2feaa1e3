//! Containers and their pods, from messages and back.

use telltale_schema::snapshot::{AllocatedDevices, Container, Pod};

use super::message;

impl From<message::Container> for Container {
    fn from(from: message::Container) -> Self {
        let message::Container { id, engine, pod_uid, pod } = from;
        let allocated = |one: message::AllocatedDevices| AllocatedDevices {
            resource: one.resource,
            ids: one.ids,
        };
        let pod = pod.map(|pod| Pod {
            namespace: pod.namespace,
            name: pod.name,
            container: pod.container,
            allocated: pod.allocated.into_iter().map(allocated).collect(),
        });
        Self { id, engine, pod_uid, pod }
    }
}

impl From<Container> for message::Container {
    fn from(from: Container) -> Self {
        let Container { id, engine, pod_uid, pod } = from;
        let allocated = |one: AllocatedDevices| message::AllocatedDevices {
            resource: one.resource,
            ids: one.ids,
        };
        let pod = pod.map(|pod| message::Pod {
            namespace: pod.namespace,
            name: pod.name,
            container: pod.container,
            allocated: pod.allocated.into_iter().map(allocated).collect(),
        });
        Self { id, engine, pod_uid, pod }
    }
}
