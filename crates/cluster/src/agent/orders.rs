//! How an agent carries out orders, and what it acknowledges.
//!
//! An order is obeyed if its leader is the latest and it is later than the last one, and its epoch is
//! not over. The same order again is acknowledged again and does nothing else.

use std::num::NonZeroU16;

use super::resting::Resting;
use super::workers::Workers;
use super::{Agent, AgentOutput, AgentTask, Exit, LocalRank, environment};
use crate::epoch::{Epoch, JobIdentity};
use crate::message::{
    Assignment, JobOutcome, KnownJob, NotPrepared, Order, OrderStep, Ports, ToNode,
};
use crate::observation::{FailureDetail, Observation};
use crate::time::Moment;

/// The search for a free port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortSearch {
    /// None is asked for.
    NotAsked,
    /// One of these is being found.
    Waiting { ports: Ports },
    /// This one is held.
    Found { ports: Ports, port: NonZeroU16 },
    /// None was free.
    Failed { ports: Ports },
}

impl PortSearch {
    pub(super) const fn asked(&self) -> Option<Ports> {
        match *self {
            Self::NotAsked => None,
            Self::Waiting { ports } | Self::Found { ports, .. } | Self::Failed { ports } => {
                Some(ports)
            }
        }
    }
}

impl Agent {
    pub(super) fn obey(&mut self, now: Moment, message: ToNode, outputs: &mut Vec<AgentOutput>) {
        let ToNode { term, sequence, epoch, job, order } = message;
        if self.task == AgentTask::Clearing {
            return;
        }
        if let Order::Forget(job) = order {
            self.forget(now, job, outputs);
            return;
        }
        let is_other = job.is_some() && self.known.is_some_and(|known| job != Some(known.job));
        if order == Order::Register && is_other {
            // Its leader has yet to see that this agent is of another job, whose own leader must go on to be obeyed.
            self.registered = false;
            self.next_message = now;
            return;
        }
        if let Some((heard_term, heard_sequence)) = self.heard {
            if term < heard_term {
                self.metrics.stale_terms += 1;
                return;
            }
            if term == heard_term && sequence <= heard_sequence {
                self.metrics.stale_orders += 1;
                return;
            }
        }
        self.heard = Some((term, sequence));
        if let Some(job) = job {
            self.learn(job, epoch, &order);
        }
        match order {
            Order::Welcome => {
                self.registered = true;
                self.next_message = now;
            }
            Order::Register => {
                self.registered = false;
                self.next_message = now;
            }
            _ if epoch < self.epoch => self.metrics.stale_epochs += 1,
            Order::Prepare { ports, planned } => {
                self.prepare(now, (epoch, planned), ports, outputs);
            }
            Order::Examine { reports } => {
                if self.running() == Some(epoch) {
                    outputs.push(AgentOutput::Examine { epoch, reports });
                }
            }
            Order::Commit(assignment) => self.commit(now, (job, epoch), assignment, outputs),
            Order::Standby | Order::Evict => self.rest(now, epoch, None, outputs),
            Order::Stop(outcome) => self.rest(now, epoch, Some(outcome), outputs),
            Order::Forget(_) => unreachable!("it was obeyed above"),
        }
    }

    /// Knows the job that it is taken into. Who only asks it to register may lead another.
    fn learn(&mut self, job: JobIdentity, epoch: Epoch, order: &Order) {
        let takes = matches!(order, Order::Welcome | Order::Prepare { .. } | Order::Commit(_));
        self.known = match self.known {
            Some(known) if known.job == job => {
                Some(KnownJob { job, epoch: known.epoch.max(epoch) })
            }
            _ if takes => Some(KnownJob { job, epoch }),
            former => former,
        };
    }

    /// Ends what it does for a job, and knows nothing of it any more, nor of who led it.
    fn forget(&mut self, now: Moment, job: JobIdentity, outputs: &mut Vec<AgentOutput>) {
        if self.known.is_none_or(|known| known.job != job) {
            return;
        }
        self.rest(now, Epoch::NONE_RAN, None, outputs);
        self.known = None;
        self.heard = None;
        self.registered = false;
        self.starts = 0;
    }

