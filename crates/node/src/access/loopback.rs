//! Callers on a TCP port of the loopback, as the kernel knows them, and whom not to take for one: what
//! a proxy or a browser of this machine passes on is another client's.

use std::fs;
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

/// The whole of all users, as the first user namespace has it in `/proc/self/uid_map`.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

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

/// Whether the users that the kernel names here are those of the machine. In a user namespace (a
/// container of a user who is not root) user 0 is its creator, and what its engine forwards
/// from the network to the container's loopback comes as that user.
pub(super) fn has_own_users() -> bool {
    // A kernel without user namespaces has no such file.
    fs::read_to_string("/proc/self/uid_map").map_or(true, |map| is_whole(&map))
}

fn is_whole(map: &str) -> bool {
    map.split_ascii_whitespace().eq(ALL_USERS)
}

#[cfg(test)]
mod tests {
    use super::{Caller, is_whole};

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

    #[test]
    fn users_of_a_namespace_are_not_those_of_the_machine() {
        assert!(is_whole("         0          0 4294967295\n"));
        assert!(!is_whole("         0       1000          1\n"));
        assert!(!is_whole("0 1000 1\n1 100000 65536\n"));
        assert!(!is_whole(""));
    }
}
