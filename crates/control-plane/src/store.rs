//! Where a coordinator's decisions are kept, and who of several coordinators leads.
//!
//! A store is an actor beside the coordinator's own task: it takes [`Store::store`] and answers with
//! [`StoreEvent`]s, and it tells when leadership is gained and lost. It decides nothing about the job.
//!
//! [`Authority`] says at each moment whether this coordinator may still lead. Senders of orders ask
//! it right before, since a process that stood still learns of its loss later than others of its
//! successor.

mod authority;
mod decode;
mod encode;
mod etcd;
mod journal;
mod kept;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use telltale_cluster::epoch::{Revision, Term};
use telltale_cluster::stored::{Decision, DecisionNumber, StoreOutcome, StoredState};

pub use authority::Authority;
pub use decode::StateError;
pub use etcd::{
    EtcdError, EtcdPlan, EtcdSettings, EtcdSettingsError, EtcdTls, LEAST_LEASE, LONGEST_LEASE,
    MAX_MEMBERS,
};
pub use journal::{Displaced, JournalError, JournalSettings, read as read_journal};
pub use kept::{
    DecisionRecord, IncidentRecord, MAX_INCIDENT_BYTES, MAX_KEPT_DECISIONS, MAX_KEPT_INCIDENTS,
    SideState,
};

/// Commands that may wait. There is one decision under way at most; the rest is incidents.
const MAX_COMMANDS: usize = 64;
/// Of these, places that incidents leave free for decisions.
const RESERVED_COMMANDS: usize = 8;
/// Events that may wait for the coordinator's task.
const MAX_EVENTS: usize = 64;
/// How long giving leadership up may take when the program ends.
const CLOSING: Duration = Duration::from_secs(3);
/// How long a coordinator that stepped down leaves leadership to others.
const REST: Duration = Duration::from_secs(1);

/// Where decisions are kept.
#[derive(Debug, Clone)]
pub enum StoreLocation {
    /// In a file on this machine's own disk.
    Journal(JournalSettings),
    /// In etcd, which several coordinators share.
    Etcd(EtcdSettings),
}

/// What a store reports.
#[derive(Debug)]
pub enum StoreEvent {
    /// This coordinator leads from now on.
    Gained(Box<Gained>),
    /// It leads no longer, or stepped down as ordered. It will try to lead again by itself.
    Lost,
    /// What became of a decision.
    Stored {
        /// Which.
        decision: DecisionNumber,
        /// What became of it.
        outcome: StoreOutcome,
    },
    /// Who leads now, by the address that it gave to its store; `None` if unknown. Not notified of
    /// this coordinator itself.
    Leader(Option<String>),
    /// What is stored while another coordinator leads, for this one to see whether it could go on with
    /// it. Told when another leader is seen.
    Standby(Box<StoredState>),
    /// Something is wrong, for a person to read. The store goes on trying; for a decision there is an
    /// answer besides.
    Trouble(StoreFailure),
    /// An incident was not kept, for a person to read. Decisions may be stored all the same.
    Unkept(StoreFailure),
    /// What was wrong is so no more: something was written, or read where another leads.
    Mended,
}

/// What a leader begins with.
#[derive(Debug)]
pub struct Gained {
    /// Its term.
    pub term: Term,
    /// The state, and its revision; nothing, where nothing ever was stored.
    pub stored: Option<(StoredState, Revision)>,
    /// What is kept beside it.
    pub kept: SideState,
}

/// What is wrong with a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreFailure {
    /// With the journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// With etcd.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// An incident is too long.
    #[error("an incident of {bytes} bytes is not kept; {MAX_INCIDENT_BYTES} are the most")]
    LargeIncident {
        /// How long it is.
        bytes: usize,
    },
}

#[derive(Debug)]
enum StoreCommand {
    Store(Box<Decision>),
    Keep(IncidentRecord),
    StepDown,
}

/// A store, as the coordinator's task holds it.
#[derive(Debug)]
pub struct Store {
    commands: mpsc::Sender<StoreCommand>,
    events: mpsc::Receiver<StoreEvent>,
    /// Events about commands that found no place.
    refused: VecDeque<StoreEvent>,
    authority: Authority,
    dropped_incidents: u64,
}

/// The actor's ends of the channels.
#[derive(Debug)]
struct ActorChannels {
    commands: mpsc::Receiver<StoreCommand>,
    events: mpsc::Sender<StoreEvent>,
    authority: Authority,
    /// Whether the coordinator's task was last notified of a failure.
    troubled: AtomicBool,
}

