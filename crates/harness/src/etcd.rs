//! A real etcd cluster on the loopback, for as long as a test holds it.
//!
//! Members are children of the test and keep their files in its scratch directory. What is written
//! to them is the test's business.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{ChildGuard, Scratch, skip};

/// How long a cluster may take to elect a leader, and how often ports are drawn again when another process
/// else takes one.
const STARTING: Duration = Duration::from_secs(30);
const MAX_STARTS: u32 = 5;
/// How long a member may take to say how it is.
const ANSWERING: Duration = Duration::from_secs(2);

/// A cluster of etcd members.
#[derive(Debug)]
pub struct EtcdCluster {
    scratch: Scratch,
    scheme: &'static str,
    members: Vec<EtcdMember>,
}

/// Files with which members prove who they are, and ask the same of their clients; all PEM.
#[derive(Debug, Clone, Copy)]
pub struct EtcdTlsFiles<'a> {
    /// The members' certificate.
    pub certificate: &'a Path,
    /// Its key.
    pub key: &'a Path,
    /// What clients' certificates have to descend from.
    pub authority: &'a Path,
}

#[derive(Debug)]
struct EtcdMember {
    process: ChildGuard,
    client_port: u16,
    /// Where it says how it is, without TLS.
    status_port: u16,
    arguments: Vec<String>,
}

/// Whether etcd is installed; records that `test` is skipped if it is not.
#[must_use]
pub fn needs_etcd(test: &str) -> bool {
    let version = Command::new("etcd").arg("--version").output();
    let is_there = version.is_ok_and(|output| output.status.success());
    if !is_there {
        skip(test, "etcd is not installed (Debian's etcd-server)");
    }
    is_there
}

impl EtcdCluster {
    /// Starts this many members, and returns once they have a leader.
    ///
    /// # Panics
    /// When they do not get to that.
    #[must_use]
    pub fn start(count: usize) -> Self {
        Self::start_with(count, None)
    }

    /// As [`Self::start`], with TLS for clients.
    ///
    /// # Panics
    /// Likewise.
    #[must_use]
    pub fn start_secure(count: usize, files: EtcdTlsFiles<'_>) -> Self {
        Self::start_with(count, Some(files))
    }

    fn start_with(count: usize, files: Option<EtcdTlsFiles<'_>>) -> Self {
        for _ in 0..MAX_STARTS {
            let mut cluster = Self::spawn(count, files);
            if cluster.is_ready_within(STARTING) {
                return cluster;
            }
        }
        panic!("{count} members of etcd did not elect a leader, {MAX_STARTS} times")
    }

    /// The members' addresses, as clients write them.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        let ports = self.members.iter().map(|member| member.client_port);
        ports.map(|port| format!("{}://127.0.0.1:{port}", self.scheme)).collect()
    }

    /// The member that leads the cluster now, by its place among [`Self::addresses`].
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        self.members.iter().position(|member| {
            let metrics = get(member.status_port, "/metrics").unwrap_or_default();
            metrics.lines().any(|line| line == "etcd_server_is_leader 1")
        })
    }

    /// A member's process, to be killed or stopped.
    pub fn member(&mut self, index: usize) -> &mut ChildGuard {
        &mut self.members[index].process
    }

    /// Starts a member again that was killed.
    pub fn restart(&mut self, index: usize) {
        let member = &mut self.members[index];
        member.process = ChildGuard::spawn(&mut command(&self.scratch, &member.arguments));
    }

    /// Whether every member says that it is well.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.members.iter().all(|member| {
            get(member.status_port, "/health").is_some_and(|text| text.contains("\"true\""))
        })
    }

    fn spawn(count: usize, files: Option<EtcdTlsFiles<'_>>) -> Self {
        let scratch = Scratch::new();
        let scheme = if files.is_some() { "https" } else { "http" };
        let ports = free_ports(3 * count);
        let (client_ports, others) = ports.split_at(count);
        let (peer_ports, status_ports) = others.split_at(count);
        let peers: Vec<String> =
            peer_ports.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
        let cluster: Vec<String> =
            (0..).zip(&peers).map(|(index, peer)| format!("m{index}={peer}")).collect();
        let members = (0..count).map(|index| {
            let (client_port, status_port) = (client_ports[index], status_ports[index]);
            let client = format!("{scheme}://127.0.0.1:{client_port}");
            let mut arguments = vec![
                ("--name", format!("m{index}")),
                ("--data-dir", scratch.join(format!("m{index}")).display().to_string()),
                ("--listen-client-urls", client.clone()),
                ("--advertise-client-urls", client),
                ("--listen-metrics-urls", format!("http://127.0.0.1:{status_port}")),
                ("--listen-peer-urls", peers[index].clone()),
                ("--initial-advertise-peer-urls", peers[index].clone()),
                ("--initial-cluster", cluster.join(",")),
                ("--logger", "zap".to_owned()),
                ("--log-level", "error".to_owned()),
            ];
            if let Some(files) = files {
                arguments.extend([
                    ("--cert-file", files.certificate.display().to_string()),
                    ("--key-file", files.key.display().to_string()),
                    ("--trusted-ca-file", files.authority.display().to_string()),
                ]);
            }
            let mut arguments: Vec<String> =
                arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
            arguments.extend(files.map(|_| "--client-cert-auth".to_owned()));
            let process = ChildGuard::spawn(&mut command(&scratch, &arguments));
            EtcdMember { process, client_port, status_port, arguments }
        });
        let members = members.collect();
        Self { scratch, scheme, members }
    }

    fn is_ready_within(&mut self, within: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < within {
            if !self.members.iter_mut().all(|member| member.process.is_running()) {
                return false;
            }
            if self.is_healthy() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

fn command(scratch: &Scratch, arguments: &[String]) -> Command {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(scratch.join("log"));
    let log = log.expect("the scratch directory can be written");
    let mut command = Command::new("etcd");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // What the environment says would be taken beside the arguments.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ETCD_") {
            command.env_remove(name);
        }
    }
    command
}

/// Ports that are free at this moment.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback has free ports"))
        .collect();
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
    listeners.iter().map(|listener| port(listener).expect("a bound socket has a port")).collect()
}

/// The body of a member's answer over HTTP.
fn get(port: u16, path: &str) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, ANSWERING).ok()?;
    stream.set_read_timeout(Some(ANSWERING)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}
