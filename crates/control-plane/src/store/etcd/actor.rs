//! A coordinator's share in the election, and the way of its decisions into etcd.

use std::time::{Duration, Instant};

use prost::Message as _;
use telltale_wire::cluster_state::message;
use telltale_wire::etcd::message::response_op::Response;
use telltale_wire::etcd::message::{KeyValue, RangeResponse, ResponseOp, TxnResponse};

use super::keys::Keys;
use super::lease::Lease;
use super::members::{MemberFailure, Members};
use super::{EtcdError, EtcdSettings, MAX_ADDRESS_BYTES, is_printable};
use crate::store::decode::{self, StateError, StoredDecision};
use crate::store::kept::{DecisionRecord, IncidentRecord, MAX_INCIDENT_BYTES, SideState};
use crate::store::{ActorChannels, Gained, REST, StoreCommand, StoreEvent, StoreFailure};
use telltale_cluster::epoch::{Revision, Term};
use telltale_cluster::stored::{Decision, StoreOutcome, StoredState};

/// How often the leader is checked for.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How often a lasting failure is logged.
const TELLING: Duration = Duration::from_secs(30);

/// Runs until the coordinator's task has let go of its store.
pub(in crate::store) async fn run(settings: EtcdSettings, mut link: ActorChannels) {
    let mut slot = Candidate {
        members: settings.members(),
        keys: Keys::new(&settings.prefix),
        settings,
        tried: None,
        known: None,
        followed: None,
        reported: None,
    };
    while let Some((term, lease)) = slot.campaign(&mut link).await {
        link.authority.begin(term);
        link.authority.extend(lease.until);
        let end = slot.lead(&mut link, term, lease).await;
        link.authority.end();
        // A leadership that was lost frees its key by itself; one that is given up is freed here.
        let _ = slot.members.revoke(lease.id).await;
        let rest = match end {
            End::Closed => return,
            End::SteppedDown => REST,
            End::Lost(error) => {
                link.complain(error);
                Duration::ZERO
            }
            // Another program may understand what this one does not.
            End::Unreadable(error) => {
                slot.complain(&link, error);
                REST
            }
        };
        if !link.pause(rest).await {
            return;
        }
    }
}

/// One coordinator.
#[derive(Debug)]
struct Candidate {
    settings: EtcdSettings,
    members: Members,
    keys: Keys,
    /// The lease with which it last tried to lead, where it is unknown whether it does.
    tried: Option<Lease>,
    /// Who leads, as far as the coordinator's task knows.
    known: Option<String>,
    /// The leadership of another under which the state was read.
    followed: Option<i64>,
    /// When the lasting failure was logged.
    reported: Option<Instant>,
}

/// How a leadership ended.
#[derive(Debug)]
enum End {
    Closed,
    SteppedDown,
    Lost(EtcdError),
    Unreadable(EtcdError),
}

/// What a leader knows about what is stored.
#[derive(Debug)]
struct Holding {
    term: Term,
    /// How many decisions were stored.
    count: u64,
    kept: SideState,
}

// === impl Candidate ===

impl Candidate {
    /// Tries to lead until it does; `None` when it is no longer wanted.
    async fn campaign(&mut self, link: &mut ActorChannels) -> Option<(Term, Lease)> {
        loop {
            match self.try_to_lead(link).await {
                Ok(Some(led)) => {
                    self.tried = None;
                    self.known = None;
                    return Some(led);
                }
                Ok(None) => {
                    self.reported = None;
                    link.is_well().await;
                }
                Err(error) => self.complain(link, error),
            }
            if !link.pause(CHECK_INTERVAL).await {
                return None;
            }
        }
    }

    /// Takes the leader's key if it is free.
    async fn try_to_lead(
        &mut self,
        link: &ActorChannels,
    ) -> Result<Option<(Term, Lease)>, EtcdError> {
        let refused = |step| {
            move |failure: MemberFailure| EtcdError::Refused {
                step,
                status: Box::new(failure.status),
            }
        };
        let read = self.members.range(&self.keys.read_leader()).await;
        let read = read.map_err(refused("say who leads"))?;
        if let Some(leader) = read.kvs.first() {
            if let Some(lease) = self.tried.filter(|lease| lease.id == leader.lease) {
                return Ok(Some((term(leader.create_revision)?, lease)));
            }
            self.follow(link, leader).await?;
            return Ok(None);
        }
        let lease = Lease::grant(&mut self.members, self.settings.lease).await?;
        self.tried = Some(lease);
        let request = self.keys.lead(&self.settings.address, lease.id);
        let led = self.members.transact(&request).await.map_err(refused("elect a leader"))?;
        if !led.succeeded {
            let _ = self.members.revoke(lease.id).await;
            return Ok(None);
        }
        let revision = led.header.map_or(0, |header| header.revision);
        Ok(Some((term(revision)?, lease)))
    }

