//! What nodes say: registrations, reports, and silence.
//!
//! A node's messages are taken only from its latest incarnation and in the order sent. No node is
//! evicted here; events are handed on.

use super::behind::{RegistrationOutcome, Stored};
use super::leadership::{Leadership, MAX_NODES};
use super::leaving::{Life, Lives};
use super::roster::{NodeRecord, Registered, overdue_after};
use super::{Stale, StepContext};
use crate::epoch::Epoch;
use crate::incident::{Cause, FaultEvent};
use crate::message::{AgentActivity, FromNode, FromNodeBody, Order, Registration, Report};
use crate::node::{Bar, Incarnation, NodeName};
use crate::observation::{WorkerEnd, WorkerObservation, WorkerState};
use crate::rank::{Rank, Slot};
use crate::stored::Phase;
use crate::time::Moment;

impl Leadership {
    /// Takes a message of a node.
    pub(super) fn hear(&mut self, context: &mut StepContext<'_>, message: FromNode) {
        let FromNode { node, incarnation, sequence, body } = message;
        let known = self.roster.members.get(&node).and_then(|member| member.registered.as_ref());
        match (known, &body) {
            (Some(known), _) if incarnation < known.incarnation => {
                context.metrics.stale_incarnations += 1;
                return;
            }
            (Some(known), FromNodeBody::Register(_) | FromNodeBody::Report(_))
                if incarnation == known.incarnation && sequence <= known.sequence =>
            {
                context.metrics.stale_sequences += 1;
                context.refuse(node, Stale::Sequence);
                return;
            }
            (Some(known), _) if incarnation == known.incarnation => {}
            (_, FromNodeBody::Register(_)) => {}
            // A life that has not registered yet, or a node that was forgotten.
            _ => {
                context.metrics.unknown_nodes += 1;
                self.send(context, &node, Order::Register);
                return;
            }
        }
        match body {
            FromNodeBody::Register(registration)
                if self.is_ahead(context, (&node, incarnation), &registration) => {}
            // A node welcomed now might be ordered to stop without cause.
            FromNodeBody::Register(_) if self.ahead.blocks() => {
                self.roster.note_heard(context, &self.state, &node, sequence);
                context.refuse(node, Stale::Behind);
            }
            _ if self.ahead.blocks() => {
                self.roster.note_heard(context, &self.state, &node, sequence)
            }
            FromNodeBody::Register(registration) => {
                self.register(context, &node, (incarnation, sequence), registration);
            }
            FromNodeBody::Report(mut report) => {
                self.roster.note_heard(context, &self.state, &node, sequence);
                self.roster.unhealthy.update(
                    context.now,
                    &node,
                    report.fault.take().map(|fault| *fault),
                );
                self.report(context, &node, &report);
            }
            FromNodeBody::Acknowledge(acknowledgement) => {
                let registered =
                    self.roster.members.get(&node).and_then(|one| one.registered.as_ref());
                let is_late = registered.is_some_and(|one| sequence <= one.sequence);
                self.roster.note_heard(context, &self.state, &node, sequence);
                self.acknowledged(context, &node, acknowledgement, is_late);
            }
            FromNodeBody::Examined => {
                self.roster.note_heard(context, &self.state, &node, sequence);
            }
            FromNodeBody::Leave => {
                self.roster.note_heard(context, &self.state, &node, sequence);
                self.leave(context, &node, incarnation);
            }
        }
    }

    /// See [`super::Coordinator::accepts`].
    pub(super) fn accepts(&self, message: &FromNode) -> Result<(), Stale> {
        let member =
            self.roster.members.get(&message.node).and_then(|member| member.registered.as_ref());
        let member = member.filter(|one| one.incarnation == message.incarnation);
        let member = member.ok_or(Stale::Incarnation)?;
        if message.sequence <= member.sequence {
            return Err(Stale::Sequence);
        }
        let committed = matches!(self.state.phase, Phase::Committed(_));
        let of_this_epoch = match &message.body {
            FromNodeBody::Report(report) => report.activity.running() == Some(self.state.epoch),
            _ => false,
        };
        let slot = self.state.map.slot_of(&message.node).filter(|_| committed && of_this_epoch);
        let slot = slot.ok_or(Stale::Epoch)?;
        match &message.body {
            FromNodeBody::Report(report) if !self.are_own(slot, report) => Err(Stale::Ranks),
            _ => Ok(()),
        }
    }

