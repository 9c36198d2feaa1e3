//! The coordinator's own task: it alone holds the coordinator, what nodes said last, and the store's
//! handle. It carries inputs to the machine and outputs away, and decides nothing itself.

mod outputs;
mod store_trouble;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use tracing::{error, info, warn};

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use super::clock::Clock;
use super::counters::{Counters, RefusalReason};
use super::decisions::Decisions;
use super::detecting::Detection;
use super::examination::{Examination, left_alone};
use super::hook::Hook;
use super::incidents::Incidents;
use super::mailbox::{MailboxError, MailboxEvent, Question, Reply, StreamEnding, not_leading};
use super::roster::{Orders, Roster, StreamId};
use super::standing::Standing;
use super::{Plan, ServeError};
use crate::protocol::decode::AgentMessage;
use crate::protocol::encode;
use crate::random;
use crate::store::{Authority, Gained, Store, StoreEvent};
use store_trouble::StoreTrouble;
use telltale_cluster::coordinator::{
    Coordinator, Input, OperatorOrder, OtherJob, Output, RequestId, check_stored,
};
use telltale_cluster::detection::DetectionCounts;
use telltale_cluster::detection::steps::StepsView;
use telltale_cluster::epoch::{JobIdentity, Term};
use telltale_cluster::incident::{Hold, IncidentId};
use telltale_cluster::lookout::{self, Followed, LookoutState, Work};
use telltale_cluster::message::FromNodeBody;
use telltale_cluster::node::NodeName;
use telltale_cluster::policy::{Job, Policy};
use telltale_cluster::rank::WorkersPerNode;
use telltale_cluster::stored::Decision;
use telltale_cluster::time::Moment;

/// How often the machine is ticked.
const TICK: Duration = Duration::from_millis(100);
/// The least time between two evaluations of detection, whatever its settings say.
const MIN_WINDOW: Duration = Duration::from_millis(1);
/// How often nodes that are gone are forgotten.
const PRUNE: Duration = Duration::from_secs(60);
/// How long events are left to gather when all were taken in: to be woken for each of ten thousand reports
/// a second costs more than to take them.
const REST: Duration = Duration::from_millis(2);
/// Events that are taken in at once before the clock is checked again.
const BATCH: usize = 256;

/// Why a message of an earlier life of a node's agent is not taken.
const EARLIER_LIFE: &str = "a later life of this node's agent was heard before; two agents have the \
                            same name, or this node's clock was set back: wait until that one is \
                            silent";
/// Why a message of a node that is heard on another connection is not taken.
const CLAIMED: &str = "a node of this name is heard on another connection; give this agent another \
                       --node, or end the other agent";
/// Why a message of one node too many is not taken.
const NO_PLACE: &str = "the coordinator knows as many nodes as it can";

/// The task's state.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) clock: Clock,
    pub(super) job: Job,
    pub(super) policy: Policy,
    pub(super) store_name: String,
    pub(super) coordinator: Coordinator,
    pub(super) roster: Roster,
    pub(super) incidents: Incidents,
    examination: Examination,
    pub(super) decisions: Decisions,
    /// Since when it leads, and in which term.
    pub(super) leading: Option<(Moment, Term)>,
    pub(super) detection_counts: DetectionCounts,
    /// Where the time of the job's training steps goes, as detection found it last.
    pub(super) steps: Option<Arc<StepsView>>,
    counters: Arc<Counters>,
    store: Store,
    authority: Authority,
    detection: Detection,
    /// How often detection looks: once a window of its slow verdicts.
    window: Duration,
    sampling: bool,
    followed: Followed,
    leader: Option<String>,
    waiting: BTreeMap<RequestId, Reply<telltale_wire::cluster::message::OrderResponse>>,
    requests: u64,
    storing: Option<Box<Decision>>,
    /// When that was given to the store.
    given: Moment,
    trouble: Option<StoreTrouble>,
    /// Since when agents know more than is stored.
    behind_since: Option<Moment>,
    outputs: Vec<Output>,
    /// What runs before nodes are drained.
    hook: Hook,
    /// What the log last showed an epoch waiting for.
    waits_for: Option<Hold>,
    stands: watch::Sender<Standing>,
    /// Why it cannot go on.
    failed: Option<ServeError>,
}

