//! Endpoints that have to be asked, and what of their answers is believed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use telltale_ledger::LedgerReader;
use telltale_ledger::directory::{DirectoryEntry, EntryStatus, Listing, RuntimeDirectory};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::Absence;
use telltale_schema::text::with_causes;
use telltale_wire::{DeviceSelector, Query, QueryKind, Report as EndpointReport};

use super::EndpointUse;
use super::closed::Closed;
use super::endpoints::{AskLimits, EndpointError, EndpointLocation, PeerAnswer, ask};
use super::identity::{Checks, Lie, Standing};
use super::ledgers::{FileIdentity, Ledgers, Living, Speaking};
use super::listings::Listed;
use crate::report::{SourceReport, Surplus, is_shortage};

/// Endpoints of one directory that are asked in one round.
pub(super) const MAX_ASKED: usize = 2048;

/// An answer that is believed.
#[derive(Debug)]
pub(crate) struct Believed {
    pub(crate) standing: Standing,
    pub(crate) uid: u32,
    pub(crate) reports: EndpointReport,
}

/// How long an endpoint that kept silent is not asked again: each time costs its whole timeout.
const SILENCE_NS: u64 = 10_000_000_000;

/// What is remembered of endpoints, by the number of the directory and by name.
#[derive(Debug, Default)]
pub(crate) struct Remembered(BTreeMap<u32, Listened>);

/// What is remembered of the endpoints of one directory.
#[derive(Debug, Default)]
struct Listened {
    /// The listing that they were in.
    listing: Arc<Listing>,
    known: BTreeMap<String, KnownEndpoint>,
}

/// An endpoint that was seen before.
#[derive(Debug, Clone, Copy)]
struct KnownEndpoint {
    /// Of the socket: a recreated one is another endpoint.
    inode: u64,
    uid: u32,
    memory: Option<Memory>,
}

/// How an endpoint did when it was asked.
#[derive(Debug, Clone, Copy)]
enum Memory {
    /// This process answered.
    Answered(ProcessIdentity),
    /// There was no answer, and until then (on the monotonic clock) it is not asked again.
    Silent { until_ns: u64 },
    /// It is a dead process's, and until then it is not checked again.
    Deserted { until_ns: u64 },
}

/// What endpoints are asked with.
pub(crate) struct EndpointPoller<'a> {
    pub(crate) which: EndpointUse,
    pub(crate) limits: AskLimits,
    pub(crate) checks: &'a Checks<'a>,
    pub(crate) ledgers: &'a mut Ledgers,
    pub(crate) remembered: &'a mut Remembered,
    pub(crate) now_ns: u64,
    pub(crate) report: &'a mut SourceReport,
    pub(crate) closed: &'a mut Closed,
}

/// An endpoint that is asked.
struct PendingEndpoint<'a> {
    number: u32,
    directory: &'a RuntimeDirectory,
    entry: &'a DirectoryEntry,
    /// What it is now.
    status: EntryStatus,
    coverage: Coverage,
    /// A ledger beside it is that of a dead process with its pid and user.
    has_dead: bool,
}

/// What is known without the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coverage {
    /// Nothing.
    None,
    /// There is a ledger of what is probably its process, so that it need not hand out another.
    Probable,
    /// A ledger of the process that answered here before is followed: it need not report memory.
    Known,
}

// === impl Remembered ===

impl Remembered {
    /// Lets go of all directories but these.
    pub(crate) fn keep(&mut self, numbers: &BTreeSet<u32>) {
        self.0.retain(|number, _| numbers.contains(number));
    }
}

// === impl EndpointPoller ===

