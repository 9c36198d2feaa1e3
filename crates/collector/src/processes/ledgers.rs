//! Ledgers that are followed: opened and judged once, then copied periodically.

mod restored;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::io::Errno;
use telltale_ledger::directory::{DirectoryEntry, EntryKind, EntryStatus, Listing};
use telltale_ledger::{LedgerReader, LedgerReading, LedgerSweep, OpenError, SweepKey};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::Absence;
use telltale_schema::text::with_causes;

use super::closed::Closed;
use super::identity::{Checks, Lie, Standing};
use super::listings::Listed;
use super::liveness::ProcessWatch;
use super::status::Procfs;
use crate::report::{SourceReport, Surplus, is_shortage};

/// Ledgers that are followed at one time.
pub(crate) const MAX_LEDGERS: usize = 4096;

/// Those of one user among them: enough for 64 processes on each of 32 chips and half as many
/// again, and the rest is left to the others.
const MAX_LEDGERS_OF_A_USER: usize = 3072;

/// Files of one user that are opened in vain in one round. A user who makes more of them is not
/// shown whole, and delays no caller.
const MAX_FAILURES_OF_A_USER: usize = 64;

/// Where a ledger came from: the directory's number in this collector and the name there.
pub(crate) type Origin = (u32, String);

/// A ledger that was opened.
#[derive(Debug)]
pub(crate) struct Followed {
    owner: ProcessIdentity,
    /// What had the name when the ledger was opened: itself, or the socket that handed it out.
    /// Another one means that its process, or a later program in it, has restarted.
    behind: FileIdentity,
    /// The user whose file it is.
    uid: u32,
    standing: Standing,
    held: ReaderState,
    /// The number under which the end of its process is reported.
    token: u64,
    /// The last reading failed; what it said before is not shown any more.
    failed: bool,
    /// It was read after its process had ended: nothing changes any more.
    final_read: bool,
    /// The round in which it is checked again after its process had ended.
    next_look: u32,
    /// The kernel has reported its process's end.
    ended: bool,
}

/// Tells an entry of a directory from a later one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
    /// For files: a ledger is made as long as it will ever be, so one that changes is another one,
    /// or was cut short, which opening it finds.
    size_bytes: Option<u64>,
    /// For sockets, which are not kept open here, so that their inode may be given again.
    changed: Option<(i64, u64)>,
}

/// Where the reader is.
#[derive(Debug)]
enum ReaderState {
    /// Here: at the first scan, and after the end of the process.
    Alone(Box<LedgerReader>),
    /// Not any more: the last reading of a process that has ended.
    Final(Box<LedgerReading>),
    /// Among those that are copied together.
    Swept(SweepKey),
    /// Between the two.
    Moving,
}

/// All ledgers that are followed.
#[derive(Debug, Default)]
pub(crate) struct Ledgers {
    followed: BTreeMap<Origin, Followed>,
    sweep: LedgerSweep,
    /// The listing by which each directory was brought in line.
    refreshed: BTreeMap<u32, Arc<Listing>>,
    watch: Option<ProcessWatch>,
    /// Processes without a ledger here whose end is watched, too: pid, start time and number.
    others: BTreeMap<(u32, u64), u64>,
    /// Processes that have ended and are not wanted.
    ended: Vec<u32>,
    next_token: u64,
    /// How often liveness was checked.
    rounds: u32,
}

/// A process whose end would have been reported by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Living {
    /// As it is numbered here.
    pub(crate) pid: u32,
    /// By our clock.
    pub(crate) start_time_ticks: u64,
    /// The user whose its ledger is.
    pub(crate) uid: u32,
}

/// The processes of whom a ledger that can be read is, and whether they are watched.
pub(crate) type Speaking = HashMap<ProcessIdentity, Option<Living>>;

/// A ledger whose values are trusted, and what became of its process.
pub(crate) struct TrustedLedger<'a> {
    pub(crate) standing: &'a Standing,
    pub(crate) reading: &'a LedgerReading,
}

// === impl Ledgers ===

