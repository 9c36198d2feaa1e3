//! TCP connections of a process that hold bytes: sent and not acknowledged, or arrived and not read.

use std::collections::BTreeSet;

use procfs::net::TcpState;
use procfs::process::{FDTarget, Process};
use serde::{Deserialize, Serialize};

/// Descriptors that are looked at, and connections that are listed.
const MAX_DESCRIPTORS: usize = 65_536;
const MAX_CONNECTIONS: usize = 64;

/// A connection that holds bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct TcpConnection {
    /// The process's end.
    pub local: String,
    /// The other end.
    pub remote: String,
    /// The state's name in tcp(7), such as `Established`.
    pub state: String,
    /// Bytes that were sent and are not acknowledged.
    pub unacknowledged_bytes: u32,
    /// Bytes that have arrived and are not read.
    pub unread_bytes: u32,
}

/// The connections of a process that hold bytes, in the network that the process sees.
pub(crate) fn connections(process: &Process) -> Vec<TcpConnection> {
    let descriptors = process.fd().into_iter().flatten().take(MAX_DESCRIPTORS).flatten();
    let own: BTreeSet<u64> = descriptors
        .filter_map(|descriptor| match descriptor.target {
            FDTarget::Socket(inode) => Some(inode),
            _ => None,
        })
        .collect();
    let all = [process.tcp(), process.tcp6()].into_iter().flatten().flatten();
    let holds = all.filter(|one| {
        own.contains(&one.inode)
            && one.state != TcpState::Listen
            && (one.tx_queue > 0 || one.rx_queue > 0)
    });
    let mut connections: Vec<TcpConnection> = holds
        .map(|one| TcpConnection {
            local: one.local_address.to_string(),
            remote: one.remote_address.to_string(),
            state: format!("{:?}", one.state),
            unacknowledged_bytes: one.tx_queue,
            unread_bytes: one.rx_queue,
        })
        .collect();
    connections.sort_unstable();
    connections.truncate(MAX_CONNECTIONS);
    connections
}