    /// Whether a report is of exactly the ranks of a slot, in their order.
    fn are_own(&self, slot: Slot, report: &Report) -> bool {
        let map = &self.state.map;
        let first = map.first_rank(slot).0;
        let ranks = (first..first + map.workers_per_node().get()).map(Rank);
        report.observation.workers.iter().map(|worker| worker.rank).eq(ranks)
    }

    /// Takes a registration of one who may know more than is stored; says whether it does.
    fn is_ahead(
        &mut self,
        context: &mut StepContext<'_>,
        (node, incarnation): (&NodeName, Incarnation),
        registration: &Registration,
    ) -> bool {
        let stored = Stored { state: &self.state, revision: self.revision() };
        match self.ahead.take(context, stored, (node, incarnation), registration) {
            RegistrationOutcome::NoNews => return false,
            RegistrationOutcome::Refused => {}
            RegistrationOutcome::Ended { job, is_stored } => {
                self.ends_other_job |= is_stored;
                self.send(context, node, Order::Forget(job));
            }
        }
        true
    }

    fn register(
        &mut self,
        context: &mut StepContext<'_>,
        node: &NodeName,
        (incarnation, sequence): (Incarnation, u64),
        registration: Registration,
    ) {
        if !self.roster.members.contains_key(node) {
            if self.roster.members.len() >= MAX_NODES {
                context.metrics.refused_nodes += 1;
                return;
            }
            self.roster.members.insert(node.clone(), NodeRecord::unheard(context.now));
            self.roster
                .checks
                .insert((context.now.after(overdue_after(context.policy)), node.clone()));
        }
        let Registration { address, workers, activity, known: _, planned_since } = registration;
        let member =
            self.roster.members.get_mut(node).expect("it was inserted above if it was not there");
        let former =
            member.registered.replace(Registered { incarnation, address, workers, sequence });
        let lives = Lives {
            former: former.map(|one| one.incarnation),
            present: incarnation,
            planned_since,
        };
        self.roster.note_heard(context, &self.state, node, sequence);
        self.roster.unheard.remove(node);
        let life = self.roster.begin_life(&self.state, node, lives, activity);
        self.roster.refresh_spare(context, &self.state, node);
        self.send(context, node, Order::Welcome);
        if let (Phase::Over(outcome), AgentActivity::Idle) = (&self.state.phase, activity) {
            // It would wait for ever for a job that is over; once is enough for one that stays.
            let outcome = *outcome;
            self.send(context, node, Order::Stop(outcome));
        }
        self.heed_activity(context, node, activity, life);
    }

    fn report(&mut self, context: &mut StepContext<'_>, node: &NodeName, report: &Report) {
        self.heed_activity(context, node, report.activity, Life::Known);
        let running = report.activity.running();
        if self.state.phase == Phase::Preparing && running.is_some() {
            self.report_late(context, node, report);
            return;
        }
        let committed = matches!(self.state.phase, Phase::Committed(_));
        if !committed || running != Some(self.state.epoch) {
            return;
        }
        let Some(slot) = self.state.map.slot_of(node) else { return };
        if !self.are_own(slot, report) {
            context.metrics.foreign_ranks += 1;
            context.refuse(node.clone(), Stale::Ranks);
            return;
        }
        if let Some(event) = self.failure(context, node, report, Some(self.state.epoch)) {
            self.event(context, event);
        }
        let workers = &report.observation.workers;
        let is_finished = |worker: &WorkerObservation| worker.state == WorkerState::Finished;
        if workers.iter().all(is_finished) {
            self.roster.finished.insert(node.clone());
        }
    }

