//! Nodes whose health has failed: they are drained while the job still runs, before their ranks hang or die.
//!
//! What a node says of itself is believed about that node alone, and only once it has lasted. A command may run
//! before a node is taken out of a job that runs, so that a script can save. It delays the drain, and never prevents it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Output, StepContext};
use crate::epoch::Epoch;
use crate::incident::{FaultEvent, HookOutcome, Incident, IncidentId};
use crate::node::NodeName;
use crate::time::Moment;
use crate::vitals::NodeFault;

/// How much longer than its limit the driver may take to say how the command has ended.
const REPORTING_TIME: Duration = Duration::from_secs(5);

/// Nodes whose health has failed, as they reported last.
#[derive(Debug, Default)]
pub(super) struct UnhealthyNodes(BTreeMap<NodeName, Unhealthy>);

#[derive(Debug)]
struct Unhealthy {
    /// When that was first reported to this leader, without a better report since.
    since: Moment,
    /// What was reported last.
    fault: NodeFault,
    /// The epoch in whose incident it is.
    noticed_in: Option<Epoch>,
}

/// The command that runs before nodes are drained.
#[derive(Debug, Default)]
pub(super) struct BeforeDrain(Option<Running>);

/// The command that was started last.
#[derive(Debug)]
struct Running {
    /// For which incident: once for each.
    incident: IncidentId,
    started: Moment,
    has_ended: bool,
}

// === impl UnhealthyNodes ===

impl UnhealthyNodes {
    /// Takes what a report says of its node's health.
    pub(super) fn update(&mut self, now: Moment, node: &NodeName, fault: Option<NodeFault>) {
        match (fault, self.0.get_mut(node)) {
            (None, _) => self.forget(node),
            (Some(fault), Some(known)) => known.fault = fault,
            (Some(fault), None) => {
                let unhealthy = Unhealthy { since: now, fault, noticed_in: None };
                self.0.insert(node.clone(), unhealthy);
            }
        }
    }

    pub(super) fn contains(&self, node: &NodeName) -> bool {
        self.0.contains_key(node)
    }

    pub(super) fn forget(&mut self, node: &NodeName) {
        self.0.remove(node);
    }

    /// Forgets all nodes but those.
    pub(super) fn retain(&mut self, is_known: impl Fn(&NodeName) -> bool) {
        self.0.retain(|node, _| is_known(node));
    }

    /// An event for each of these nodes whose health has failed for long enough, once in an epoch.
    pub(super) fn notice(
        &mut self,
        context: &StepContext<'_>,
        epoch: Epoch,
        is_at_work: impl Fn(&NodeName) -> bool,
    ) -> Vec<FaultEvent> {
        let settling = context.policy.health_settling;
        let mut events = Vec::new();
        for (node, one) in &mut self.0 {
            let is_due = context.now >= one.since.after(settling);
            if is_due && one.noticed_in != Some(epoch) && is_at_work(node) {
                let is_new = one.noticed_in.replace(epoch).is_none();
                let (node, fault) = (node.clone(), one.fault.clone());
                events.push(FaultEvent::Unhealthy { node, fault, is_new });
            }
        }
        events
    }

    /// Those that were noticed in an epoch, and are not well again.
    pub(super) fn noticed_in(&self, epoch: Epoch) -> impl Iterator<Item = &NodeName> {
        let noticed = self.0.iter().filter(move |(_, one)| one.noticed_in == Some(epoch));
        noticed.map(|(node, _)| node)
    }
}

// === impl BeforeDrain ===

impl BeforeDrain {
    /// Whether the policy's command has ended, or there is none, so that these nodes may be taken out for an incident;
    /// starts it where it has not been started for that.
    pub(super) fn is_over(
        &mut self,
        context: &mut StepContext<'_>,
        incident: IncidentId,
        nodes: &BTreeSet<NodeName>,
    ) -> bool {
        if context.policy.before_drain.is_empty() {
            return true;
        }
        if let Some(running) = self.0.as_ref().filter(|running| running.incident == incident) {
            let limit = context.policy.before_drain_timeout.saturating_add(REPORTING_TIME);
            return running.has_ended || context.now >= running.started.after(limit);
        }
        self.0 = Some(Running { incident, started: context.now, has_ended: false });
        let nodes = nodes.iter().cloned().collect();
        context.outputs.push(Output::BeforeDrain { incident, nodes });
        false
    }

    /// Takes how the command has ended, into its incident if that is open or was `answered` last.
    pub(super) fn ended(
        &mut self,
        now: Moment,
        outcome: HookOutcome,
        open: Option<&mut Incident>,
        answered: Option<&mut (Incident, bool)>,
    ) {
        let Some(running) = self.0.as_mut().filter(|running| !running.has_ended) else { return };
        running.has_ended = true;
        let event = FaultEvent::BeforeDrain(outcome);
        if let Some(incident) = open.filter(|incident| incident.id == running.incident) {
            incident.add(now, event);
        } else if let Some((incident, news)) = answered.filter(|one| one.0.id == running.incident) {
            incident.add(now, event);
            *news = true;
        }
    }
}
