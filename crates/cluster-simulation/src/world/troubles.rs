//! What goes wrong, drawn from the seed, and how everything is mended in the end.

use std::time::Duration;

use telltale_cluster::agent::{AgentInput, Exit};
use telltale_cluster::coordinator::{Coordinator, Input, OperatorOrder, RequestId};
use telltale_cluster::node::NodeName;
use telltale_cluster::policy::Mode;
use telltale_cluster::stored::StoredState;
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::{Suspect, Suspects, Verdict, VerdictKind};

use super::hosts::TERMINATE;
use super::reruns::AgentEnd;
use super::{World, WorldEvent};
use crate::clock::TrueTime;
use crate::defect::Defect;
use crate::network::NetworkMachine;
use crate::scenario::{Kinds, Scenario};
use crate::store::StoreTrouble;

/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(1_000_000);

/// The longest that workers take to stop when their agent is asked to end.
const LEAVING: Duration = Duration::from_millis(300);

/// Links that are suspected at once: more than an incident keeps events.
const MANY_LINKS: usize = 300;

/// Something that goes wrong at one place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trouble {
    /// A worker of this host ends like this.
    WorkerFails { host: usize, exit: Exit },
    /// The host loses power, and comes back after a time, or not.
    HostDies { host: usize, back_after: Option<Duration> },
    /// The agent crashes; its workers stay.
    AgentCrashes { host: usize, back_after: Duration },
    /// The agent is asked to end, and is started again later.
    AgentLeaves { host: usize, back_after: Duration },
    /// Nothing moves on the host for a time, or ever again.
    HostPauses { host: usize, pause: Option<Duration> },
    /// A host and all coordinators do not hear each other, or only one way.
    HostCut { host: usize, hears: bool, heard: bool, lasts: Duration },
    /// Messages are lost, doubled and held up everywhere.
    Weather { loss: f64, duplication: f64, delay: f64, lasts: Duration },
    /// A coordinator crashes.
    SeatCrashes { replica: usize, back_after: Duration },
    /// A coordinator stands still.
    SeatPauses { replica: usize, pause: Duration },
    /// A coordinator is cut off from the store, or its answers are.
    SeatLosesStore { replica: usize, asks: bool, lasts: Duration },
    /// A coordinator is cut off from all nodes.
    SeatLosesHosts { replica: usize, lasts: Duration },
    /// The store fails.
    StoreFails { trouble: StoreTrouble, lasts: Duration },
    /// Detection suspects one node, or cannot tell which of two.
    Suspected { host: usize, other: Option<usize>, lasts: Duration },
    /// The operator of planned re-runs checks the job.
    Rerun,
    /// The next that an operator does to a store that is behind in the end.
    StoreIsReplaced,
    /// An agent ends because the job is over.
    AgentEnds { host: usize, end: AgentEnd },
    /// It is started again.
    AgentIsBack { host: usize },
    /// The one trouble of a scenario that has but one.
    TheOne,
    /// An operator orders something.
    Ordered { host: usize, what: u64 },
    /// What a trouble has cut is mended.
    Mend { cut_by: u64 },
    /// The weather is fine again.
    WeatherEnds,
    /// The store works again.
    StoreWorks,
}

/// What detection says, and how long.
#[derive(Debug, Clone)]
pub(super) struct Suspicion {
    suspects: Suspects,
    from: TrueTime,
    until: TrueTime,
}

impl Scenario {
    /// How likely a worker cannot be started.
    pub(super) fn failing_starts(&self) -> f64 {
        if self.troubles > 8 && self.kinds == Kinds::All { 0.01 } else { 0.0 }
    }
}

