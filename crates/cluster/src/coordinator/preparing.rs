//! From a vacant map to an epoch that everybody is ready for: forming, filling, shrinking, committing.
//!
//! Nothing runs while an epoch is prepared, so slots may still change hands in it. Once it is
//! committed they may not: a node that is not heard may be running its ranks.

use std::collections::BTreeSet;

use super::leadership::Leadership;
use super::{Output, Scene};
use crate::incident::{Cause, Hold, Incident, Standing};
use crate::message::{Master, Order, Outcome};
use crate::node::{Bar, NodeName};
use crate::policy::NoSpare;
use crate::rank::Slot;
use crate::stored::{Decision, Phase, StoredState, Why};

impl Leadership {
    /// Before the first epoch: begins it once every slot can be filled.
    pub(super) fn form(&mut self, scene: &Scene<'_>) -> Option<(Why, StoredState)> {
        let needed = usize::try_from(self.state.map.slot_count()).unwrap_or(usize::MAX);
        if self.spares.len() < needed {
            return None;
        }
        let mut next = self.state.clone();
        let last = self.ahead.ended.map_or(next.epoch, |ended| ended.max(next.epoch));
        next.epoch = last.next();
        next.phase = Phase::Preparing;
        next.planned = true;
        self.fill(scene, &mut next);
        Some((Why::Formed, next))
    }

    /// Fills vacant slots with spares, in the order of slots and of names; and adds slots where the
    /// job has fewer than it should and spares are left.
    pub(super) fn fill(&self, scene: &Scene<'_>, next: &mut StoredState) {
        let free =
            |node: &&NodeName| !next.barred.contains_key(*node) && next.map.slot_of(node).is_none();
        let mut spares = self.spares.iter().filter(free).cloned().collect::<Vec<_>>().into_iter();
        let vacancies: Vec<Slot> = next.map.vacancies().collect();
        for slot in vacancies {
            let Some(spare) = spares.next() else { return };
            let filled = next.map.fill(slot, &spare);
            assert!(filled, "the slot is vacant and a spare has no slot");
        }
        let slots = next.map.slot_count();
        for (slot, spare) in (slots..scene.job.slots).zip(spares) {
            next.map.grow_to(slot + 1);
            let filled = next.map.fill(Slot(slot), &spare);
            assert!(filled, "the slot is new and a spare has no slot");
        }
    }

    /// While an epoch is prepared: replaces who does not answer, fills or drops vacant slots, and
    /// commits when everybody is ready.
    pub(super) fn prepare_on(&mut self, scene: &Scene<'_>) -> Option<(Why, StoredState)> {
        self.waits_for = None;
        if let Some(decided) = self.pass_over_absent(scene) {
            return Some(decided);
        }
        if let Some(decided) = self.replace_unanswering(scene) {
            return Some(decided);
        }
        if !self.state.map.is_complete() {
            return self.fill_or_shrink(scene);
        }
        if self.round.is_over() { self.commit(scene) } else { None }
    }

    /// Gives the slots of those who are not there to spares that are or will come, where nothing shows that anything is
    /// wrong with them. In an epoch that was planned, their agents may only not be started yet. And this leader may
    /// never have heard them: they may have said goodbye to the one before it, or to nobody.
    fn pass_over_absent(&mut self, scene: &Scene<'_>) -> Option<(Why, StoredState)> {
        let failed = self.round.failed().iter();
        let nodes: Vec<NodeName> = failed.filter(|node| self.is_absent(node)).cloned().collect();
        if nodes.is_empty() {
            return None;
        }
        self.waits_for = self.doubt(scene);
        if self.waits_for.is_some() {
            return None;
        }
        let next = self.without(scene, self.state.clone(), &nodes);
        Some((Why::Absent { nodes }, next))
    }

    fn is_absent(&self, node: &NodeName) -> bool {
        self.unheard.contains(node) || (self.state.planned && !self.is_there(node))
    }

    fn replace_unanswering(&mut self, scene: &Scene<'_>) -> Option<(Why, StoredState)> {
        let failed = self.round.failed().iter().filter(|node| !self.is_absent(node));
        let failed: BTreeSet<NodeName> = failed.cloned().collect();
        if failed.is_empty() {
            return None;
        }
        let (evicted, hold) = self.allowed(scene, &failed, 0);
        self.waits_for = self.waits_for.or(hold);
        if evicted.is_empty() {
            return None;
        }
        let mut next = self.state.clone();
        for node in &evicted {
            next.map.vacate(node);
            self.blame(scene, &mut next, node);
        }
        self.fill(scene, &mut next);
        Some((Why::Unanswered { evicted: evicted.into_iter().collect() }, next))
    }

