//! A network of its own for each node, and a cable between each two: what is shaped there slows no other
//! else on this machine.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use telltale_harness::{ChildGuard, skip, wait_until};

use crate::cluster::job::TIMEOUT;

/// The networks of some nodes.
pub(crate) struct Network {
    /// Each holds one node's network namespace; it ends with this program, since it has no writer.
    holders: Vec<ChildGuard>,
}

impl Network {
    /// The networks of so many nodes; nothing where this cannot be made.
    pub(crate) fn of(count: usize, test: &str) -> Option<Self> {
        let trial = ["--net", "tc", "qdisc", "add", "dev", "lo", "root"];
        let trial = Command::new("unshare").args(trial).args(SLOW).output();
        if !trial.is_ok_and(|output| output.status.success()) {
            skip(test, "needs root, tc and ip (Debian: iproute2) and a kernel that has tbf");
            return None;
        }
        let network = Self { holders: (0..count).map(|_| namespace()).collect() };
        for one in 0..count {
            for other in one + 1..count {
                let pid = network.holders[other].id().to_string();
                let (here, there) = (network.cable(one, other), network.cable(other, one));
                let ends = ["name", &here, "type", "veth", "peer", "name", &there, "netns", &pid];
                network.ip(one, &[&["link", "add"], &ends[..]].concat());
            }
        }
        for one in 0..count {
            let own = format!("{}/32", Self::address(one));
            network.ip(one, &["link", "set", "lo", "up"]);
            for other in (0..count).filter(|other| *other != one) {
                network.ip(one, &["address", "add", &own, "dev", &network.cable(one, other)]);
                network.ip(one, &["link", "set", &network.cable(one, other), "up"]);
            }
            for other in (0..count).filter(|other| *other != one) {
                let to = format!("{}/32", Self::address(other));
                let (cable, from) = (network.cable(one, other), Self::address(one));
                network.ip(one, &["route", "add", &to, "dev", &cable, "src", &from]);
            }
        }
        Some(network)
    }

    /// An interface that every node has, with its own address.
    pub(crate) const INTERFACE: &str = "cable-1";

    /// Where others reach a node.
    pub(crate) fn address(node: usize) -> String {
        format!("10.84.0.{}", node + 1)
    }

    /// What a program is started by in a node's network.
    pub(crate) fn entry(&self, node: usize) -> Vec<String> {
        let namespace = format!("--net={}", self.path(node).display());
        vec!["nsenter".to_owned(), namespace, "--".to_owned()]
    }

    /// Makes the cable between two nodes slow, both ways.
    pub(crate) fn slow(&self, one: usize, other: usize) {
        self.slow_one_way(one, other);
        self.slow_one_way(other, one);
    }

    /// Makes it slow for what one sends to the other.
    pub(crate) fn slow_one_way(&self, one: usize, other: usize) {
        let cable = self.cable(one, other);
        let words = [&["tc", "qdisc", "add", "dev", &cable, "root"], &SLOW[..]].concat();
        self.run(one, &words);
    }

    /// The interface at which a node's cable to another ends. By its name, every node has the first.
    fn cable(&self, node: usize, other: usize) -> String {
        let count = self.holders.len();
        format!("cable-{}", (other + count - node) % count)
    }

    fn ip(&self, node: usize, words: &[&str]) {
        self.run(node, &[&["ip"], words].concat());
    }

    fn run(&self, node: usize, words: &[&str]) {
        let entry = self.entry(node);
        let output = Command::new(&entry[0]).args(&entry[1..]).args(words).output();
        let is_done = |output: &Output| output.status.success();
        assert!(output.as_ref().is_ok_and(is_done), "{words:?}: {output:?}");
    }

    fn path(&self, node: usize) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.holders[node].id()))
    }
}

/// 16 Mbit/s: what takes a fraction of a millisecond otherwise takes tens.
const SLOW: [&str; 7] = ["tbf", "rate", "16mbit", "burst", "16kb", "latency", "400ms"];

fn namespace() -> ChildGuard {
    let mut command = Command::new("unshare");
    command.args(["--net", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let holder = ChildGuard::spawn(&mut command);
    let path = format!("/proc/{}/ns/net", holder.id());
    let own = std::fs::read_link("/proc/self/ns/net").expect("this process has a network");
    wait_until("a network namespace", TIMEOUT, || {
        std::fs::read_link(&path).is_ok_and(|its| its != own)
    });
    holder
}