impl World {
    pub(super) fn draw_troubles(&mut self) {
        if self.scenario.kinds == Kinds::PlannedReruns {
            self.plan_reruns();
        } else if self.scenario.kinds == Kinds::StoreBehind {
            self.plan_stale_store();
        } else if matches!(self.scenario.kinds, Kinds::CrowdCut | Kinds::CrowdCutAmongFailures) {
            self.after(Duration::from_secs(10), WorldEvent::Trouble(Trouble::TheOne));
        } else if !matches!(self.scenario.kinds, Kinds::All | Kinds::Coordinators) {
            let mut before = Duration::from_millis(1);
            if self.scenario.kinds == Kinds::CrashAmongSuspicions {
                self.suspect_links(self.scenario.troubled / 2);
                // At any time between two checks the incident that is held.
                before += self.random.duration(Duration::ZERO, Duration::from_millis(100));
            }
            let shortly_before = self.scenario.troubled.saturating_sub(before);
            self.after(shortly_before, WorldEvent::Trouble(Trouble::TheOne));
        }
        let mut gone = 0;
        for _ in 0..self.scenario.troubles {
            let at = self.random.duration(Duration::from_secs(2), self.scenario.troubled);
            let mut trouble = match self.scenario.kinds {
                Kinds::All if self.random.happens(0.7) => self.host_trouble(),
                Kinds::All if self.random.happens(0.3) => self.weather(),
                _ => self.replica_trouble(),
            };
            // Enough nodes stay for the job to go on, and too few go for the coordinator to doubt itself.
            if let Trouble::HostDies { back_after: back @ None, .. }
            | Trouble::HostPauses { pause: back @ None, .. } = &mut trouble
            {
                if gone < self.scenario.spares.min((self.scenario.job.slots / 2).max(1)) {
                    gone += 1;
                } else {
                    *back = Some(Duration::from_secs(4));
                }
            }
            self.after(at, WorldEvent::Trouble(trouble));
        }
    }

    pub(super) fn some_time(&mut self, most_s: u64) -> Duration {
        self.random.duration(Duration::from_millis(50), Duration::from_secs(most_s))
    }

    pub(super) fn some_host(&mut self) -> usize {
        self.random.index(self.hosts.len()).expect("a cluster has hosts")
    }

    fn host_trouble(&mut self) -> Trouble {
        let host = self.some_host();
        match self.random.below(14) {
            0 | 1 => Trouble::WorkerFails { host, exit: Exit::Signal(9) },
            2 => Trouble::WorkerFails { host, exit: Exit::Code(1) },
            3 | 4 => {
                let back_after = self.random.happens(0.6).then(|| self.some_time(12));
                Trouble::HostDies { host, back_after }
            }
            5 => Trouble::AgentCrashes { host, back_after: self.some_time(8) },
            6 | 7 => {
                let pause = self.random.happens(0.7).then(|| self.some_time(15));
                Trouble::HostPauses { host, pause }
            }
            8 | 9 => {
                let way = self.random.below(3);
                Trouble::HostCut {
                    host,
                    hears: way == 1,
                    heard: way == 2,
                    lasts: self.some_time(15),
                }
            }
            10 | 11 => {
                let doubt = self.random.happens(0.6).then(|| self.some_host());
                let other = doubt.filter(|other| *other != host);
                let lasts = Duration::from_secs(5) + self.some_time(15);
                Trouble::Suspected { host, other, lasts }
            }
            12 => Trouble::AgentLeaves { host, back_after: LEAVING + self.some_time(8) },
            _ => Trouble::Ordered { host, what: self.random.below(5) },
        }
    }

    fn replica_trouble(&mut self) -> Trouble {
        let replica = self.random.index(self.replicas.len()).expect("there are two coordinators");
        match self.random.below(5) {
            0 => Trouble::SeatCrashes { replica, back_after: self.some_time(10) },
            1 => Trouble::SeatPauses { replica, pause: self.some_time(10) },
            2 => Trouble::SeatLosesStore {
                replica,
                asks: self.random.happens(0.5),
                lasts: self.some_time(10),
            },
            3 => Trouble::SeatLosesHosts { replica, lasts: self.some_time(12) },
            _ => {
                let torn = self.random.happens(0.5);
                let trouble = if torn { StoreTrouble::Torn } else { StoreTrouble::Full };
                Trouble::StoreFails { trouble, lasts: self.some_time(6) }
            }
        }
    }

