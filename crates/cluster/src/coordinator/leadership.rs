//! What a leading coordinator holds, and the way of a decision through the store.
//!
//! It forgets everything when it leads no longer; the next leader starts from the store.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::behind::{Ahead, Behind, Stored};
use super::evictions::{Budgets, counts_as_restart, resumes_after_giving_up};
use super::health::BeforeDrain;
use super::incidents::ReportedIncident;
use super::mass_silence::{MassSilence, SilenceEvidence};
use super::operator::{MAX_WAITING_ORDERS, OperatorOrder, OrderRefused, Planner, RequestId};
use super::repeats::Repeats;
use super::roster::{NodeRecord, Roster};
use super::round::Round;
use super::{Input, Output, StepContext, StepDown};
use crate::epoch::{Epoch, Revision, Term};
use crate::incident::{Cause, Hold, Incident, IncidentId, Standing};
use crate::message::{Order, ToNode};
use crate::node::{NodeName, NodeState};
use crate::policy::Policy;
use crate::rank::MAX_SLOTS;
use crate::stored::{Decision, DecisionNumber, Phase, StoreOutcome, StoredState, Why};
use crate::time::Moment;
use crate::verdict::Verdict;

/// Nodes that may be registered at once: one active and one spare for each slot.
pub const MAX_NODES: usize = 2 * MAX_SLOTS as usize;

/// A leading coordinator.
#[derive(Debug)]
pub(super) struct Leadership {
    pub(super) term: Term,
    pub(super) since: Moment,
    pub(super) state: StoredState,
    revision: Revision,
    /// The decision that is on its way to the store, and the operator who waits for it.
    pending: Option<(Decision, Option<RequestId>)>,
    decisions: u64,
    /// When the store may be asked again after a failure. With a decision under way, it must be given
    /// that one again then.
    store_rests_until: Option<Moment>,
    sequence: u64,
    pub(super) roster: Roster,
    pub(super) round: Round,
    pub(super) incident: Option<Incident>,
    /// The incident for which the present epoch is being prepared, and whether it is known better since
    /// it received.
    pub(super) answered: Option<(Incident, bool)>,
    pub(super) incidents: u32,
    /// What was last reported of the open incident.
    pub(super) reported: Option<ReportedIncident>,
    /// When it was last considered what to do about the open incident.
    pub(super) reviewed: Option<Moment>,
    /// What detection said last, about this epoch.
    pub(super) suspicions: Vec<Verdict>,
    /// What the last failure is attributed to, until the next epoch is committed.
    pub(super) charge: Option<Cause>,
    /// Nodes of the last incident that passed whose silence had opened it, and when that was.
    pub(super) returned: Option<(Moment, BTreeSet<NodeName>)>,
    /// Whether an operator ordered the present epoch, so that no node is charged for it.
    pub(super) is_ordered: bool,
    /// Nodes whose agents were restarted around that failure, and not by plan.
    pub(super) restarted: BTreeSet<NodeName>,
    /// Why the epoch that is being prepared is not committed though no node is stopping workers any more.
    pub(super) waits_for: Option<Hold>,
    pub(super) orders: VecDeque<(RequestId, OperatorOrder)>,
    pub(super) mass_silence: MassSilence,
    pub(super) budgets: Budgets,
    pub(super) repeats: Repeats,
    /// The command that runs before nodes are drained.
    pub(super) before_drain: BeforeDrain,
    /// Whether another job than the one asked for is stored, and the first decision is to end it.
    pub(super) ends_other_job: bool,
    /// Agents that know more than is stored.
    pub(super) ahead: Ahead,
}

impl Leadership {
    /// Takes over from the store. Nodes with a slot count as heard just now: silence is measured
    /// from here, so that no node is blamed for what the last leader missed.
    pub(super) fn new(
        now: Moment,
        policy: &Policy,
        term: Term,
        state: StoredState,
        revision: Revision,
    ) -> Self {
        let mut leadership = Self {
            term,
            since: now,
            revision,
            pending: None,
            decisions: 0,
            store_rests_until: None,
            sequence: 0,
            roster: Roster::default(),
            round: Round::default(),
            incident: None,
            answered: None,
            incidents: 0,
            reported: None,
            reviewed: None,
            suspicions: Vec::new(),
            charge: None,
            returned: None,
            is_ordered: false,
            restarted: BTreeSet::new(),
            waits_for: None,
            orders: VecDeque::new(),
            mass_silence: MassSilence::default(),
            budgets: Budgets::restored(now, &state),
            repeats: Repeats::default(),
            before_drain: BeforeDrain::default(),
            ends_other_job: false,
            ahead: Ahead::of(&state),
            state,
        };
        leadership.roster.expect_all(now, policy, &leadership.state);
        leadership.round = Round::of(&leadership.state, now);
        leadership
    }

