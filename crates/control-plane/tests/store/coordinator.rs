//! A coordinator's task as far as a store sees it: it waits for events and makes decisions.

use std::time::Duration;

use telltale_cluster::epoch::{Epoch, Revision, Term};
use telltale_cluster::policy::{Job, Mode};
use telltale_cluster::rank::WorkersPerNode;
use telltale_cluster::stored::{Decision, DecisionNumber, StoreOutcome, StoredState, Why};
use telltale_control_plane::store::{Gained, Store, StoreEvent, StoreLocation, open};
use tokio::time::{Instant, timeout_at};

/// How long anything may take, on a machine that does much else.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Coordinator {
    pub(crate) store: Store,
    /// Failures that were reported to it.
    pub(crate) troubles: Vec<String>,
    /// How often recovery was reported to it.
    /// What was reported of incidents that were not kept.
    pub(crate) unkept: Vec<String>,
    pub(crate) mended: usize,
    /// Whether its last report was a failure.
    pub(crate) is_troubled: bool,
    /// Who leads, as last reported.
    pub(crate) leader: Option<String>,
    /// What is stored while another leads, as last reported.
    pub(crate) standby: Option<StoredState>,
    number: u64,
}

impl Coordinator {
    pub(crate) fn start(place: &StoreLocation) -> Self {
        Self {
            store: open(place.clone()),
            troubles: Vec::new(),
            unkept: Vec::new(),
            mended: 0,
            is_troubled: false,
            leader: None,
            standby: None,
            number: 0,
        }
    }

    /// The next event of leadership or a decision, if one comes until then.
    pub(crate) async fn event_until(&mut self, until: Instant) -> Option<StoreEvent> {
        loop {
            match timeout_at(until, self.store.event()).await.ok()? {
                Some(StoreEvent::Trouble(trouble)) => {
                    self.troubles.push(trouble.to_string());
                    self.is_troubled = true;
                }
                Some(StoreEvent::Unkept(trouble)) => self.unkept.push(trouble.to_string()),
                Some(StoreEvent::Leader(leader)) => self.leader = leader,
                Some(StoreEvent::Standby(state)) => self.standby = Some(*state),
                Some(StoreEvent::Mended) => {
                    self.mended += 1;
                    self.is_troubled = false;
                }
                Some(event) => return Some(event),
                None => panic!("the store has ended; {:?}", self.troubles),
            }
        }
    }

    pub(crate) async fn event(&mut self, what: &str) -> StoreEvent {
        let event = self.event_until(Instant::now() + TIMEOUT).await;
        event.unwrap_or_else(|| panic!("no {what}; {:?}", self.troubles))
    }

    pub(crate) async fn gains(&mut self) -> Gained {
        match self.event("leadership").await {
            StoreEvent::Gained(gained) => {
                assert!(self.store.authority().holds());
                *gained
            }
            other => panic!("{other:?} instead of leadership"),
        }
    }

    pub(crate) async fn loses(&mut self) {
        let event = self.event("loss of leadership").await;
        assert!(matches!(event, StoreEvent::Lost), "{event:?}");
        assert!(!self.store.authority().holds());
    }

    /// A decision of its next number.
    pub(crate) fn decides(&mut self, term: Term, expected: Revision, epoch: u64) -> Decision {
        self.number += 1;
        decision(term, self.number, expected, epoch)
    }

    pub(crate) async fn stores(&mut self, decision: &Decision) -> StoreOutcome {
        self.store.store(Box::new(decision.clone()));
        match self.event("answer").await {
            StoreEvent::Stored { decision: number, outcome } if number == decision.number => {
                outcome
            }
            other => panic!("{other:?} instead of an answer"),
        }
    }
}

pub(crate) fn decision(term: Term, number: u64, expected: Revision, epoch: u64) -> Decision {
    let workers = WorkersPerNode::new(2).unwrap();
    let job = Job { name: "job".into(), slots: 4, workers };
    let state = StoredState { epoch: Epoch::new(epoch), ..StoredState::initial(&job, Mode::Act) };
    let number = DecisionNumber(number);
    Decision { term, number, expected, why: Why::Ordered, state }
}

/// The revision that a decision was stored with.
pub(crate) fn revision(outcome: StoreOutcome) -> Revision {
    match outcome {
        StoreOutcome::Stored(revision) => revision,
        other => panic!("{other:?} instead of a revision"),
    }
}
