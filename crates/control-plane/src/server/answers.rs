//! The present state for operators.

use telltale_wire::cluster::message;

use super::decisions::{outcome, phase};
use super::engine::Engine;
use super::gauges::{Gauges, JobGauges};
use crate::protocol::encode;
use telltale_cluster::node::{Bar, NodeName, NodeState};
use telltale_cluster::policy::Mode;
use telltale_cluster::stored::{Phase, StoredState};

/// How many nodes there are of each state.
#[derive(Debug, Default)]
struct Census {
    active: usize,
    standby: usize,
    silent: usize,
    barred: usize,
    ended: usize,
}

impl Engine {
    pub(super) fn status(&self) -> Option<message::GetStatusResponse> {
        let state = self.coordinator.state()?;
        let census = self.census();
        let master = match &state.phase {
            Phase::Committed(master) => Some(master),
            _ => None,
        };
        let incident = self.coordinator.incident().map(|incident| incident.id);
        let led_for = self.leading.map(|(since, _)| self.clock.now().since(since));
        let (store_trouble, troubled_for) = self.store_trouble().unzip();
        Some(message::GetStatusResponse {
            job: self.job.name.clone(),
            slots: state.map.slot_count(),
            workers_per_node: self.job.workers.get(),
            term: self.leading.map_or(0, |(_, term)| term.number()),
            epoch: state.epoch.number(),
            phase: phase(&state.phase).into(),
            outcome: outcome(&state.phase).into(),
            master_address: master
                .map(|master| master.address.as_str().to_owned())
                .unwrap_or_default(),
            master_port: master.map_or(0, |master| master.port.get().into()),
            runs: self.coordinator.runs(),
            mode: mode(state.mode).into(),
            restarts: state.restarts,
            counted_restarts: state.counted_restarts,
            restart_budget: self.policy.restart_budget,
            counted_evictions: state.evictions,
            eviction_budget: self.policy.eviction_budget,
            filled_slots: count(state.map.holder_count()),
            active_nodes: count(census.active),
            standby_nodes: count(census.standby),
            silent_nodes: count(census.silent),
            barred_nodes: count(census.barred),
            ended_nodes: count(census.ended),
            open_incident: incident.map(|id| id.to_string()),
            led_for_ns: led_for.map_or(0, encode::nanoseconds),
            store: self.store_name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            waits_for: self
                .coordinator
                .waits_for()
                .map_or(message::HoldReason::Unspecified, encode::hold)
                .into(),
            waits_at_most_ns: self
                .coordinator
                .mass_silence_left(self.clock.now())
                .map(encode::nanoseconds),
            store_trouble: store_trouble.unwrap_or_default(),
            store_troubled_for_ns: troubled_for.map(encode::nanoseconds),
        })
    }

    pub(super) fn nodes(&self) -> Option<message::ListNodesResponse> {
        let state = self.coordinator.state()?;
        let all = self.coordinator.nodes();
        let nodes = all.map(|(node, is)| self.node(state, node, is)).collect();
        Some(message::ListNodesResponse { nodes })
    }

    fn node(&self, state: &StoredState, name: &NodeName, is: NodeState) -> message::Node {
        let slot = state.map.slot_of(name);
        let facts = self.roster.facts(name);
        let registered = facts.and_then(|facts| facts.registered.as_ref());
        let heard_ago = facts.map(|facts| self.clock.now().since(facts.heard));
        let (node_state, bar) = self.node_state(state, name, is);
        message::Node {
            name: name.as_str().to_owned(),
            state: node_state.into(),
            bar: bar.unwrap_or(message::NodeBar::Unspecified).into(),
            slot: slot.map(|slot| slot.0),
            first_rank: slot.map(|slot| state.map.first_rank(slot).0),
            address: registered.map(|one| one.0.as_str().to_owned()).unwrap_or_default(),
            workers: registered.map_or(0, |one| one.1.get()),
            activity: facts.map(|facts| encode::activity(facts.activity)),
            heard_ago_ns: heard_ago.map(encode::nanoseconds),
            failures: state.failures.get(name).copied().unwrap_or(0),
            vitals: facts.and_then(|facts| facts.vitals.as_ref()).map(encode::vitals),
            worker_states: facts
                .map(|facts| facts.states.iter().map(encode::worker).collect())
                .unwrap_or_default(),
        }
    }

    /// What a node is, for clients.
    fn node_state(
        &self,
        state: &StoredState,
        name: &NodeName,
        is: NodeState,
    ) -> (message::NodeState, Option<message::NodeBar>) {
        let is_over = matches!(state.phase, Phase::Over(_));
        match is {
            NodeState::Active => (message::NodeState::Active, None),
            NodeState::Standby if self.offers_too_few(name) => {
                (message::NodeState::Barred, Some(message::NodeBar::TooFewWorkers))
            }
            NodeState::Standby => (message::NodeState::Standby, None),
            // Agents end with the job, so that their silence is no fault.
            NodeState::Silent if is_over => (message::NodeState::Ended, None),
            NodeState::Ended => (message::NodeState::Ended, None),
            NodeState::Silent => (message::NodeState::Silent, None),
            NodeState::Barred(why) => (message::NodeState::Barred, Some(bar(why))),
        }
    }

