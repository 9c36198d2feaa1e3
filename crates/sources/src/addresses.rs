//! How machines are named on the command line and in files, and which way leads to each.

use std::collections::HashSet;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use telltale_client::ServiceAddress;

use crate::open_file;

/// The port of a service where none is named.
const USUAL_PORT: u16 = 9436;
/// Machines that are asked at the same time at most.
const MAX_HOSTS: usize = 1024;
/// Bytes of a file that names machines.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What stands between two commas of `--hosts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostItem {
    /// A machine.
    Named(HostAddress),
    /// A file that names machines.
    Listed(PathBuf),
}

/// A machine as it was named, and the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAddress {
    /// As it was named, and is shown.
    pub name: String,
    /// How it is reached.
    pub way: HostRoute,
}

/// The way to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRoute {
    /// Its service.
    Service(ServiceAddress),
    /// A shell there.
    Shell(Destination),
}

/// Where `ssh` goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// `NAME` or `USER@NAME`, which no option of ssh is taken for.
    pub to: String,
    /// The port of its sshd, where one was named.
    pub port: Option<u16>,
}

/// A text that names no machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no machine; write node7, node7:9436, 10.0.0.7:9436, unix:PATH, ssh://node7 or @FILE"
)]
pub struct HostError(String);

/// Why it is not known which machines are meant.
#[derive(Debug, thiserror::Error)]
pub enum AddressesError {
    /// A file cannot be read.
    #[error("cannot read the hosts in {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file is too long.
    #[error("{} has more than {MAX_FILE_BYTES} bytes; it should name a host a line", .0.display())]
    Long(PathBuf),
    /// A line makes no sense.
    #[error("line {line} of {} cannot be used", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        source: HostError,
    },
    /// There is no server to ask.
    #[error("no host is named; write --hosts a,b or name them in a file, one a line")]
    None,
    /// More than can be asked.
    #[error("{0} hosts are named; {MAX_HOSTS} can be asked at a time")]
    Many(usize),
}

/// All machines that were named, in their order and once each.
///
/// # Errors
/// When a file cannot be read or makes no sense, none is named, or more than can be asked at a time.
pub fn read_all(items: &[HostItem]) -> Result<Vec<HostAddress>, AddressesError> {
    let mut addresses = Vec::new();
    for item in items {
        match item {
            HostItem::Named(address) => addresses.push(address.clone()),
            HostItem::Listed(path) => read(path, &mut addresses)?,
        }
    }
    let mut seen = HashSet::new();
    addresses.retain(|address| seen.insert(address.name.clone()));
    match addresses.len() {
        0 => Err(AddressesError::None),
        many if many > MAX_HOSTS => Err(AddressesError::Many(many)),
        _ => Ok(addresses),
    }
}

fn read(path: &Path, to: &mut Vec<HostAddress>) -> Result<(), AddressesError> {
    let failed = |source| AddressesError::Read { path: path.into(), source };
    let mut text = String::new();
    let file = open_file::open(path).map_err(failed)?;
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_FILE_BYTES {
        return Err(AddressesError::Long(path.into()));
    }
    for (line, text) in (1..).zip(text.lines()) {
        let name = text.split('#').next().unwrap_or_default().trim();
        if !name.is_empty() {
            let address = name.parse().map_err(|source| AddressesError::Line {
                path: path.into(),
                line,
                source,
            })?;
            to.push(address);
        }
    }
    Ok(())
}

impl FromStr for HostItem {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        match text.trim().strip_prefix('@') {
            Some("") => Err(HostError(text.to_owned())),
            Some(path) => Ok(Self::Listed(path.into())),
            None => text.parse().map(Self::Named),
        }
    }
}

impl FromStr for HostAddress {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let name = text.trim();
        let refused = || HostError(text.chars().take(256).collect());
        let way = match name.strip_prefix("ssh://") {
            Some(rest) => HostRoute::Shell(destination(rest).ok_or_else(refused)?),
            None => HostRoute::Service(service(name).ok_or_else(refused)?),
        };
        Ok(Self { name: name.to_owned(), way })
    }
}