    pub(super) fn step(
        &mut self,
        context: &mut StepContext<'_>,
        input: Input,
    ) -> Result<(), StepDown> {
        match input {
            Input::Node(message) => self.hear(context, message),
            Input::Closed { node } => {
                self.closed(context, &node);
                self.ahead.closed(context, &node);
            }
            Input::Verdicts { epoch, verdicts } => self.suspect(context, epoch, verdicts),
            Input::Examine { epoch, reports } => self.examine(context, epoch, reports),
            Input::Operator { request, order } => self.order(context, request, order),
            Input::Stored { decision, outcome } => self.stored(context, decision, outcome)?,
            Input::BeforeDrainEnded(outcome) => {
                let (open, answered) = (self.incident.as_mut(), self.answered.as_mut());
                self.before_drain.ended(context.now, outcome, open, answered);
            }
            Input::Tick => {
                self.check_silence(context);
                for event in self.roster.notice_health(context, &self.state) {
                    self.event(context, event);
                }
                let seen = SilenceEvidence {
                    roster: &self.roster,
                    state: &self.state,
                    incident: incident_of(&self.incident, &self.answered),
                };
                self.mass_silence.watch(context, seen);
                self.ahead.forget(context);
                if !self.ahead.blocks() {
                    self.repeat_orders(context);
                }
            }
            Input::LeadershipGained { .. } | Input::LeadershipLost => {
                unreachable!("the coordinator takes these before it asks who leads")
            }
        }
        self.decide(context);
        Ok(())
    }