    /// Tells the coordinator's task who leads, and what is stored then.
    async fn follow(&mut self, link: &ActorChannels, leader: &KeyValue) -> Result<(), EtcdError> {
        let address = str::from_utf8(&leader.value).ok();
        let address = address.filter(|text| is_printable(text, MAX_ADDRESS_BYTES));
        let address = address.map(ToOwned::to_owned);
        if address != self.known {
            self.known.clone_from(&address);
            link.send(StoreEvent::Leader(address)).await;
        }
        if self.followed == Some(leader.create_revision) {
            return Ok(());
        }
        let step = "say what is stored";
        let read = self.members.range(&self.keys.read_state()).await;
        let read =
            read.map_err(|failure| EtcdError::Refused { step, status: Box::new(failure.status) })?;
        if let Some(pair) = read.kvs.first() {
            self.followed = Some(leader.create_revision);
            let (decision, _) = stored(pair)?;
            link.send(StoreEvent::Standby(Box::new(decision.state))).await;
        }
        Ok(())
    }

    /// Leads until that ends.
    async fn lead(&mut self, link: &mut ActorChannels, term: Term, lease: Lease) -> End {
        let authority = link.authority.clone();
        let holding = lease.hold(self.members.clone(), self.settings.lease, authority.clone());
        tokio::pin!(holding);
        let (gained, mut held) = tokio::select! {
            biased;
            error = &mut holding => return End::Lost(error),
            read = self.read(term) => match read {
                Ok(read) => read,
                Err(end) => return end,
            },
        };
        if !link.send(StoreEvent::Gained(Box::new(gained))).await {
            return End::Closed;
        }
        self.reported = None;
        let end = loop {
            let command = tokio::select! {
                biased;
                error = &mut holding => break End::Lost(error),
                command = link.commands.recv() => command,
            };
            let work = async {
                match command {
                    None => Some(End::Closed),
                    Some(StoreCommand::StepDown) => Some(End::SteppedDown),
                    Some(StoreCommand::Store(decision)) => {
                        self.store(link, &mut held, &decision).await;
                        None
                    }
                    Some(StoreCommand::Keep(incident)) => {
                        self.keep(link, &mut held, incident).await;
                        None
                    }
                }
            };
            let ended = tokio::select! {
                biased;
                error = &mut holding => Some(End::Lost(error)),
                ended = work => ended,
            };
            if let Some(end) = ended {
                break end;
            }
        };
        authority.end();
        link.send(StoreEvent::Lost).await;
        end
    }

    /// Reads what is stored, periodically until it can or the lease has run out.
    async fn read(&mut self, term: Term) -> Result<(Gained, Holding), End> {
        let request = self.keys.read_all(term);
        loop {
            match self.members.transact(&request).await {
                Ok(answer) if !answer.succeeded => return Err(End::Lost(EtcdError::Gone)),
                Ok(answer) => return self.understand(term, answer).map_err(End::Unreadable),
                Err(_) => tokio::time::sleep(CHECK_INTERVAL).await,
            }
        }
    }

    fn understand(&self, term: Term, answer: TxnResponse) -> Result<(Gained, Holding), EtcdError> {
        let missing = || EtcdError::Answer { step: "read what is stored" };
        let mut ranges = answer.responses.into_iter().map(range);
        let state = ranges.next().flatten().ok_or_else(missing)?;
        let decisions = ranges.next().flatten().ok_or_else(missing)?;
        let incidents = ranges.next().flatten().ok_or_else(missing)?;
        let state = state.kvs.first().map(stored).transpose()?;
        let mut kept = SideState::default();
        let mut log = decisions.kvs.iter().map(logged).collect::<Result<Vec<_>, _>>()?;
        log.sort_by_key(|record| record.count);
        for record in log {
            kept.log(record);
        }
        for pair in &incidents.kvs {
            kept.keep(incident(pair)?);
        }
        let count = state.as_ref().map_or(0, |(decision, _)| decision.record.count);
        let stored: Option<(StoredState, Revision)> =
            state.map(|(decision, revision)| (decision.state, revision));
        let gained = Gained { term, stored, kept: kept.clone() };
        Ok((gained, Holding { term, count, kept }))
    }

