//! Several machines at one moment, each as it was last heard of. What is not heard of any more
//! stays, with the reason: a machine never vanishes from the list.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::snapshot::Snapshot;

/// The version of the JSON shape below; see [`crate::snapshot::SCHEMA_VERSION`] for that of each
/// snapshot.
pub const FLEET_VERSION: u32 = 1;

/// Several machines at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Fleet {
    /// [`FLEET_VERSION`] of the writer.
    pub fleet_version: u32,
    /// When this was put together.
    pub taken_at: Timestamp,
    /// The machines, in the order in which they were named.
    pub hosts: Vec<Host>,
}

/// One of several machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// As it was named by the client.
    pub name: String,
    /// How it stands.
    pub state: HostState,
    /// Why it did not answer; none while it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it last answered, by the clock of the client; `None` where it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
    /// What it last answered; none where it never did.
    #[serde(with = "shared", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(with = "Option<Snapshot>"))]
    pub snapshot: Option<Arc<Snapshot>>,
}

/// How one of several machines stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// It has not answered yet, and still may in time.
    Waiting,
    /// It answered when it was asked last.
    Answering,
    /// It did not answer when it was asked last.
    Unreachable,
}

impl Fleet {
    /// How many machines are in this state.
    #[must_use]
    pub fn count(&self, state: HostState) -> usize {
        self.hosts.iter().filter(|host| host.state == state).count()
    }
}

/// A shared snapshot as the snapshot that it is.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::snapshot::Snapshot;

    pub(super) fn serialize<S: Serializer>(
        snapshot: &Option<Arc<Snapshot>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        snapshot.as_deref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Arc<Snapshot>>, D::Error> {
        Ok(Option::<Snapshot>::deserialize(deserializer)?.map(Arc::new))
    }
}

#[cfg(test)]
mod tests {
    use super::{FLEET_VERSION, Fleet, Host, HostState};
    use crate::clock::Timestamp;

    #[test]
    fn a_machine_that_never_answered_has_a_reason_and_no_snapshot() {
        let host = Host {
            name: String::from("node-7"),
            state: HostState::Unreachable,
            reason: Some(String::from("no route to host")),
            answered_at: None,
            snapshot: None,
        };
        let fleet =
            Fleet { fleet_version: FLEET_VERSION, taken_at: Timestamp(5), hosts: vec![host] };
        let text = r#"{"fleet_version":1,"taken_at":5,"hosts":[{"name":"node-7","state":"unreachable","reason":"no route to host"}]}"#;
        assert_eq!(serde_json::to_string(&fleet).unwrap(), text);
        assert_eq!(serde_json::from_str::<Fleet>(text).unwrap(), fleet);
        assert_eq!([HostState::Waiting, HostState::Unreachable].map(|it| fleet.count(it)), [0, 1]);
    }
}