    /// A report of the epoch that was just decided to be over, sent before the node knew that.
    fn report_late(&mut self, context: &mut StepContext<'_>, node: &NodeName, report: &Report) {
        let answered = self.answered.as_ref().map(|(incident, _)| incident.epoch);
        if answered.is_none() || report.activity.running() != answered {
            return;
        }
        if let Some(slot) = self.state.map.slot_of(node)
            && self.are_own(slot, report)
            && let Some(event) = self.failure(context, node, report, answered)
        {
            self.event_late(context, event);
        }
    }

    /// The failure that a report contains, if it is the first that this node reports in the epoch.
    fn failure(
        &mut self,
        context: &StepContext<'_>,
        node: &NodeName,
        report: &Report,
        epoch: Option<Epoch>,
    ) -> Option<FaultEvent> {
        let (rank, end, at) = first_failure(context.now, &report.observation.workers)?;
        let member =
            self.roster.members.get_mut(node).filter(|member| member.failed_in != epoch)?;
        member.failed_in = epoch;
        let mut failures = report.observation.failures.iter();
        let detail = failures.find(|(whose, _)| *whose == rank).map(|(_, detail)| detail.clone());
        let detail = detail.unwrap_or_default();
        Some(FaultEvent::WorkerFailed { node: node.clone(), rank, end, at, detail })
    }

    /// Compares what a node does with what it should do, and tells it where that differs.
    fn heed_activity(
        &mut self,
        context: &mut StepContext<'_>,
        node: &NodeName,
        activity: AgentActivity,
        life: Life,
    ) {
        let Some(member) = self.roster.members.get_mut(node) else { return };
        member.activity = activity;
        if self.roster.is_released(&self.state, node) {
            return;
        }
        let epoch = self.state.epoch;
        match (&self.state.phase, self.state.map.slot_of(node)) {
            (Phase::Over(outcome), _) if activity != AgentActivity::Idle => {
                let outcome = *outcome;
                self.send(context, node, Order::Stop(outcome));
            }
            (Phase::Over(_), _) => {}
            (_, None) if activity != AgentActivity::Idle => {
                let order = self.order_without_slot(node);
                self.send(context, node, order);
            }
            (_, None) => {}
            (Phase::Preparing, Some(_)) => {
                if !self.state.planned {
                    self.weigh_restart(node, life);
                }
                if life != Life::Known || !self.round.knows(node) {
                    self.prepare_again(context, node);
                }
            }
            (Phase::Committed(_), Some(_)) => match activity {
                AgentActivity::Committed(running) if running == epoch => self.round.forget(node),
                AgentActivity::Preparing(prepared) if prepared == epoch && life == Life::Known => {
                    if self.round.is_first_word(node) {
                        self.commit_to(context, node);
                    }
                }
                // It has not the epoch it had acknowledged, so it is not the agent it was.
                _ => self.agent_restarted(context, node),
            },
            (Phase::Forming, Some(_)) => {}
        }
    }

    /// What a node without a slot is to do.
    pub(super) fn order_without_slot(&self, node: &NodeName) -> Order {
        match self.state.barred.get(node) {
            Some(Bar::Quarantined | Bar::Suspected | Bar::Removed) => Order::Evict,
            Some(Bar::Draining) | None => Order::Standby,
        }
    }

    /// Weighs what a new life while an epoch is prepared after a failure says of the failure's cause.
    fn weigh_restart(&mut self, node: &NodeName, life: Life) {
        if life != Life::Known {
            self.forget_repetition();
        }
        let certain = self.charge.take_if(|cause| cause.certain || life == Life::Known);
        let likely = match life {
            Life::Known => None,
            // A node that was only likely to be the cause may have missed its workers.
            Life::AfterPlan => {
                if let Some((incident, news)) = &mut self.answered {
                    *news |= !std::mem::replace(&mut incident.excused, true);
                }
                None
            }
            // Its workers were gone before others could miss them; of several, the first is unknown.
            Life::AfterFailure => {
                self.restarted.insert(node.clone());
                let alone = self.restarted.len() == 1;
                alone.then(|| Cause { node: node.clone(), certain: false })
            }
        };
        self.charge = certain.or(likely);
    }

