//! From events to an incident, and from an incident to a decision.
//!
//! While the job runs, this is the only place that decides to stop it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::leadership::Leadership;
use super::{Output, StepContext};
use crate::epoch::Epoch;
use crate::incident::{Cause, FaultEvent, Hold, Incident, Repetition, Standing};
use crate::message::JobOutcome;
use crate::node::{Bar, NodeName};
use crate::policy::{Mode, Policy};
use crate::stored::{Phase, StoredState, Why};
use crate::verdict::{Verdict, VerdictKind};

/// How often an open incident is checked, at most.
const REVIEW_INTERVAL: Duration = Duration::from_millis(90);

/// The action to take for an incident.
struct IncidentAction {
    /// Nodes that are out of reach or do not start.
    lost: BTreeSet<NodeName>,
    /// Nodes that run and are suspected.
    suspected: BTreeSet<NodeName>,
    /// Nodes that run and whose health has failed.
    drained: BTreeSet<NodeName>,
    /// Why not more is done.
    hold: Option<Hold>,
    /// Whether the job must be restarted even if no node is evicted.
    restart: bool,
}

impl IncidentAction {
    /// All that lose their slots.
    fn evicted(&self) -> BTreeSet<NodeName> {
        self.lost.iter().chain(&self.suspected).chain(&self.drained).cloned().collect()
    }

    /// Whether the job could go on without this.
    fn stops_a_job_that_runs(&self) -> bool {
        !self.restart && self.lost.is_empty()
    }
}

/// What was last reported of the open incident.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReportedIncident {
    standing: Standing,
    events: usize,
    dropped_events: u64,
}

impl ReportedIncident {
    fn of(incident: &Incident) -> Self {
        let (standing, dropped_events) = (incident.standing.clone(), incident.dropped_events);
        Self { standing, events: incident.events.len(), dropped_events }
    }
}

impl Leadership {
    /// Takes an event into the open incident, or opens one.
    pub(super) fn event(&mut self, context: &mut StepContext<'_>, event: FaultEvent) {
        if self.incident.is_none() {
            let id = self.next_incident();
            context.metrics.incidents += 1;
            self.incident = Some(Incident::new(id, self.state.epoch, context.now));
            self.reviewed = None;
        }
        let incident = self.incident.as_mut().expect("it was opened above if there was none");
        let first = incident.events.is_empty();
        incident.add(context.now, event);
        if first {
            self.note_missed(context.policy.keep_alive);
            self.report_incident(context);
        }
    }

    /// Notes in the open incident whose failure may explain those of others: nodes that were heard last before, and
    /// are overdue or whose connections were closed at their ends.
    pub(super) fn note_missed(&mut self, keep_alive: Duration) {
        let Some(failed) = self.incident.as_ref().and_then(Incident::failed) else { return };
        let missed = self
            .roster
            .members
            .keys()
            .filter(|node| self.roster.is_missed_since(&self.state, node, failed));
        let mut missed: Vec<NodeName> = missed.cloned().collect();
        // Nodes that could not be reached broke what others waited for, and these may fail when they are back.
        let returned = self.returned.iter().filter(|(at, _)| failed < at.after(keep_alive * 2));
        missed.extend(returned.flat_map(|(_, nodes)| nodes.iter().cloned()));
        if let Some(incident) = &mut self.incident {
            incident.miss(missed);
        }
    }

    /// The same of one node that goes missing while an epoch is prepared, and the incident that this answers.
    pub(super) fn miss(&mut self, context: &mut StepContext<'_>, node: &NodeName) {
        let failed = self.answered.as_ref().and_then(|(incident, _)| incident.failed());
        let is_missed =
            failed.is_some_and(|failed| self.roster.is_missed_since(&self.state, node, failed));
        if let Some((incident, _)) = self.answered.as_mut().filter(|_| is_missed) {
            incident.miss([node.clone()]);
            self.withdraw_charge(context);
        }
        self.withdraw_repetition();
    }

    /// Tells how the open incident stands, and with which events.
    fn report_incident(&mut self, context: &mut StepContext<'_>) {
        let Some(incident) = &self.incident else { return };
        self.reported = Some(ReportedIncident::of(incident));
        context.outputs.push(Output::Incident(Box::new(incident.clone())));
    }

