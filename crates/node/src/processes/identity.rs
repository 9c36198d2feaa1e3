//! Whether a ledger or an answer is from the process that it names, and which pid that is here.
//!
//! A claim names (boot id, PID namespace, pid, start time). It is believed when the kernel shows a
//! process with exactly these, which runs as the user that owns the file, or root owns it. The number in a file's
//! name is never looked at here.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

use telltale_ledger::LedgerReader;
use telltale_ledger::directory::OVERFLOW_UID;
use telltale_schema::process::{ProcessIdentity, parse_boot_id};

use super::status::{Found, Procfs, Status};
use crate::tree::Directory;

/// The inode of the first PID namespace, from which every process can be seen (the kernel's
/// `PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Pids that one scan of `/proc` looks at.
const MAX_SCANNED: usize = 65_536;

/// Processes that are kept as they were seen, for each is an open directory.
const MAX_SEEN: usize = 256;

/// A clock tick, in which `/proc` gives start times; the same on every Linux that the driver runs
/// on.
pub(crate) const NANOSECONDS_PER_TICK: u64 = 10_000_000;

/// How much younger than what it made a process may look: clocks and ticks are coarse.
pub(crate) const SLACK_NS: u64 = 2_000_000_000;

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The process lives and has this pid here.
    Alive { pid: u32 },
    /// It has ended, for certain.
    Dead,
    /// It cannot be seen from here; it may live.
    Hidden,
    /// The claim is not that process's own.
    Refused(Lie),
}

impl Standing {
    /// Our pid of the process, if it lives.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Alive { pid } => Some(*pid),
            Self::Dead | Self::Hidden | Self::Refused(_) => None,
        }
    }
}

/// Why a claim is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lie {
    #[error("the file belongs to user {OVERFLOW_UID}, who is nobody")]
    Nobody,
    #[error("user {owner} made it, but process {pid} runs as user {uid}; remove it")]
    Owner { owner: u32, pid: u32, uid: u32 },
    #[error("process {peer} answers for process {claimed}; whoever made the socket lies")]
    Peer { peer: u32, claimed: u32 },
    #[error("process {claimed} answers under the name of process {named}; remove the socket")]
    Name { claimed: u32, named: u32 },
    #[error("it says that it is process {claimed}'s and has another name than that; remove it")]
    LedgerName { claimed: u32 },
    #[error("the ledger it hands out is not its own")]
    ForeignLedger,
}

/// Where we stand: what the checks compare with.
#[derive(Debug)]
pub(crate) struct Standpoint {
    pub(crate) boot_id: Option<[u8; 16]>,
    pub(crate) namespace: Option<u64>,
    /// Every process can be seen: the first PID namespace, and nothing is hidden in `/proc`.
    pub(crate) sees_all: bool,
}

/// One round of checks; `/proc` is scanned at most once in it, and only if need be.
pub(crate) struct Checks<'a> {
    procfs: &'a Procfs,
    standpoint: &'a Standpoint,
    /// Pids that are worth a look first: the driver's holders, endpoints' peers.
    likely: Vec<u32>,
    by_start: OnceCell<HashMap<u64, Vec<u32>>>,
    /// Each pid, in whatever namespace, with each user of the process that has it.
    by_name: OnceCell<HashSet<(u32, u32)>>,
    seen: RefCell<Seen>,
}

/// Processes as a round of checks has found them, kept so that they need not be read again. Each
/// directory stays that of its process.
pub(crate) type Seen = HashMap<u32, (Directory, Status)>;

impl Standpoint {
    /// Looks where we are.
    pub(crate) fn look(procfs: &Procfs) -> Self {
        let boot_id = procfs.common("proc/sys/kernel/random/boot_id").ok();
        let boot_id = boot_id.and_then(|text| parse_boot_id(std::str::from_utf8(&text).ok()?));
        let namespace = procfs.own_namespace();
        let first_is_seen = || matches!(procfs.find(1), Found::Process(..));
        let sees_all = namespace == Some(FIRST_PID_NAMESPACE) && first_is_seen();
        Self { boot_id, namespace, sees_all }
    }
}