    pub(super) fn agent_restarted(&mut self, context: &mut StepContext<'_>, node: &NodeName) {
        let Some(member) = self.roster.members.get_mut(node) else { return };
        if member.failed_in == Some(self.state.epoch) || self.roster.finished.contains(node) {
            return;
        }
        member.failed_in = Some(self.state.epoch);
        self.event(context, FaultEvent::AgentRestarted { node: node.clone() });
    }

    /// Finds who has fallen silent. Looks only at nodes whose time may have come.
    pub(super) fn check_silence(&mut self, context: &mut StepContext<'_>) {
        while let Some((moment, _)) = self.roster.checks.first()
            && *moment <= context.now
        {
            let (_, node) =
                self.roster.checks.pop_first().expect("there is a first, as was just seen");
            let Some(member) = self.roster.members.get_mut(&node) else { continue };
            let overdue = member.heard.after(overdue_after(context.policy));
            let silent = member.heard.after(context.policy.keep_alive);
            if context.now < overdue {
                self.roster.checks.insert((overdue, node));
            } else if context.now < silent {
                self.roster.checks.insert((silent, node.clone()));
                self.roster.overdue.insert(node.clone());
                self.miss(context, &node);
            } else {
                member.silent = true;
                self.roster.overdue.insert(node.clone());
                self.fell_silent(context, &node);
            }
        }
    }

    /// Takes a node's last message, and answers it, so that its agent need not wait.
    pub(super) fn leave(
        &mut self,
        context: &mut StepContext<'_>,
        node: &NodeName,
        life: Incarnation,
    ) {
        let order = self.order_without_slot(node);
        self.send(context, node, order);
        self.roster.spares.remove(node);
        if self.state.has_slot(node) || self.is_given_slot(node) {
            self.roster.leaving.insert(node.clone(), life);
        } else {
            self.roster.forget(node);
        }
    }

    /// A node's connection was closed at its end. While it was heard just before, no timeout can have done
    /// that: its agent is gone, or comes back by another.
    pub(super) fn closed(&mut self, context: &mut StepContext<'_>, node: &NodeName) {
        let is_overdue = self.roster.overdue.contains(node);
        if let Some(member) = self.roster.members.get_mut(node).filter(|_| !is_overdue) {
            member.closed = true;
            self.miss(context, node);
        }
    }

    fn fell_silent(&mut self, context: &mut StepContext<'_>, node: &NodeName) {
        self.roster.spares.remove(node);
        if !self.state.has_slot(node) {
            self.roster.forget(node);
            return;
        }
        self.roster.silent.insert(node.clone());
        let was_planned = self.roster.leaving.contains_key(node);
        match self.state.phase {
            Phase::Preparing => {
                self.round.lose(node);
                self.silent_late(context, node);
            }
            Phase::Committed(_) if !was_planned && !self.roster.finished.contains(node) => {
                self.event(context, FaultEvent::Silent { node: node.clone() });
            }
            Phase::Forming | Phase::Committed(_) | Phase::Over(_) => {}
        }
    }
}

/// The failure of a node's workers that came first; those that may be echoes of another come last.
fn first_failure(now: Moment, workers: &[WorkerObservation]) -> Option<(Rank, WorkerEnd, Moment)> {
    let failures = workers.iter().filter_map(|worker| match worker.state {
        WorkerState::Failed { end, age } => {
            let at_ns = now.since(Moment::from_ns(0)).saturating_sub(age).as_nanos();
            let at = Moment::from_ns(u64::try_from(at_ns).unwrap_or(u64::MAX));
            Some((worker.rank, end, at))
        }
        _ => None,
    });
    failures.min_by_key(|(_, end, at)| (!end.is_cause(), *at))
}
