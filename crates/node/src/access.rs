//! Who may see what of a snapshot: decided here for every server, from what the kernel or a server
//! has verified of the caller. Nothing here opens a socket or trusts a number that a caller sent.
//!
//! Everyone sees the devices with their sums and counts, other users' share included. Which
//! processes there are, what they are called and what they run is for root, the service's own
//! user and group, and the processes' owner.

mod choosing;
mod loopback;
mod redaction;

use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::{fs, io};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use telltale_ledger::directory::{OVERFLOW_UID, has_own_users, is_installed};
use telltale_ledger::peer::supplementary_groups;
use telltale_query::Query;
use telltale_schema::snapshot::Snapshot;
use telltale_server::token::Token;

pub use choosing::{TooSlow, chosen};
pub use redaction::visible;

/// Users whose view of one snapshot is remembered.
const MOST_REMEMBERED: usize = 16;

/// Who asks, as far as it was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// A process of this machine at the other end of a Unix socket, as the kernel knew it when it
    /// connected.
    Local {
        /// Its effective user.
        uid: u32,
        /// Its effective group.
        gid: u32,
        /// Its supplementary groups.
        groups: Vec<u32>,
    },
    /// A process of this machine at the other end of a TCP connection over the loopback, by the user
    /// that the kernel has for its socket.
    Loopback {
        /// That user.
        uid: u32,
    },
    /// Someone who sent the service's token.
    Token,
    /// Someone with a certificate that the configured authority signed.
    Certificate,
    /// Anyone else who reached a TCP port.
    Anonymous,
}

/// What a caller may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// All of it.
    Everything,
    /// The devices, and the processes of one user.
    Own {
        /// That user.
        uid: u32,
    },
    /// The devices alone.
    DevicesOnly,
}

/// Who sees everything, and what the others were shown last.
#[derive(Debug)]
pub struct AccessPolicy {
    service_uid: u32,
    group: Option<u32>,
    token: RwLock<Option<Token>>,
    knows_loopback: bool,
    shown: Mutex<SnapshotViews>,
}

/// One snapshot as different users may see it.
#[derive(Debug, Default)]
struct SnapshotViews {
    of: Option<Arc<Snapshot>>,
    to: Vec<(Visibility, Arc<Snapshot>)>,
}

// === impl Visibility ===

impl Visibility {
    /// Whether a client gets what processes and the host use: where it is `asked` for, or its filter
    /// names it, except where it sees devices alone.
    #[must_use]
    pub fn gets_usage(self, asked: bool, filter: Option<&Query>) -> bool {
        self != Self::DevicesOnly && (asked || filter.is_some_and(Query::asks_for_usage))
    }
}

// === impl Caller ===

impl Caller {
    /// Who is at the other end of a Unix socket.
    ///
    /// # Errors
    /// When `socket` is no connected Unix socket.
    pub fn of_socket(socket: &impl AsFd) -> io::Result<Self> {
        let peer = getsockopt(socket, PeerCredentials)?;
        // What the kernel answers for a socket that has no peer on this machine.
        if peer.uid() == u32::MAX {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "no peer of this host"));
        }
        // A kernel without the question leaves the caller with fewer rights, never with more.
        let groups = supplementary_groups(socket).unwrap_or_default();
        Ok(Self::Local { uid: peer.uid(), gid: peer.gid(), groups })
    }
}

// === impl AccessPolicy ===

impl AccessPolicy {
    /// A policy of a service that runs as `service_uid`, with the group whose members see
    /// everything, if there is one.
    ///
    /// Group 0 and the overflow group belong to no user: containers run with group 0 as any user, and
    /// the other stands for every group that has no number here.
    #[must_use]
    pub fn new(service_uid: u32, group: Option<u32>) -> Self {
        let group = group.filter(|group| *group != 0 && *group != OVERFLOW_UID);
        Self {
            service_uid,
            group,
            token: RwLock::default(),
            knows_loopback: false,
            shown: Mutex::default(),
        }
    }