    fn fill_or_shrink(&mut self, scene: &Scene<'_>) -> Option<(Why, StoredState)> {
        // Reports come all the time: nothing is copied as long as nothing can be done.
        if !self.spares.is_empty() {
            let mut next = self.state.clone();
            self.fill(scene, &mut next);
            if next.map.digest() != self.state.map.digest() {
                return Some((Why::Filled, next));
            }
        }
        self.waits_for = self.waits_for.or(Some(Hold::NoSpare));
        let since = *self.round.vacant_since.get_or_insert(scene.now);
        let NoSpare::Shrink { least_slots, patience } = scene.policy.no_spare else { return None };
        let least = usize::try_from(least_slots).unwrap_or(usize::MAX);
        if self.state.map.holder_count() < least || scene.now < since.after(patience) {
            return None;
        }
        let next = StoredState { map: self.state.map.compacted(), ..self.state.clone() };
        Some((Why::Shrunk, next))
    }

    fn commit(&mut self, scene: &Scene<'_>) -> Option<(Why, StoredState)> {
        let mut next = self.state.clone();
        // It stays charged until the decision is stored: until then it may have to be made afresh.
        if let Some(Cause { node, .. }) = self.charge.clone() {
            assert!(self.has_slot(&node), "whoever loses its slot is charged no more");
            self.blame(scene, &mut next, &node);
            let wanted = BTreeSet::from([node.clone()]);
            let replaceable = next.barred.contains_key(&node)
                && !self.spares.is_empty()
                && self.allowed(scene, &wanted, 0).0 == wanted;
            if replaceable {
                next.map.vacate(&node);
                self.fill(scene, &mut next);
                return Some((Why::Quarantined { node }, next));
            }
            // Better a node that fails than none: it is asked again at its next failure.
            if next.barred.get(&node) == Some(&Bar::Quarantined) {
                next.barred.remove(&node);
            }
        }
        let first = next.map.holder(Slot(0))?;
        let address = self.members.get(first)?.registered.as_ref()?.address.clone();
        let port = self.round.port?;
        next.last_port = Some(port);
        next.phase = Phase::Committed(Master { address, port });
        Some((Why::Prepared, next))
    }

    /// Makes a stored decision true, and tells those whom it concerns.
    pub(super) fn adopt(&mut self, scene: &mut Scene<'_>, decision: Decision) {
        let Decision { why, state: next, .. } = decision;
        self.spend(scene, &why, &next);
        // Who fails before a departure is stored may have missed whoever leaves.
        let departs = self.leaving.keys().any(|node| self.is_released(node));
        self.ends_other_job &= why != Why::Reset;
        self.note_missed(scene.policy.keep_alive);
        let former = std::mem::replace(&mut self.state, next);
        self.waits_for = None;
        self.expect_holders(scene);
        self.see_off(scene);
        if former.map.digest() != self.state.map.digest()
            || former.map.slot_count() != self.state.map.slot_count()
            || former.barred != self.state.barred
        {
            self.sort_nodes(scene, &former);
        }
        if former.epoch != self.state.epoch {
            self.finished.clear();
            self.suspicions.clear();
            // Only now, since signs may have come while the decision was being stored.
            if let Some(incident) = &mut self.incident {
                incident.excused = self.state.planned || departs;
            }
            let cause = self.incident.as_ref().and_then(Incident::root_cause);
            self.is_ordered = why == Why::Ordered;
            self.charge = cause.filter(|cause| !self.is_ordered && self.has_slot(&cause.node));
            self.restarted = self.incident.iter().flat_map(Incident::restarted).cloned().collect();
            self.welcome_back();
            self.answered = self.close_incident(scene, Standing::Answered(self.state.epoch));
        } else {
            self.is_ordered |= self.state.planned && !former.planned;
            self.settle_charge(&why);
        }
        match (&former.phase, &self.state.phase) {
            (Phase::Preparing, Phase::Preparing) if former.epoch == self.state.epoch => {
                self.prepare_newcomers(scene, &former);
            }
            (_, Phase::Preparing) => self.begin_round(scene),
            (Phase::Preparing, Phase::Committed(_)) => self.begin_running(scene),
            (_, Phase::Over(outcome)) if former.phase != self.state.phase => {
                let outcome = *outcome;
                self.end(scene, outcome);
            }
            (_, Phase::Forming) => {
                self.close_incident(scene, Standing::Reset);
                self.round = super::round::Round::default();
            }
            _ => {}
        }
    }