    fn prepare(
        &mut self,
        now: Moment,
        (epoch, planned): (Epoch, bool),
        ports: Option<Ports>,
        outputs: &mut Vec<AgentOutput>,
    ) {
        match &self.task {
            AgentTask::Committed { epoch: running, .. } if *running == epoch => {
                self.metrics.stale_epochs += 1;
                return;
            }
            _ => {}
        }
        self.end_epoch(now);
        if planned {
            // Budget and rest are for failures, and workers may have failed for what was planned.
            self.starts = 0;
            self.resting = Resting::default();
        }
        self.epoch = epoch;
        self.over = None;
        let same = match &self.task {
            AgentTask::Preparing { epoch: known, search } => {
                *known == epoch
                    && search.asked() == ports
                    && !matches!(search, PortSearch::Failed { .. })
            }
            _ => false,
        };
        if !same {
            let search = ports.map_or(PortSearch::NotAsked, |ports| PortSearch::Waiting { ports });
            self.task = AgentTask::Preparing { epoch, search };
            self.observed = Observation::default();
            self.stop_workers(now, outputs);
        }
        if let AgentTask::Preparing { search: PortSearch::Waiting { ports }, .. } = self.task {
            outputs.push(AgentOutput::HoldPort(ports));
        }
        self.report_progress(outputs);
    }

    /// Resets the count of starts if the epoch that ends has lasted, and those that end soon.
    fn end_epoch(&mut self, now: Moment) {
        let AgentTask::Committed { at, .. } = &self.task else { return };
        let lasted = now.since(*at);
        if lasted >= self.policy.lasting {
            self.starts = 0;
        }
        self.resting.epoch_ended(now, lasted);
    }

    /// Goes on with preparing when it has rested.
    pub(super) fn end_rest(&mut self, now: Moment, outputs: &mut Vec<AgentOutput>) {
        if self.resting.ends(now) {
            self.report_progress(outputs);
        }
    }

    /// Tells how far preparing has come.
    fn report_progress(&mut self, outputs: &mut Vec<AgentOutput>) {
        let AgentTask::Preparing { epoch, search } = self.task else { return };
        if self.leaving {
            return;
        }
        // As long as workers live nothing else is said: who cannot prepare is replaced in the same epoch.
        let step = if self.workers.any_alive() {
            OrderStep::Stopping
        } else if self.starts >= self.policy.restart_budget {
            OrderStep::NotPrepared(NotPrepared::RestartsUsedUp)
        } else if self.resting.present().is_some() {
            OrderStep::Stopping
        } else {
            match search {
                PortSearch::NotAsked => OrderStep::Prepared { port: None },
                PortSearch::Found { port, .. } => OrderStep::Prepared { port: Some(port) },
                PortSearch::Waiting { .. } => OrderStep::Stopping,
                PortSearch::Failed { .. } => OrderStep::NotPrepared(NotPrepared::NoPort),
            }
        };
        self.acknowledge(epoch, step, outputs);
    }

    pub(super) fn port_held(
        &mut self,
        of: Ports,
        port: Option<NonZeroU16>,
        outputs: &mut Vec<AgentOutput>,
    ) {
        let AgentTask::Preparing { search, .. } = &mut self.task else { return };
        let PortSearch::Waiting { ports } = *search else { return };
        if ports != of {
            return;
        }
        *search = match port {
            Some(port) => PortSearch::Found { ports, port },
            None => PortSearch::Failed { ports },
        };
        if !self.workers.any_alive() {
            self.report_progress(outputs);
        }
    }

    fn commit(
        &mut self,
        now: Moment,
        (job, epoch): (Option<JobIdentity>, Epoch),
        assignment: Assignment,
        outputs: &mut Vec<AgentOutput>,
    ) {
        match &self.task {
            AgentTask::Committed { epoch: running, .. } if *running == epoch => {
                self.report_started(outputs);
                return;
            }
            AgentTask::Preparing { epoch: prepared, .. }
                if *prepared == epoch && !self.workers.any_alive() => {}
            _ => {
                self.metrics.stale_epochs += 1;
                return;
            }
        }
        assert!(!self.workers.any_alive(), "workers of two epochs never run at once");
        self.starts += 1;
        self.resting.begin();
        self.workers = Workers::starting(epoch, assignment.workers);
        for local in self.workers.alive() {
            let most = self.policy.restart_budget;
            let environment = environment((job, epoch), &assignment, local, most);
            outputs.push(AgentOutput::Start { epoch, local, environment });
            self.metrics.starts += 1;
        }
        self.task = AgentTask::Committed { epoch, assignment, at: now };
    }

