//! The agent's program: steps the [`Agent`] and does what it wants done.
//!
//! It gives the machine a clock, processes, a way to the coordinator and what workers tell, and
//! decides nothing. All of it runs on one thread.

mod connection;
mod ending;
mod examiner;
mod forwarding;
mod planned_end;

use std::collections::VecDeque;
use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tracing::{debug, error, info, warn};

use rustix::process::Signal;
use telltale_schema::text::printable;
use telltale_wire::cluster::message::NodeMessage;
use telltale_wire::cluster::message::node_message::Body;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;
use tokio::time::MissedTickBehavior;

use crate::intake::server::{
    IntakeServeError, IntakeServer, MAX_WAITING_WISHES, ORDER_TIMEOUT, ServerOptions, Wish,
};
use crate::intake::{Intake, OwnCounts, Scope};
use crate::operator::Operator;
use crate::protocol::encode;
use crate::random;
use crate::reach::{CoordinatorAddress, Keyring};
use crate::readers::{FileReader, Format};
use crate::supervisor::{HeldPort, Supervisor, SupervisorError, WorkerEvent, WorkerSettings};
use connection::{Brought, CoordinatorTarget};
use examiner::Examiner;
use planned_end::PlannedEnd;
use telltale_cluster::agent::{Agent, AgentInput, AgentOutput, Exit, Identity, LocalRank};
use telltale_cluster::epoch::{Epoch, Term};
use telltale_cluster::message::{
    Acknowledgement, FromNode, FromNodeBody, JobOutcome, Order, OrderStep, ToNode,
};
use telltale_cluster::node::NodeName;
use telltale_cluster::observation::FailureDetail;
use telltale_cluster::policy::AgentPolicy;
use telltale_cluster::rank::{Rank, WorkersPerNode};
use telltale_cluster::time::Moment;
use telltale_cluster::vitals::NodeHealth;

pub use ending::{AgentEnding, Signals, SignalsError, Stop, is_hang_up_ignored};

/// How often workers are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long the last word may take to be on its way.
const FAREWELL: Duration = Duration::from_millis(200);

/// Everything an agent needs to know before it begins.
#[derive(Debug)]
pub struct AgentPlan {
    /// Who it is.
    pub identity: Identity,
    /// The job that it is for; without a name, whichever its coordinator runs.
    pub job: Option<String>,
    /// How it acts.
    pub policy: AgentPolicy,
    /// How it runs workers.
    pub supervision: WorkerSettings,
    /// Where coordinators are.
    pub coordinators: Vec<CoordinatorAddress>,
    /// What permits it to serve them.
    pub keyring: Keyring,
    /// Where workers report their collectives, and its metrics are read.
    pub listeners: Vec<telltale_server::listen::Listener>,
    /// Who may ask it for what.
    pub http: ServerOptions,
    /// What other tools write about collectives, and where.
    pub readers: Vec<(Format, PathBuf)>,
    /// The node's health, as the node service reports it.
    pub health: watch::Receiver<NodeHealth>,
    /// Whether it stays when the job is over.
    pub stays: bool,
    /// Whether workers get `SIGINT` where that is what ends this process, and not `SIGTERM`.
    pub passes_interrupt: bool,
}