impl Ledgers {
    /// Takes over a ledger whose descriptor its process handed out, and reads it.
    pub(crate) fn adopt(
        &mut self,
        origin: Origin,
        behind: FileIdentity,
        mut reader: LedgerReader,
        standing: Standing,
    ) {
        // One that cannot be read says nothing; its process's answer does.
        if self.followed.len() < MAX_LEDGERS && reader.read().is_ok() {
            self.insert(origin, behind, reader, standing);
        }
    }

    fn insert(
        &mut self,
        origin: Origin,
        behind: FileIdentity,
        reader: LedgerReader,
        standing: Standing,
    ) {
        self.next_token += 1;
        let followed = Followed {
            owner: *reader.owner(),
            behind,
            uid: reader.uid(),
            standing,
            held: ReaderState::Alone(Box::new(reader)),
            token: self.next_token,
            failed: false,
            final_read: false,
            next_look: 0,
            ended: false,
        };
        // One that failed may be handed out again: what it had is given back.
        if let Some(mut before) = self.followed.insert(origin, followed) {
            before.let_go(&mut self.sweep, self.watch.as_mut());
        }
    }

    /// Lets go of those that `keep` does not want.
    fn retain(&mut self, mut keep: impl FnMut(&Origin, &Followed) -> bool) {
        let Self { followed, watch, sweep, .. } = self;
        followed.retain(|origin, one| {
            let keep = keep(origin, one);
            if !keep {
                one.let_go(sweep, watch.as_mut());
            }
            keep
        });
    }

    /// Lets go of the ledgers of a directory that are gone, or whose names have become others'.
    fn let_go(&mut self, listed: &Listed) {
        let Listed { number, directory, listing } = listed;
        let before = self.refreshed.insert(*number, Arc::clone(listing));
        let unchanged = before.is_some_and(|before| Arc::ptr_eq(&before, listing));
        let entries = listing.ledgers.iter().chain(&listing.endpoints).chain(&listing.temporaries);
        let entries = entries.filter(|_| !unchanged);
        let names: BTreeSet<&str> = entries.map(|entry| entry.name.as_str()).collect();
        self.retain(|(of, name), one| {
            // A file that was cut short fails to be read.
            if of != number || (unchanged && !one.failed) {
                return true;
            }
            let now = || directory.entry_status(name).ok().as_ref().map(FileIdentity::of);
            // A directory with too many entries to list hides no process seen before.
            let may_be_there = unchanged || listing.truncated || names.contains(name.as_str());
            may_be_there && now() == Some(one.behind)
        });
    }

    /// Brings the ledgers of one directory in line with its listing: opens what is new, lets go
    /// of what is gone or has become another file.
    pub(crate) fn refresh(
        &mut self,
        listed: &Listed,
        checks: &Checks<'_>,
        (report, closed): (&mut SourceReport, &mut Closed),
    ) {
        let Listed { number, directory, listing } = listed;
        let number = *number;
        self.let_go(listed);
        self.revive(listed, checks);
        let (mut of_users, mut failures) = (BTreeMap::new(), BTreeMap::<u32, usize>::new());
        let mut surplus = Surplus::default();
        for one in self.followed.values() {
            *of_users.entry(one.uid).or_insert(0) += 1;
        }
        for entry in &listing.ledgers {
            let name = &entry.name;
            let origin = (number, name.clone());
            if self.followed.contains_key(&origin) {
                continue;
            }
            // Checked before it is opened: if it is replaced in between, the next round sees that.
            let Ok(status) = directory.entry_status(name) else { continue };
            if self.followed.len() >= MAX_LEDGERS {
                surplus.add(status.uid, name);
                continue;
            }
            let failures = failures.entry(status.uid).or_default();
            if *failures >= MAX_FAILURES_OF_A_USER {
                let detail = "many others of this user are no ledgers";
                report.odd_entry(status.uid, name, Absence::Refused, detail);
                continue;
            }
            let of_user = of_users.entry(status.uid).or_default();
            if *of_user >= MAX_LEDGERS_OF_A_USER {
                let detail = format!("user {} has more than {MAX_LEDGERS_OF_A_USER}", status.uid);
                report.odd_entry(status.uid, name, Absence::Failed, detail);
                continue;
            }
            match LedgerReader::open_at(directory, name) {
                Ok(reader) => {
                    *of_user += 1;
                    let standing = match checks.judge_ledger(&reader) {
                        Standing::Refused(lie) => Standing::Refused(lie),
                        _ if is_misnamed(entry, reader.owner()) => {
                            Standing::Refused(Lie::LedgerName { claimed: reader.owner().pid })
                        }
                        standing => standing,
                    };
                    self.insert(origin, FileIdentity::of(&status), reader, standing);
                }
                Err(error)
                    if error.is_forbidden() && closed.take(number, entry, status.uid, checks) => {}
                Err(error) => {
                    *failures += 1;
                    complain(status.uid, name, &error, report);
                }
            }
        }
        let detail = format!("{MAX_LEDGERS} ledgers are followed; smi --clean removes dead ones");
        report.surplus(surplus, &detail);
    }

