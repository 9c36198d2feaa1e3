//! What the workers' TCP connections carry to other hosts, and for how long each had something to send: by the kernel
//! (`sock_diag(7)`), without a word of the workers.
//!
//! That distinguishes a slow link from its ends where ranks cannot: in a collective all of them take as long.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::time::Instant;
use tracing::warn;

use telltale_server::sock_diag::{self, Carried, TcpSocket};

use super::WorkerProcess;
use super::senders::below;
use telltale_cluster::observation::{MAX_TRAFFIC_PER_REPORT, Traffic};

/// Sockets that are checked: eight workers that are each connected with all of a thousand hosts' eight.
const MAX_SOCKETS: usize = 1 << 16;
/// Descriptors of the workers that are checked.
const MAX_DESCRIPTORS: usize = 1 << 18;
/// A connection that has carried less since the last poll is not reported.
const LEAST_BYTES: u64 = 64 << 10;

/// The latest look at the connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    at: Option<Instant>,
    /// By their cookies, which no two sockets have.
    known: BTreeMap<u64, KnownConnection>,
    has_failed: bool,
}

#[derive(Debug, Clone, Copy)]
struct KnownConnection {
    carried: Carried,
    /// Whether a worker has it; nothing while it has carried too little to ask.
    is_own: Option<bool>,
}

// === impl Connections ===

impl Connections {
    /// What the workers' connections have carried since the last poll, by both addresses, the busiest first; nothing of
    /// connections that are new.
    pub(super) fn sample(&mut self, processes: &[WorkerProcess], now: Instant) -> Vec<Traffic> {
        if processes.is_empty() {
            *self = Self { has_failed: self.has_failed, ..Self::default() };
            return Vec::new();
        }
        let sockets = sock_diag::established(MAX_SOCKETS).unwrap_or_else(|error| {
            if !std::mem::replace(&mut self.has_failed, true) {
                warn!(
                    "cannot read TCP counters: {error}; slow links are found only from reports of \
                    ranks (in a sandbox, allow AF_NETLINK)"
                );
            }
            Vec::new()
        });
        let elapsed = self.at.replace(now).map(|at| now.duration_since(at));
        let before = std::mem::take(&mut self.known);
        let (mut moved, mut asked) = (Vec::new(), false);
        for socket in sockets {
            let Some(carried) = socket.carried.filter(|_| is_to_another_host(&socket)) else {
                continue;
            };
            let earlier = before.get(&socket.cookie);
            let is_own = earlier.and_then(|one| one.is_own);
            self.known.insert(socket.cookie, KnownConnection { carried, is_own });
            let Some(since) = earlier.map(|one| since(carried, one.carried)) else { continue };
            if since.acknowledged.saturating_add(since.received) >= LEAST_BYTES
                && is_own != Some(false)
            {
                asked |= is_own.is_none();
                moved.push((socket, since));
            }
        }
        if asked {
            let own = descriptors(processes);
            for (socket, _) in &moved {
                if let Some(known) = self.known.get_mut(&socket.cookie) {
                    known.is_own.get_or_insert(own.contains(&socket.inode));
                }
            }
        }
        moved.retain(|(socket, _)| {
            self.known.get(&socket.cookie).is_some_and(|one| one.is_own == Some(true))
        });
        elapsed.map_or_else(Vec::new, |elapsed| summed(&moved, elapsed))
    }
}

fn is_to_another_host(socket: &TcpSocket) -> bool {
    let (local, remote) = (socket.local.ip(), socket.remote.ip());
    local != remote && !remote.is_loopback()
}

fn since(now: Carried, then: Carried) -> Carried {
    Carried {
        acknowledged: now.acknowledged.saturating_sub(then.acknowledged),
        received: now.received.saturating_sub(then.received),
        busy: now.busy.saturating_sub(then.busy),
        delivery_rate: now.delivery_rate,
    }
}