/// Why an agent cannot run.
#[derive(Debug, Error)]
pub enum AttendError {
    /// It cannot supervise workers.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// It cannot serve its HTTP.
    #[error(transparent)]
    Serve(#[from] IntakeServeError),
}

/// Runs an agent until the job is over or a signal comes. When the job is over, it waits for `parting` before it says
/// goodbye: what the coordinator still has to be asked by this process.
///
/// # Errors
/// When workers cannot be supervised, or the HTTP not served.
pub async fn attend(
    mut plan: AgentPlan,
    signals: &mut Signals,
    parting: impl Future<Output = ()>,
) -> Result<AgentEnding, AttendError> {
    let state = plan.supervision.state.clone();
    let examiner = Examiner::start(plan.supervision.program.clone(), &plan.readers);
    let mut supervisor = Supervisor::open(plan.supervision)?;
    let intake = Intake::of_window(plan.policy.window);
    let (wishes, wished) = mpsc::channel(MAX_WAITING_WISHES);
    let server = IntakeServer::new(plan.listeners, intake.clone(), wishes, plan.http)?;
    let (stop, stopped) = watch::channel(false);
    for (format, path) in &plan.readers {
        tokio::spawn(FileReader::new(*format, path).run(intake.clone(), stopped.clone()));
    }
    let serving = tokio::spawn(server.run(stopped));
    let target = CoordinatorTarget {
        node: plan.identity.node.clone(),
        addresses: plan.coordinators.clone(),
        keyring: plan.keyring.clone(),
    };
    supervisor.clear_leftovers().await?;
    // Only now: a life that could not begin was none, and what the last one left is for the next.
    let (planned_end, since) = PlannedEnd::take(&state, plan.identity.incarnation);
    plan.identity.planned_since = since;
    let grace = plan.policy.stop_grace;
    let (agent, first) = Agent::new(plan.identity, plan.policy, Moment::default());
    assert_eq!(first, AgentOutput::ClearLeftovers, "an agent clears up before all else");
    let mut driver = Driver {
        node: target.node.clone(),
        instance: random::draw(),
        job: plan.job.unwrap_or_default(),
        start: Instant::now(),
        grace,
        agent,
        supervisor,
        intake,
        examiner,
        coordinators: plan.coordinators,
        keyring: plan.keyring,
        health: plan.health,
        way: None,
        port: None,
        scope: None,
        first_rank: Rank(0),
        wanted: VecDeque::new(),
        over: None,
        unfit: None,
        lost_messages: 0,
        unheeded: None,
        unprepared: None,
    };
    let brought = connection::keep(target);
    let running = driver.run(brought, wished, signals, (!plan.stays).then_some(parting));
    let mut ending = LocalSet::new().run_until(running).await;
    if ending.is_planned() {
        planned_end.leave();
    }
    let by = match signals.first() {
        Some(Signal::INT) if plan.passes_interrupt => Signal::INT,
        _ => Signal::TERM,
    };
    if driver.stop_workers(by, signals).await {
        ending = AgentEnding::AtOnce;
    }
    // Later posts get an error that the receiver is gone.
    let _ = stop.send(true);
    let _ = serving.await;
    Ok(ending)
}

struct Driver {
    node: NodeName,
    /// By what a coordinator knows this process again on another connection.
    instance: u64,
    /// The job that it is for, or nothing.
    job: String,
    start: Instant,
    /// How long a worker may take to end.
    grace: Duration,
    agent: Agent,
    supervisor: Supervisor,
    intake: Intake,
    examiner: Examiner,
    coordinators: Vec<CoordinatorAddress>,
    keyring: Keyring,
    health: watch::Receiver<NodeHealth>,
    way: Option<mpsc::Sender<NodeMessage>>,
    /// Rank 0's port, where that is this node's to hold.
    port: Option<HeldPort>,
    /// What the intake knows to run.
    scope: Option<Scope>,
    /// The first rank of this node in the latest epoch that it ran.
    first_rank: Rank,
    /// What the machine wants done and is not done yet.
    wanted: VecDeque<AgentOutput>,
    over: Option<JobOutcome>,
    /// Why this node can never run the command, once that is known.
    unfit: Option<String>,
    /// Messages for which the way to the coordinator had no room.
    lost_messages: u64,
    /// The leader whose orders were last reported as not obeyed.
    unheeded: Option<Term>,
    /// The epoch of which it was logged last that it cannot be prepared.
    unprepared: Option<Epoch>,
}

impl Driver {
    async fn run(
        &mut self,
        mut brought: mpsc::Receiver<Brought>,
        mut wishes: mpsc::Receiver<Wish>,
        signals: &mut Signals,
        parting: Option<impl Future<Output = ()>>,
    ) -> AgentEnding {
        tokio::pin!(parting);
        let mut polls = tokio::time::interval(CHECK_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = self.agent.due().map_or(CHECK_INTERVAL, |due| due.since(self.now()));
            tokio::select! {
                event = self.supervisor.event() => self.worker_event(event),
                Some(brought) = brought.recv() => self.take(brought),
                found = self.examiner.found() => self.take_standings(found),
                Some(wish) = wishes.recv() => self.forward(wish),
                () = signals.next() => {
                    info!("ending: stopping the workers");
                    if !self.say_goodbye(&mut brought).await {
                        warn!("the coordinator has not heard in time that this agent ends; it will miss it");
                    }
                    return AgentEnding::Asked;
                }
                _ = polls.tick() => self.poll(),
                () = tokio::time::sleep(due) => self.step(AgentInput::Tick),
            }
            if let Some(reason) = self.unfit.take() {
                // Nothing is obeyed any more; the report of it must be on its way.
                tokio::time::sleep(FAREWELL).await;
                return AgentEnding::CannotRun(reason);
            }
            if let Some(outcome) = self.over.take() {
                // An agent that has run nothing may have come to run it once more.
                let advice = match (self.agent.metrics().starts, outcome) {
                    (0, _) => {
                        "; `telltale cluster restart` runs it once more, with agents that --stay or are \
                         started after that"
                    }
                    (_, JobOutcome::GivenUp) if parting.is_some() => {
                        "; this agent ends: start it again after `telltale cluster restart`"
                    }
                    _ => "",
                };
                info!("the job is over: {}{advice}", reported(outcome));
                if let Some(parting) = parting.as_mut().as_pin_mut() {
                    tokio::select! {
                        () = parting => {}
                        () = signals.next() => {}
                    }
                    // So the next epoch, should there be one, does not count on this life.
                    self.say_goodbye(&mut brought).await;
                    return AgentEnding::Over(outcome);
                }
            }
        }
    }