// === impl Checks ===

impl<'a> Checks<'a> {
    pub(crate) fn new(
        procfs: &'a Procfs,
        standpoint: &'a Standpoint,
        likely: impl IntoIterator<Item = u32>,
    ) -> Self {
        let likely = likely.into_iter().collect();
        let (by_start, by_name, seen) = (OnceCell::new(), OnceCell::new(), RefCell::default());
        Self { procfs, standpoint, likely, by_start, by_name, seen }
    }

    /// The processes that were found to live and to be who they are said to be.
    pub(crate) fn into_seen(self) -> Seen {
        self.seen.into_inner()
    }

    /// The PID namespace we are in.
    pub(crate) fn namespace(&self) -> Option<u64> {
        self.standpoint.namespace
    }

    /// Judges a ledger: as its claim, and where its process cannot be seen from here, by whether
    /// anybody still has it open. A system container may have a boot id of its own (systemd-nspawn
    /// mounts one); its processes are of this boot all the same, as a lock that is held shows. A process
    /// that lives and has let go of its ledger executes another program now.
    pub(crate) fn judge_ledger(&self, reader: &LedgerReader) -> Standing {
        let (claimed, uid) = (reader.owner(), reader.uid());
        match self.judge(claimed, uid) {
            Standing::Hidden | Standing::Alive { .. } if reader.is_abandoned() => Standing::Dead,
            Standing::Dead if self.is_of_another_boot(claimed) && reader.is_held() => {
                self.judge_of_this_boot(claimed, uid)
            }
            standing => standing,
        }
    }

    /// Whether a claim names another boot id than the one that is seen from here.
    fn is_of_another_boot(&self, claimed: &ProcessIdentity) -> bool {
        self.standpoint.boot_id.is_some_and(|boot_id| boot_id != claimed.boot_id)
    }

    /// Judges a claim by a file of user `owner`.
    pub(crate) fn judge(&self, claimed: &ProcessIdentity, owner: u32) -> Standing {
        if owner == OVERFLOW_UID {
            return Standing::Refused(Lie::Nobody);
        }
        if self.is_of_another_boot(claimed) {
            return Standing::Dead;
        }
        if self.standpoint.boot_id.is_none() {
            return Standing::Hidden;
        }
        self.judge_of_this_boot(claimed, owner)
    }

    /// Judges a claim of which all but the boot id is to be compared.
    fn judge_of_this_boot(&self, claimed: &ProcessIdentity, owner: u32) -> Standing {
        if self.standpoint.namespace == Some(claimed.pid_namespace) {
            return self.judge_neighbour(claimed, owner);
        }
        let likely = self.likely.iter().copied();
        let first = likely.filter_map(|pid| self.compare(pid, claimed, owner)).next();
        let found = first.or_else(|| {
            let pids = self.started_at(claimed.start_time_ticks);
            pids.iter().find_map(|pid| self.compare(*pid, claimed, owner))
        });
        match found {
            Some(standing) => standing,
            None if self.standpoint.sees_all => Standing::Dead,
            None => Standing::Hidden,
        }
    }

    /// Judges an answer by a peer that the kernel named.
    pub(crate) fn judge_peer(
        &self,
        claimed: &ProcessIdentity,
        peer: Option<u32>,
        uid: u32,
    ) -> Standing {
        let foreign = self.standpoint.namespace != Some(claimed.pid_namespace);
        if let (true, Some(peer)) = (foreign, peer) {
            // The kernel has translated the pid: no search is needed.
            let lie = Lie::Peer { peer, claimed: claimed.pid };
            return self.compare(peer, claimed, uid).unwrap_or(Standing::Refused(lie));
        }
        let standing = self.judge(claimed, uid);
        match (&standing, peer) {
            (Standing::Alive { pid }, Some(peer)) if *pid == peer => standing,
            (Standing::Refused(_), _) => standing,
            // It answers, so it lives, wherever that is.
            (Standing::Dead | Standing::Hidden, None) if foreign => Standing::Hidden,
            (_, peer) => {
                Standing::Refused(Lie::Peer { peer: peer.unwrap_or(0), claimed: claimed.pid })
            }
        }
    }