/// Sums of what goes from one address to another. Where several connections do, they are as busy together as for the
/// whole time at most.
fn summed(moved: &[(TcpSocket, Carried)], elapsed: std::time::Duration) -> Vec<Traffic> {
    let mut sums: BTreeMap<(IpAddr, IpAddr), Carried> = BTreeMap::new();
    for (socket, since) in moved {
        let sum = sums.entry((socket.local.ip(), socket.remote.ip())).or_default();
        sum.acknowledged = sum.acknowledged.saturating_add(since.acknowledged);
        sum.busy = sum.busy.saturating_add(since.busy);
        sum.delivery_rate = sum.delivery_rate.max(since.delivery_rate);
    }
    let mut all: Vec<Traffic> = sums
        .into_iter()
        .map(|((local, remote), sum)| Traffic {
            local,
            remote,
            bytes: sum.acknowledged,
            busy: sum.busy.min(elapsed),
            delivery_rate: sum.delivery_rate,
            elapsed,
        })
        .collect();
    all.sort_by_key(|one| std::cmp::Reverse((one.busy, one.bytes)));
    all.truncate(MAX_TRAFFIC_PER_REPORT);
    all
}

/// The inodes of the sockets that the workers have, and what they have started.
fn descriptors(processes: &[WorkerProcess]) -> BTreeSet<u32> {
    let roots = processes.iter().map(|process| process.pid);
    let all: BTreeSet<u32> = roots.flat_map(|pid| below(pid).into_iter().chain([pid])).collect();
    let lists = all.into_iter().filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok());
    lists
        .flat_map(|list| list.flatten())
        .take(MAX_DESCRIPTORS)
        .filter_map(|one| {
            let target = fs::read_link(one.path()).ok()?;
            target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::*;

    fn moved(remote: [u8; 4], port: u16, acknowledged: u64, busy_ms: u64) -> (TcpSocket, Carried) {
        let socket = TcpSocket {
            local: SocketAddr::from(([10, 0, 0, 1], 4000)),
            remote: SocketAddr::from((remote, port)),
            user: 0,
            inode: 7,
            state: 1,
            cookie: u64::from(port),
            carried: None,
        };
        let busy = Duration::from_millis(busy_ms);
        (socket, Carried { acknowledged, received: 9, busy, delivery_rate: acknowledged })
    }

    #[test]
    fn connections_between_two_hosts_are_summed_and_the_busiest_come_first() {
        let elapsed = Duration::from_secs(1);
        let all = [
            moved([10, 0, 0, 2], 1, 500, 20),
            moved([10, 0, 0, 3], 2, 300, 700),
            moved([10, 0, 0, 3], 3, 300, 600),
        ];
        let found = summed(&all, elapsed);
        let found: Vec<_> = found.iter().map(|one| (one.remote, one.bytes, one.busy)).collect();
        let address = |last| IpAddr::from([10, 0, 0, last]);
        assert_eq!(
            found,
            [(address(3), 600, elapsed), (address(2), 500, Duration::from_millis(20))]
        );
        let many: Vec<_> = (0..=255).map(|one| moved([10, 1, 0, one], 1, 9, 9)).collect();
        assert_eq!(summed(&many, elapsed).len(), MAX_TRAFFIC_PER_REPORT);
    }

    #[test]
    fn sockets_of_this_process_are_its_own() {
        use std::os::fd::AsFd;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = rustix::fs::fstat(listener.as_fd()).unwrap().st_ino;
        let own = WorkerProcess { rank: telltale_cluster::rank::Rank(0), pid: std::process::id() };
        assert!(descriptors(&[own]).contains(&u32::try_from(inode).unwrap()));
        let gone = WorkerProcess { pid: u32::MAX, ..own };
        assert!(descriptors(&[gone]).is_empty());
    }

    #[test]
    fn the_loopback_is_no_link() {
        let mut connections = Connections::default();
        let own = WorkerProcess { rank: telltale_cluster::rank::Rank(0), pid: std::process::id() };
        let now = Instant::now();
        assert_eq!(connections.sample(&[own], now), []);
        assert_eq!(connections.sample(&[own], now + Duration::from_secs(1)), []);
        assert!(!connections.has_failed);
        assert_eq!(connections.sample(&[], now), []);
        assert!(connections.known.is_empty());
    }
}