    /// Stores a decision and reports what became of it.
    async fn store(&mut self, link: &ActorChannels, holding: &mut Holding, decision: &Decision) {
        let count = holding.count + 1;
        let outcome = match self.members.transact(&self.keys.store(decision, count)).await {
            Ok(answer) if answer.succeeded => {
                let revision = answer.header.map_or(0, |header| header.revision);
                holding.count = count;
                revision.try_into().map(Revision::new).map_or(
                    // Given again, it is found with its revision.
                    StoreOutcome::Unknown,
                    StoreOutcome::Stored,
                )
            }
            Ok(answer) => match refused(answer, holding, decision) {
                Ok(outcome) => outcome,
                Err(error) => {
                    link.complain(error);
                    StoreOutcome::Unknown
                }
            },
            Err(failure) => {
                let certain = failure.certain;
                let status = Box::new(failure.status);
                link.complain(EtcdError::Refused { step: "store a decision", status });
                if certain { StoreOutcome::Failed } else { StoreOutcome::Unknown }
            }
        };
        // Also when it was stored before, unnoticed.
        if matches!(outcome, StoreOutcome::Stored(_)) {
            link.is_well().await;
        }
        link.send(StoreEvent::Stored { decision: decision.number, outcome }).await;
    }

    async fn keep(
        &mut self,
        link: &ActorChannels,
        holding: &mut Holding,
        incident: IncidentRecord,
    ) {
        if incident.content.len() > MAX_INCIDENT_BYTES {
            link.leave_out(StoreFailure::LargeIncident { bytes: incident.content.len() });
            return;
        }
        let removed = holding.kept.keep(incident.clone());
        let request = self.keys.keep(holding.term, &incident, &removed);
        match self.members.transact(&request).await {
            Ok(_) => link.is_well().await,
            Err(failure) => {
                let status = Box::new(failure.status);
                link.leave_out(EtcdError::Refused { step: "keep an incident", status });
            }
        }
    }

    fn complain(&mut self, link: &ActorChannels, error: EtcdError) {
        if self.reported.is_none_or(|reported| reported.elapsed() >= TELLING) {
            self.reported = Some(Instant::now());
            link.complain(error);
        }
    }
}

/// What became of a decision whose conditions did not hold.
fn refused(
    answer: TxnResponse,
    holding: &mut Holding,
    decision: &Decision,
) -> Result<StoreOutcome, EtcdError> {
    let missing = || EtcdError::Answer { step: "store a decision" };
    let mut ranges = answer.responses.into_iter().map(range);
    let leader = ranges.next().flatten().ok_or_else(missing)?;
    let state = ranges.next().flatten().ok_or_else(missing)?;
    let state = state.kvs.first().map(stored).transpose()?;
    let is_this =
        |record: &DecisionRecord| (record.term, record.number) == (decision.term, decision.number);
    match state {
        Some((stored, revision)) if is_this(&stored.record) => {
            holding.count = stored.record.count;
            Ok(StoreOutcome::Stored(revision))
        }
        state => {
            let revision = state.map_or(Revision::EMPTY, |(_, revision)| revision);
            let leads = leader.kvs.first().is_some_and(|leader| {
                u64::try_from(leader.create_revision).ok() == Some(decision.term.number())
            });
            // The state is as it was: then it is the leadership that is gone.
            let failed = revision == decision.expected && !leads;
            Ok(if failed { StoreOutcome::Failed } else { StoreOutcome::Conflict })
        }
    }
}

fn term(revision: i64) -> Result<Term, EtcdError> {
    let number = u64::try_from(revision).ok().filter(|number| *number > 0);
    number.map(Term::new).ok_or(EtcdError::Answer { step: "elect a leader" })
}

fn range(answer: ResponseOp) -> Option<RangeResponse> {
    match answer.response? {
        Response::ResponseRange(range) => Some(range),
        Response::ResponsePut(_) | Response::ResponseDeleteRange(_) => None,
    }
}

fn stored(pair: &KeyValue) -> Result<(StoredDecision, Revision), EtcdError> {
    let decision = message::Decision::decode(pair.value.as_slice()).map_err(StateError::Malformed);
    let decision = decision.and_then(decode::decision).map_err(|error| unusable(pair, error))?;
    let revision = u64::try_from(pair.mod_revision);
    let revision = revision.map_err(|_| EtcdError::Answer { step: "read what is stored" })?;
    Ok((decision, Revision::new(revision)))
}

fn logged(pair: &KeyValue) -> Result<DecisionRecord, EtcdError> {
    let logged = message::LoggedDecision::decode(pair.value.as_slice());
    let logged = logged.map_err(StateError::Malformed).and_then(decode::logged);
    logged.map_err(|error| unusable(pair, error))
}

fn incident(pair: &KeyValue) -> Result<IncidentRecord, EtcdError> {
    let incident = message::Incident::decode(pair.value.as_slice());
    let incident = incident.map_err(StateError::Malformed).and_then(decode::incident);
    incident.map_err(|error| unusable(pair, error))
}

fn unusable(pair: &KeyValue, source: StateError) -> EtcdError {
    EtcdError::Stored { key: String::from_utf8_lossy(&pair.key).into_owned(), source }
}
