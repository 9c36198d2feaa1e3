//! From a vacant map to an epoch that everybody is ready for: forming, filling, shrinking, committing; and the
//! orders of each round, which are sent again when no answer comes.
//!
//! Nothing runs while an epoch is prepared, so slots may still change hands in it. Once it is
//! committed they may not: a node that is not heard may be running its ranks.

use std::collections::BTreeSet;

use super::leadership::Leadership;
use super::round::{NodeWait, Round};
use super::{Output, Stale, StepContext};
use crate::incident::{Cause, FaultEvent, Hold, Incident, Standing};
use crate::message::{
    Acknowledgement, AgentActivity, Assignment, JobOutcome, Master, Order, OrderStep, Ports,
};
use crate::node::{Bar, NodeName};
use crate::policy::{NoSpare, Policy};
use crate::rank::Slot;
use crate::stored::{Decision, Phase, StoredState, Why};

impl Leadership {
    /// Before the first epoch: begins it once every slot can be filled.
    pub(super) fn form(&mut self, context: &StepContext<'_>) -> Option<(Why, StoredState)> {
        let needed = usize::try_from(self.state.map.slot_count()).unwrap_or(usize::MAX);
        let is_short = self.roster.spares.len() < needed;
        if is_short && !self.starts_short(context) {
            return None;
        }
        let mut next = self.state.clone();
        let last = self.ahead.ended.map_or(next.epoch, |ended| ended.max(next.epoch));
        next.epoch = last.next();
        next.phase = Phase::Preparing;
        next.planned = true;
        self.planner(context).fill(&mut next);
        if is_short {
            next.map = next.map.compacted();
        }
        Some((Why::Formed, next))
    }

    /// Whether the first epoch begins with the nodes that are there, since no more have come for long enough.
    fn starts_short(&mut self, context: &StepContext<'_>) -> bool {
        let NoSpare::Shrink { least_slots, timeout } = context.policy.no_spare else {
            return false;
        };
        let least = usize::try_from(least_slots).unwrap_or(usize::MAX);
        if !context.policy.starts_short || self.roster.spares.len() < least {
            self.round.vacant_since = None;
            return false;
        }
        let since = *self.round.vacant_since.get_or_insert(context.now);
        context.now >= since.after(timeout)
    }

    /// While an epoch is prepared: replaces who does not answer, fills or drops vacant slots, and
    /// commits when everybody is ready.
    pub(super) fn prepare_on(&mut self, context: &StepContext<'_>) -> Option<(Why, StoredState)> {
        self.waits_for = None;
        if let Some(decided) = self.pass_over_absent(context) {
            return Some(decided);
        }
        if let Some(decided) = self.replace_unanswering(context) {
            return Some(decided);
        }
        if !self.state.map.is_complete() {
            return self.fill_or_shrink(context);
        }
        if self.round.is_over() { self.commit(context) } else { None }
    }

    /// Gives the slots of those who are not there to spares that are or will come, where nothing shows that anything is
    /// wrong with them. In an epoch that was planned, their agents may only not be started yet. And this leader may
    /// never have heard them: they may have said goodbye to the one before it, or to none.
    fn pass_over_absent(&mut self, context: &StepContext<'_>) -> Option<(Why, StoredState)> {
        let failed = self.round.failed().iter();
        let nodes: Vec<NodeName> = failed.filter(|node| self.is_absent(node)).cloned().collect();
        if nodes.is_empty() {
            return None;
        }
        self.waits_for = self.doubt(context);
        if self.waits_for.is_some() {
            return None;
        }
        let next = self.planner(context).without(self.state.clone(), &nodes);
        Some((Why::Absent { nodes }, next))
    }

    fn is_absent(&self, node: &NodeName) -> bool {
        self.roster.unheard.contains(node) || (self.state.planned && !self.roster.is_there(node))
    }

    fn replace_unanswering(&mut self, context: &StepContext<'_>) -> Option<(Why, StoredState)> {
        let failed = self.round.failed().iter().filter(|node| !self.is_absent(node));
        let failed: BTreeSet<NodeName> = failed.cloned().collect();
        if failed.is_empty() {
            return None;
        }
        let (evicted, hold) = self.allowed(context, &failed, 0);
        self.waits_for = self.waits_for.or(hold);
        if evicted.is_empty() {
            return None;
        }
        let mut next = self.state.clone();
        for node in &evicted {
            next.map.vacate(node);
            self.budgets.blame(context, &mut next, node);
        }
        self.planner(context).fill(&mut next);
        Some((Why::Unanswered { evicted: evicted.into_iter().collect() }, next))
    }

