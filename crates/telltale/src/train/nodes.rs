//! Which nodes a job has, and which of them runs its coordinator.
//!
//! As under torchrun, every node is given the same endpoint. The node that has its address runs the coordinator; of
//! several processes of that node, the first.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::num::NonZeroU16;
use std::path::Path;

use telltale_cluster::node::HostAddress;
use telltale_cluster::policy::LEAST_PORTS;
use telltale_control_plane::reach::{ClientFiles, CoordinatorAddress};

use super::rendezvous::RendezvousConf;
use crate::arguments::{NodesArguments, TrainArguments};
use crate::exit::Failure;

/// The coordinator's socket in the job's directory.
pub(super) const SOCKET: &str = "coordinator.sock";
/// The port of an endpoint without one, as under torchrun.
const ENDPOINT_PORT: u16 = 29_400;
/// The port of a master without one, as under torchrun.
const MASTER_PORT: u16 = 29_500;
const LOOPBACK: &str = "127.0.0.1";
/// How many nodes a job may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeRange {
    pub(super) least: u32,
    pub(super) most: u32,
}

/// What this node is for the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the only one.
    Alone,
    /// It runs the coordinator for others as well.
    Head {
        /// Where the coordinator listens.
        listen: SocketAddr,
        /// Whether it was said that this is the node.
        is_certain: bool,
    },
    /// Its coordinator is another process's.
    Joins {
        coordinator: CoordinatorAddress,
        /// Whether that is on this host.
        is_here: bool,
    },
}

// === impl NodeRange ===

impl NodeRange {
    pub(super) fn of(arguments: &TrainArguments) -> Result<Self, Failure> {
        let text = &arguments.nnodes;
        let (least, most) = text.split_once(':').unwrap_or((text, text));
        let range = least.parse().ok().zip(most.parse().ok());
        let range = range.filter(|(least, most)| (1..=*most).contains(least));
        let Some((least, most)) = range else {
            return Err(Failure::Usage(format!(
                "--nnodes {text}: write a number of nodes from 1 on, or MIN:MAX"
            )));
        };
        match (arguments.nodes.standalone, least) {
            (false, _) => Ok(Self { least, most }),
            (true, 1) => Ok(Self { least: 1, most: 1 }),
            (true, _) => Err(Failure::Usage(format!(
                "--nnodes {text} with --standalone, which is one node: leave out one of them"
            ))),
        }
    }

    /// Whether the job may run with fewer nodes than it would have.
    pub(super) fn is_elastic(&self) -> bool {
        self.least < self.most
    }
}

// === impl Place ===

impl Place {
    pub(super) fn of(
        arguments: &TrainArguments,
        range: &NodeRange,
        conf: &RendezvousConf,
    ) -> Result<Self, Failure> {
        let nodes = &arguments.nodes;
        if !["static", "c10d"].contains(&nodes.rdzv_backend.as_str()) {
            return Err(Failure::Usage(format!(
                "--rdzv-backend {}: nodes meet at Telltale's coordinator; leave it out, or use \
                 `telltale coordinator --etcd URL` and `telltale agent` (docs/cluster-deploy.md)",
                nodes.rdzv_backend
            )));
        }
        if range.most == 1 {
            return Ok(Self::Alone);
        }
        let Some(endpoint) = endpoint(nodes)? else {
            return Err(Failure::Usage(format!(
                "--nnodes {}: where is the coordinator? Write `--rdzv-endpoint HOST:{ENDPOINT_PORT}` on \
                 every node, with a HOST that is one of them",
                arguments.nnodes
            )));
        };
        let here = here(&endpoint)?;
        let is_head = conf.is_host.or(nodes.node_rank.map(|rank| rank == 0));
        match (is_head, here) {
            (Some(true), None) => Err(Failure::Usage(format!(
                "this node is to run the coordinator, and {endpoint} is none of its addresses; name one \
                 of its own with --rdzv-endpoint, the same on every node"
            ))),
            (Some(true), Some(listen)) => Ok(Self::Head { listen, is_certain: true }),
            (None, Some(listen)) => Ok(Self::Head { listen, is_certain: false }),
            (Some(false) | None, _) => Self::joins(&endpoint, here.is_some()),
        }
    }

    fn joins(endpoint: &str, is_here: bool) -> Result<Self, Failure> {
        let coordinator = endpoint.parse().map_err(|_| {
            Failure::Usage(format!("--rdzv-endpoint {endpoint} is no address; write HOST:PORT"))
        })?;
        Ok(Self::Joins { coordinator, is_here })
    }

    /// What it is where another process of this host runs the coordinator already.
    pub(super) fn as_joining(&self) -> Option<Self> {
        match self {
            Self::Head { listen, is_certain: false } => Self::joins(&listen.to_string(), true).ok(),
            _ => None,
        }
    }

    /// Where the coordinator is for this node's agent.
    pub(super) fn coordinators(&self, directory: &Path) -> Vec<CoordinatorAddress> {
        match self {
            Self::Joins { coordinator, .. } => vec![coordinator.clone()],
            Self::Alone | Self::Head { .. } => {
                vec![CoordinatorAddress::Unix(directory.join(SOCKET))]
            }
        }
    }