fn service(name: &str) -> Option<ServiceAddress> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Some(ServiceAddress::Port(SocketAddr::new(address, USUAL_PORT).to_string()));
    }
    name.parse().or_else(|_| format!("{name}:{USUAL_PORT}").parse()).ok()
}

/// `[USER@]NAME[:PORT]`, where a name may be an IPv6 address in brackets.
fn destination(text: &str) -> Option<Destination> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let (user, place) = match text.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, text),
    };
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<IpAddr>().ok()?;
            (host, rest.strip_prefix(':').or_else(|| rest.is_empty().then_some(""))?)
        }
        None => place.split_once(':').unwrap_or((place, "")),
    };
    let is_word = |word: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        !word.is_empty() && !word.starts_with('-') && word.bytes().all(fits)
    };
    if !is_word(host) || !user.is_none_or(is_word) {
        return None;
    }
    let port = if port.is_empty() { None } else { Some(port.parse().ok()?) };
    let to = user.map_or_else(|| host.to_owned(), |user| format!("{user}@{host}"));
    Some(Destination { to, port })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use telltale_client::ServiceAddress;
    use telltale_harness::Scratch;

    use super::{AddressesError, Destination, HostAddress, HostItem, HostRoute, read_all};

    fn way(text: &str) -> Option<HostRoute> {
        text.parse::<HostAddress>().ok().map(|address| address.way)
    }

    #[test]
    fn a_service_has_a_usual_port() {
        for (text, port) in [
            ("node7", "node7:9436"),
            ("node7:80", "node7:80"),
            ("10.0.0.7", "10.0.0.7:9436"),
            ("::1", "[::1]:9436"),
            ("[::1]", "[::1]:9436"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(
                way(text),
                Some(HostRoute::Service(ServiceAddress::Port(port.to_owned()))),
                "{text}"
            );
        }
        let socket = HostRoute::Service(ServiceAddress::Unix("/run/x.sock".into()));
        assert_eq!(way("unix:/run/x.sock"), Some(socket));
    }

    #[test]
    fn a_shell_is_no_option_of_ssh_and_no_second_command() {
        let to = |to: &str, port| Some(HostRoute::Shell(Destination { to: to.to_owned(), port }));
        assert_eq!(way("ssh://node7"), to("node7", None));
        assert_eq!(way("ssh://ada@node7:2222/"), to("ada@node7", Some(2222)));
        assert_eq!(way("ssh://ada@[fe80::1]:22"), to("ada@fe80::1", Some(22)));
        for bad in [
            "ssh://",
            "ssh://-oProxyCommand=x",
            "ssh://-l@node7",
            "ssh://node7;reboot",
            "ssh://node 7",
            "ssh://node7:port",
            "ssh://[node7]",
            "http://node7",
            "",
            "a b",
        ] {
            assert_eq!(way(bad), None, "{bad}");
        }
    }

    #[test]
    fn files_name_a_machine_a_line_and_each_counts_once() {
        let scratch = Scratch::new();
        let path = scratch.join("hosts");
        fs::write(&path, "# rack 1\nnode1\n\n  node2:80 # the fast one\nnode1\n").unwrap();
        let items = |text: &str| -> Vec<HostItem> {
            text.split(',').map(|item| item.parse().unwrap()).collect()
        };
        let list = format!("node2:80,@{}", path.display());
        let names: Vec<_> =
            read_all(&items(&list)).unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["node2:80", "node1"]);
        fs::write(&path, "node1\nnode 2\n").unwrap();
        let broken = read_all(&items(&list)).unwrap_err();
        assert!(matches!(broken, AddressesError::Line { line: 2, .. }), "{broken}");
        fs::write(&path, "# none\n").unwrap();
        let none = read_all(&items(&list[9..])).unwrap_err();
        assert!(matches!(none, AddressesError::None), "{none}");
        fs::write(&path, (0..2000).map(|at| format!("n{at}\n")).collect::<String>()).unwrap();
        let many = read_all(&items(&list)).unwrap_err();
        assert!(matches!(many, AddressesError::Many(2001)), "{many}");
        assert!("@".parse::<HostItem>().is_err());
    }
}