    /// Whether a process that can be the writer of a file lives: one of user `owner` that has
    /// `pid` in some namespace and started then. None when not every process can be seen from
    /// here.
    pub(crate) fn starter_lives(
        &self,
        pid: u32,
        start_time_ticks: u64,
        owner: u32,
    ) -> Option<bool> {
        let mut suspects = self.started_at(start_time_ticks).iter();
        let lives = suspects.any(|suspect| self.is_writer(*suspect, pid, owner));
        (lives || self.standpoint.sees_all).then_some(lives)
    }

    /// Whether a process lives that can have made a socket named after `pid` at `made_ns` (since
    /// boot): one of user `owner` with that pid, in whatever namespace, that is not younger. None
    /// when not every process can be seen from here.
    pub(crate) fn namesake_lives(&self, pid: u32, owner: u32, made_ns: u64) -> Option<bool> {
        let lives = self.procfs.pids().into_iter().take(MAX_SCANNED).any(|candidate| {
            let Found::Process(_, status) = self.procfs.find(candidate) else {
                // Ended meanwhile, or out of sight; the latter is answered below.
                return false;
            };
            let start_ns = status.start_time_ticks.saturating_mul(NANOSECONDS_PER_TICK);
            let named = candidate == pid || status.namespace_pids.contains(&pid);
            let older = start_ns <= made_ns.saturating_add(SLACK_NS);
            named && older && !status.ended && may_own(&status, owner)
        });
        (lives || self.standpoint.sees_all).then_some(lives)
    }

    /// Whether a process may live that has left a file of user `owner` named after `pid`, and after
    /// its start where that is in the name. Looks at `/proc` once, however often it is asked.
    pub(crate) fn may_live(&self, pid: u32, start_time_ticks: Option<u64>, owner: u32) -> bool {
        match start_time_ticks {
            Some(start) if self.procfs.glance(pid) == Some((start, owner)) => true,
            Some(start) => self.starter_lives(pid, start, owner).unwrap_or(true),
            None => !self.standpoint.sees_all || self.names().contains(&(pid, owner)),
        }
    }

    fn names(&self) -> &HashSet<(u32, u32)> {
        self.by_name.get_or_init(|| {
            let mut names = HashSet::new();
            for pid in self.procfs.pids().into_iter().take(MAX_SCANNED) {
                let Found::Process(_, status) = self.procfs.find(pid) else { continue };
                for name in [pid].iter().chain(&status.namespace_pids) {
                    names.extend(status.uids.map(|uid| (*name, uid)));
                }
            }
            names
        })
    }

    fn is_writer(&self, suspect: u32, pid: u32, owner: u32) -> bool {
        match self.procfs.find(suspect) {
            Found::Process(_, status) => {
                let named = suspect == pid || status.namespace_pids.contains(&pid);
                named && !status.ended && may_own(&status, owner)
            }
            Found::Nobody => false,
            Found::Unseen => true,
        }
    }

    /// A claim to be a process of our own PID namespace.
    fn judge_neighbour(&self, claimed: &ProcessIdentity, owner: u32) -> Standing {
        if self.procfs.glance(claimed.pid) == Some((claimed.start_time_ticks, owner)) {
            return Standing::Alive { pid: claimed.pid };
        }
        match self.procfs.find(claimed.pid) {
            Found::Process(_, status) if status.start_time_ticks != claimed.start_time_ticks => {
                Standing::Dead
            }
            Found::Process(directory, status) => {
                let standing = owned(claimed.pid, &status, owner);
                let mut seen = self.seen.borrow_mut();
                if standing.pid().is_some() && seen.len() < MAX_SEEN {
                    seen.insert(claimed.pid, (directory, status));
                }
                standing
            }
            Found::Nobody => Standing::Dead,
            Found::Unseen => Standing::Hidden,
        }
    }

