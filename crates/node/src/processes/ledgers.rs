//! Ledgers that are followed: opened and judged once, then copied again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use telltale_ledger::directory::{Entry, Listing, RuntimeDirectory};
use telltale_ledger::{LedgerReader, LedgerReading, OpenError};
use telltale_schema::reading::Absence;

use super::identity::{Checks, Standing};
use super::liveness::Watch;
use super::status::Procfs;
use crate::report::Report;

/// Ledgers that are followed at one time.
pub(crate) const MAX_LEDGERS: usize = 4096;

/// Where a ledger came from: the directory's number in this collector and the name there.
pub(crate) type Origin = (u32, String);

/// A ledger that was opened.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) reader: LedgerReader,
    pub(crate) standing: Standing,
    /// The number under which the end of its process is reported.
    token: u64,
    /// The last reading failed; what it said before is not shown any more.
    failed: bool,
    /// It was read after its process had ended: nothing changes any more.
    final_read: bool,
}

/// All ledgers that are followed.
#[derive(Debug, Default)]
pub(crate) struct Ledgers {
    followed: BTreeMap<Origin, Followed>,
    watch: Option<Watch>,
    next_token: u64,
    /// How often liveness was looked at.
    rounds: u32,
}

// === impl Ledgers ===

impl Ledgers {
    /// Takes over a ledger whose descriptor its process handed out.
    pub(crate) fn adopt(&mut self, origin: Origin, reader: LedgerReader, standing: Standing) {
        if self.followed.len() < MAX_LEDGERS {
            self.insert(origin, reader, standing);
        }
    }

    fn insert(&mut self, origin: Origin, reader: LedgerReader, standing: Standing) {
        self.next_token += 1;
        let token = self.next_token;
        self.followed
            .insert(origin, Followed { reader, standing, token, failed: false, final_read: false });
    }

    /// Brings the ledgers of one directory in line with its listing: opens what is new, lets go
    /// of what is gone.
    pub(crate) fn refresh(
        &mut self,
        number: u32,
        directory: &RuntimeDirectory,
        listing: &Listing,
        checks: &Checks<'_>,
        report: &mut Report,
    ) {
        let entries = listing.ledgers.iter().chain(&listing.endpoints);
        let listed: BTreeSet<&str> = entries.map(|entry| entry.name.as_str()).collect();
        let Self { followed, watch, .. } = self;
        followed.retain(|(of, name), one| {
            let keep = *of != number || listed.contains(name.as_str());
            if let (false, Some(watch)) = (keep, watch.as_mut()) {
                watch.forget(one.token);
            }
            keep
        });
        for Entry { name, .. } in &listing.ledgers {
            let origin = (number, name.clone());
            if self.followed.contains_key(&origin) {
                continue;
            }
            if self.followed.len() >= MAX_LEDGERS {
                let detail =
                    format!("more than {MAX_LEDGERS} ledgers; smi --clean removes dead ones");
                report.error(directory.path().display().to_string(), Absence::Failed, detail);
                break;
            }
            match LedgerReader::open_at(directory, name) {
                Ok(reader) => {
                    let standing = checks.judge(reader.owner(), reader.uid());
                    if let Standing::Refused(lie) = &standing {
                        report.error(name, Absence::Implausible, lie.to_string());
                    }
                    self.insert(origin, reader, standing);
                }
                Err(error) => complain(name, &error, report),
            }
        }
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
                one.standing = checks.judge(one.reader.owner(), one.reader.uid());
            }
        }
    }

    /// Watches every living process that is not watched yet.
    pub(crate) fn watch_all(&mut self, procfs: &Procfs) {
        if self.watch.is_none() {
            self.watch = Watch::new().ok();
        }
        let Some(watch) = &mut self.watch else { return };
        for one in self.followed.values_mut() {
            let Standing::Alive { pid } = one.standing else { continue };
            if watch.follows(one.token) || watch.follow(pid, one.token).is_err() {
                continue;
            }
            // The descriptor is of whoever has the pid now.
            if procfs.start_time(pid) != Some(one.reader.owner().start_time_ticks) {
                watch.forget(one.token);
                one.standing = Standing::Dead;
            }
        }
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
                one.standing = Standing::Dead;
                watch.forget(one.token);
            }
        }
    }

    /// Copies every ledger of a process that lives or may live, and once each of the dead.
    pub(crate) fn read(&mut self, report: &mut Report) {
        for ((_, name), one) in &mut self.followed {
            let again = match one.standing {
                Standing::Alive { .. } | Standing::Hidden => true,
                Standing::Dead => !one.final_read,
                Standing::Refused(_) => false,
            };
            if !again {
                continue;
            }
            one.final_read = one.standing == Standing::Dead;
            match one.reader.read() {
                Ok(_) => one.failed = false,
                Err(error) => {
                    one.failed = true;
                    report.error(name, Absence::Implausible, with_causes(&error));
                }
            }
        }
    }

    /// Copies the ledgers of living processes and hands each reading to `take`; the hot path.
    pub(crate) fn sweep(&mut self, mut take: impl FnMut(u32, &LedgerReading)) {
        self.take_ends();
        for one in self.followed.values_mut() {
            if let Standing::Alive { pid } = one.standing
                && let Ok(reading) = one.reader.read()
            {
                take(pid, reading);
            }
        }
    }

    /// All of them, in the order of directories and names.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Origin, &Followed)> {
        self.followed.iter()
    }

    /// Lets go of the ledgers of all directories but these.
    pub(crate) fn keep_directories(&mut self, numbers: &BTreeSet<u32>) {
        let Self { followed, watch, .. } = self;
        followed.retain(|(number, _), one| {
            let keep = numbers.contains(number);
            if let (false, Some(watch)) = (keep, watch.as_mut()) {
                watch.forget(one.token);
            }
            keep
        });
    }

    /// Whether a ledger of the same directory says what the endpoint `entry` of user `uid` would
    /// say of memory.
    pub(crate) fn covers(&self, number: u32, entry: &Entry, uid: u32) -> bool {
        self.followed.iter().any(|((of, _), one)| {
            let owner = one.reader.owner();
            *of == number
                && one.speaks()
                && owner.pid == entry.pid
                && one.reader.uid() == uid
                && entry.pid_namespace.is_none_or(|namespace| namespace == owner.pid_namespace)
        })
    }
}

// === impl Followed ===

impl Followed {
    /// Whether its figures are believed.
    pub(crate) fn speaks(&self) -> bool {
        !self.failed && !matches!(self.standing, Standing::Refused(_))
    }
}

/// Reports why a ledger cannot be opened, unless that is nothing to worry about.
fn complain(name: &str, error: &OpenError, report: &mut Report) {
    let reason = match error {
        // Removed since it was listed, or not finished yet: neither is anybody's fault.
        OpenError::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => return,
        OpenError::NotReady => return,
        OpenError::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            Absence::Permission
        }
        OpenError::Open { .. } | OpenError::Read(_) => Absence::Failed,
        OpenError::Version { .. } => Absence::Unsupported,
        _ => Absence::Implausible,
    };
    report.error(name, reason, with_causes(error));
}

/// An error with everything that caused it.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