    fn weather(&mut self) -> Trouble {
        Trouble::Weather {
            loss: self.random.unit() * 0.25,
            duplication: self.random.unit() * 0.3,
            delay: self.random.unit() * 0.3,
            lasts: self.some_time(10),
        }
    }

    pub(super) fn trouble(&mut self, trouble: Trouble) {
        if self.healed {
            return;
        }
        match trouble {
            Trouble::WorkerFails { host, exit } => self.worker_fails(host, exit),
            Trouble::HostDies { host, back_after } => self.host_dies(host, back_after),
            Trouble::AgentCrashes { host, back_after } => self.agent_crashes(host, back_after),
            Trouble::AgentLeaves { host, back_after } => self.agent_leaves(host, back_after),
            Trouble::HostPauses { host, pause } => self.pause_host(host, pause),
            Trouble::HostCut { host, hears, heard, lasts } => {
                self.excuse(host, lasts);
                let replicas = 0..self.replicas.len();
                let to = replicas.clone().filter(|_| !hears);
                let to = to
                    .map(|replica| (NetworkMachine::Replica(replica), NetworkMachine::Host(host)));
                let from = replicas.filter(|_| !heard);
                let from = from
                    .map(|replica| (NetworkMachine::Host(host), NetworkMachine::Replica(replica)));
                let ways: Vec<_> = to.chain(from).collect();
                self.cut(&ways, lasts);
            }
            Trouble::Weather { loss, duplication, delay, lasts } => {
                self.network.loss = loss;
                self.network.duplication = duplication;
                self.network.delay = delay;
                // Lost orders and reports may cost anybody its slot.
                (0..self.hosts.len()).for_each(|host| self.excuse(host, lasts));
                self.after(lasts, WorldEvent::Trouble(Trouble::WeatherEnds));
            }
            Trouble::WeatherEnds => {
                self.network.loss = 0.0;
                self.network.duplication = 0.0;
                self.network.delay = 0.0;
            }
            Trouble::SeatCrashes { replica, back_after } => {
                self.replica_crashes(replica, back_after)
            }
            Trouble::SeatPauses { replica, pause } => {
                self.replicas[replica].paused_until = self.now.after(pause);
            }
            Trouble::SeatLosesStore { replica, asks, lasts } => {
                let asking = (NetworkMachine::Replica(replica), NetworkMachine::Store);
                let answers = (NetworkMachine::Store, NetworkMachine::Replica(replica));
                let ways = [asking, answers];
                self.cut(if asks { &ways[1..] } else { &ways }, lasts);
            }
            Trouble::SeatLosesHosts { replica, lasts } => {
                let hosts = (0..self.hosts.len()).map(NetworkMachine::Host);
                let replica = NetworkMachine::Replica(replica);
                let ways: Vec<_> =
                    hosts.flat_map(|host| [(replica, host), (host, replica)]).collect();
                self.cut(&ways, lasts);
            }
            Trouble::StoreFails { trouble, lasts } => {
                self.store.trouble = trouble;
                self.after(lasts, WorldEvent::Trouble(Trouble::StoreWorks));
            }
            Trouble::StoreWorks => self.store.trouble = StoreTrouble::None,
            Trouble::Suspected { host, other, lasts } => self.suspect(host, other, lasts),
            Trouble::Rerun => self.rerun(),
            Trouble::StoreIsReplaced => self.replace_store(),
            Trouble::AgentEnds { host, end } => self.agent_ends(host, end),
            Trouble::AgentIsBack { host } => self.agent_is_back(host),
            Trouble::TheOne => self.the_one_trouble(),
            Trouble::Ordered { host, what } => self.operate(host, what),
            Trouble::Mend { cut_by } => self.network.mend(cut_by),
        }
    }