    /// Whether a node has registered with fewer workers than the job runs on one.
    fn offers_too_few(&self, name: &NodeName) -> bool {
        let registered = self.roster.facts(name).and_then(|facts| facts.registered.as_ref());
        registered.is_some_and(|(_, workers)| *workers < self.job.workers)
    }

    pub(super) fn rank_map(&self) -> Option<message::GetRankMapResponse> {
        let state = self.coordinator.state()?;
        let addresses = self.roster.addresses();
        let holders = state.map.holders().map(|(slot, node)| message::SlotHolder {
            slot: slot.0,
            node: node.as_str().to_owned(),
            address: addresses.get(node).map(|one| one.as_str().to_owned()).unwrap_or_default(),
        });
        Some(message::GetRankMapResponse {
            epoch: state.epoch.number(),
            digest: state.map.digest(),
            world_size: state.map.world_size(),
            workers_per_node: state.map.workers_per_node().get(),
            holders: holders.collect(),
        })
    }

    pub(super) fn steps(&self) -> Option<message::GetStepsResponse> {
        let steps = self.steps.as_ref().map(|steps| encode::steps(steps)).unwrap_or_default();
        self.coordinator.leads().then_some(steps)
    }

    pub(super) fn trace(
        &self,
        from: message::GetTraceRequest,
    ) -> Option<message::GetTraceResponse> {
        let trace = self.steps.as_ref().map(|steps| encode::trace(steps, from)).unwrap_or_default();
        self.coordinator.leads().then_some(trace)
    }

    pub(super) fn list_incidents(&self, limit: usize) -> Option<message::ListIncidentsResponse> {
        let incidents = self.incidents.list(limit);
        self.coordinator.leads().then_some(message::ListIncidentsResponse { incidents })
    }

    pub(super) fn list_decisions(&self, limit: usize) -> Option<message::ListDecisionsResponse> {
        let decisions = self.decisions.list(limit);
        self.coordinator.leads().then_some(message::ListDecisionsResponse { decisions })
    }

    pub(super) fn gauges(&self) -> Gauges {
        let job = self.coordinator.state().map(|state| {
            let Census { active, standby, silent, barred, ended } = self.census();
            JobGauges {
                term: self.leading.map_or(0, |(_, term)| term.number()),
                epoch: state.epoch.number(),
                runs: self.coordinator.runs(),
                mode: state.mode,
                restarts: state.restarts,
                incident_open: self.coordinator.incident().is_some(),
                active,
                standby,
                silent,
                barred,
                ended,
            }
        });
        Gauges {
            leads: self.coordinator.leads(),
            streams: self.roster.streams(),
            metrics: self.coordinator.metrics(),
            detection: self.detection_counts,
            dropped_incidents: self.dropped_incidents(),
            job,
        }
    }

    fn census(&self) -> Census {
        let mut census = Census::default();
        let Some(stored) = self.coordinator.state() else { return census };
        for (node, state) in self.coordinator.nodes() {
            *match self.node_state(stored, node, state).0 {
                message::NodeState::Active => &mut census.active,
                message::NodeState::Standby | message::NodeState::Unspecified => {
                    &mut census.standby
                }
                message::NodeState::Silent => &mut census.silent,
                message::NodeState::Barred => &mut census.barred,
                message::NodeState::Ended => &mut census.ended,
            } += 1;
            // One that is drained works until a spare has come.
            let works = matches!(state, NodeState::Barred(_)) && self.holds_and_is_heard(node);
            census.active += usize::from(works);
        }
        census
    }

    fn holds_and_is_heard(&self, node: &NodeName) -> bool {
        let holds = self.coordinator.state().is_some_and(|it| it.map.slot_of(node).is_some());
        let heard = self.roster.facts(node).map(|facts| self.clock.now().since(facts.heard));
        holds && heard.is_some_and(|ago| ago < self.policy.keep_alive)
    }
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

const fn bar(why: Bar) -> message::NodeBar {
    match why {
        Bar::Quarantined => message::NodeBar::Quarantined,
        Bar::Suspected => message::NodeBar::Suspected,
        Bar::Draining => message::NodeBar::Draining,
        Bar::Removed => message::NodeBar::Removed,
    }
}

const fn mode(mode: Mode) -> message::Mode {
    match mode {
        Mode::Observe => message::Mode::Observe,
        Mode::Recover => message::Mode::Recover,
        Mode::Act => message::Mode::Act,
    }
}