    /// Takes what detection says of one window.
    pub(super) fn suspect(
        &mut self,
        context: &mut StepContext<'_>,
        epoch: Epoch,
        verdicts: Vec<Verdict>,
    ) {
        if epoch != self.state.epoch || !matches!(self.state.phase, Phase::Committed(_)) {
            context.metrics.stale_epochs += 1;
            return;
        }
        // Crashes and silence are seen here at first hand.
        let seen_here = [VerdictKind::Crash, VerdictKind::NodeSilent];
        let former = std::mem::replace(&mut self.suspicions, verdicts);
        self.suspicions.retain(|verdict| !seen_here.contains(&verdict.kind));
        let news: Vec<Verdict> =
            self.suspicions.iter().filter(|one| !self.is_known(one, &former)).cloned().collect();
        for verdict in news {
            self.event(context, FaultEvent::Suspected(verdict));
        }
    }

    /// Takes a failure of the epoch that is over into its incident, which was answered before that was
    /// reported. The node killed first is the cause, and need not have been heard first.
    pub(super) fn event_late(&mut self, context: &mut StepContext<'_>, event: FaultEvent) {
        let Some((incident, news)) = &mut self.answered else { return };
        incident.add(context.now, event);
        *news = true;
        let cause = incident.root_cause().filter(|cause| cause.certain);
        let ordered = self.is_ordered;
        if let Some(cause) = cause.filter(|cause| !ordered && self.state.has_slot(&cause.node)) {
            self.charge = Some(cause);
        } else {
            self.withdraw_charge(context);
        }
        self.withdraw_repetition();
    }

    /// Withdraws that the failure which was answered repeats those before it, where later events explain it.
    fn withdraw_repetition(&mut self) {
        if self.answered.as_ref().is_some_and(|(incident, _)| incident.is_explained()) {
            self.forget_repetition();
        }
    }

    /// What was answered repeats nothing.
    pub(super) fn forget_repetition(&mut self) {
        self.repeats.forget();
        if let Some((incident, news)) = &mut self.answered {
            *news |= std::mem::take(&mut incident.repetition) != Repetition::default();
        }
    }

    /// The same of a node that has fallen silent since.
    pub(super) fn silent_late(&mut self, context: &mut StepContext<'_>, node: &NodeName) {
        if let Some((incident, news)) = &mut self.answered {
            incident.add(context.now, FaultEvent::Silent { node: node.clone() });
            *news = true;
            self.withdraw_charge(context);
        }
        self.withdraw_repetition();
    }

    /// Withdraws charges for merely likely causes, where later events do not
    /// say so. An agent that was restarted meanwhile is among no events.
    fn withdraw_charge(&mut self, context: &mut StepContext<'_>) {
        let Some((incident, news)) = &mut self.answered else { return };
        let cause = incident.root_cause();
        let is_withdrawn = |charge: &mut Cause| {
            let is_cause = cause.as_ref().is_some_and(|cause| cause.node == charge.node);
            !charge.certain && !is_cause && !self.restarted.contains(&charge.node)
        };
        if self.charge.take_if(is_withdrawn).is_some() {
            *news = false;
            context.outputs.push(Output::Incident(Box::new(incident.clone())));
        }
    }

    /// Whether the open incident has had a verdict: it is among its events, or was said at the `former`
    /// evaluation, and there was no place for it.
    fn is_known(&self, verdict: &Verdict, former: &[Verdict]) -> bool {
        let Some(incident) = &self.incident else { return false };
        let events = incident.events.iter().filter_map(|event| match event {
            FaultEvent::Suspected(known) => Some(known),
            _ => None,
        });
        let mut known = events.chain(former);
        known.any(|known| known.kind == verdict.kind && known.suspects == verdict.suspects)
    }

    /// While an epoch is committed: answers the incident once its events have settled, and sees when
    /// the job is done.
    pub(super) fn watch(&mut self, context: &mut StepContext<'_>) -> Option<(Why, StoredState)> {
        if self.roster.finished.len() == self.state.map.holder_count() {
            return Some(self.over(JobOutcome::Finished));
        }
        if let Some(decided) = self.release_unheard(context) {
            return Some(decided);
        }
        if let Some(decided) = self.answer_incident(context) {
            return Some(decided);
        }
        self.planner(context).drain_when_possible()
    }