/// Opens a store, in a task of its own. While another coordinator leads, this one waits.
///
/// To be called within a Tokio runtime with time enabled.
#[must_use]
pub fn open(place: StoreLocation) -> Store {
    let (store, link) = linked();
    match place {
        StoreLocation::Journal(settings) => tokio::spawn(journal::run(settings, link)),
        StoreLocation::Etcd(settings) => tokio::spawn(etcd::run(settings, link)),
    };
    store
}

fn linked() -> (Store, ActorChannels) {
    let (to_actor, commands) = mpsc::channel(MAX_COMMANDS);
    let (to_coordinator, events) = mpsc::channel(MAX_EVENTS);
    let authority = Authority::default();
    let link = ActorChannels {
        commands,
        events: to_coordinator,
        authority: authority.clone(),
        troubled: AtomicBool::new(false),
    };
    let store = Store {
        commands: to_actor,
        events,
        refused: VecDeque::new(),
        authority,
        dropped_incidents: 0,
    };
    (store, link)
}

// === impl Store ===

impl Store {
    /// What the store tells next; `None` once it has ended. Nothing is lost when the future is
    /// dropped.
    pub async fn event(&mut self) -> Option<StoreEvent> {
        match self.refused.pop_front() {
            Some(event) => Some(event),
            None => self.events.recv().await,
        }
    }

    /// Stores a decision. The answer is an [`StoreEvent::Stored`], unless leadership is lost before.
    pub fn store(&mut self, decision: Box<Decision>) {
        let number = decision.number;
        if self.commands.try_send(StoreCommand::Store(decision)).is_err() {
            let outcome = StoreOutcome::Failed;
            self.refused.push_back(StoreEvent::Stored { decision: number, outcome });
        }
    }

    /// Keeps an incident for those who look back, as well as may be: one that finds no place is dropped
    /// and counted, and the oldest make room for new ones.
    pub fn keep(&mut self, incident: IncidentRecord) {
        let has_place = self.commands.capacity() > RESERVED_COMMANDS;
        if !has_place || self.commands.try_send(StoreCommand::Keep(incident)).is_err() {
            self.dropped_incidents += 1;
        }
    }

    /// Gives leadership up, for a while.
    pub fn step_down(&mut self) {
        // A command that finds no place here means that the actor has ended or loses its lease anyhow.
        let _ = self.commands.try_send(StoreCommand::StepDown);
    }

    /// Says whether this coordinator may lead, to be asked before each order that is sent.
    #[must_use]
    pub fn authority(&self) -> Authority {
        self.authority.clone()
    }

    /// Incidents that found no place since the store was opened.
    #[must_use]
    pub const fn dropped_incidents(&self) -> u64 {
        self.dropped_incidents
    }

    /// Gives leadership up for good, so that another coordinator can have it at once. The caller
    /// this sends no order afterwards.
    pub async fn close(self) {
        let Self { commands, mut events, .. } = self;
        drop(commands);
        let drained = async { while events.recv().await.is_some() {} };
        // Past the deadline the lease runs out by itself.
        let _ = tokio::time::timeout(CLOSING, drained).await;
    }
}

// === impl ActorChannels ===

impl ActorChannels {
    /// Tells the coordinator's task; says whether it is still there.
    async fn send(&self, event: StoreEvent) -> bool {
        self.events.send(event).await.is_ok()
    }

    /// Tells of a trouble, unless too much waits to be read already.
    fn complain(&self, trouble: impl Into<StoreFailure>) {
        self.troubled.store(true, Ordering::Relaxed);
        let _ = self.events.try_send(StoreEvent::Trouble(trouble.into()));
    }

    /// Tells that an incident was not kept, unless too much waits to be read already.
    fn leave_out(&self, trouble: impl Into<StoreFailure>) {
        let _ = self.events.try_send(StoreEvent::Unkept(trouble.into()));
    }

    /// Tells that all is well again, if there was a trouble.
    async fn is_well(&self) {
        if self.troubled.swap(false, Ordering::Relaxed) {
            self.send(StoreEvent::Mended).await;
        }
    }

    /// Lets time pass while this coordinator does not lead; says whether to go on.
    async fn pause(&mut self, pause: Duration) -> bool {
        let until = tokio::time::Instant::now() + pause;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return true,
                // Commands of a leadership that is over.
                command = self.commands.recv() => if command.is_none() { return false },
            }
        }
    }
}
