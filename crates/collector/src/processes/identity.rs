//! Whether a ledger or an answer is from the process that it names, and which pid that is here.
//!
//! A claim names (boot id, PID namespace, pid, start time). It is believed when the kernel shows a
//! process with exactly these, or one that maps the claim's ledger, and which runs as the user that
//! owns the file, or root owns it. The number in a file's name is never checked here.
//!
//! No process is taken for dead by a start time: another time namespace shifts it, and a process that was
//! checkpointed and restored (CRIU) has a new one. Dead is a process whose ledger's lock is free, or of
//! which all processes that could be it were seen and none is.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use telltale_ledger::directory::OVERFLOW_UID;
use telltale_ledger::{FileNumber, LedgerReader, WriterLock};
use telltale_schema::process::{ProcessIdentity, parse_boot_id};

use super::evidence::{ClockOffsets, FileKind, Mappings, clock_offsets, maps, started_then};
use super::namesakes::Namesakes;
use super::status::{ProcessStatus, Procfs, StatusLookup};
use crate::clock::since_boot_ns;
use crate::tree::Directory;

/// The inode of the first PID namespace, from which every process can be seen (the kernel's
/// `PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

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
    /// The process lives and has this pid here, and this start time by our clock.
    Alive { pid: u32, start_time_ticks: u64 },
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
            Self::Alive { pid, .. } => Some(*pid),
            Self::Dead | Self::Hidden | Self::Refused(_) => None,
        }
    }

    /// Its start by our clock, if it lives.
    pub(crate) fn start_time_ticks(&self) -> Option<u64> {
        match self {
            Self::Alive { start_time_ticks, .. } => Some(*start_time_ticks),
            Self::Dead | Self::Hidden | Self::Refused(_) => None,
        }
    }
}

/// Why a claim is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lie {
    #[error("the file belongs to user {OVERFLOW_UID}, the overflow user")]
    OverflowUser,
    #[error("user {owner} made it, but process {pid} runs as user {uid}; remove it")]
    Owner { owner: u32, pid: u32, uid: u32 },
    #[error("process {peer} answers for process {claimed}; the owner of the socket lies")]
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
    /// How far our clocks are ahead of the machine's.
    offsets: ClockOffsets,
}

/// Whether a process is the one that was claimed.
enum IdentityComparison {
    /// It is, with what follows.
    Same(Standing),
    /// It may be: we may not see what would tell.
    Unclear,
    /// It is not.
    Other,
}

/// One round of checks; `/proc` is scanned at most once in it, and only if need be.
pub(crate) struct Checks<'a> {
    procfs: &'a Procfs,
    standpoint: &'a Standpoint,
    /// Pids that are worth a scan first: the driver's holders, endpoints' peers.
    likely: Vec<u32>,
    namesakes: OnceCell<Namesakes>,
    mappings: OnceCell<Mappings>,
    seen: RefCell<Seen>,
}

/// A claim to be a process.
struct Claim<'a> {
    claimed: &'a ProcessIdentity,
    /// Whose file says so.
    owner: u32,
    /// That file, if it is a ledger.
    ledger: Option<&'a LedgerReader>,
    of_this_boot: bool,
}

/// Processes as a round of checks has found them, kept so that they need not be read again. Each
/// directory stays that of its process.
pub(crate) type Seen = HashMap<u32, (Directory, ProcessStatus)>;

impl Standpoint {
    /// Looks where we are.
    pub(crate) fn current(procfs: &Procfs) -> Self {
        let boot_id = procfs.common("proc/sys/kernel/random/boot_id").ok();
        let boot_id = boot_id.and_then(|text| parse_boot_id(std::str::from_utf8(&text).ok()?));
        // A `/proc` of another PID namespace numbers processes otherwise than the kernel does for us.
        let namespace = procfs.own_namespace().filter(|_| procfs.is_ours());
        let first_is_seen = || matches!(procfs.find(1), StatusLookup::Process(..));
        let sees_all = namespace == Some(FIRST_PID_NAMESPACE) && first_is_seen();
        let own = procfs.directory(std::process::id()).ok();
        let offsets = own.and_then(|own| clock_offsets(&own)).unwrap_or_default();
        Self { boot_id, namespace, sees_all, offsets }
    }

    /// How far a process's monotonic clock is ahead of ours, in nanoseconds.
    pub(crate) fn monotonic_ahead_ns(&self, process: &Directory) -> i128 {
        clock_offsets(process).map_or(0, |it| it.monotonic_ns - self.offsets.monotonic_ns)
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
        let (namesakes, mappings, seen) = (OnceCell::new(), OnceCell::new(), RefCell::default());
        Self { procfs, standpoint, likely, namesakes, mappings, seen }
    }