    fn answer_incident(&mut self, context: &mut StepContext<'_>) -> Option<(Why, StoredState)> {
        let incident = self.incident.as_ref()?;
        let nodes = self.state.map.holder_count().saturating_sub(self.roster.finished.len());
        if context.now < incident.due(context.policy.coalescing, context.policy.settling, nodes) {
            return None;
        }
        // One that is held is checked again ten times a second, not with each report.
        if self.reviewed.is_some_and(|at| context.now < at.after(REVIEW_INTERVAL)) {
            return None;
        }
        self.reviewed = Some(context.now);
        if self.may_be_explained(context) {
            self.wait_with_incident(context, Some(Hold::Grace));
            return None;
        }
        let answer = self.answer(context);
        let evicted = answer.evicted();
        let something = answer.restart || !evicted.is_empty();
        if something && self.state.mode == Mode::Observe {
            self.wait_with_incident(context, Some(Hold::Mode));
            return None;
        }
        if !something {
            self.wait_with_incident(context, answer.hold);
            return None;
        }
        let spent = self.budgets.restarts(context);
        if answer.stops_a_job_that_runs()
            && let Some(hold) = self.spares_the_job(context, &evicted, spent)
        {
            self.wait_with_incident(context, Some(hold));
            return None;
        }
        self.note_missed(context.policy.keep_alive);
        let incident = self.incident.as_ref()?;
        let repeats = self.repeats.after(incident, context.policy.budget_window);
        let repetition = if self.departs() { Repetition::default() } else { repeats.repetition() };
        let Repetition { nodes: repeated_on, failed_starts } = repetition;
        if spent >= context.policy.restart_budget
            || failed_starts > context.policy.max_failed_starts
        {
            return Some(self.over(JobOutcome::GivenUp));
        }
        let why =
            Why::Incident { incident: incident.id, evicted: evicted.iter().cloned().collect() };
        let next = self.without_evicted(context, &answer, &repeated_on);
        Some((why, next))
    }

    /// The next epoch without those who are evicted, with spares in their places.
    fn without_evicted(
        &mut self,
        context: &StepContext<'_>,
        answer: &IncidentAction,
        repeated_on: &BTreeSet<NodeName>,
    ) -> StoredState {
        let mut next = self.state.clone().next_epoch(false);
        // Who had finished and said goodbye is needed again and is not there, which is no node's fault.
        for node in self.roster.leaving.keys() {
            next.map.vacate(node);
        }
        for node in &answer.evicted() {
            next.map.vacate(node);
            if answer.suspected.contains(node) {
                next.barred.entry(node.clone()).or_insert(Bar::Suspected);
            } else if answer.drained.contains(node) {
                next.barred.entry(node.clone()).or_insert(Bar::Draining);
            } else {
                self.budgets.blame(context, &mut next, node);
            }
        }
        // Not the nodes are at fault.
        for node in repeated_on {
            next.failures.remove(node);
            if next.barred.get(node) == Some(&Bar::Quarantined) {
                next.barred.remove(node);
            }
        }
        self.planner(context).fill(&mut next);
        next
    }

    /// Why a job that still runs is not restarted without these nodes now: no restart is left, which would end it, or
    /// the command that runs before has not ended.
    fn spares_the_job(
        &mut self,
        context: &mut StepContext<'_>,
        evicted: &BTreeSet<NodeName>,
        spent: u32,
    ) -> Option<Hold> {
        let incident = self.incident.as_ref()?.id;
        if spent >= context.policy.restart_budget {
            return Some(Hold::RestartBudget);
        }
        (!self.before_drain.is_over(context, incident, evicted)).then_some(Hold::BeforeDrain)
    }

    /// Whether a node not yet heard by this leader may still say why the others failed: that its agent was
    /// restarted by plan.
    fn may_be_explained(&self, context: &StepContext<'_>) -> bool {
        let early = context.now < self.since.after(context.policy.keep_alive);
        let is_open = |incident: &Incident| incident.root_cause().is_none_or(|one| !one.certain);
        early && !self.roster.unheard.is_empty() && self.incident.as_ref().is_some_and(is_open)
    }