    /// Finds out who has ended since the last time. The first round needs no more than the
    /// judgement at opening; from the second on processes are watched.
    pub(crate) fn update_liveness(&mut self, procfs: &Procfs, checks: &Checks<'_>) {
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds > 1 {
            self.watch_all(procfs);
            self.take_ends();
        }
        for one in self.followed.values_mut() {
            let watched = self.watch.as_ref().is_some_and(|watch| watch.follows(one.token));
            let again = match one.standing {
                Standing::Alive { .. } => self.rounds > 1 && !watched,
                Standing::Hidden => true,
                Standing::Dead | Standing::Refused(_) => false,
            };
            if again {
                one.standing = match &one.held {
                    ReaderState::Alone(reader) => checks.judge_ledger(reader),
                    ReaderState::Swept(_) | ReaderState::Final(_) | ReaderState::Moving => {
                        still_lives(one, checks)
                    }
                };
            }
        }
    }

    /// Watches every living process that is not watched yet. Says whether one of them has ended
    /// since it was checked: nothing else reports that any more.
    pub(crate) fn watch_all(&mut self, procfs: &Procfs) -> bool {
        if self.watch.is_none() {
            self.watch = ProcessWatch::new().ok();
        }
        let mut some_ended = false;
        let Some(watch) = &mut self.watch else { return some_ended };
        for one in self.followed.values_mut() {
            let Standing::Alive { pid, start_time_ticks } = one.standing else { continue };
            if watch.follows(one.token) {
                continue;
            }
            let followed = watch.follow(pid, one.token);
            if followed.is_err_and(|error| error != Errno::SRCH) {
                continue;
            }
            // The descriptor is of the process that has the pid now.
            if followed.is_err() || procfs.start_time(pid) != Some(start_time_ticks) {
                watch.forget(one.token);
                one.standing = Standing::Dead;
                self.ended.push(pid);
                some_ended = true;
            } else if let ReaderState::Alone(reader) =
                std::mem::replace(&mut one.held, ReaderState::Moving)
            {
                one.held = ReaderState::Swept(self.sweep.insert(*reader));
            }
        }
        some_ended
    }

    /// Watches those of these processes (by pid and start time) whose ledgers are not followed, and
    /// none but these.
    pub(crate) fn watch_others(
        &mut self,
        procfs: &Procfs,
        described: impl Iterator<Item = (u32, u64)>,
    ) {
        let Some(watch) = &mut self.watch else { return };
        let ours: BTreeSet<u32> =
            self.followed.values().filter_map(|one| one.standing.pid()).collect();
        let meant = described.filter(|(pid, _)| !ours.contains(pid)).take(MAX_LEDGERS);
        let meant: BTreeSet<(u32, u64)> = meant.collect();
        self.others.retain(|process, token| {
            let keep = meant.contains(process);
            if !keep {
                watch.forget(*token);
            }
            keep
        });
        for (pid, start) in meant {
            if self.others.contains_key(&(pid, start)) {
                continue;
            }
            self.next_token += 1;
            let token = self.next_token;
            if watch.follow(pid, token).is_ok() {
                if procfs.start_time(pid) == Some(start) {
                    self.others.insert((pid, start), token);
                } else {
                    watch.forget(token);
                }
            }
        }
    }

    /// What is readable when one that is watched has ended.
    pub(crate) fn ends(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(ProcessWatch::descriptor)
    }

