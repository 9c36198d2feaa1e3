//! Who may call: clients with the token or a certificate of the named authority, where one of them is
//! asked for; otherwise our own user and root, on this machine.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use telltale_server::door::{Tls, TlsError, TlsFiles};
use telltale_server::listen::Address;
use telltale_server::token::{Token, TokenError};

/// How callers prove who they are, as an operator wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessFiles {
    /// A file with a token that every call must carry.
    pub token: Option<PathBuf>,
    /// A PEM file with the server's certificate and those that lead to its authority.
    pub certificate: Option<PathBuf>,
    /// A PEM file with the key of that certificate.
    pub key: Option<PathBuf>,
    /// A PEM file with the authority whose certificates callers must have.
    pub client_authority: Option<PathBuf>,
    /// What follows a node's name in its certificate.
    pub node_domain: Option<String>,
    /// Whether a caller may speak for any node, whatever names its certificate has.
    pub any_node: bool,
}

/// Why no client can be admitted like that.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The token's file.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The certificates' files.
    #[error(transparent)]
    Trust(#[from] TlsError),
    /// Anyone on the network could listen in, and restart the job.
    #[error(
        "{0} can be reached by other machines; name a certificate and its key, and a token file or a \
         client authority, or listen on 127.0.0.1"
    )]
    OpenBeyondLoopback(SocketAddr),
}

/// For which nodes a caller may speak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeNames {
    /// For any: callers have no certificates, or the operator wants it so.
    Any,
    /// For those that its certificate names.
    Certified {
        /// What follows a node's name there.
        domain: Option<String>,
    },
}

/// Who may call.
#[derive(Debug)]
pub(super) struct Access {
    token: Option<Token>,
    /// Whether callers prove who they are by a certificate.
    certified: bool,
    pub(super) nodes: NodeNames,
    pub(super) tls: Arc<Tls>,
}

impl Access {
    /// Reads the files, and checks that they are enough for these addresses.
    pub(super) fn read<'a>(
        files: &AccessFiles,
        addresses: impl Iterator<Item = &'a Address>,
    ) -> Result<Arc<Self>, AccessError> {
        let AccessFiles { certificate, key, client_authority, .. } = files;
        let tls =
            TlsFiles::named(certificate.as_deref(), key.as_deref(), client_authority.as_deref())?;
        let proves = files.token.is_some() || files.client_authority.is_some();
        for address in addresses {
            match address {
                Address::Tcp(address) if !address.ip().to_canonical().is_loopback() => {
                    if tls.is_none() || !proves {
                        return Err(AccessError::OpenBeyondLoopback(*address));
                    }
                }
                Address::Tcp(_) | Address::Unix(_) => {}
            }
        }
        let tls = Arc::new(Tls::new(tls)?);
        let token = files.token.as_deref().map(Token::read).transpose()?;
        let nodes = if files.client_authority.is_none() || files.any_node {
            NodeNames::Any
        } else {
            NodeNames::Certified { domain: files.node_domain.clone() }
        };
        let certified = files.client_authority.is_some();
        Ok(Arc::new(Self { token, certified, nodes, tls }))
    }

    /// Whether a caller is asked for nothing by which it proves who it is, so that it matters which user
    /// of this machine it is.
    pub(super) const fn asks_nothing(&self) -> bool {
        self.token.is_none() && !self.certified
    }

    /// Whether a user of this machine may call on a socket file: without a token, a client that can open the
    /// file could restart the job, so only root and our own user may.
    pub(super) fn lets_in(&self, uid: u32) -> bool {
        self.token.is_some() || is_ours(uid)
    }

    /// Whether a call with this `authorization` header may go on. Certificates were checked when the
    /// connection was made.
    pub(super) fn admits(&self, header: Option<&str>) -> bool {
        self.token.as_ref().is_none_or(|token| header.is_some_and(|header| token.is_in(header)))
    }
}

/// Whether a user is root or our own, who may end this process anyway.
pub(super) fn is_ours(uid: u32) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&uid)
}
