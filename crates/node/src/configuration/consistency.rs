//! What keys mean together, and whether the files and directories that they name can be used: what a
//! service would find out at its start, reported before. Nothing is made, changed or listened on, and
//! what another service holds now is no fault.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_schema::text::with_causes;
use telltale_server::listen::{Address, BindError, Listener};
use telltale_server::token::Token;

use super::Configuration;
use crate::history::check_directory;
use crate::{alerts, otlp};
use telltale_collector::tree::Tree;

/// Why a service would not begin, or would not do what its configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationRefusal {
    /// The keys that it is about; the first is the one to check.
    pub keys: Vec<&'static str>,
    /// What is wrong and what to do.
    pub why: String,
}

impl ConfigurationRefusal {
    fn new(keys: &[&'static str], why: &dyn std::error::Error) -> Self {
        Self { keys: keys.to_vec(), why: with_causes(why) }
    }
}

/// The keys of TLS, of gRPC and of HTTP.
const GRPC_TLS: [&str; 3] = ["grpc.certificate", "grpc.key", "grpc.client_authority"];
const HTTP_TLS: [&str; 3] = ["http.certificate", "http.key", "http.client_authority"];

// === impl Configuration ===

impl Configuration {
    /// Keys that contradict each other. Checks no file.
    pub fn contradictions(&self) -> Vec<ConfigurationRefusal> {
        let mut found = Vec::new();
        if let Err(error) = self.http.tls_files() {
            found.push(ConfigurationRefusal::new(&HTTP_TLS, &error));
        }
        if let Err(error) = self.grpc.tls_files() {
            found.push(ConfigurationRefusal::new(&GRPC_TLS, &error));
        } else {
            let wrong = ports(&self.grpc.listen).find_map(|port| self.grpc.check(port).err());
            found.extend(wrong.map(|error| {
                ConfigurationRefusal::new(&["grpc.listen", "grpc.certificate"], &error)
            }));
        }
        let has_token = self.token_file.is_some();
        let open = ports(&self.http.listen).find_map(|port| self.http.check(port, has_token).err());
        let keys = ["http.listen", "token_file", "http.public"];
        found.extend(open.map(|error| ConfigurationRefusal::new(&keys, &error)));
        found.extend(self.addresses_twice());
        found
    }

    /// Files and directories that cannot be used, as far as this user can tell.
    pub fn unusable(&self) -> Vec<ConfigurationRefusal> {
        let mut found = Vec::new();
        let mut note = |keys: &[&'static str], error: Option<&dyn std::error::Error>| {
            found.extend(error.map(|error| ConfigurationRefusal::new(keys, error)));
        };
        let root = Tree::open(&self.root).err();
        note(&["root"], root.as_ref().map(|error| error as _));
        if let Some(path) = self.state_dir.as_deref().filter(|_| self.history.enabled) {
            let state = check_directory(path).err();
            note(&["state_dir"], state.as_ref().map(|error| error as _));
        }
        let token = self.token_file.as_deref().and_then(|path| Token::read(path).err());
        note(&["token_file"], token.as_ref().map(|error| error as _));
        for (keys, files) in [(GRPC_TLS, self.grpc.tls_files()), (HTTP_TLS, self.http.tls_files())]
        {
            if let Ok(Some(files)) = files {
                let refused = files.check().err();
                note(&keys, refused.as_ref().map(|error| error as _));
            }
        }
        let webhook = &self.alerts.webhook;
        if webhook.url.is_some() {
            let (secret, trust) = alerts::check_files(webhook);
            let secret = secret.err();
            note(
                &["alerts.webhook.authorization_file"],
                secret.as_ref().map(|it| it.as_ref() as _),
            );
            note(&["alerts.webhook.ca_file"], trust.err().as_ref().map(|error| error as _));
        }
        if self.otlp.endpoint.is_some() {
            let export = otlp::check(&self.otlp).err();
            note(&["otlp.endpoint"], export.as_ref().map(|error| error as _));
        }
        found.extend(self.sockets_in_the_way());
        found
    }

    /// Where the service would listen, with the key of each.
    fn addresses(&self) -> Vec<(&'static str, Address)> {
        let grpc = self.grpc.listen.iter().map(|one| ("grpc.listen", one.clone()));
        let http = self.http.listen.iter().map(|one| ("http.listen", one.clone()));
        let legacy = self.legacy.socket.iter();
        let legacy = legacy.map(|path| ("legacy.socket", Address::Unix(path.clone())));
        grpc.chain(http).chain(legacy).collect()
    }

    fn addresses_twice(&self) -> Vec<ConfigurationRefusal> {
        let all = self.addresses();
        let mut found = Vec::new();
        for (place, (key, one)) in all.iter().enumerate() {
            let Some((other_key, other)) =
                all[..place].iter().find(|(_, other)| exclude_each_other(one, other))
            else {
                continue;
            };
            let why = format!("cannot listen on {one} beside {other}; choose another address");
            found.push(ConfigurationRefusal { keys: vec![key, other_key], why });
        }
        found
    }

    /// Sockets whose place is taken by something else, or in a directory that is none. gRPC's in the
    /// runtime directory is done without when that is not there.
    fn sockets_in_the_way(&self) -> Vec<ConfigurationRefusal> {
        let named = self.runtime_dir.clone();
        let under_root = (self.root != Path::new("/")).then(|| self.root.join("run/tt"));
        let directory = named.or(under_root);
        let mut found = Vec::new();
        for (key, address) in self.addresses() {
            let Address::Unix(path) = address else { continue };
            let (directory, refused) = match (&directory, path.is_absolute()) {
                (_, true) => (PathBuf::new(), None),
                // Where a runtime of the service's user would have its own, made if need be.
                (None, false) => continue,
                (Some(directory), false) => {
                    let opened = RuntimeDirectory::open(directory, Purpose::Writing);
                    (directory.clone(), opened.err())
                }
            };
            match refused {
                Some(_) if key == "grpc.listen" => {}
                Some(error) => found.push(ConfigurationRefusal::new(&[key, "runtime_dir"], &error)),
                None => {
                    let blocked: Option<BindError> = Listener::look_at(&directory.join(path)).err();
                    found.extend(blocked.map(|error| ConfigurationRefusal::new(&[key], &error)));
                }
            }
        }
        found
    }
}

fn ports(addresses: &[Address]) -> impl Iterator<Item = SocketAddr> {
    addresses.iter().filter_map(|address| match address {
        Address::Tcp(port) => Some(*port),
        Address::Unix(_) => None,
    })
}

/// Whether who listens at one of these cannot listen at the other. Port 0 is another one each time.
fn exclude_each_other(one: &Address, other: &Address) -> bool {
    match (one, other) {
        (Address::Tcp(one), Address::Tcp(other)) => {
            let same_family = one.is_ipv4() == other.is_ipv4();
            let any = one.ip().is_unspecified() || other.ip().is_unspecified();
            let same_port = one.port() == other.port() && one.port() != 0;
            same_port && (one.ip() == other.ip() || (same_family && any))
        }
        (Address::Unix(one), Address::Unix(other)) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