    fn the_one_trouble(&mut self) {
        let busy = (0..self.hosts.len()).filter(|host| !self.hosts[*host].processes.is_empty());
        let mut busy: Vec<usize> = busy.collect();
        let Some(chosen) = self.random.index(busy.len()) else { return };
        let host = busy[chosen];
        match self.scenario.kinds {
            Kinds::CrowdCut | Kinds::CrowdDeath => self.lose_a_crowd(&mut busy),
            Kinds::CrowdCutAmongFailures => {
                self.lose_a_crowd(&mut busy);
                self.fail_beside_it(busy);
            }
            Kinds::OneDeath => self.host_dies(host, None),
            Kinds::OneDeparture => self.agent_leaves(host, FOR_EVER),
            Kinds::OneFreeze => self.pause_host(host, None),
            Kinds::OneSuspicion => self.suspect(host, None, FOR_EVER),
            Kinds::CrashAmongSuspicions => self.worker_fails(host, Exit::Code(1)),
            _ => self.worker_fails(host, Exit::Signal(9)),
        }
    }

    /// More than a fifth of the hosts are gone at once, and are not among the busy any more.
    fn lose_a_crowd(&mut self, busy: &mut Vec<usize>) {
        let dies = self.scenario.kinds == Kinds::CrowdDeath;
        // As many spares as there are take the places of the dead.
        let most = if dies { 4 } else { busy.len().saturating_sub(1) };
        let count = 3 + self.random.index(most.saturating_sub(2)).unwrap_or(0);
        let lasts = self.random.duration(Duration::from_secs(6), Duration::from_secs(58));
        let stands_still =
            self.scenario.kinds == Kinds::CrowdCutAmongFailures && self.random.happens(0.5);
        for _ in 0..count {
            let Some(chosen) = self.random.index(busy.len()) else { return };
            let host = busy.swap_remove(chosen);
            if dies {
                self.host_dies(host, None);
                continue;
            }
            if stands_still {
                self.pause_host(host, Some(lasts));
                continue;
            }
            let replicas = (0..self.replicas.len()).map(NetworkMachine::Replica);
            let host = NetworkMachine::Host(host);
            let ways: Vec<_> =
                replicas.flat_map(|replica| [(replica, host), (host, replica)]).collect();
            self.cut(&ways, lasts);
        }
    }

    /// Workers of one or two hosts that are left exit, before a crowd is known to be silent or after.
    fn fail_beside_it(&mut self, mut left: Vec<usize>) {
        for _ in 0..1 + self.random.below(2) {
            let Some(chosen) = self.random.index(left.len()) else { return };
            let host = left.swap_remove(chosen);
            let wait = self.random.duration(Duration::from_millis(1), Duration::from_secs(8));
            let exit = Exit::Code(1);
            self.after(wait, WorldEvent::Trouble(Trouble::WorkerFails { host, exit }));
        }
    }

    fn excuse(&mut self, host: usize, lasts: Duration) {
        let name = self.hosts[host].name.clone();
        self.safety.excuse(&name, self.now.after(lasts));
    }

    /// Cuts ways for some time.
    fn cut(&mut self, ways: &[(NetworkMachine, NetworkMachine)], lasts: Duration) {
        self.cuts += 1;
        for (from, to) in ways {
            self.network.cut(*from, *to, self.cuts);
        }
        self.after(lasts, WorldEvent::Trouble(Trouble::Mend { cut_by: self.cuts }));
    }

    fn worker_fails(&mut self, host: usize, exit: Exit) {
        let runs = self.hosts[host].processes.iter().filter(|worker| worker.runs);
        let ids: Vec<u64> = runs.map(|worker| worker.id).collect();
        if let Some(chosen) = self.random.index(ids.len()) {
            self.excuse(host, Duration::ZERO);
            self.after(Duration::ZERO, WorldEvent::ProcessEnds { host, id: ids[chosen], exit });
        }
    }

    fn host_dies(&mut self, index: usize, back_after: Option<Duration>) {
        self.excuse(index, back_after.unwrap_or(FOR_EVER));
        let host = &mut self.hosts[index];
        host.agent = None;
        host.dead |= back_after.is_none();
        host.life += 1;
        host.paused_until = self.now;
        let life = host.life;
        let ended: Vec<_> = host.processes.drain(..).collect();
        for worker in ended {
            if worker.runs {
                self.safety.process_ended(worker.seen(index));
            }
            self.echo(worker.epoch);
        }
        if let Some(wait) = back_after {
            self.after(wait, WorldEvent::AgentStarts { host: index, life });
        }
    }