    fn fill_or_shrink(&mut self, context: &StepContext<'_>) -> Option<(Why, StoredState)> {
        // Reports come all the time: nothing is copied as long as nothing can be done.
        if !self.roster.spares.is_empty() {
            let mut next = self.state.clone();
            self.planner(context).fill(&mut next);
            if next.map.digest() != self.state.map.digest() {
                return Some((Why::Filled, next));
            }
        }
        self.waits_for = self.waits_for.or(Some(Hold::NoSpare));
        let since = *self.round.vacant_since.get_or_insert(context.now);
        let NoSpare::Shrink { least_slots, timeout } = context.policy.no_spare else { return None };
        let least = usize::try_from(least_slots).unwrap_or(usize::MAX);
        if self.state.map.holder_count() < least || context.now < since.after(timeout) {
            return None;
        }
        let next = StoredState { map: self.state.map.compacted(), ..self.state.clone() };
        Some((Why::Shrunk, next))
    }

    fn commit(&mut self, context: &StepContext<'_>) -> Option<(Why, StoredState)> {
        let mut next = self.state.clone();
        // It stays charged until the decision is stored: until then it may have to be made afresh.
        if let Some(Cause { node, .. }) = self.charge.clone() {
            assert!(self.state.has_slot(&node), "a node that loses its slot is not charged again");
            self.budgets.blame(context, &mut next, &node);
            let wanted = BTreeSet::from([node.clone()]);
            let replaceable = next.barred.contains_key(&node)
                && !self.roster.spares.is_empty()
                && self.allowed(context, &wanted, 0).0 == wanted;
            if replaceable {
                next.map.vacate(&node);
                self.planner(context).fill(&mut next);
                return Some((Why::Quarantined { node }, next));
            }
            // Better a node that fails than none: it is asked again at its next failure.
            if next.barred.get(&node) == Some(&Bar::Quarantined) {
                next.barred.remove(&node);
            }
        }
        let first = next.map.holder(Slot(0))?;
        let address = self.roster.members.get(first)?.registered.as_ref()?.address.clone();
        let port = self.round.port?;
        next.last_port = Some(port);
        next.phase = Phase::Committed(Master { address, port });
        Some((Why::Prepared, next))
    }

    /// Makes a stored decision true, and tells those whom it concerns.
    pub(super) fn adopt(&mut self, context: &mut StepContext<'_>, decision: Decision) {
        let Decision { why, state: next, .. } = decision;
        self.mass_silence.note_replaced(&self.roster, &why);
        self.budgets.spend(context, &why, &self.state, &next);
        // Who fails before a departure is stored may have missed the leaving node.
        let departs = self.departs();
        self.ends_other_job &= why != Why::Reset;
        self.note_missed(context.policy.keep_alive);
        let former = std::mem::replace(&mut self.state, next);
        self.waits_for = None;
        self.roster.expect_all(context.now, context.policy, &self.state);
        self.roster.see_off(context, &self.state);
        if former.map.digest() != self.state.map.digest()
            || former.map.slot_count() != self.state.map.slot_count()
            || former.barred != self.state.barred
        {
            self.sort_nodes(context, &former);
        }
        if former.epoch != self.state.epoch {
            self.roster.finished.clear();
            self.suspicions.clear();
            // Only now, since events may have come while the decision was being stored.
            if let Some(incident) = &mut self.incident {
                incident.excused = self.state.planned || departs;
            }
            self.note_repetition(context, &why);
            let cause = self.incident.as_ref().and_then(Incident::root_cause);
            self.is_ordered = why == Why::Ordered;
            let is_repeated =
                self.incident.as_ref().is_some_and(|one| !one.repetition.nodes.is_empty());
            let is_charged = !self.is_ordered && !is_repeated;
            self.charge = cause.filter(|cause| is_charged && self.state.has_slot(&cause.node));
            self.restarted = self.incident.iter().flat_map(Incident::restarted).cloned().collect();
            self.roster.welcome_back();
            self.answered = self.close_incident(context, Standing::Answered(self.state.epoch));
        } else {
            self.is_ordered |= self.state.planned && !former.planned;
            self.settle_charge(&why);
        }
        match (&former.phase, &self.state.phase) {
            (Phase::Preparing, Phase::Preparing) if former.epoch == self.state.epoch => {
                self.prepare_newcomers(context, &former);
            }
            (_, Phase::Preparing) => self.begin_round(context),
            (Phase::Preparing, Phase::Committed(_)) => self.begin_running(context),
            (_, Phase::Over(outcome)) if former.phase != self.state.phase => {
                let outcome = *outcome;
                self.end(context, outcome);
            }
            (_, Phase::Forming) => {
                self.close_incident(context, Standing::Reset);
                self.round = Round::default();
            }
            _ => {}
        }
    }