    /// The processes that were found to live and to be who they are said to be.
    pub(crate) fn into_seen(self) -> Seen {
        self.seen.into_inner()
    }

    /// The PID namespace we are in.
    pub(crate) fn namespace(&self) -> Option<u64> {
        self.standpoint.namespace
    }

    /// Judges a ledger: by its writer's lock, and by its claim. A process that lives and has let go of
    /// its ledger executes another program now.
    pub(crate) fn judge_ledger(&self, reader: &LedgerReader) -> Standing {
        let lock = reader.writer_lock();
        let standing = self.find(reader.owner(), reader.uid(), Some(reader), lock);
        match standing {
            Standing::Hidden if lock == WriterLock::Free => Standing::Dead,
            Standing::Alive { pid, .. } if lock != WriterLock::Held => {
                let maps = self.maps(pid, reader).unwrap_or(lock == WriterLock::Unknown);
                if maps { standing } else { Standing::Dead }
            }
            _ => standing,
        }
    }

    /// Judges a claim by a file of user `owner` that is not at hand.
    pub(crate) fn judge(&self, claimed: &ProcessIdentity, owner: u32) -> Standing {
        self.find(claimed, owner, None, WriterLock::Unknown)
    }

    /// Whether this process still lives.
    pub(crate) fn still_lives(&self, pid: u32, start_time_ticks: u64) -> bool {
        self.procfs.start_time(pid) == Some(start_time_ticks)
    }

    /// Whether every process can be seen from here, and was checked.
    pub(crate) fn sees_all(&self) -> bool {
        self.standpoint.sees_all && self.namesakes().complete
    }

    /// Searches for the process that was claimed.
    fn find(
        &self,
        claimed: &ProcessIdentity,
        owner: u32,
        ledger: Option<&LedgerReader>,
        lock: WriterLock,
    ) -> Standing {
        if owner == OVERFLOW_UID {
            return Standing::Refused(Lie::OverflowUser);
        }
        let (Some(boot_id), Some(own)) = (self.standpoint.boot_id, self.standpoint.namespace)
        else {
            return Standing::Hidden;
        };
        // A system container may have a boot id of its own (systemd-nspawn mounts one): what it
        // holds is of this boot all the same.
        let of_this_boot = boot_id == claimed.boot_id || lock == WriterLock::Held;
        if !of_this_boot && ledger.is_none() {
            return Standing::Dead;
        }
        let is_neighbour = of_this_boot && own == claimed.pid_namespace;
        if is_neighbour
            && self.procfs.glance(claimed.pid) == Some((claimed.start_time_ticks, owner))
        {
            let start_time_ticks = claimed.start_time_ticks;
            return Standing::Alive { pid: claimed.pid, start_time_ticks };
        }
        let claim = Claim { claimed, owner, ledger, of_this_boot };
        let mut unclear = false;
        let mut compare = |pid| match self.compare(pid, &claim) {
            IdentityComparison::Same(standing) => Some(standing),
            IdentityComparison::Unclear => {
                unclear = true;
                None
            }
            IdentityComparison::Other => None,
        };
        let neighbour = is_neighbour.then_some(claimed.pid);
        let first = neighbour.into_iter().chain(self.likely.iter().copied()).find_map(&mut compare);
        // It may have been restored in another PID namespace, where it has the same pid.
        let found = match lock {
            WriterLock::Free => first,
            _ => first.or_else(|| self.namesakes().of(claimed.pid).find_map(compare)),
        };
        match found {
            Some(standing) => standing,
            None if lock == WriterLock::Free => Standing::Dead,
            None if !unclear && (is_neighbour || self.sees_all()) => Standing::Dead,
            None => Standing::Hidden,
        }
    }

    /// Whether our `pid` is the claimed process, and what follows.
    fn compare(&self, pid: u32, claim: &Claim<'_>) -> IdentityComparison {
        let Claim { claimed, owner, ledger, of_this_boot } = *claim;
        let (directory, status) = match self.procfs.find(pid) {
            StatusLookup::Process(directory, status) => (directory, status),
            StatusLookup::Unseen if pid == claimed.pid => return IdentityComparison::Unclear,
            StatusLookup::Unseen | StatusLookup::NoProcess => return IdentityComparison::Other,
        };
        if status.ended || status.own_pid(pid) != claimed.pid {
            return IdentityComparison::Other;
        }
        let in_namespace =
            namespace_of(&directory).is_none_or(|found| found == claimed.pid_namespace);
        let same = (of_this_boot
            && in_namespace
            && self.started_then(&directory, &status, claimed.start_time_ticks))
            || match ledger.map(|ledger| ledger_maps(&directory, ledger)) {
                Some(Some(maps)) => maps,
                Some(None) if may_own(&status, owner) && self.has_other_clock(&directory) => {
                    return IdentityComparison::Unclear;
                }
                Some(None) | None => false,
            };
        if !same {
            return IdentityComparison::Other;
        }
        let standing = owned(pid, &status, owner);
        let mut seen = self.seen.borrow_mut();
        if standing.pid().is_some() && seen.len() < MAX_SEEN {
            seen.insert(pid, (directory, status));
        }
        IdentityComparison::Same(standing)
    }