    /// Of the nodes that ought to be taken out of their slots, those that may be now: see
    /// [`Budgets::allowed`](super::evictions::Budgets::allowed).
    pub(super) fn allowed(
        &mut self,
        context: &StepContext<'_>,
        wanted: &BTreeSet<NodeName>,
        already: usize,
    ) -> (BTreeSet<NodeName>, Option<Hold>) {
        let doubt = self.doubt(context);
        self.budgets.allowed(context, wanted, already, doubt)
    }

    /// Whether a new leader has yet to hear enough: the keep-alive has not passed since it began, or
    /// fewer nodes have registered than half of those with a slot. Spares count, so that a job of one
    /// node does not wait for that node.
    fn in_grace(&self, context: &StepContext<'_>) -> bool {
        let early = context.now < self.since.after(context.policy.keep_alive);
        let registered = self.roster.members.len().saturating_sub(self.roster.unheard.len());
        (early && !self.roster.unheard.is_empty()) || registered * 2 < self.state.map.holder_count()
    }

    /// Why no node may be judged now: it is too early, or too many nodes are out of reach.
    pub(super) fn doubt(&self, context: &StepContext<'_>) -> Option<Hold> {
        let grace = self.in_grace(context).then_some(Hold::Grace);
        grace.or_else(|| self.mass_silence.is_recent(context.now).then_some(Hold::MassSilence))
    }

    /// The state without those who have never spoken to this leader, and are silent. They may have said goodbye to
    /// the leader before it, or to none: that they are gone says nothing against them.
    pub(super) fn release_unheard(&self, context: &StepContext<'_>) -> Option<(Why, StoredState)> {
        let is_unheard = |node: &&NodeName| {
            self.roster.unheard.contains(*node)
                && self.state.has_slot(node)
                && !self.roster.finished.contains(*node)
        };
        let nodes: Vec<NodeName> = self.roster.silent.iter().filter(is_unheard).cloned().collect();
        if nodes.is_empty() || self.state.mode == Mode::Observe || self.doubt(context).is_some() {
            return None;
        }
        let next = self.planner(context).without(self.state.clone(), &nodes);
        Some((Why::Absent { nodes }, next))
    }

    /// What should be done about the open incident now.
    fn answer(&mut self, context: &StepContext<'_>) -> IncidentAction {
        let incident = self.incident.as_ref().expect("asked only while there is an incident");
        let mut restart = incident.ends_the_epoch();
        let not_started = incident.events.iter().filter_map(|event| match event {
            FaultEvent::NotStarted { node } => Some(node),
            _ => None,
        });
        let unfinished = self.roster.silent.difference(&self.roster.finished);
        let mut lost: BTreeSet<NodeName> = unfinished.chain(not_started).cloned().collect();
        if restart {
            // Those who have finished and gone are needed again.
            lost.extend(self.roster.silent.iter().cloned());
        }
        lost.retain(|node| self.state.has_slot(node) && !self.roster.leaving.contains_key(node));
        let (lost, mut hold) = self.allowed(context, &lost, 0);
        let (drained, undrained) = self.drained(context, &lost);
        let taken = lost.union(&drained).cloned().collect();
        let (suspected, unsure) = self.suspected(context, &taken);
        hold = hold.or(undrained).or(unsure);
        // A job that hangs has nothing to lose by a restart, even in the same places.
        let act = self.state.mode == Mode::Act;
        let mut hangs = self.suspicions.iter().filter(|verdict| verdict.kind.is_hang());
        restart |=
            act && self.doubt(context).is_none() && hangs.any(|one| lasts(one, context.policy, 1));
        IncidentAction { lost, suspected, drained, hold, restart }
    }