    /// Ends the workers: asks them to by this signal. Whether another signal has ended them at once.
    async fn stop_workers(&mut self, by: Signal, signals: &mut Signals) -> bool {
        let grace = self.grace;
        let is_at_once = tokio::select! {
            killed = self.supervisor.stop(by, grace) => {
                killed.into_iter().for_each(|killed| warn_of_killed(killed, grace));
                false
            }
            () = signals.at_once() => true,
        };
        for (epoch, rank) in self.supervisor.stop(by, Duration::ZERO).await {
            warn!(epoch = %epoch, rank = %rank, "epoch {epoch}: second signal: killing rank {rank}");
        }
        is_at_once
    }

    /// Tells the coordinator that this agent ends, and waits until it is heard, though not for long:
    /// the one who asked it to end does not wait for a coordinator. Returns false if it should have been heard
    /// and was not.
    async fn say_goodbye(&mut self, brought: &mut mpsc::Receiver<Brought>) -> bool {
        if !self.agent.is_attended() {
            return true;
        }
        self.step(AgentInput::Leave);
        let heard = async {
            loop {
                match brought.recv().await {
                    Some(Brought::Order(message)) => match message.order {
                        Order::Standby | Order::Evict => return true,
                        // It follows another, and does not know the one that was named.
                        Order::Register => return false,
                        _ => {}
                    },
                    Some(Brought::Connected(_) | Brought::Disconnected) | None => return false,
                }
            }
        };
        tokio::time::timeout(FAREWELL, heard).await.unwrap_or(false)
    }

    fn take(&mut self, brought: Brought) {
        match brought {
            Brought::Connected(way) => {
                self.way = Some(way);
                self.step(AgentInput::Connected);
            }
            Brought::Disconnected => {
                self.way = None;
                self.step(AgentInput::Disconnected);
            }
            Brought::Order(message) => self.obey(message),
        }
    }

    fn obey(&mut self, message: ToNode) {
        let epoch = message.epoch;
        let assignment = match &message.order {
            Order::Commit(assignment) => Some(assignment.clone()),
            _ => None,
        };
        debug!(epoch = %epoch, "epoch {epoch}: {:?}", message.order);
        if let Order::Forget(_) = message.order {
            warn!("an operator has reset the job: forgetting the former one");
        } else {
            self.warn_of_former(&message);
        }
        let before = self.agent.running();
        self.mind_first_failure(&message.order, before);
        let rest_before = self.agent.resting();
        let mut outputs = Vec::new();
        self.agent.step(self.now(), AgentInput::Order(message), &mut outputs);
        let running = self.agent.running();
        if let Some(rest) = self.agent.resting().filter(|rest| Some(*rest) != rest_before) {
            warn!(
                "workers exited soon after their start in {} consecutive epochs: next start in \
                    {} s; check the command",
                rest.epochs,
                rest.time.as_secs()
            );
        }
        // Workers report from their first moment on, so the intake is set up before they are started.
        match assignment {
            Some(assignment) if running != before && running == Some(epoch) => {
                info!(
                    epoch = %epoch, "epoch {epoch}: starting {} of {}, rank 0 at {}:{}",
                    ranks(assignment.first_rank, assignment.workers),
                    assignment.world_size,
                    assignment.master.address.as_str(),
                    assignment.master.port
                );
                self.first_rank = assignment.first_rank;
                let scope = Scope::of(epoch, &assignment);
                self.intake.begin(scope.clone());
                self.scope = Some(scope);
            }
            _ if running.is_none() && before.is_some() => {
                info!(epoch = %epoch, "epoch {epoch}: stops its workers");
                self.intake.end();
                self.scope = None;
            }
            _ => {}
        }
        self.wanted.extend(outputs);
        self.perform();
    }

