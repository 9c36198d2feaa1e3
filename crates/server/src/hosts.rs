//! Under which names a TCP port answers. A site that a browser shows can give its own name this
//! machine's address; what the browser then asks under that name is refused. Pure.

use std::net::IpAddr;

use axum::http::header::HOST;
use axum::http::{Request, StatusCode, Version};

use crate::problem::Problem;

/// The names that are ours.
#[derive(Debug, Clone)]
pub struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    /// `localhost`, this machine's name, and these.
    pub fn new(more: &[String]) -> Self {
        let uname = rustix::system::uname();
        let own = uname.nodename().to_string_lossy();
        let names = [String::from("localhost"), own.into_owned()];
        let names = names.into_iter().chain(more.iter().cloned());
        Self { names: names.map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Whether `authority`, a host with or without a port, is one of ours. Addresses are all of
    /// ours: no other can be reached under one.
    pub fn has(&self, authority: &str) -> bool {
        let Some(host) = host(authority) else { return false };
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        if bare.parse::<IpAddr>().is_ok() {
            return true;
        }
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        self.names.contains(&host)
    }

    /// Makes sure that a request names its host once, and as one of ours each time. `is_also_ours`
    /// knows more names; `remedy` says which names may be used.
    ///
    /// # Errors
    /// What to answer where it does not.
    pub fn check<Body>(
        &self,
        request: &Request<Body>,
        is_also_ours: impl Fn(&str) -> bool,
        remedy: &str,
    ) -> Result<(), Problem> {
        let mut named = request.headers().get_all(HOST).iter();
        let (first, second) = (named.next(), named.next());
        let in_target = request.uri().authority().map(|authority| authority.as_str());
        let in_header = first.map(|host| host.to_str().unwrap_or_default());
        let both = [in_target, in_header];
        let is_named = both.iter().any(Option::is_some) || request.version() == Version::HTTP_10;
        if second.is_some() || !is_named {
            let detail = "a request names its host, once";
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        }
        let is_ours = |authority| self.has(authority) || host(authority).is_some_and(&is_also_ours);
        if both.into_iter().flatten().all(is_ours) {
            return Ok(());
        }
        let detail = format!("this name is not one of this server's; {remedy}");
        Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail))
    }
}

/// The host of an authority, a host with or without a port; none where it is malformed.
pub fn host(authority: &str) -> Option<&str> {
    if authority.contains(['@', '/', '\\', ' ', ',']) {
        return None;
    }
    let end = match authority.rfind(']') {
        Some(bracket) if authority.starts_with('[') => bracket + 1,
        Some(_) => return None,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(end);
    let port = rest.strip_prefix(':');
    let fits = rest.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_ok());
    (fits && !host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::Hosts;

    #[test]
    fn only_own_names_and_addresses_are_answered() {
        let hosts = Hosts::new(&["Node1.example.org".to_owned()]);
        for good in [
            "localhost",
            "LOCALHOST:9435",
            "localhost.",
            "127.0.0.1:9435",
            "10.1.2.3",
            "[::1]:9435",
            "[::1]",
            "node1.example.org:80",
        ] {
            assert!(hosts.has(good), "{good}");
        }
        for bad in [
            "",
            ":9435",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "evil.example:80@localhost",
            "localhost:port",
            "localhost:99999",
            "[evil]:80",
            "[::1]evil",
            "localhost, evil.example",
            "node1.example.org.evil",
            "a]:80",
        ] {
            assert!(!hosts.has(bad), "{bad}");
        }
    }
}