impl Engine {
    pub(super) fn new(
        plan: &Plan,
        store: Store,
        counters: Arc<Counters>,
        stands: watch::Sender<Standing>,
    ) -> Result<Self, ServeError> {
        let mut coordinator = Coordinator::new(plan.job.clone(), plan.policy.clone())?;
        if let Some(identity) = NonZeroU64::new(random::draw()) {
            coordinator.name_new_job(JobIdentity::new(identity));
        }
        if plan.resets_other_job {
            coordinator.reset_other_job();
        }
        let detection = Detection::start(plan.detection).map_err(ServeError::Thread)?;
        Ok(Self {
            clock: Clock::start(),
            job: plan.job.clone(),
            policy: plan.policy.clone(),
            store_name: plan.store_name(),
            coordinator,
            roster: Roster::new(Arc::clone(&counters)),
            incidents: Incidents::default(),
            examination: Examination::default(),
            decisions: Decisions::default(),
            leading: None,
            detection_counts: DetectionCounts::default(),
            steps: None,
            counters,
            authority: store.authority(),
            store,
            detection,
            window: plan.detection.window.max(MIN_WINDOW),
            sampling: false,
            followed: Followed::default(),
            leader: None,
            waiting: BTreeMap::new(),
            requests: 0,
            storing: None,
            given: Moment::default(),
            trouble: None,
            behind_since: None,
            outputs: Vec::new(),
            hook: Hook::default(),
            waits_for: None,
            stands,
            failed: None,
        })
    }

    /// Runs until `stop` ends, or the store or the thread of detection has.
    pub(super) async fn run(
        mut self,
        mut events: mpsc::Receiver<MailboxEvent>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let [mut tick, mut evaluate, mut prune] = [every(TICK), every(self.window), every(PRUNE)];
        let mut batch = Vec::with_capacity(BATCH);
        let mut rested = Instant::now();
        tokio::pin!(stop);
        let outcome = loop {
            tokio::select! {
                biased;
                () = &mut stop => break Ok(()),
                event = self.store.event() => match event {
                    Some(event) => self.hear_store(event),
                    None => break Err(ServeError::Ended("the store")),
                },
                seen = self.detection.seen() => match seen {
                    Some(seen) => self.take_verdicts(seen),
                    None => break Err(ServeError::Ended("the thread of detection")),
                },
                outcome = self.hook.ended() => self.take_hook(outcome),
                _ = tick.tick() => {
                    self.heed_authority();
                    self.step(Input::Tick);
                    self.explain_hang(self.clock.now());
                    self.report_standing();
                }
                _ = evaluate.tick() => self.evaluate(),
                _ = prune.tick() => self.prune(),
                _ = after(rested, events.recv_many(&mut batch, BATCH)) => {
                    if batch.len() < BATCH {
                        rested = Instant::now() + REST;
                    }
                    batch.drain(..).for_each(|event| self.take(event));
                }
            }
            if let Some(error) = self.failed.take() {
                break Err(error);
            }
        };
        self.stands.send_replace(Standing::default());
        self.roster.end(&not_leading(&Standing::default()));
        // Decisions that are under way are stored before this returns.
        self.store.close().await;
        outcome
    }

    /// Leads no longer when its lease has run out, though the store may not have said so yet: a process
    /// that stood still hears of everything at once.
    fn heed_authority(&mut self) {
        if self.leading.is_some_and(|(_, term)| !self.authority.holds_in(term)) {
            self.lose("leads no longer: its lease has run out");
        }
    }

    fn take(&mut self, event: MailboxEvent) {
        self.heed_authority();
        match event {
            MailboxEvent::Opened { stream, orders } => self.open(stream, orders),
            MailboxEvent::Heard { stream, word, read, share: _ } => {
                self.hear(stream, *word);
                self.counters.waits.note(read.elapsed());
            }
            MailboxEvent::Closed { stream, ending } => {
                let speaker = self.roster.close(stream);
                // A process that dies without a word breaks its connections off as its kernel closes them.
                let is_gone = matches!(ending, StreamEnding::ByAgent | StreamEnding::Broken);
                if let Some(node) = speaker.filter(|_| is_gone) {
                    // Without room it is missed when its next report is overdue.
                    let _ = self.detection.submit(Work::Closed { node: node.clone() });
                    self.step(Input::Closed { node });
                }
            }
            MailboxEvent::Asked(question) => self.answer(question),
        }
    }

    fn open(&mut self, stream: StreamId, orders: Orders) {
        if self.coordinator.leads() {
            self.roster.open(stream, orders);
        } else {
            self.counters.refuse(RefusalReason::NotLeading);
            // A stream that is gone needs no refusal.
            let _ = orders.try_send(Err(not_leading(&self.standing())));
        }
    }