    /// What is left of a charge after a decision in the same epoch: nothing once it is blamed, its node has lost
    /// its slot, or an operator has ordered what was on its way.
    fn settle_charge(&mut self, why: &Why) {
        let charge = match why {
            Why::Prepared => None,
            _ if self.is_ordered => None,
            // Whoever was only likely to be the cause has an excuse now.
            Why::Unanswered { .. } | Why::Left { .. } | Why::Absent { .. } => {
                self.charge.take().filter(|cause| cause.certain)
            }
            _ => self.charge.take(),
        };
        self.charge = charge.filter(|cause| self.has_slot(&cause.node));
    }

    /// Sees anew who is spare, silent or unheard after slots or bars have changed, and tells those
    /// who have lost their slots.
    fn sort_nodes(&mut self, scene: &mut Scene<'_>, former: &StoredState) {
        let state = &self.state;
        let has_slot = |node: &NodeName| state.map.slot_of(node).is_some();
        self.silent.retain(&has_slot);
        self.unheard.retain(&has_slot);
        self.finished.retain(&has_slot);
        self.members.retain(|node, member| {
            let known = member.registered.is_some() && !member.silent;
            known || has_slot(node)
        });
        let nodes: Vec<NodeName> = self.members.keys().cloned().collect();
        for node in &nodes {
            self.refresh_spare(scene, node);
        }
        self.spares.retain(|node| self.members.contains_key(node));
        self.overdue.retain(|node| self.members.contains_key(node));
        self.looks.retain(|(_, node)| self.members.contains_key(node));
        let out: Vec<NodeName> = former
            .map
            .holders()
            .map(|(_, node)| node)
            .filter(|node| !self.has_slot(node) && self.members.contains_key(*node))
            .cloned()
            .collect();
        for node in out {
            self.round.forget(&node);
            let order = self.order_without_slot(&node);
            self.send(scene, &node, order);
        }
    }

    /// Asks those to prepare who came into a slot of the epoch that is being prepared, and whoever
    /// is to run rank 0 now.
    fn prepare_newcomers(&mut self, scene: &mut Scene<'_>, former: &StoredState) {
        let gone: Vec<NodeName> = former
            .map
            .holders()
            .map(|(_, node)| node.clone())
            .filter(|one| !self.has_slot(one))
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
            self.prepare_anew(scene, &node);
        }
    }

    /// The epoch is committed: everybody is told to start.
    fn begin_running(&mut self, scene: &mut Scene<'_>) {
        if let Some((incident, true)) = self.answered.take() {
            scene.outputs.push(Output::Incident(Box::new(incident)));
        }
        // Whoever was started anew while the decision was being stored is not prepared any more.
        let lost: Vec<NodeName> = self
            .state
            .map
            .holders()
            .map(|(_, node)| node.clone())
            .filter(|one| self.round.is_waiting(one))
            .collect();
        self.begin_round(scene);
        for node in lost {
            self.agent_restarted(scene, &node);
        }
    }

    fn end(&mut self, scene: &mut Scene<'_>, outcome: Outcome) {
        let standing = match outcome {
            Outcome::Finished => Standing::Passed,
            Outcome::GivenUp => Standing::GivenUp,
        };
        self.close_incident(scene, standing);
        self.round = super::round::Round::default();
        // Spares too: nobody waits for a job that is over.
        let everybody: Vec<NodeName> = self.members.keys().cloned().collect();
        for node in everybody {
            self.send(scene, &node, Order::Stop(outcome));
        }
    }

    /// Tells how the open incident has ended, and gives it back, with nothing in it that was not told.
    fn close_incident(
        &mut self,
        scene: &mut Scene<'_>,
        standing: Standing,
    ) -> Option<(Incident, bool)> {
        let mut incident = self.incident.take()?;
        incident.standing = standing;
        scene.outputs.push(Output::Incident(Box::new(incident.clone())));
        Some((incident, false))
    }
}