    /// Marks those whose end the kernel has reported.
    pub(crate) fn take_ends(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let mut ended = Vec::new();
        // An error only means that ends are noticed the next time.
        let _ = watch.ended(|token| ended.push(token));
        if ended.is_empty() {
            return;
        }
        for one in self.followed.values_mut() {
            if ended.contains(&one.token) {
                self.ended.extend(one.standing.pid());
                (one.standing, one.ended) = (Standing::Dead, true);
                one.withdraw(&mut self.sweep);
                watch.forget(one.token);
            }
        }
        self.others.retain(|(pid, _), token| {
            let keep = !ended.contains(token);
            if !keep {
                watch.forget(*token);
                self.ended.push(*pid);
            }
            keep
        });
    }

    /// Processes, with a ledger or without, that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.ended)
    }

    /// Copies every ledger of a process that lives or may live, and once each of the dead.
    pub(crate) fn read(&mut self, report: &mut SourceReport) {
        self.sweep.read_all();
        for ((_, name), one) in &mut self.followed {
            if let Standing::Refused(lie) = &one.standing {
                report.odd_entry(one.uid, name, Absence::Refused, lie.to_string());
                continue;
            }
            let dead = one.standing == Standing::Dead;
            if dead && one.final_read {
                continue;
            }
            one.final_read = dead;
            let error = match &mut one.held {
                ReaderState::Alone(reader) => reader.read().err().map(|error| with_causes(&error)),
                ReaderState::Swept(key) => match self.sweep.get(*key) {
                    Some(Err(error)) => Some(with_causes(error)),
                    Some(Ok(_)) | None => None,
                },
                ReaderState::Final(_) | ReaderState::Moving => None,
            };
            if let ReaderState::Alone(reader) = &one.held
                && dead
            {
                // The dead may be many, and may never be cleaned up: no descriptor for each.
                one.held = ReaderState::Final(Box::new(reader.last().clone()));
            }
            one.failed = error.is_some();
            if let Some(error) = error {
                report.odd_entry(one.uid, name, Absence::Implausible, error);
            }
        }
    }

    /// Copies the ledgers of living processes that are watched and hands each reading to `take`;
    /// the hot path.
    pub(crate) fn sweep(&mut self, mut take: impl FnMut(u32, &LedgerReading)) {
        self.take_ends();
        self.sweep.read_all();
        for one in self.followed.values() {
            if let (Standing::Alive { pid, .. }, ReaderState::Swept(key)) =
                (&one.standing, &one.held)
                && let Some(Ok(reading)) = self.sweep.get(*key)
            {
                take(*pid, reading);
            }
        }
    }

    /// What they say, in the order of directories and names; those that lie or cannot be read
    /// are left out.
    pub(crate) fn reports(&self) -> impl Iterator<Item = TrustedLedger<'_>> {
        self.followed.values().filter(|one| one.speaks()).filter_map(|one| {
            let reading = match &one.held {
                ReaderState::Alone(reader) => reader.last(),
                ReaderState::Final(reading) => reading,
                ReaderState::Swept(key) => self.sweep.get(*key)?.ok()?,
                ReaderState::Moving => return None,
            };
            Some(TrustedLedger { standing: &one.standing, reading })
        })
    }

    /// Lets go of the ledgers of all directories but these.
    pub(crate) fn keep_directories(&mut self, numbers: &BTreeSet<u32>) {
        self.retain(|(number, _), _| numbers.contains(number));
        self.refreshed.retain(|number, _| numbers.contains(number));
    }

    /// Whether a ledger of this directory and user is that of the neighbour with this pid, and not a
    /// dead process's.
    pub(crate) fn has_neighbour(&self, number: u32, pid: u32, namespace: u64, uid: u32) -> bool {
        self.followed.iter().any(|((of, _), one)| {
            *of == number
                && one.speaks_for_the_living()
                && (one.owner.pid, one.owner.pid_namespace) == (pid, namespace)
                && one.uid == uid
        })
    }

    /// The pids and users of dead processes whose ledgers are in this directory.
    pub(crate) fn dead(&self, number: u32) -> BTreeSet<(u32, u32)> {
        let of_directory = self.followed.range((number, String::new())..);
        let of_directory = of_directory.take_while(|((of, _), _)| *of == number);
        let dead = of_directory.filter(|(_, one)| one.standing == Standing::Dead);
        dead.map(|(_, one)| (one.owner.pid, one.uid)).collect()
    }

    /// The processes, but for the dead, of whom a ledger that can be read is.
    pub(crate) fn speaking(&self) -> Speaking {
        let speaking = self.followed.values().filter(|one| one.speaks_for_the_living());
        let watched = |one: &Followed| self.watch.as_ref().is_some_and(|it| it.follows(one.token));
        let living = |one: &Followed| {
            let pid = one.standing.pid().filter(|_| watched(one))?;
            let start_time_ticks = one.standing.start_time_ticks()?;
            Some(Living { pid, start_time_ticks, uid: one.uid })
        };
        speaking.map(|one| (one.owner, living(one))).collect()
    }

    /// Whether some ledger that can be read is of this process, and it is not taken for dead.
    pub(crate) fn speak_for(&self, identity: &ProcessIdentity) -> bool {
        self.followed.values().any(|one| one.speaks_for_the_living() && one.owner == *identity)
    }
}