    /// The policy of this process as the service of the runtime directory at `path`: an installed
    /// one (mode 3777) belongs to the service's group, one of a user's own to no group at all,
    /// because many users may share theirs.
    ///
    /// # Errors
    /// When the directory cannot be checked.
    pub fn of_directory(path: &Path) -> io::Result<Self> {
        let status = fs::metadata(path)?;
        let service_uid = rustix::process::geteuid().as_raw();
        let trusted = status.uid() == service_uid || status.uid() == 0 || service_uid == 0;
        let installed = trusted && is_installed(status.mode());
        Ok(Self::new(service_uid, installed.then_some(status.gid())))
    }

    /// The same policy, by which clients that send this token see everything.
    #[must_use]
    pub fn with_token(self, token: Token) -> Self {
        self.replace_token(token);
        self
    }

    /// Whether callers on a loopback port are known as users of this machine.
    #[must_use]
    pub fn knows_loopback(&self) -> bool {
        self.knows_loopback
    }

    /// The same policy, which knows callers on a loopback port as users of this machine, or does not.
    #[must_use]
    pub fn knowing_loopback(mut self, knows: bool) -> Self {
        self.knows_loopback = knows && has_own_users();
        self
    }

    /// From now on it is this token by which a caller sees everything, and no other.
    pub fn replace_token(&self, token: Token) {
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }

    /// Who `caller` is after showing an `authorization` header: with the right token it sees
    /// everything, without a header it stays who it is. None for a header with anything else,
    /// which is an error to tell and no reason to show less.
    #[must_use]
    pub fn authorized(&self, caller: Caller, header: Option<&str>) -> Option<Caller> {
        let token = self.token.read().unwrap_or_else(PoisonError::into_inner);
        match (header, &*token) {
            (None, _) => Some(caller),
            (Some(header), Some(token)) if token.is_in(header) => Some(Caller::Token),
            (Some(_), _) => None,
        }
    }

    /// [`visible`], remembered for the newest snapshot: a page, a scrape and a stream of one user
    /// share the work and the memory.
    #[must_use]
    pub fn visible(&self, snapshot: &Arc<Snapshot>, visibility: Visibility) -> Arc<Snapshot> {
        if visibility == Visibility::Everything {
            return Arc::clone(snapshot);
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if !shown.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, snapshot)) {
            *shown = SnapshotViews { of: Some(Arc::clone(snapshot)), to: Vec::new() };
        }
        if let Some((_, found)) = shown.to.iter().find(|(whose, _)| *whose == visibility) {
            return Arc::clone(found);
        }
        let made = visible(snapshot, visibility);
        if shown.to.len() < MOST_REMEMBERED {
            shown.to.push((visibility, Arc::clone(&made)));
        }
        made
    }
}

impl AccessPolicy {
    /// Whether there is a token.
    #[must_use]
    pub fn has_token(&self) -> bool {
        self.token.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// What `caller` may see.
///
/// The overflow user is no particular user, even where the service itself runs as that user:
/// its number stands for everyone whom this namespace cannot name.
#[must_use]
pub fn visibility(policy: &AccessPolicy, caller: &Caller) -> Visibility {
    match caller {
        Caller::Token | Caller::Certificate => Visibility::Everything,
        Caller::Anonymous => Visibility::DevicesOnly,
        Caller::Local { uid: OVERFLOW_UID, .. } | Caller::Loopback { uid: OVERFLOW_UID } => {
            Visibility::DevicesOnly
        }
        Caller::Loopback { uid } if *uid == 0 || *uid == policy.service_uid => {
            Visibility::Everything
        }
        Caller::Loopback { uid } => Visibility::Own { uid: *uid },
        Caller::Local { uid, gid, groups } => {
            let of_group =
                policy.group.is_some_and(|group| *gid == group || groups.contains(&group));
            if *uid == 0 || *uid == policy.service_uid || of_group {
                Visibility::Everything
            } else {
                Visibility::Own { uid: *uid }
            }
        }
    }
}

#[cfg(test)]
mod tests;