    /// Whether a node is leaving whose departure is not stored yet.
    pub(super) fn departs(&self) -> bool {
        self.roster.leaving.keys().any(|node| self.roster.is_released(&self.state, node))
    }

    /// Takes in how an epoch ended that is over.
    fn note_repetition(&mut self, context: &StepContext<'_>, why: &Why) {
        match (&mut self.incident, why) {
            (Some(incident), Why::Incident { .. } | Why::Over(_)) => {
                self.repeats = self.repeats.after(incident, context.policy.budget_window);
                incident.repetition = self.repeats.repetition();
            }
            _ => self.repeats.forget(),
        }
    }

    /// What is left of a charge after a decision in the same epoch: nothing once it is blamed, its node has lost
    /// its slot, or an operator has ordered what was on its way.
    fn settle_charge(&mut self, why: &Why) {
        // Workers may have failed for the nodes that are not there.
        if matches!(why, Why::Unanswered { .. } | Why::Left { .. } | Why::Absent { .. }) {
            self.forget_repetition();
        }
        let charge = match why {
            Why::Prepared => None,
            _ if self.is_ordered => None,
            // A node that was only likely to be the cause has an excuse now.
            Why::Unanswered { .. } | Why::Left { .. } | Why::Absent { .. } => {
                self.charge.take().filter(|cause| cause.certain)
            }
            _ => self.charge.take(),
        };
        self.charge = charge.filter(|cause| self.state.has_slot(&cause.node));
    }

    /// Recomputes roles after slots or bars have changed, and notifies nodes that have lost their slots.
    fn sort_nodes(&mut self, context: &mut StepContext<'_>, former: &StoredState) {
        self.roster.sort(context, &self.state);
        let out: Vec<NodeName> = former
            .map
            .holders()
            .map(|(_, node)| node)
            .filter(|node| !self.state.has_slot(node) && self.roster.members.contains_key(*node))
            .cloned()
            .collect();
        for node in out {
            self.round.forget(&node);
            let order = self.order_without_slot(&node);
            self.send(context, &node, order);
        }
    }

    /// Asks those to prepare who came into a slot of the epoch that is being prepared, and nodes that
    /// is to run rank 0 now.
    fn prepare_newcomers(&mut self, context: &mut StepContext<'_>, former: &StoredState) {
        let gone: Vec<NodeName> = former
            .map
            .holders()
            .map(|(_, node)| node.clone())
            .filter(|one| !self.state.has_slot(one))
            .collect();
        for node in gone {
            self.round.forget(&node);
        }
        let first_changed = former.map.holder(Slot(0)) != self.state.map.holder(Slot(0));
        let newcomers: Vec<NodeName> = self
            .state
            .map
            .holders()
            .filter(|(slot, node)| {
                former.map.slot_of(node).is_none() || (*slot == Slot(0) && first_changed)
            })
            .map(|(_, node)| node.clone())
            .collect();
        self.round.vacant_since = None;
        for node in newcomers {
            self.prepare_again(context, &node);
        }
    }

    /// The epoch is committed: all nodes are ordered to start.
    fn begin_running(&mut self, context: &mut StepContext<'_>) {
        if let Some((incident, true)) = self.answered.take() {
            context.outputs.push(Output::Incident(Box::new(incident)));
        }
        // A node restarted while the decision was being stored is not prepared any more.
        let lost: Vec<NodeName> = self
            .state
            .map
            .holders()
            .map(|(_, node)| node.clone())
            .filter(|one| self.round.is_waiting(one))
            .collect();
        self.begin_round(context);
        self.repeats.begin(context.now);
        for node in lost {
            self.agent_restarted(context, &node);
        }
    }