// === impl FileIdentity ===

impl FileIdentity {
    pub(crate) fn of(status: &EntryStatus) -> Self {
        let changed = status.is_socket.then_some(status.changed);
        let size_bytes = status.is_regular_file.then_some(status.size_bytes);
        Self { device: status.device, inode: status.inode, size_bytes, changed }
    }
}

// === impl Followed ===

impl Followed {
    /// Whether its values are trusted.
    fn speaks(&self) -> bool {
        !self.failed && !matches!(self.standing, Standing::Refused(_))
    }

    /// The same, of a process that lives or may live.
    fn speaks_for_the_living(&self) -> bool {
        self.speaks() && self.standing != Standing::Dead
    }

    /// Gives back what following it takes: its place in the sweep and the watch of its process.
    fn let_go(&mut self, sweep: &mut LedgerSweep, watch: Option<&mut ProcessWatch>) {
        self.withdraw(sweep);
        if let Some(watch) = watch {
            watch.forget(self.token);
        }
    }

    /// Takes the reader back from those that are copied together.
    fn withdraw(&mut self, sweep: &mut LedgerSweep) {
        if let ReaderState::Swept(key) = self.held
            && let Some(reader) = sweep.remove(key)
        {
            self.held = ReaderState::Alone(Box::new(reader));
        }
    }
}

/// What has become of a ledger whose reader is elsewhere, by its process.
fn still_lives(one: &Followed, checks: &Checks<'_>) -> Standing {
    match one.standing {
        Standing::Alive { pid, start_time_ticks } if !checks.still_lives(pid, start_time_ticks) => {
            Standing::Dead
        }
        ref standing => standing.clone(),
    }
}

/// Whether a ledger has the name of another process than its own: a copy, which is not kept up to
/// date, or one whose place another one takes.
fn is_misnamed(entry: &DirectoryEntry, owner: &ProcessIdentity) -> bool {
    let start = match entry.kind {
        EntryKind::Ledger { start_time_ticks } => Some(start_time_ticks),
        EntryKind::Endpoint | EntryKind::Temporary { .. } => None,
    };
    entry.pid != owner.pid
        || start != Some(owner.start_time_ticks)
        || entry.pid_namespace.is_some_and(|namespace| namespace != owner.pid_namespace)
}

/// Reports why a ledger cannot be opened, unless that is nothing to worry about.
fn complain(owner: u32, name: &str, error: &OpenError, report: &mut SourceReport) {
    let reason = match error {
        // Removed since it was listed, or not finished yet: neither is anybody's fault.
        OpenError::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => return,
        OpenError::NotReady => return,
        OpenError::Open { source, .. } | OpenError::Read(source) if is_shortage(source) => {
            return report.error(name, Absence::Failed, with_causes(error));
        }
        error if error.is_forbidden() => Absence::Permission,
        OpenError::Open { .. } | OpenError::Read(_) => Absence::Failed,
        OpenError::Version { .. } => Absence::NotUnderstood,
        _ => Absence::Refused,
    };
    report.odd_entry(owner, name, reason, with_causes(error));
}