    fn agent_crashes(&mut self, index: usize, back_after: Duration) {
        self.excuse(index, back_after);
        let host = &mut self.hosts[index];
        if host.agent.take().is_some() {
            host.life += 1;
            let life = host.life;
            self.after(back_after, WorldEvent::AgentStarts { host: index, life });
        }
    }

    /// The agent says goodbye, stops its workers and ends. Who stands still does not hear that it is asked to.
    pub(super) fn agent_leaves(&mut self, index: usize, back_after: Duration) {
        if self.hosts[index].agent.is_none() || self.now < self.hosts[index].paused_until {
            return;
        }
        if self.scenario.kinds != Kinds::PlannedReruns {
            self.excuse(index, back_after.min(LEAVING));
        }
        self.safety.left(&self.hosts[index].name, self.now);
        self.agent_step(index, AgentInput::Leave);
        let host = &mut self.hosts[index];
        host.mark_planned_end();
        host.agent = None;
        host.life += 1;
        let life = host.life;
        let ids: Vec<u64> = host.processes.iter().map(|worker| worker.id).collect();
        for id in ids {
            let wait = self.random.duration(Duration::ZERO, LEAVING);
            self.after(wait, WorldEvent::ProcessEnds { host: index, id, exit: TERMINATE });
        }
        self.after(back_after, WorldEvent::AgentStarts { host: index, life });
    }

    fn pause_host(&mut self, index: usize, pause: Option<Duration>) {
        let pause = pause.unwrap_or(FOR_EVER);
        self.excuse(index, pause);
        let host = &mut self.hosts[index];
        host.paused_until = host.paused_until.max(self.now.after(pause));
    }

    pub(super) fn replica_crashes(&mut self, index: usize, back_after: Duration) {
        let replica = &mut self.replicas[index];
        if replica.coordinator.take().is_some() {
            replica.life += 1;
            let life = replica.life;
            self.after(back_after, WorldEvent::ReplicaStarts { replica: index, life });
        }
    }

    fn suspect(&mut self, host: usize, other: Option<usize>, lasts: Duration) {
        let suspect = |host: usize| Suspect::Node(self.hosts[host].name.clone());
        let suspects = match other {
            Some(other) => Suspects::Ambiguous(vec![suspect(host), suspect(other)]),
            None => Suspects::One(suspect(host)),
        };
        if other.is_none() {
            self.excuse(host, lasts);
        }
        let (from, until) = (self.now, self.now.after(lasts));
        self.suspicions.push(Suspicion { suspects, from, until });
    }

    /// Suspects many links after a time, for ever. They are of nodes that are nowhere else, since only their number
    /// matters and no node is evicted for a link.
    fn suspect_links(&mut self, wait: Duration) {
        let name =
            |text: String| NodeName::new(&text).expect("a short name without odd characters");
        let from = self.now.after(wait);
        for index in 0..MANY_LINKS {
            let (one, two) = (name(format!("link-{index}-from")), name(format!("link-{index}-to")));
            let link = Suspect::Link { from: one, to: two, both_ways: true };
            let suspects = Suspects::One(link);
            self.suspicions.push(Suspicion { suspects, from, until: from.after(FOR_EVER) });
        }
    }

    /// What detection says at present.
    pub(super) fn verdicts(&self, now: Moment) -> Vec<Verdict> {
        let lasting =
            self.suspicions.iter().filter(|one| one.from <= self.now && one.until > self.now);
        let verdict = |one: &Suspicion| {
            let mut suspects = one.suspects.clone();
            if let (Suspects::Ambiguous(all), Some(Defect::AmbiguityIgnored)) =
                (&suspects, self.defect)
            {
                suspects = Suspects::One(all[0].clone());
            }
            let windows = u32::try_from(self.now.since(one.from).as_secs()).unwrap_or(u32::MAX);
            let is_link = matches!(suspects, Suspects::One(Suspect::Link { .. }));
            Verdict {
                kind: if is_link { VerdictKind::SlowLink } else { VerdictKind::SlowNode },
                suspects,
                confidence: 1.0,
                evidence: Vec::new(),
                first_seen: now,
                windows,
            }
        };
        lasting.map(verdict).collect()
    }