    fn report_started(&mut self, outputs: &mut Vec<AgentOutput>) {
        if let AgentTask::Committed { epoch, .. } = self.task
            && !self.workers.any_starting()
        {
            self.acknowledge(epoch, OrderStep::Started, outputs);
        }
    }

    fn rest(
        &mut self,
        now: Moment,
        epoch: Epoch,
        over: Option<JobOutcome>,
        outputs: &mut Vec<AgentOutput>,
    ) {
        self.end_epoch(now);
        self.epoch = epoch;
        self.task = AgentTask::Idle;
        self.over = over;
        self.stop_workers(now, outputs);
        self.next_message = now;
        self.report_over(outputs);
    }

    fn report_over(&mut self, outputs: &mut Vec<AgentOutput>) {
        if !self.workers.any_alive()
            && let Some(outcome) = self.over.take()
        {
            outputs.push(AgentOutput::Over(outcome));
        }
    }

    /// Asks every worker to stop. Those that were asked before keep their time.
    fn stop_workers(&mut self, now: Moment, outputs: &mut Vec<AgentOutput>) {
        let Some(epoch) = self.workers.epoch() else { return };
        if self.workers.kill_at.is_none() {
            self.workers.kill_at = Some(now.after(self.policy.stop_grace));
            for local in self.workers.alive() {
                outputs.push(AgentOutput::Terminate { epoch, local });
            }
        }
    }

    /// Kills workers that were asked to stop long enough ago; again each second while they live.
    pub(super) fn kill_the_slow(&mut self, now: Moment, outputs: &mut Vec<AgentOutput>) {
        let Some(epoch) = self.workers.epoch() else { return };
        let Some(kill_at) = self.workers.kill_at else { return };
        if now < kill_at || !self.workers.any_alive() {
            return;
        }
        self.workers.kill_at = Some(now.after(self.policy.report_interval));
        for local in self.workers.alive() {
            self.metrics.kills += 1;
            outputs.push(AgentOutput::Kill { epoch, local });
        }
    }

    pub(super) fn worker_started(
        &mut self,
        now: Moment,
        (epoch, local): (Epoch, LocalRank),
        outputs: &mut Vec<AgentOutput>,
    ) {
        if !self.workers.started(epoch, local) {
            self.metrics.stale_workers += 1;
            return;
        }
        if self.workers.kill_at.is_some() {
            // It was ordered to stop before it existed.
            outputs.push(AgentOutput::Terminate { epoch, local });
        } else if !self.workers.any_starting() {
            self.report_started(outputs);
            self.next_message = now;
        }
    }

    pub(super) fn worker_ended(
        &mut self,
        now: Moment,
        (epoch, local): (Epoch, LocalRank),
        exit: Option<Exit>,
        detail: FailureDetail,
        outputs: &mut Vec<AgentOutput>,
    ) {
        let was_asked = self.workers.kill_at.is_some();
        if !self.workers.ended(now, (epoch, local), exit, detail) {
            self.metrics.stale_workers += 1;
            return;
        }
        if let (AgentTask::Committed { at, .. }, Some(exit), false) = (&self.task, exit, was_asked)
        {
            self.resting.worker_ended(now.since(*at), exit);
        }
        match self.task {
            AgentTask::Committed { .. }
                if self.workers.any_failed() || !self.workers.any_alive() =>
            {
                self.next_message = now;
            }
            AgentTask::Preparing { .. } if !self.workers.any_alive() => {
                self.report_progress(outputs)
            }
            AgentTask::Idle => self.report_over(outputs),
            _ => {}
        }
    }
}