impl EndpointPoller<'_> {
    /// Asks the endpoints of all directories at once and checks what they say. Ledgers that come
    /// along are followed from then on.
    pub(crate) fn collect(&mut self, listed: &[Listed]) -> BTreeMap<ProcessIdentity, Believed> {
        let mut asked = Vec::new();
        let speaking = self.ledgers.speaking();
        for one in listed {
            let mut entries = in_turns(self.entries(one, &speaking));
            let mut surplus = Surplus::default();
            for left_out in entries.drain(MAX_ASKED.min(entries.len())..) {
                surplus.add(left_out.status.uid, &left_out.entry.name);
            }
            self.report
                .surplus(surplus, &format!("{MAX_ASKED} endpoints of a directory are asked"));
            asked.append(&mut entries);
        }
        let kind = match self.which {
            EndpointUse::Always => QueryKind::All,
            EndpointUse::WhereNeeded | EndpointUse::Never => QueryKind::Memory,
        };
        let places = asked.iter().map(|one| {
            let query = Query {
                kind,
                device: DeviceSelector::All,
                want_ledger: one.coverage == Coverage::None,
                is_last: true,
                knows_memory: one.coverage == Coverage::Known,
            };
            EndpointLocation { directory: one.directory, name: &one.entry.name, query }
        });
        let answers = ask(&places.collect::<Vec<_>>(), self.limits);
        let mut believed = BTreeMap::new();
        for (one, answer) in asked.iter().zip(answers) {
            if let Some(answer) = self.judge(one, answer, &speaking) {
                // The first directory is the one that counts.
                believed.entry(answer.reports.identity).or_insert(answer);
            }
        }
        believed
    }

    /// What of an answer is believed.
    fn judge(
        &mut self,
        one: &PendingEndpoint<'_>,
        answer: Result<PeerAnswer, EndpointError>,
        speaking: &Speaking,
    ) -> Option<Believed> {
        let PendingEndpoint { number, entry, ref status, .. } = *one;
        match answer.map(|answer| believe(entry, answer, self.checks, speaking)) {
            Ok(Ok((believed, ledger))) => {
                let identity = believed.reports.identity;
                self.remember(one, Memory::Answered(identity));
                if one.coverage == Coverage::Known && !speaking.contains_key(&identity) {
                    // Another process has the socket now and was not asked for its memory: next time.
                    return None;
                }
                // It may have come in this round by another name.
                if let Some(reader) = ledger.filter(|_| !self.ledgers.speak_for(&identity)) {
                    let origin = (number, entry.name.clone());
                    let behind = FileIdentity::of(status);
                    self.ledgers.adopt(origin, behind, reader, believed.standing.clone());
                }
                return Some(believed);
            }
            Ok(Err(lie)) => {
                let detail = lie.to_string();
                self.report.odd_entry(status.uid, &entry.name, Absence::Refused, detail);
            }
            Err(error)
                if error.absence() == Absence::Permission
                    && self.closed.take(number, entry, status.uid, self.checks) => {}
            Err(error) => {
                if matches!(error, EndpointError::TimedOut) {
                    let until_ns = self.now_ns.saturating_add(SILENCE_NS);
                    self.remember(one, Memory::Silent { until_ns });
                } else if matches!(error, EndpointError::NoListener) && one.has_dead {
                    self.remember(one, self.deserted());
                }
                complain(status.uid, &entry.name, &error, self.report);
            }
        }
        None
    }

    fn remember(&mut self, one: &PendingEndpoint<'_>, memory: Memory) {
        let listened = self.remembered.0.get_mut(&one.number);
        if let Some(known) = listened.and_then(|of| of.known.get_mut(&one.entry.name))
            && known.inode == one.status.inode
        {
            known.memory = Some(memory);
        }
    }

    /// The endpoints to be asked, with what they were before they are. `speaking` are those of whom
    /// a ledger reports.
    fn entries<'a>(&mut self, listed: &'a Listed, speaking: &Speaking) -> Vec<PendingEndpoint<'a>> {
        if self.which == EndpointUse::Never {
            return Vec::new();
        }
        let Listed { number, directory, listing } = listed;
        let Listened { listing: before, mut known } =
            self.remembered.0.remove(number).unwrap_or_default();
        let unchanged = Arc::ptr_eq(&before, listing);
        let dead = self.ledgers.dead(*number);
        let mut entries = Vec::new();
        let mut seen = BTreeMap::new();
        // A process that was restored from a checkpoint listens by its first name again (CRIU).
        for entry in listing.endpoints.iter().chain(&listing.temporaries) {
            let before = known.get(&entry.name).copied();
            let mut one = match before.filter(|_| unchanged) {
                Some(before) => before,
                None => {
                    let Ok(status) = directory.entry_status(&entry.name) else { continue };
                    let same = before.filter(|before| before.inode == status.inode);
                    let memory = same.and_then(|before| before.memory);
                    KnownEndpoint { inode: status.inode, uid: status.uid, memory }
                }
            };
            let has_dead = dead.contains(&(entry.pid, one.uid));
            let deserted = self.is_deserted(entry, &mut one, has_dead, speaking);
            match known.get_mut(&entry.name).filter(|_| unchanged) {
                Some(known) => *known = one,
                None => _ = seen.insert(entry.name.clone(), one),
            }
            if deserted {
                continue;
            }
            let (silent, identity) = match one.memory {
                Some(Memory::Silent { until_ns }) => (self.now_ns < until_ns, None),
                Some(Memory::Answered(identity)) => (false, Some(identity)),
                Some(Memory::Deserted { .. }) | None => (false, None),
            };
            let coverage = match identity {
                Some(identity) if speaking.contains_key(&identity) => Coverage::Known,
                None if self.is_covered(*number, entry, one.uid) => Coverage::Probable,
                _ => Coverage::None,
            };
            if self.which != EndpointUse::Always && coverage != Coverage::None {
                continue;
            }
            if silent {
                let detail = "no answer a few seconds ago; it is asked again in a while";
                self.report.odd_entry(one.uid, &entry.name, Absence::TimedOut, detail);
            } else if let Ok(status) = directory.entry_status(&entry.name) {
                let number = *number;
                entries.push(PendingEndpoint {
                    number,
                    directory,
                    entry,
                    status,
                    coverage,
                    has_dead,
                });
            }
        }
        // Sockets that are gone are forgotten.
        if !unchanged {
            known = seen;
        }
        self.remembered.0.insert(*number, Listened { listing: Arc::clone(listing), known });
        entries
    }

    /// Whether an endpoint is that of a process which is dead by its ledger, and no process has its pid.
    /// One that has may have been restored from a checkpoint: then its endpoint is believed, and the
    /// ledger is not.
    fn is_deserted(
        &self,
        entry: &DirectoryEntry,
        one: &mut KnownEndpoint,
        has_dead: bool,
        speaking: &Speaking,
    ) -> bool {
        match one.memory {
            Some(Memory::Answered(identity)) if speaking.contains_key(&identity) => return false,
            _ if !has_dead => return false,
            Some(Memory::Deserted { until_ns }) if self.now_ns < until_ns => return true,
            _ => {}
        }
        let deserted = !self.checks.may_live(entry.pid, None, one.uid);
        if deserted {
            one.memory = Some(self.deserted());
        }
        deserted
    }

    fn deserted(&self) -> Memory {
        Memory::Deserted { until_ns: self.now_ns.saturating_add(SILENCE_NS) }
    }

    /// Whether a ledger says what this endpoint would say of memory. The number in its name counts
    /// in an unknown PID namespace, so containers are asked once, to learn who they are.
    fn is_covered(&self, number: u32, entry: &DirectoryEntry, uid: u32) -> bool {
        let Some(namespace) = self.checks.namespace() else { return false };
        entry.pid_namespace.is_none_or(|found| found == namespace)
            && self.ledgers.has_neighbour(number, entry.pid, namespace, uid)
    }
}