    fn operate(&mut self, host: usize, what: u64) {
        let node = self.hosts[host].name.clone();
        let order = match what {
            0 => OperatorOrder::Restart,
            1 => OperatorOrder::Drain(node),
            2 => OperatorOrder::Remove(node),
            3 => OperatorOrder::SetMode(Mode::Observe),
            _ => OperatorOrder::Readmit(node),
        };
        self.command(order);
    }

    /// Whether detection names, and the scenario wants replaced, a node that has a slot.
    pub(super) fn suspect_has_slot(&self, state: &StoredState) -> bool {
        self.scenario.kinds == Kinds::OneSuspicion
            && self.suspicions.iter().any(|one| {
                one.suspects.node().is_some_and(|node| state.map.slot_of(node).is_some())
            })
    }

    pub(super) fn command(&mut self, order: OperatorOrder) {
        if let OperatorOrder::SetMode(mode) = &order {
            self.observes = *mode == Mode::Observe;
        }
        let out: Option<&NodeName> = match &order {
            OperatorOrder::Drain(node) | OperatorOrder::Remove(node) => Some(node),
            _ => None,
        };
        // A drained node leaves when a spare comes, which may be late.
        let until = self.now.after(out.map_or(Duration::ZERO, |_| Duration::from_secs(1_000)));
        // To observe only is no reason for anything.
        if order != OperatorOrder::SetMode(Mode::Observe) {
            self.safety.ordered(out, until);
        }
        self.requests += 1;
        let order = self.misheard(order);
        let input = Input::Operator { request: RequestId(self.requests), order };
        for replica in 0..self.replicas.len() {
            if self.replicas[replica].coordinator.as_ref().is_some_and(Coordinator::leads) {
                let life = self.replicas[replica].life;
                let input = Box::new(input.clone());
                self.after(Duration::ZERO, WorldEvent::ReplicaInput { replica, life, input });
            }
        }
    }

    /// Everything is mended: hosts that may come back do, quarantined nodes are readmitted.
    pub(super) fn heal(&mut self) {
        self.healed = true;
        self.network.heal();
        self.store.trouble = StoreTrouble::None;
        if !matches!(self.scenario.kinds, Kinds::OneSuspicion | Kinds::CrashAmongSuspicions) {
            self.suspicions.clear();
        }
        for index in 0..self.hosts.len() {
            let host = &mut self.hosts[index];
            if host.paused_until > self.now {
                // Events that wait for the end of the pause come at that time, so it must stay.
                let rest = host.paused_until.since(self.now);
                self.excuse(index, rest);
            }
            if self.hosts[index].agent.is_none() {
                let life = self.hosts[index].life;
                self.after(Duration::from_secs(1), WorldEvent::AgentStarts { host: index, life });
            }
        }
        for index in 0..self.replicas.len() {
            if self.replicas[index].coordinator.is_none() {
                let life = self.replicas[index].life;
                self.after(
                    Duration::from_secs(1),
                    WorldEvent::ReplicaStarts { replica: index, life },
                );
            }
        }
    }

    /// An operator undoes what keeps nodes out and the coordinator from acting, as long as it takes.
    pub(super) fn let_in(&mut self) {
        let mode = self.scenario.policy.mode;
        let state = self.replicas.iter().find_map(|replica| replica.coordinator.as_ref()?.state());
        let Some(state) = state else { return };
        let mut orders: Vec<OperatorOrder> = Vec::new();
        if state.mode != mode {
            orders.push(OperatorOrder::SetMode(mode));
        }
        orders.extend(state.barred.keys().cloned().map(OperatorOrder::Readmit));
        for order in orders {
            self.command(order);
        }
    }
}