    pub(super) const fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) const fn state(&self) -> &StoredState {
        &self.state
    }

    pub(super) const fn incident(&self) -> Option<&Incident> {
        self.incident.as_ref()
    }

    pub(super) fn waits_for(&self) -> Option<Hold> {
        let held = self.incident.as_ref().map(|incident| &incident.standing);
        let for_a_crowd = held == Some(&Standing::Held(Hold::MassSilence));
        self.waits_for.or_else(|| for_a_crowd.then_some(Hold::MassSilence))
    }

    pub(super) fn runs(&self) -> bool {
        matches!(self.state.phase, Phase::Committed(_)) && self.round.is_over()
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (&NodeName, NodeState)> {
        // Barred nodes that have gone away are listed too.
        let gone = self.state.barred.iter();
        let gone = gone.filter(|(node, _)| !self.roster.members.contains_key(*node));
        let gone = gone.map(|(node, bar)| (node, NodeState::Barred(*bar)));
        let mut all: Vec<_> = self
            .roster
            .members
            .iter()
            .map(|(node, member)| (node, self.node_state(node, member)))
            .collect();
        all.extend(gone);
        all.sort_by(|left, right| left.0.cmp(right.0));
        all.into_iter()
    }

    fn node_state(&self, node: &NodeName, member: &NodeRecord) -> NodeState {
        match self.state.barred.get(node) {
            Some(bar) => NodeState::Barred(*bar),
            None if self.has_ended(node, member) => NodeState::Ended,
            None if member.silent => NodeState::Silent,
            None if self.state.has_slot(node) => NodeState::Active,
            None => NodeState::Standby,
        }
    }

    /// Whether a node's agent has ended as it was asked to. It says so before its workers have; once the job is over
    /// there are none.
    fn has_ended(&self, node: &NodeName, member: &NodeRecord) -> bool {
        let is_over = matches!(self.state.phase, Phase::Over(_));
        (member.silent || is_over) && self.roster.leaving.contains_key(node)
    }

    /// Whether the decision that is on its way to the store gives a node a slot.
    pub(super) fn is_given_slot(&self, node: &NodeName) -> bool {
        let pending = self.pending.as_ref();
        pending.is_some_and(|(decision, _)| decision.state.map.slot_of(node).is_some())
    }

    /// Sends an order about the current epoch.
    pub(super) fn send(&mut self, context: &mut StepContext<'_>, node: &NodeName, order: Order) {
        self.sequence += 1;
        let (term, sequence, epoch) = (self.term, self.sequence, self.state.epoch);
        let message = ToNode { term, sequence, epoch, job: self.state.identity, order };
        context.outputs.push(Output::Send { node: node.clone(), message });
    }

    /// Has the nodes of the epoch that runs examine their workers. An order that is lost is not sent again: what
    /// hangs is looked at when it is found.
    fn examine(&mut self, context: &mut StepContext<'_>, epoch: Epoch, reports: bool) {
        if epoch != self.state.epoch || !matches!(self.state.phase, Phase::Committed(_)) {
            return;
        }
        let nodes: Vec<NodeName> = self.state.map.holders().map(|(_, node)| node.clone()).collect();
        for node in nodes {
            self.send(context, &node, Order::Examine { reports });
        }
    }

    /// A number for a new incident.
    pub(super) const fn next_incident(&mut self) -> IncidentId {
        self.incidents += 1;
        IncidentId { term: self.term, number: self.incidents }
    }

    /// Answers the operators who still wait, when it leads no longer.
    pub(super) fn abandon(self, outputs: &mut Vec<Output>) {
        let pending = self.pending.into_iter().filter_map(|(_, request)| request);
        let waiting = self.orders.into_iter().map(|(request, _)| request);
        for request in pending.chain(waiting) {
            outputs.push(Output::Answer { request, answer: Err(OrderRefused::NotLeading) });
        }
    }

    /// What the next state is made from.
    pub(super) fn planner<'a>(&'a self, context: &StepContext<'a>) -> Planner<'a> {
        Planner { job: context.job, state: &self.state, roster: &self.roster }
    }

    /// Whether the store is behind its agents, so that nothing may be decided.
    pub(super) fn is_blocked(&self) -> bool {
        self.ahead.blocks()
    }

    /// See [`super::Coordinator::behind`].
    pub(super) fn behind(&self) -> Option<Behind> {
        self.ahead.behind(self.stored_state())
    }

    pub(super) const fn stored_state(&self) -> Stored<'_> {
        Stored { state: &self.state, revision: self.revision }
    }

    /// How much longer the crowd that is silent is held, see [`MassSilence::left`].
    pub(super) fn mass_silence_left(&self, now: Moment, policy: &Policy) -> Option<Duration> {
        let incident = incident_of(&self.incident, &self.answered);
        let seen = SilenceEvidence { roster: &self.roster, state: &self.state, incident };
        self.mass_silence.left(seen, now, policy)
    }

    /// Takes an order, to be carried out as soon as a decision may be made.
    pub(super) fn order(
        &mut self,
        context: &mut StepContext<'_>,
        request: RequestId,
        order: OperatorOrder,
    ) {
        if self.orders.len() < MAX_WAITING_ORDERS {
            self.orders.push_back((request, order));
        } else {
            context.outputs.push(Output::Answer { request, answer: Err(OrderRefused::TooMany) });
        }
    }

    /// The state without those who leave, where the coordinator may act. Who has finished leaves nothing
    /// to be done, and keeps its slot.
    pub(super) fn release_leaving(&self, context: &StepContext<'_>) -> Option<(Why, StoredState)> {
        let released = |node: &&NodeName| {
            self.state.has_slot(node) && self.roster.is_released(&self.state, node)
        };
        let nodes: Vec<NodeName> = self.roster.leaving.keys().filter(released).cloned().collect();
        if nodes.is_empty() {
            return None;
        }
        let next = self.planner(context).without(self.state.clone(), &nodes);
        Some((Why::Left { nodes }, next))
    }

    /// Whether a decision may be made now. One that may or may not be stored is given to
    /// the store again first.
    fn may_decide(&mut self, context: &mut StepContext<'_>) -> bool {
        if self.store_rests_until.is_some_and(|until| context.now < until) {
            return false;
        }
        let Some((decision, _)) = &self.pending else { return true };
        if self.store_rests_until.take().is_some() {
            context.outputs.push(Output::Store(Box::new(decision.clone())));
        }
        false
    }

    /// Makes one decision, if there is one to make: the oldest order first, then what the phase asks.
    fn decide(&mut self, context: &mut StepContext<'_>) {
        if !self.may_decide(context) {
            return;
        }
        if self.ahead.blocks() {
            for (request, _) in self.orders.drain(..) {
                let answer = Err(OrderRefused::Behind);
                context.outputs.push(Output::Answer { request, answer });
            }
            return;
        }
        if self.ends_other_job {
            self.ahead.begins_here = true;
            self.ahead.ended_jobs.extend(self.state.identity);
            let fresh = self.state.fresh(context.job);
            self.propose(context, Why::Reset, fresh, None);
            return;
        }
        while let Some((request, order)) = self.orders.pop_front() {
            match self.planner(context).carry_out(&order) {
                Ok(Some(state)) => {
                    self.propose(context, Why::Ordered, state, Some(request));
                    return;
                }
                Ok(None) => context.outputs.push(Output::Answer { request, answer: Ok(()) }),
                Err(refused) => {
                    context.outputs.push(Output::Answer { request, answer: Err(refused) });
                }
            }
        }
        let decided = self.release_leaving(context).or_else(|| match self.state.phase {
            Phase::Forming => self.form(context),
            Phase::Preparing => self.prepare_on(context),
            Phase::Committed(_) => self.watch(context),
            Phase::Over(_) => None,
        });
        if let Some((why, state)) = decided {
            self.propose(context, why, state, None);
        }
    }

    fn propose(
        &mut self,
        context: &mut StepContext<'_>,
        why: Why,
        mut state: StoredState,
        request: Option<RequestId>,
    ) {
        let evicted = u32::try_from(why.evicted().len()).unwrap_or(u32::MAX);
        let restarts = u32::from(counts_as_restart(&why, &self.state, &state));
        state.evictions = self.budgets.evictions(context).saturating_add(evicted);
        let spent = self.budgets.restarts(context).saturating_add(restarts);
        state.counted_restarts =
            if resumes_after_giving_up(&self.state, &state) { 0 } else { spent };
        // Failures that count no more need not be kept.
        let mut failures = std::mem::take(&mut state.failures);
        failures.retain(|node, count| {
            let counted = self.budgets.failures_of(context, node);
            let news = *count > self.state.failures.get(node).copied().unwrap_or(0);
            *count = if news { *count } else { counted };
            *count > 0
        });
        state.failures = failures;
        state.identity = state.identity.or(context.identity);
        self.decisions += 1;
        let number = DecisionNumber(self.decisions);
        let (term, expected) = (self.term, self.revision);
        let decision = Decision { term, number, expected, why, state };
        self.store_rests_until = None;
        context.outputs.push(Output::Store(Box::new(decision.clone())));
        self.pending = Some((decision, request));
    }

    fn stored(
        &mut self,
        context: &mut StepContext<'_>,
        number: DecisionNumber,
        outcome: StoreOutcome,
    ) -> Result<(), StepDown> {
        let Some((decision, request)) = self.pending.take_if(|(one, _)| one.number == number)
        else {
            return Ok(());
        };
        match outcome {
            StoreOutcome::Stored(revision) => {
                self.revision = revision;
                self.store_rests_until = None;
                context.metrics.decisions += 1;
                self.adopt(context, decision);
                if let Some(request) = request {
                    context.outputs.push(Output::Answer { request, answer: Ok(()) });
                }
                Ok(())
            }
            StoreOutcome::Failed => {
                // It is decided afresh after a rest: by then it may not be right any more.
                context.metrics.failed_decisions += 1;
                self.store_rests_until = Some(context.now.after(context.policy.store_interval));
                if let Some(request) = request {
                    let answer = Err(OrderRefused::NotStored);
                    context.outputs.push(Output::Answer { request, answer });
                }
                Ok(())
            }
            StoreOutcome::Unknown => {
                self.pending = Some((decision, request));
                self.store_rests_until = Some(context.now.after(context.policy.store_interval));
                Ok(())
            }
            StoreOutcome::Conflict => {
                // Kept for the operator who waits for it.
                self.pending = Some((decision, request));
                Err(StepDown::Conflict)
            }
        }
    }
}

/// The incident that is open, or was answered last.
fn incident_of<'a>(
    open: &'a Option<Incident>,
    answered: &'a Option<(Incident, bool)>,
) -> Option<&'a Incident> {
    open.as_ref().or(answered.as_ref().map(|(incident, _)| incident))
}