    /// Keeps what workers printed in the epoch in which the job failed first, until it is restarted as planned.
    fn mind_first_failure(&self, order: &Order, running: Option<Epoch>) {
        let minded = match (order, running) {
            (Order::Prepare { planned: true, .. } | Order::Forget(_), _) => {
                self.supervisor.forget_first_failure()
            }
            (Order::Prepare { planned: false, .. }, Some(failed)) => {
                self.supervisor.keep_first_failure(failed)
            }
            _ => Ok(()),
        };
        if let Err(error) = minded {
            warn!("the logs of the job's first failure may not be kept: {error}");
        }
    }

    /// Tells, once of each leader, that the agent does not listen to it, and what helps.
    fn warn_of_former(&mut self, message: &ToNode) {
        let (reported, Some(heard)) = ((message.term, message.sequence), self.agent.heard()) else {
            return;
        };
        if reported <= heard && self.unheeded != Some(message.term) {
            self.unheeded = Some(message.term);
            let ((term, order), (heard_term, heard_order)) = (reported, heard);
            warn!(
                term = %term, "ignoring order {order} of term {term} after order {heard_order} of term \
                    {heard_term}: another coordinator leads, or its store was replaced; if this \
                    one leads now, restart this agent"
            );
        }
    }

    fn worker_event(&mut self, event: WorkerEvent) {
        let input = match event {
            WorkerEvent::LeftoversGone => AgentInput::LeftoversGone,
            WorkerEvent::Started { epoch, local } => AgentInput::WorkerStarted { epoch, local },
            WorkerEvent::NotStarted { epoch, local, reason, lasts } => {
                error!(epoch = %epoch, "epoch {epoch}: cannot start worker {}: {reason}", local.0);
                if lasts {
                    self.unfit.get_or_insert(reason);
                }
                AgentInput::WorkerNotStarted { epoch, local }
            }
            WorkerEvent::Exited { epoch, local, exit, failure } => {
                let detail = failure.unwrap_or_default();
                self.log_end(epoch, local, exit, &detail);
                AgentInput::WorkerExited { epoch, local, exit, detail }
            }
            WorkerEvent::WarmEnded { reason } => {
                warn!("a prestarted worker has exited: {reason}");
                return;
            }
        };
        self.step(input);
    }

    /// One line for the end of a worker: a warning with what it left, unless it was asked to end.
    fn log_end(&self, epoch: Epoch, local: LocalRank, exit: Exit, detail: &FailureDetail) {
        let rank = Rank(self.first_rank.0 + local.0);
        if exit == Exit::Code(0) || self.agent.running() != Some(epoch) {
            info!(epoch = %epoch, rank = %rank, "epoch {epoch}: rank {rank} ended with {exit}");
            return;
        }
        let FailureDetail { message, log } = detail;
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        warn!(
            epoch = %epoch, rank = %rank,
            "epoch {epoch}: rank {rank} failed: {exit}{}; log: {}", printable(&message), printable(log)
        );
    }

    fn note_counts(&self) {
        let output = self.supervisor.output_metrics();
        self.intake.note_agent(OwnCounts {
            metrics: self.agent.metrics(),
            lost_messages: self.lost_messages,
            lines_not_echoed: output.lines_not_echoed(),
            bytes_not_written: output.bytes_not_written(),
        });
    }

    /// Gives the machine what workers have reported, and does what is due.
    fn poll(&mut self) {
        if let Err(error) = self.supervisor.keep_up() {
            warn!("cannot start a process, retrying: {error}");
        }
        self.intake.sample_host();
        self.note_counts();
        let Some(epoch) = self.scope.as_ref().map(|scope| scope.epoch) else { return };
        let processes = self.worker_processes();
        if let Some(observation) = self.intake.observe(epoch, &processes) {
            self.step(AgentInput::Observed { epoch, observation });
        }
    }