    /// Whether our `pid` is the claimed process of another PID namespace, and what follows.
    fn compare(&self, pid: u32, claimed: &ProcessIdentity, owner: u32) -> Option<Standing> {
        let Found::Process(directory, status) = self.procfs.find(pid) else { return None };
        let inner = status.namespace_pids.get(1..)?.last()?;
        let same = *inner == claimed.pid
            && status.start_time_ticks == claimed.start_time_ticks
            && namespace_of(&directory).is_none_or(|found| found == claimed.pid_namespace);
        same.then(|| owned(pid, &status, owner))
    }

    fn started_at(&self, start_time_ticks: u64) -> &[u32] {
        let index = self.by_start.get_or_init(|| {
            let mut index: HashMap<u64, Vec<u32>> = HashMap::new();
            for pid in self.procfs.pids().into_iter().take(MAX_SCANNED) {
                if let Some(start) = self.procfs.start_time(pid) {
                    index.entry(start).or_default().push(pid);
                }
            }
            index
        });
        index.get(&start_time_ticks).map_or(&[], Vec::as_slice)
    }
}

/// The inode of a process's PID namespace; none where we have no right to know it.
fn namespace_of(directory: &Directory) -> Option<u64> {
    directory.stat("ns/pid").ok().map(|stat| stat.st_ino)
}

/// Whether a file of user `owner` can be the process's: it is its user's, or root's, made before
/// the process gave root's rights up.
fn may_own(status: &Status, owner: u32) -> bool {
    owner == 0 || status.uids.contains(&owner)
}

/// A process is who it is said to be; does it live, and is the file its own?
fn owned(pid: u32, status: &Status, owner: u32) -> Standing {
    if status.ended {
        Standing::Dead
    } else if may_own(status, owner) {
        Standing::Alive { pid }
    } else {
        Standing::Refused(Lie::Owner { owner, pid, uid: status.uids[1] })
    }
}

#[cfg(test)]
mod tests {
    use super::{Checks, Lie, Standing, Standpoint};
    use crate::processes::status::Procfs;
    use crate::tree::Tree;
    use std::sync::Arc;
    use telltale_ledger::identity_of_this_process;

    #[test]
    fn a_claim_is_believed_when_all_of_it_is_true() {
        let procfs = Procfs::new(Arc::new(Tree::open("/".as_ref()).unwrap()));
        let standpoint = Standpoint::look(&procfs);
        let checks = Checks::new(&procfs, &standpoint, []);
        let me = identity_of_this_process().unwrap();
        let uid = rustix::process::geteuid().as_raw();
        let pid = me.pid;
        assert_eq!(checks.judge(&me, uid), Standing::Alive { pid });
        let mut other = me;
        other.start_time_ticks += 1;
        assert_eq!(checks.judge(&other, uid), Standing::Dead);
        other = me;
        other.boot_id[0] ^= 1;
        assert_eq!(checks.judge(&other, uid), Standing::Dead);
        other = me;
        other.pid = u32::MAX;
        assert_eq!(checks.judge(&other, uid), Standing::Dead);
        // Made before the process gave root's rights up.
        assert_eq!(checks.judge(&me, 0), Standing::Alive { pid });
        assert_eq!(checks.judge(&me, 65_534), Standing::Refused(Lie::Nobody));
        let stranger = 61_234;
        assert_eq!(
            checks.judge(&me, stranger),
            Standing::Refused(Lie::Owner { owner: stranger, pid, uid })
        );
        assert_eq!(
            checks.judge_peer(&me, Some(1), uid),
            Standing::Refused(Lie::Peer { peer: 1, claimed: pid })
        );
        // Another namespace: nobody here has that pid there.
        other = me;
        other.pid_namespace += 1;
        let unseen = if standpoint.sees_all { Standing::Dead } else { Standing::Hidden };
        assert_eq!(checks.judge(&other, uid), unseen);
        assert_eq!(checks.judge_peer(&other, None, uid), Standing::Hidden);
    }
}
