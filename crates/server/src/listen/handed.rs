//! Sockets that systemd handed over (sd_listen_fds(3)), by their names.

use std::io;

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;

use super::Listener;

/// Sockets that are checked.
const MAX_HANDED: usize = 64;

/// Sockets that were handed over and are not taken yet.
#[derive(Debug, Default)]
pub struct Handed {
    sockets: Vec<(String, Listener)>,
}

/// Why what was handed over is of no use.
#[derive(Debug, thiserror::Error)]
pub enum HandedError {
    /// It does not listen.
    #[error(
        "descriptor {place} that systemd handed over ({name}) is no listening TCP or Unix stream \
         socket; use ListenStream= in its unit"
    )]
    Kind {
        /// Its place among those handed over, from 0.
        place: usize,
        /// Its name.
        name: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No server has this name.
    #[error(
        "systemd handed over a socket named {name}; FileDescriptorName= in its unit must be one of \
         {known}"
    )]
    Name {
        /// The name.
        name: String,
        /// The names that would do.
        known: String,
    },
}

// === impl Handed ===

impl Handed {
    /// Those that were handed to this process; `known` are the names of the servers.
    ///
    /// # Errors
    /// When one cannot be listened to, or none would.
    pub fn from_environment(known: &[&str]) -> Result<Self, HandedError> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut descriptors = ListenFd::from_env();
        let mut sockets = Vec::new();
        for place in 0..descriptors.len().min(MAX_HANDED) {
            let name = names.next().unwrap_or_default().to_owned();
            if !known.contains(&name.as_str()) {
                return Err(HandedError::Name { name, known: known.join(", ") });
            }
            let socket = take(&mut descriptors, place);
            match socket {
                Ok(socket) => sockets.push((name, socket)),
                Err(source) => return Err(HandedError::Kind { place, name, source }),
            }
        }
        Ok(Self { sockets })
    }

    /// Takes those of one server.
    pub fn take(&mut self, name: &str) -> Vec<Listener> {
        let all = std::mem::take(&mut self.sockets);
        let (taken, left) = all.into_iter().partition(|(of, _)| of == name);
        self.sockets = left;
        taken.into_iter().map(|(_, socket)| socket).collect()
    }
}

fn take(descriptors: &mut ListenFd, place: usize) -> io::Result<Listener> {
    let listener = match descriptors.take_unix_listener(place) {
        Ok(Some(listener)) => Listener::Unix(listener),
        // Not of this kind: the descriptor is still there.
        Ok(None) | Err(_) => {
            let listener = descriptors.take_tcp_listener(place)?;
            Listener::Tcp(listener.ok_or(io::ErrorKind::NotFound)?)
        }
    };
    let listens = match &listener {
        Listener::Tcp(listener) => socket_acceptconn(listener)?,
        Listener::Unix(listener) => socket_acceptconn(listener)?,
    };
    if !listens {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it does not listen"));
    }
    match &listener {
        Listener::Tcp(listener) => listener.set_nonblocking(true)?,
        Listener::Unix(listener) => listener.set_nonblocking(true)?,
    }
    Ok(listener)
}