    /// Whether a process started at these ticks by our clock or by that of its time namespace.
    fn started_then(&self, directory: &Directory, status: &ProcessStatus, claimed: u64) -> bool {
        let seen = status.start_time_ticks;
        let offset_ns = || clock_offsets(directory).unwrap_or_default().boot_ns;
        let ahead_ns = || offset_ns() - self.standpoint.offsets.boot_ns;
        seen == claimed || started_then(seen, claimed, ahead_ns())
    }

    /// Whether a process is in another time namespace than we, as one that was restored is (CRIU makes
    /// one so that its clocks go on).
    fn has_other_clock(&self, directory: &Directory) -> bool {
        clock_offsets(directory).is_none_or(|it| it.boot_ns != self.standpoint.offsets.boot_ns)
    }

    fn maps(&self, pid: u32, ledger: &LedgerReader) -> Option<bool> {
        ledger_maps(&self.procfs.directory(pid).ok()?, ledger)
    }

    /// Judges an answer by a peer that the kernel named.
    pub(crate) fn judge_peer(
        &self,
        claimed: &ProcessIdentity,
        peer: Option<u32>,
        uid: u32,
    ) -> Standing {
        let lie = Lie::Peer { peer: peer.unwrap_or(0), claimed: claimed.pid };
        match (self.standpoint.namespace, peer) {
            // The numbers in `/proc` are not those that the kernel gives us.
            (None, _) => Standing::Hidden,
            (Some(_), Some(peer)) => {
                self.speaks_for(peer, claimed, uid).unwrap_or(Standing::Refused(lie))
            }
            (Some(own), None) => match self.judge(claimed, uid) {
                refused @ Standing::Refused(_) => refused,
                // It answers, so it lives, wherever that is.
                Standing::Dead | Standing::Hidden if own != claimed.pid_namespace => {
                    Standing::Hidden
                }
                _ => Standing::Refused(lie),
            },
        }
    }

    /// What follows from an answer of our `peer` for the claimed process, if it is that one. Who answers
    /// is known from the kernel: its start is not checked, which a checkpoint or a time namespace
    /// changes, and its PID namespace must be another one's only if no process has its number there.
    fn speaks_for(&self, peer: u32, claimed: &ProcessIdentity, uid: u32) -> Option<Standing> {
        let StatusLookup::Process(directory, status) = self.procfs.find(peer) else { return None };
        if status.own_pid(peer) != claimed.pid {
            return None;
        }
        let is_claimed = |directory: &Directory| {
            namespace_of(directory).is_none_or(|found| found == claimed.pid_namespace)
        };
        let has_claimed_name = |pid: u32| {
            let StatusLookup::Process(directory, status) = self.procfs.find(pid) else {
                return false;
            };
            status.own_pid(pid) == claimed.pid && is_claimed(&directory)
        };
        let others = || self.namesakes().of(claimed.pid).any(has_claimed_name);
        (is_claimed(&directory) || !others()).then(|| owned(peer, &status, uid))
    }

    /// A process that maps the ledger, if one can be seen. Checks what all processes map, once in a
    /// round: a child that is forked later has a parent that was seen.
    pub(crate) fn mapped_by(&self, ledger: FileNumber) -> Option<u32> {
        self.mappings.get_or_init(|| Mappings::scan(self.procfs)).user_of(ledger, FileKind::Ledger)
    }

    /// Whether a process lives that can be the writer of a file: one of user `owner` that has
    /// `pid` in some namespace, and started then or maps the `file`. `None` if unknown.
    pub(crate) fn starter_lives(
        &self,
        pid: u32,
        start_time_ticks: u64,
        owner: u32,
        file: Option<FileNumber>,
    ) -> Option<bool> {
        let mut unclear = false;
        for suspect in self.namesakes().of(pid) {
            match self.procfs.find(suspect) {
                StatusLookup::Process(directory, status)
                    if !status.ended && may_own(&status, owner) =>
                {
                    if self.started_then(&directory, &status, start_time_ticks) {
                        return Some(true);
                    }
                    match file.map(|file| maps(&directory, file)) {
                        Some(Some(true)) => return Some(true),
                        Some(None) => unclear = true,
                        Some(Some(false)) | None => {}
                    }
                }
                StatusLookup::Unseen => unclear = true,
                StatusLookup::Process(..) | StatusLookup::NoProcess => {}
            }
        }
        (!unclear && self.sees_all()).then_some(false)
    }