    /// Where other nodes' workers reach this node's, if that is known already.
    pub(super) fn address(&self, arguments: &TrainArguments) -> Option<HostAddress> {
        let own = match self {
            Self::Alone => HostAddress::new(LOOPBACK).ok(),
            Self::Head { listen, .. } => HostAddress::new(&listen.ip().to_string()).ok(),
            Self::Joins { .. } => None,
        };
        arguments.nodes.local_addr.clone().or(own)
    }

    /// By what this node is let in by the coordinator.
    pub(super) fn access(&self, arguments: &TrainArguments) -> ClientFiles {
        let nodes = &arguments.nodes;
        let token_file = nodes.token_file.clone();
        match self {
            Self::Alone => ClientFiles::default(),
            Self::Head { .. } => ClientFiles { token_file, ..ClientFiles::default() },
            Self::Joins { .. } => {
                // With a token the certificate is the coordinator's.
                let identity = nodes.certificate.clone().zip(nodes.key.clone());
                let identity = identity.filter(|_| token_file.is_none());
                ClientFiles { authority: nodes.authority.clone(), identity, token_file }
            }
        }
    }
}

/// The ports that rank 0 may listen on, where they were said: from the master's on, or after it where the coordinator
/// has that.
pub(super) fn ports(
    nodes: &NodesArguments,
    place: &Place,
) -> Result<Option<(NonZeroU16, NonZeroU16)>, Failure> {
    let Some(master) = nodes.master_port else { return Ok(None) };
    let is_endpoint = *place != Place::Alone && nodes.rdzv_endpoint.is_empty();
    let first = master.checked_add(u16::from(is_endpoint));
    let last = first.and_then(|first| first.checked_add(LEAST_PORTS - 1));
    first.zip(last).map(Some).ok_or_else(|| {
        Failure::Usage(format!(
            "--master-port {master}: rank 0 listens on one of the {LEAST_PORTS} ports from it on, or after it; \
             write {} or less",
            u16::MAX - LEAST_PORTS
        ))
    })
}

/// The job's name, which is torchrun's id of a run.
pub(super) fn job_name(arguments: &TrainArguments) -> String {
    let nodes = &arguments.nodes;
    match &nodes.rdzv_id {
        Some(name) if !nodes.standalone => name.clone(),
        _ if nodes.standalone => {
            let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid");
            random.map_or_else(|_| "none".to_owned(), |random| random.trim().to_owned())
        }
        _ => "none".to_owned(),
    }
}

/// Where nodes meet, as HOST:PORT.
fn endpoint(nodes: &NodesArguments) -> Result<Option<String>, Failure> {
    let master_port = nodes.master_port.map_or(MASTER_PORT, NonZeroU16::get);
    let found = match (&*nodes.rdzv_endpoint, &nodes.master_addr, nodes.node_rank) {
        ("", Some(master), _) => with_port("--master-addr", master, master_port)?,
        ("", None, Some(_)) => format!("{LOOPBACK}:{master_port}"),
        ("", None, None) => return Ok(None),
        (endpoint, _, _) => with_port("--rdzv-endpoint", endpoint, ENDPOINT_PORT)?,
    };
    Ok(Some(found))
}

/// A host with the port that is written behind it, or else this one.
fn with_port(option: &str, text: &str, usual: u16) -> Result<String, Failure> {
    let written = text.rsplit_once(':');
    // Without brackets the colons are those of an address.
    let written = written.filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    match written {
        None => Ok(format!("{text}:{usual}")),
        Some((_, port)) if port.parse::<NonZeroU16>().is_ok() => Ok(text.to_owned()),
        Some((_, port)) => Err(Failure::Usage(format!(
            "{option} {text}: {port:?} is no port; write HOST:PORT with one from 1 to 65535"
        ))),
    }
}

/// The address of an endpoint that is this host's, if one is.
fn here(endpoint: &str) -> Result<Option<SocketAddr>, Failure> {
    let found: Vec<SocketAddr> =
        endpoint.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    let host = endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host);
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let means_loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    let is_fit = |address: &&SocketAddr| means_loopback || !address.ip().is_loopback();
    match (found.iter().copied().find(is_here), found.iter().filter(is_fit).copied().find(is_here))
    {
        // Systems often give a host's own name to its loopback.
        (Some(loopback), None) => Err(Failure::Usage(format!(
            "--rdzv-endpoint {endpoint}: on this node {host} is {}, which no other node reaches; write the \
             address that they reach, or localhost if all processes are on this host",
            loopback.ip()
        ))),
        (_, here) => Ok(here),
    }
}

/// Whether an address is one of this host's.
fn is_here(address: &SocketAddr) -> bool {
    UdpSocket::bind((address.ip(), 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_only_a_loopback_is_refused_with_what_to_write() {
        assert!(here("localhost:1").unwrap().is_some_and(|found| found.ip().is_loopback()));
        assert_eq!(here("127.1.2.3:1").unwrap(), "127.1.2.3:1".parse().ok());
        assert_eq!(here("[::1]:1").ok().flatten().map(|found| found.port()), Some(1));
        // TEST-NET-1 is no host's.
        assert_eq!(here("192.0.2.1:1").unwrap(), None);
        let refused = here("ip6-loopback:1").map_err(|error| error.to_string());
        // Of /etc/hosts, where that has it.
        if let Err(text) = refused {
            assert!(text.contains("ip6-loopback is ::1"), "{text}");
        }
    }
}