    fn end(&mut self, context: &mut StepContext<'_>, outcome: JobOutcome) {
        let standing = match outcome {
            JobOutcome::Finished => Standing::Passed,
            JobOutcome::GivenUp => Standing::GivenUp,
        };
        self.note_repetition(context, &Why::Over(outcome));
        self.close_incident(context, standing);
        self.round = Round::default();
        // Spares too: no node waits for a job that is over.
        let everybody: Vec<NodeName> = self.roster.members.keys().cloned().collect();
        for node in everybody {
            self.send(context, &node, Order::Stop(outcome));
        }
    }

    /// Tells how the open incident has ended, and gives it back, with nothing in it that was not reported.
    fn close_incident(
        &mut self,
        context: &mut StepContext<'_>,
        standing: Standing,
    ) -> Option<(Incident, bool)> {
        let mut incident = self.incident.take()?;
        incident.standing = standing;
        context.outputs.push(Output::Incident(Box::new(incident.clone())));
        Some((incident, false))
    }

    /// Asks a node to prepare, as if it had never been asked.
    pub(super) fn prepare_again(&mut self, context: &mut StepContext<'_>, node: &NodeName) {
        if self.state.map.slot_of(node) == Some(Slot(0)) {
            self.round.port = None;
        }
        self.round.failed.remove(node);
        self.round.waiting.insert(node.clone(), NodeWait::sent(context.now));
        self.send_prepare(context, node);
    }

    fn send_prepare(&mut self, context: &mut StepContext<'_>, node: &NodeName) {
        let first = self.state.map.slot_of(node) == Some(Slot(0));
        let ports = first.then(|| ports(context.policy, &self.state));
        let planned = self.state.planned;
        self.send(context, node, Order::Prepare { ports, planned });
    }

    /// Tells a node to start its workers.
    pub(super) fn commit_to(&mut self, context: &mut StepContext<'_>, node: &NodeName) {
        let Some(assignment) = self.assignment(context, node) else { return };
        if let Some(wait) = self.round.waiting.get_mut(node) {
            wait.sent = Some(context.now);
        }
        self.send(context, node, Order::Commit(assignment));
    }

    /// What a node runs in the current epoch.
    fn assignment(&self, context: &StepContext<'_>, node: &NodeName) -> Option<Assignment> {
        let map = &self.state.map;
        let slot = map.slot_of(node)?;
        let Phase::Committed(master) = &self.state.phase else { return None };
        Some(Assignment {
            slot,
            slots: map.slot_count(),
            first_rank: map.first_rank(slot),
            workers: map.workers_per_node(),
            world_size: map.world_size(),
            master: master.clone(),
            restarts: self.state.restarts,
            digest: map.digest(),
            job: context.job.name.clone(),
            max_restarts: context.policy.restart_budget,
        })
    }

    /// Begins the round of a state that was just stored, with everybody in its map.
    pub(super) fn begin_round(&mut self, context: &mut StepContext<'_>) {
        self.round = Round::of(&self.state, context.now);
        let known = |node: &&NodeName| {
            self.roster.members.get(*node).is_some_and(|member| member.registered.is_some())
        };
        let nodes: Vec<NodeName> = self.round.waiting.keys().filter(known).cloned().collect();
        for node in &nodes {
            match self.state.phase {
                Phase::Preparing => self.prepare_again(context, node),
                _ => self.commit_to(context, node),
            }
        }
    }