    /// Nodes to drain since their health has failed, beside those that are `lost`: as many as there are spares whose
    /// own health has not.
    fn drained(
        &mut self,
        context: &StepContext<'_>,
        lost: &BTreeSet<NodeName>,
    ) -> (BTreeSet<NodeName>, Option<Hold>) {
        let noticed = self.roster.unhealthy.noticed_in(self.state.epoch);
        let noticed = noticed.filter(|node| self.roster.is_at_work(&self.state, node));
        let noticed: BTreeSet<NodeName> =
            noticed.filter(|node| !lost.contains(*node)).cloned().collect();
        if noticed.is_empty() {
            return (noticed, None);
        }
        if self.state.mode != Mode::Act {
            return (BTreeSet::new(), Some(Hold::Mode));
        }
        self.replaceable(context, noticed, lost)
    }

    /// Those of the nodes that run which may be taken out now, beside those that are `lost` and need spares more.
    fn replaceable(
        &mut self,
        context: &StepContext<'_>,
        nodes: BTreeSet<NodeName>,
        lost: &BTreeSet<NodeName>,
    ) -> (BTreeSet<NodeName>, Option<Hold>) {
        let spares = self.roster.healthy_spares().saturating_sub(lost.len());
        let replaceable: BTreeSet<NodeName> = nodes.into_iter().take(spares).collect();
        if replaceable.is_empty() {
            return (replaceable, Some(Hold::NoSpare));
        }
        self.allowed(context, &replaceable, lost.len())
    }

    /// Nodes to replace on suspicion: one alone is named, often enough in a row, and a
    /// spare is there.
    fn suspected(
        &mut self,
        context: &StepContext<'_>,
        lost: &BTreeSet<NodeName>,
    ) -> (BTreeSet<NodeName>, Option<Hold>) {
        if self.suspicions.is_empty() {
            return (BTreeSet::new(), None);
        }
        if self.state.mode != Mode::Act {
            return (BTreeSet::new(), Some(Hold::Mode));
        }
        let is_any_sure = self
            .suspicions
            .iter()
            .any(|verdict| verdict.suspects.node().is_some() && lasts(verdict, context.policy, 1));
        // Who has been slow for half as long is replaced by the same restart, and does not cost another.
        let part = if is_any_sure { COMPANIONS_PART } else { 1 };
        let sure = self.suspicions.iter().filter(|verdict| lasts(verdict, context.policy, part));
        let named = sure.filter_map(|verdict| verdict.suspects.node());
        let named: BTreeSet<NodeName> = named
            .filter(|node| self.state.has_slot(node) && !lost.contains(*node))
            .cloned()
            .collect();
        if named.is_empty() {
            return (named, Some(Hold::Unsure));
        }
        self.replaceable(context, named, lost)
    }

    /// Leaves the incident open for a reason, or closes it when nothing of it is left. It is reported when
    /// it stands differently, and when there are events not yet reported.
    fn wait_with_incident(&mut self, context: &mut StepContext<'_>, hold: Option<Hold>) {
        let Some(incident) = &mut self.incident else { return };
        let standing = hold.map_or(Standing::Passed, Standing::Held);
        let passed = standing == Standing::Passed;
        incident.standing = standing;
        if self.reported != Some(ReportedIncident::of(incident)) {
            self.report_incident(context);
        }
        if let Some(incident) = self.incident.take_if(|_| passed) {
            let silent: BTreeSet<NodeName> = incident
                .events
                .iter()
                .filter_map(|event| match event {
                    FaultEvent::Silent { node } => Some(node.clone()),
                    _ => None,
                })
                .collect();
            if !silent.is_empty() {
                self.returned = Some((context.now, silent));
            }
        }
    }

    fn over(&self, outcome: JobOutcome) -> (Why, StoredState) {
        let state = StoredState { phase: Phase::Over(outcome), ..self.state.clone() };
        (Why::Over(outcome), state)
    }
}

/// Nodes that are slow for this part of the time after which one is replaced are replaced with it.
const COMPANIONS_PART: u32 = 2;

/// Whether a suspicion has lasted long enough to act on: a hang costs all of the job's time, so it
/// is waited for less than for what is slow. Of what is slow, a `part` of that time is enough.
const fn lasts(suspicion: &Verdict, policy: &Policy, part: u32) -> bool {
    let least = match suspicion.kind.is_hang() {
        true => policy.hang_windows,
        false => policy.continuity_windows.div_ceil(part),
    };
    suspicion.windows >= least
}