    /// Whether a process lives that can have made a socket named after `pid` at `made_ns` (since
    /// boot): one of user `owner` with that pid, in whatever namespace, that is not younger. None
    /// when not every process can be seen from here.
    pub(crate) fn namesake_lives(&self, pid: u32, owner: u32, made_ns: u64) -> Option<bool> {
        let now_ns = since_boot_ns();
        let lives = self.namesakes().of(pid).any(|candidate| {
            let StatusLookup::Process(_, status) = self.procfs.find(candidate) else {
                // Ended meanwhile, or hidden; the latter is answered below.
                return false;
            };
            let start_ns = status.start_time_ticks.saturating_mul(NANOSECONDS_PER_TICK);
            // One that started before our boot clock did has a start beyond all bounds.
            let older = start_ns <= made_ns.saturating_add(SLACK_NS) || start_ns > now_ns;
            older && !status.ended && may_own(&status, owner)
        });
        (lives || self.sees_all()).then_some(lives)
    }

    /// Whether a process may live that has left a file of user `owner` named after `pid`, and after
    /// its start where that is in the name. Checks `/proc` once, however often it is asked.
    pub(crate) fn may_live(&self, pid: u32, start_time_ticks: Option<u64>, owner: u32) -> bool {
        start_time_ticks.is_some_and(|start| self.procfs.glance(pid) == Some((start, owner)))
            || !self.sees_all()
            || self.namesakes().has(pid, owner)
    }

    fn namesakes(&self) -> &Namesakes {
        self.namesakes.get_or_init(|| Namesakes::scan(self.procfs))
    }
}

/// The inode of a process's PID namespace; none where we have no right to know it.
pub(super) fn namespace_of(directory: &Directory) -> Option<u64> {
    directory.stat("ns/pid").ok().map(|stat| stat.st_ino)
}

/// Whether the process maps the ledger; none where we may not know.
fn ledger_maps(process: &Directory, ledger: &LedgerReader) -> Option<bool> {
    maps(process, ledger.file().ok()?)
}

/// Whether a file of user `owner` can be the process's: it is its user's, or root's, made before
/// the process gave root's rights up.
fn may_own(status: &ProcessStatus, owner: u32) -> bool {
    owner == 0 || status.uids.contains(&owner)
}

/// A process is who it is said to be; does it live, and is the file its own?
fn owned(pid: u32, status: &ProcessStatus, owner: u32) -> Standing {
    if status.ended {
        Standing::Dead
    } else if may_own(status, owner) {
        Standing::Alive { pid, start_time_ticks: status.start_time_ticks }
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
        let standpoint = Standpoint::current(&procfs);
        let checks = Checks::new(&procfs, &standpoint, []);
        let me = identity_of_this_process().unwrap();
        let uid = rustix::process::geteuid().as_raw();
        let pid = me.pid;
        let start_time_ticks = me.start_time_ticks;
        assert_eq!(checks.judge(&me, uid), Standing::Alive { pid, start_time_ticks });
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
        assert_eq!(checks.judge(&me, 0), Standing::Alive { pid, start_time_ticks });
        assert_eq!(checks.judge(&me, 65_534), Standing::Refused(Lie::OverflowUser));
        let stranger = 61_234;
        assert_eq!(
            checks.judge(&me, stranger),
            Standing::Refused(Lie::Owner { owner: stranger, pid, uid })
        );
        assert_eq!(
            checks.judge_peer(&me, Some(1), uid),
            Standing::Refused(Lie::Peer { peer: 1, claimed: pid })
        );
        // Who answers is known from the kernel; a restored process has another start and namespace.
        other = me;
        (other.start_time_ticks, other.pid_namespace) = (1, 1);
        let standing = checks.judge_peer(&other, Some(pid), uid);
        assert_eq!(standing, Standing::Alive { pid, start_time_ticks });
        // Another namespace: no process here has that pid there.
        other = me;
        other.pid_namespace += 1;
        let unseen = if standpoint.sees_all { Standing::Dead } else { Standing::Hidden };
        assert_eq!(checks.judge(&other, uid), unseen);
        assert_eq!(checks.judge_peer(&other, None, uid), Standing::Hidden);
    }
}