    /// Passes on an order that came over HTTP. The coordinator's answer comes when it comes.
    fn forward(&self, wish: Wish) {
        let operator =
            Operator::new(self.coordinators.clone(), self.keyring.now(), forwarding::STEP_TIMEOUT);
        tokio::task::spawn_local(forwarding::forward(
            operator,
            self.node.clone(),
            wish,
            ORDER_TIMEOUT,
        ));
    }

    fn step(&mut self, input: AgentInput) {
        let mut outputs = Vec::new();
        self.agent.step(self.now(), input, &mut outputs);
        self.wanted.extend(outputs);
        self.perform();
    }

    fn perform(&mut self) {
        if !self.agent.needs_port() {
            self.port = None;
        }
        while let Some(output) = self.wanted.pop_front() {
            match output {
                AgentOutput::Send(message) => self.send(&message),
                AgentOutput::Start { epoch, local, environment } => {
                    self.supervisor.start(epoch, local, &environment);
                }
                AgentOutput::Terminate { epoch, local } => self.supervisor.terminate(epoch, local),
                AgentOutput::Kill { epoch, local } => {
                    if let Some(rank) = self.supervisor.kill(epoch, local) {
                        warn_of_killed((epoch, rank), self.grace);
                    }
                }
                AgentOutput::HoldPort(ports) => {
                    // The one before is held until then, so that this is another.
                    self.port = HeldPort::find(ports);
                    let port = self.port.as_ref().map(HeldPort::port);
                    let mut outputs = Vec::new();
                    let input = AgentInput::PortHeld { ports, port };
                    self.agent.step(self.now(), input, &mut outputs);
                    self.wanted.extend(outputs);
                }
                AgentOutput::Examine { epoch, reports } => self.examine(epoch, reports),
                AgentOutput::Over(outcome) => self.over = Some(outcome),
                AgentOutput::ClearLeftovers => {
                    unreachable!("it is wanted once, and was done before all else")
                }
            }
        }
    }

    /// Sends what there is room for: reports and registrations are made again, acknowledgements asked
    /// for again.
    fn send(&mut self, message: &FromNode) {
        self.log_unprepared(message);
        let Some(way) = &self.way else { return };
        let mut vitals = self.intake.vitals();
        vitals.health.clone_from(&self.health.borrow());
        let mut message = encode::node_message(message, Some(&vitals));
        if let Some(Body::Registration(registration)) = &mut message.body {
            registration.instance = self.instance;
            registration.job.clone_from(&self.job);
        }
        if let Some(Body::Standings(body)) = &mut message.body {
            *body = self.examiner.take_unsent();
        }
        if let Some(Body::Report(report)) = &mut message.body {
            report.sent_us = Some(monotonic_us());
        }
        if way.try_send(message).is_err() {
            self.lost_messages = self.lost_messages.saturating_add(1);
        }
    }

    /// Logs, once for each epoch, why this node cannot run it.
    fn log_unprepared(&mut self, message: &FromNode) {
        let FromNodeBody::Acknowledge(Acknowledgement { epoch, step: OrderStep::NotPrepared(why) }) =
            message.body
        else {
            return;
        };
        if self.unprepared.replace(epoch) != Some(epoch) {
            error!(epoch = %epoch, "epoch {epoch}: this node cannot run it: {why}");
        }
    }

    fn now(&self) -> Moment {
        Moment::from_ns(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Logs that what a rank has not saved within its time is lost.
fn warn_of_killed((epoch, rank): (Epoch, Rank), grace: Duration) {
    warn!(
        epoch = %epoch, rank = %rank, "epoch {epoch}: killing rank {rank}: still running {} s after SIGTERM \
                    (--stop-grace)",
        grace.as_secs_f64()
    );
}

/// `rank 3`, or `ranks 0 to 7`.
fn ranks(first: Rank, workers: WorkersPerNode) -> String {
    match workers.get() {
        1 => format!("rank {first}"),
        count => format!("ranks {first} to {}", first.0 + count - 1),
    }
}

fn reported(outcome: JobOutcome) -> &'static str {
    match outcome {
        JobOutcome::Finished => "every rank has finished",
        JobOutcome::GivenUp => {
            "it failed too often, and is given up; `telltale cluster explain` has the reason"
        }
    }
}

/// Now, in microseconds of `CLOCK_MONOTONIC`, which the Python module reads too.
fn monotonic_us() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1000)
}