/// Brings endpoints into an order in which the first of each user come before anybody's second, so
/// that one user's many sockets keep no other from being asked.
fn in_turns(entries: Vec<PendingEndpoint<'_>>) -> Vec<PendingEndpoint<'_>> {
    let mut before: BTreeMap<u32, usize> = BTreeMap::new();
    let numbered = entries.into_iter().map(|one| {
        let place = before.entry(one.status.uid).or_default();
        *place += 1;
        (*place, one)
    });
    let mut numbered: Vec<_> = numbered.collect();
    numbered.sort_by_key(|(place, _)| *place);
    numbered.into_iter().map(|(_, one)| one).collect()
}

/// Compares an answer with what the kernel says of its sender and with the socket's name. Who is in
/// `speaking` need not be looked up once more: the end of its process would have been reported.
pub(super) fn believe(
    entry: &DirectoryEntry,
    answer: PeerAnswer,
    checks: &Checks<'_>,
    speaking: &Speaking,
) -> Result<(Believed, Option<LedgerReader>), Lie> {
    let PeerAnswer { peer, report: reports, ledger } = answer;
    let living = speaking.get(&reports.identity).copied().flatten();
    let judged = match living.filter(|one| (Some(one.pid), one.uid) == (peer.pid, peer.uid)) {
        Some(Living { pid, start_time_ticks, .. }) => Standing::Alive { pid, start_time_ticks },
        None => checks.judge_peer(&reports.identity, peer.pid, peer.uid),
    };
    let standing = match judged {
        Standing::Refused(lie) => return Err(lie),
        standing => standing,
    };
    if reports.identity.pid != entry.pid {
        return Err(Lie::Name { claimed: reports.identity.pid, named: entry.pid });
    }
    let reader = ledger.and_then(|descriptor| LedgerReader::from_descriptor(descriptor).ok());
    if let Some(reader) = &reader
        && (*reader.owner() != reports.identity || reader.uid() != peer.uid)
    {
        return Err(Lie::ForeignLedger);
    }
    Ok((Believed { standing, uid: peer.uid, reports: *reports }, reader))
}

/// Reports why an endpoint gave nothing, unless its process has merely ended.
fn complain(owner: u32, name: &str, error: &EndpointError, report: &mut SourceReport) {
    let gone = matches!(error, EndpointError::NoListener) || error.absence() == Absence::Gone;
    if let EndpointError::Open(source)
    | EndpointError::Connect(source)
    | EndpointError::Broken(source) = error
        && is_shortage(source)
    {
        report.error(name, error.absence(), with_causes(error));
    } else if !gone {
        report.odd_entry(owner, name, error.absence(), with_causes(error));
    }
}