    /// Takes an acknowledgement. One that comes after later messages of its node counts only while it
    /// is waited for.
    pub(super) fn acknowledged(
        &mut self,
        context: &mut StepContext<'_>,
        node: &NodeName,
        acknowledgement: Acknowledgement,
        is_late: bool,
    ) {
        let Acknowledgement { epoch, step } = acknowledgement;
        let phase_of_step = match self.state.phase {
            Phase::Preparing => step != OrderStep::Started,
            Phase::Committed(_) => step == OrderStep::Started,
            Phase::Forming | Phase::Over(_) => false,
        };
        if epoch != self.state.epoch || !phase_of_step {
            context.metrics.stale_epochs += 1;
            context.refuse(node.clone(), Stale::Epoch);
            return;
        }
        if is_late && !self.round.is_waiting(node) {
            context.metrics.stale_sequences += 1;
            context.refuse(node.clone(), Stale::Sequence);
            return;
        }
        if step == OrderStep::Started {
            self.started(node);
            return;
        }
        let is_first = self.state.map.slot_of(node) == Some(Slot(0));
        let last_port = self.state.last_port;
        let Some(wait) = self.round.waiting.get_mut(node) else { return };
        match step {
            OrderStep::Stopping => {
                let until = context.now.after(context.policy.prepare_deadline);
                let until = *wait.stopping_until.get_or_insert(until);
                wait.tries = 0;
                // It was silent, or was asked too often, and has come back to its orders.
                if !wait.refused && context.now < until {
                    self.round.failed.remove(node);
                }
            }
            OrderStep::NotPrepared(why) => {
                wait.refused = true;
                if self.round.failed.insert(node.clone()) {
                    context.outputs.push(Output::NotPrepared { node: node.clone(), why });
                }
            }
            // Without a port, it was meant for another slot of the same epoch.
            OrderStep::Prepared { port } if is_first && (port.is_none() || port == last_port) => {}
            OrderStep::Prepared { port } => {
                self.round.forget(node);
                if is_first {
                    self.round.port = port;
                }
                let member = self.roster.members.get_mut(node);
                if let Some(member) = member {
                    member.activity = AgentActivity::Preparing(epoch);
                }
            }
            OrderStep::Started => {}
        }
    }

    /// A node has started its workers of the current epoch.
    pub(super) fn started(&mut self, node: &NodeName) {
        if matches!(self.state.phase, Phase::Committed(_)) {
            self.round.forget(node);
            if let Some(member) = self.roster.members.get_mut(node) {
                member.activity = AgentActivity::Committed(self.state.epoch);
            }
        }
    }

    /// Sends again what was not answered, and marks who has not answered often enough.
    pub(super) fn repeat_orders(&mut self, context: &mut StepContext<'_>) {
        if self.round.waiting.is_empty() || context.now < self.round.next_evaluation {
            return;
        }
        let interval = context.policy.command_interval;
        self.round.next_evaluation = context.now.after(interval / 4);
        let mut again = Vec::new();
        let mut failed = Vec::new();
        let committed = matches!(self.state.phase, Phase::Committed(_));
        for (node, wait) in &mut self.round.waiting {
            let Some(member) = self.roster.members.get(node) else { continue };
            let due = wait.sent.is_some_and(|sent| context.now.since(sent) >= interval);
            if due {
                wait.tries += 1;
                wait.sent = Some(context.now);
                again.push(node.clone());
            }
            let unanswered =
                wait.tries > context.policy.command_retries && wait.stopping_until.is_none();
            let overdue = wait.stopping_until.is_some_and(|until| context.now >= until);
            // Workers of an epoch that is committed may run unheard: that is a silence, not a refusal. And a busy node
            // that is heard may need its time to start them.
            let fails = if committed {
                let had_its_time =
                    interval.saturating_mul(wait.tries) >= context.policy.prepare_deadline;
                unanswered && had_its_time && member.heard_within(context.now, interval * 2)
            } else {
                unanswered || overdue || member.silent
            };
            if fails && self.round.failed.insert(node.clone()) {
                failed.push(node.clone());
            }
        }
        for node in again {
            context.metrics.repeated_orders += 1;
            match self.state.phase {
                Phase::Preparing => self.send_prepare(context, &node),
                _ => self.commit_to(context, &node),
            }
        }
        if committed {
            for node in failed {
                self.event(context, FaultEvent::NotStarted { node });
            }
        }
    }
}

/// The ports that rank 0's node may take: all but the last epoch's, which precedes their first. Its agent takes one at
/// random.
fn ports(policy: &Policy, state: &StoredState) -> Ports {
    let (least, greatest) = (policy.least_port, policy.greatest_port);
    let range = Ports { first: least, least, greatest };
    Ports { first: state.last_port.map_or(least, |last| range.after(last)), ..range }
}
