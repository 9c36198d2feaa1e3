//! Callers on a TCP port of the loopback, as the kernel knows them, and whom not to take for one: what
//! a proxy or a browser of this machine passes on is another client's.

use std::os::fd::AsFd;
use tracing::debug;

use telltale_server::peer_user;

use super::{AccessPolicy, Caller};

/// Headers by which a proxy says for whom it asks.
const FORWARDING: [&str; 7] = [
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
];
/// What others of them begin with.
const FORWARDING_FAMILIES: [&str; 2] = ["x-forwarded", "x-original-"];

// === impl AccessPolicy ===

impl AccessPolicy {
    /// Who is at the other end of a TCP connection that was just accepted, before it shows a token.
    pub async fn tcp_caller(&self, socket: impl AsFd) -> Caller {
        if !self.knows_loopback {
            return Caller::Anonymous;
        }
        match peer_user::user_of(socket).await {
            Ok(Some(uid)) => Caller::Loopback { uid },
            Ok(None) => Caller::Anonymous,
            Err(error) => {
                debug!("cannot tell which user connects by loopback: {error}");
                Caller::Anonymous
            }
        }
    }
}

// === impl Caller ===

impl Caller {
    /// The client of a request with headers of these names: unknown where a proxy sent it, since
    /// the connection is the proxy's and the request another client's.
    #[must_use]
    pub fn asking_with<'n>(self, names: impl IntoIterator<Item = &'n str>) -> Self {
        let is_loopback = matches!(self, Self::Loopback { .. });
        if is_loopback && names.into_iter().any(is_forwarding) { Self::Anonymous } else { self }
    }
}

/// Whether a header of this name, in small letters, comes from a proxy.
fn is_forwarding(name: &str) -> bool {
    FORWARDING.contains(&name) || FORWARDING_FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::Caller;

    #[test]
    fn what_a_proxy_passes_on_is_nobodys() {
        let root = Caller::Loopback { uid: 0 };
        let usual = ["host", "user-agent", "accept", "x-request-id", "viable"];
        assert_eq!(root.clone().asking_with(usual), root);
        for name in ["forwarded", "via", "x-forwarded-for", "x-forwarded-proto", "x-real-ip"] {
            assert_eq!(root.clone().asking_with(["host", name]), Caller::Anonymous, "{name}");
            assert_eq!(Caller::Token.asking_with([name]), Caller::Token);
        }
    }
}
