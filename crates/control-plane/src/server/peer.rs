//! Who is at the other end of a connection, as far as its certificate shows, and which nodes it may be.
//!
//! The certificate was verified in the handshake; here its names are compared. Only the names in its
//! subjectAltName count, as for servers (RFC 9525): the common name has no defined form.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::Extensions;
use telltale_server::door::Certificate;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::server::ParsedCertificate;

use super::access::NodeNames;
use telltale_cluster::node::NodeName;

/// The other end of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Peer {
    /// What it has shown; nothing where nothing was asked for, and on a socket file.
    certificate: Option<Arc<CertificateDer<'static>>>,
}

/// Whether it is another user of this machine, where only our own may call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stranger(pub(super) bool);

/// Whether what a request carries says that its caller is a stranger. Every connection says it; a
/// request without it is refused.
pub(super) fn is_stranger(extensions: &Extensions) -> bool {
    extensions.get::<Stranger>().is_none_or(|stranger| stranger.0)
}

/// What an unauthorized client receives.
pub(super) const STRANGER: &str = "without a token only root and the coordinator's own user may call, \
    on this machine; call as one of them, or give the coordinator and its callers a --token-file";

impl Peer {
    /// The caller of a request that carries these.
    pub(super) fn of(extensions: &Extensions) -> Self {
        Self { certificate: extensions.get::<Certificate>().map(|shown| Arc::clone(&shown.0)) }
    }

    /// Whether it may speak for this node.
    pub(super) fn may_be(&self, node: &NodeName, names: &NodeNames) -> bool {
        match (names, &self.certificate) {
            (NodeNames::Any, _) | (_, None) => true,
            (NodeNames::Certified { domain }, Some(certificate)) => {
                let Ok(name) = ServerName::try_from(certified_name(node, domain.as_deref())) else {
                    return false;
                };
                ParsedCertificate::try_from(certificate.as_ref())
                    .is_ok_and(|certificate| verify_server_name(&certificate, &name).is_ok())
            }
        }
    }
}

/// The name that the certificate of a node must have: the node's, less what follows a colon, with the
/// domain behind it unless it is an address.
pub(super) fn certified_name(node: &NodeName, domain: Option<&str>) -> String {
    let node = node.as_str();
    if node.parse::<IpAddr>().is_ok() {
        return node.to_owned();
    }
    let host = node.split_once(':').map_or(node, |(host, _)| host);
    match domain {
        Some(domain) => format!("{host}.{domain}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_certified_by_its_hosts_name() {
        let cases = [
            ("node-7", None, "node-7"),
            ("node-7:second", None, "node-7"),
            ("node-7", Some("cluster.example"), "node-7.cluster.example"),
            ("10.0.0.7", Some("cluster.example"), "10.0.0.7"),
            ("fd00::7", None, "fd00::7"),
        ];
        for (node, domain, expected) in cases {
            assert_eq!(certified_name(&NodeName::new(node).unwrap(), domain), expected);
        }
    }
}