    /// Takes a message of a node: its observation goes to detection if the coordinator believes it.
    fn hear(&mut self, stream: StreamId, mut word: AgentMessage) {
        if !self.coordinator.leads() {
            self.counters.refuse(RefusalReason::NotLeading);
            return;
        }
        let now = self.clock.now();
        if self.coordinator.knows_later_life(&word.message) {
            let refusal = encode::refusal(Some(&word.message.node), EARLIER_LIFE);
            self.step(Input::Node(word.message));
            self.roster.refuse(stream, &refusal);
            return;
        }
        if !self.roster.is_own(now, stream, &word, self.policy.keep_alive) {
            self.counters.refuse(RefusalReason::Claimed);
            let refusal = encode::refusal(Some(&word.message.node), CLAIMED);
            self.roster.refuse(stream, &refusal);
            return;
        }
        if !self.roster.note(now, stream, &mut word) {
            self.counters.refuse(RefusalReason::NoPlace);
            let refusal = encode::refusal(Some(&word.message.node), NO_PLACE);
            self.roster.refuse(stream, &refusal);
            return;
        }
        if let Some(standings) = word.standings.take() {
            self.examination.take(&word.message.node, standings);
            self.explain_hang(now);
        }
        let mut message = word.message;
        if let FromNodeBody::Register(registration) = &message.body {
            self.log_other_workers(&message.node, registration.workers);
        }
        if self.coordinator.accepts(&message).is_ok()
            && let Some(work) = lookout::observed(now, &mut message)
            && !self.detection.submit(work)
        {
            self.counters.unobserved.add(1);
        }
        self.step(Input::Node(message));
    }

    /// Says that an agent offers another number of workers than the job runs on a node.
    fn log_other_workers(&self, node: &NodeName, offered: WorkersPerNode) {
        let needed = self.job.workers.get();
        match offered.get().cmp(&needed) {
            Ordering::Less => warn!(
                node = %node, "{node} offers {} workers, and the job needs {needed} on each node: it gets no slot; \
                 start its agent with --workers {needed}", offered.get()
            ),
            Ordering::Greater => warn!(
                node = %node, "{node} offers {} workers, and the job runs {needed} on each node: the others do nothing; \
                 start the coordinator with --workers {}, if they should", offered.get(), offered.get()
            ),
            Ordering::Equal => {}
        }
    }

    /// Gives the machine one input, and carries out what it wants done.
    fn step(&mut self, input: Input) {
        let now = self.clock.now();
        let mut outputs = std::mem::take(&mut self.outputs);
        self.coordinator.step(now, input, &mut outputs);
        outputs.drain(..).for_each(|output| self.carry_out(now, output));
        self.outputs = outputs;
        self.log_waiting();
        self.log_behind(now);
        let (followed, detection) = (&mut self.followed, &self.detection);
        followed.follow(now, &self.coordinator, |work| detection.submit(work));
    }

    fn evaluate(&mut self) {
        if !self.followed.any() {
            return;
        }
        let metrics = self.incidents.any_open();
        let work = Work::Evaluate { now: self.clock.now(), metrics };
        if self.sampling || !self.detection.submit(work) {
            self.counters.late_evaluations.add(1);
            return;
        }
        self.sampling = true;
    }

    /// Sees a last time what is wrong, while detection still knows the epoch of an incident.
    fn evaluate_last(&mut self, now: Moment, incident: IncidentId) {
        if self.followed.any() {
            // Without room the incident stays as it was explained until now.
            let _ = self.detection.submit(Work::LastSample { now, incident });
        }
    }

    fn take_verdicts(&mut self, seen: LookoutState) {
        self.detection_counts = seen.counts;
        if seen.steps.is_some() {
            self.steps.clone_from(&seen.steps);
        }
        if let Some(record) = self.incidents.saw(&self.clock, &seen) {
            self.store.keep(record);
        }
        if seen.incident.is_some() {
            return;
        }
        self.sampling = false;
        self.examine(&seen);
        self.step(Input::Verdicts { epoch: seen.epoch, verdicts: seen.verdicts });
    }

    /// Has nodes take the stacks of their workers where these seem to hang: before anything is decided of it,
    /// which may end them.
    fn examine(&mut self, seen: &LookoutState) {
        let state = self.coordinator.state().filter(|state| state.epoch == seen.epoch);
        let Some(state) = state else { return };
        let (epoch, map) = (seen.epoch, &state.map);
        let wanted = self.examination.see(seen.at, (epoch, map), seen.standstill, &seen.verdicts);
        if let Some(reports) = wanted {
            self.step(Input::Examine { epoch, reports });
        }
    }

    /// Says why the job hung, once that is known.
    fn explain_hang(&mut self, now: Moment) {
        let Some(hang) = self.examination.explained(now) else { return };
        let epoch = hang.epoch;
        let mode = self.coordinator.state().map(|state| state.mode);
        let then = mode.map(left_alone).unwrap_or_default();
        warn!(epoch = %epoch, "epoch {epoch} hangs: {}{then}", hang.explanation.sentence);
        for missing in &hang.missing {
            warn!(epoch = %epoch, "epoch {epoch}: stacks are missing: {missing}");
        }
        if let Some(record) = self.incidents.hung(&hang) {
            self.store.keep(record);
        }
    }

    fn hear_store(&mut self, event: StoreEvent) {
        match event {
            StoreEvent::Gained(gained) => self.gain(*gained),
            StoreEvent::Lost => self.lose("leads no longer"),
            StoreEvent::Stored { decision, outcome } => {
                if let Some(stored) = self.storing.take_if(|one| one.number == decision) {
                    self.note_stored(&stored, outcome);
                }
                self.step(Input::Stored { decision, outcome });
            }
            StoreEvent::Leader(leader) => {
                if let Some(leader) = &leader {
                    info!("the coordinator at {leader} leads");
                }
                self.leader = leader;
            }
            StoreEvent::Standby(state) => {
                if let Err(other) = check_stored(&self.job, &state) {
                    self.fail_for(other);
                }
            }
            StoreEvent::Trouble(trouble) => self.note_trouble(&trouble),
            StoreEvent::Unkept(trouble) => {
                error!("{}", telltale_schema::text::with_causes(&trouble));
            }
            StoreEvent::Mended => self.forget_trouble(),
        }
    }

    /// Ends for good: what is stored is not the job that was asked for, and will not become it.
    fn fail_for(&mut self, other: OtherJob) {
        self.failed = Some(ServeError::OtherJob { store: self.store_name.clone(), source: other });
    }

    fn gain(&mut self, gained: Gained) {
        let Gained { term, stored, kept } = gained;
        info!(term = %term, "elected leader, term {term}");
        self.incidents.restore(&kept);
        self.decisions.restore(&kept);
        self.leading = Some((self.clock.now(), term));
        self.leader = None;
        self.trouble = None;
        self.sampling = false;
        self.step(Input::LeadershipGained { term, stored });
        self.report_standing();
    }

    fn lose(&mut self, why: &str) {
        if self.leading.take().is_some() {
            warn!("{why}");
        }
        self.storing = None;
        self.hook.end();
        self.step(Input::LeadershipLost);
        self.report_standing();
        self.roster.end(&not_leading(&self.standing()));
    }

    fn answer(&mut self, question: Question) {
        match question {
            Question::Gauges(reply) => drop(reply.send(self.gauges())),
            Question::Order(order, reply) => self.order(order, reply),
            Question::Status(reply) => self.reply(reply, Self::status),
            Question::Nodes(reply) => self.reply(reply, Self::nodes),
            Question::RankMap(reply) => self.reply(reply, Self::rank_map),
            Question::Steps(reply) => self.reply(reply, Self::steps),
            Question::Trace(from, reply) => self.reply(reply, |it| it.trace(from)),
            Question::Incidents(limit, reply) => self.reply(reply, |it| it.list_incidents(limit)),
            Question::Decisions(limit, reply) => self.reply(reply, |it| it.list_decisions(limit)),
            Question::Incident(id, reply) => {
                let found = self
                    .not_leading()
                    .map_or_else(|| self.incidents.get(&id).ok_or(MailboxError::NoIncident), Err);
                drop(reply.send(found));
            }
        }
    }

    /// Answers one who may have gone, if this coordinator leads.
    fn reply<T>(&self, reply: Reply<T>, answer: impl FnOnce(&Self) -> Option<T>) {
        let refused = || MailboxError::NotLeading(self.standing());
        drop(reply.send(answer(self).ok_or_else(refused)));
    }

    fn not_leading(&self) -> Option<MailboxError> {
        (!self.coordinator.leads()).then(|| MailboxError::NotLeading(self.standing()))
    }

    fn order(
        &mut self,
        order: OperatorOrder,
        reply: Reply<telltale_wire::cluster::message::OrderResponse>,
    ) {
        if let Some(refused) = self.not_leading() {
            drop(reply.send(Err(refused)));
            return;
        }
        self.requests += 1;
        let request = RequestId(self.requests);
        info!("an operator orders: {order}");
        self.waiting.insert(request, reply);
        self.step(Input::Operator { request, order });
    }

    /// Incidents that the store had no room for.
    pub(super) const fn dropped_incidents(&self) -> u64 {
        self.store.dropped_incidents()
    }

    fn prune(&mut self) {
        let known: BTreeSet<&NodeName> = self.coordinator.nodes().map(|(node, _)| node).collect();
        self.roster.prune(&known);
    }
}

/// Waits for something, but not before a moment.
async fn after<T>(moment: Instant, wait: impl Future<Output = T>) -> T {
    if Instant::now() < moment {
        sleep_until(moment).await;
    }
    wait.await
}

fn every(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
