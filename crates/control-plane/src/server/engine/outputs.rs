//! What the machine wants done, done: sent, stored, answered, logged.

use telltale_wire::cluster::MAX_FINISHED;
use telltale_wire::cluster::message::{FinishedWorker, OrderResponse};
use tracing::{error, info, warn};

use super::Engine;
use crate::protocol::encode;
use crate::server::decisions;
use crate::server::hook::HookCommand;
use crate::view::{self, Suspicion, held, waiting};
use telltale_cluster::coordinator::{Input, Output, StepDown};
use telltale_cluster::epoch::Epoch;
use telltale_cluster::incident::{
    FaultEvent, HookOutcome, Incident, IncidentId, Repetition, Standing,
};
use telltale_cluster::message::ToNode;
use telltale_cluster::node::NodeName;
use telltale_cluster::observation::{WorkerEnd, WorkerState};
use telltale_cluster::stored::{Decision, StoreOutcome, Why};
use telltale_cluster::time::Moment;

impl Engine {
    pub(super) fn carry_out(&mut self, now: Moment, output: Output) {
        match output {
            Output::Send { node, message } => self.send(&node, &message),
            Output::Store(decision) => {
                (self.storing, self.given) = (Some(decision.clone()), now);
                self.store.store(decision);
            }
            Output::Incident(incident) => self.report_incident(now, &incident),
            Output::BeforeDrain { incident, nodes } => self.run_hook(incident, &nodes),
            Output::NotPrepared { node, why } => {
                let epoch = self.coordinator.state().map_or(0, |state| state.epoch.number());
                warn!(epoch = %epoch, node = %node, "epoch {epoch}: node {node} cannot run it: {why}");
            }
            Output::Stray { node, epoch } => error!(
                node = %node, epoch = %epoch, "node {node} is refused: its agent runs epoch {epoch} of another job of this \
                    name; restart the agent to use it for this job"
            ),
            Output::Refuse { node, why } => {
                let refusal = encode::refusal(Some(&node), &why.to_string());
                self.roster.refuse_node(&node, &refusal);
            }
            Output::Answer { request, answer } => {
                let Some(reply) = self.waiting.remove(&request) else { return };
                let epoch = self.coordinator.state().map_or(0, |state| state.epoch.number());
                // The client may be gone.
                drop(reply.send(answer.map(|()| OrderResponse { epoch }).map_err(Into::into)));
            }
            Output::StepDown(why) => {
                match why {
                    StepDown::Conflict => warn!("stepping down: another coordinator decides"),
                    StepDown::OtherJob(other) => self.fail_for(*other),
                }
                self.store.step_down();
            }
        }
    }

    /// Sends an order, unless another coordinator may lead by now.
    fn send(&self, node: &NodeName, message: &ToNode) {
        if self.authority.holds_in(message.term) {
            self.roster.send(node, &encode::coordinator_message(node, message));
        } else {
            self.counters.lost_orders.add(1);
        }
    }

    fn report_incident(&mut self, now: Moment, incident: &Incident) {
        let finished = self.finished_workers(incident.epoch);
        let (record, withdrawn) = self.incidents.stands(&self.clock, incident, finished);
        self.store.keep(record);
        let first = self.incidents.first_event(incident.id);
        let cause = incident.root_cause().filter(|_| incident.repetition.nodes.is_empty());
        let cause = cause.map(|cause| format!(", attributed to {}", cause.node));
        let (id, cause) = (incident.id, cause.unwrap_or_default());
        let explain = format!("`telltale cluster explain {id}` shows why");
        match &incident.standing {
            Standing::Answered(_) if withdrawn.is_some() => {
                let former = withdrawn.unwrap_or_default();
                warn!(incident = %id, former = %former, "incident {id} is not attributed to {former} any more; {explain}");
            }
            Standing::Collecting => {
                let first = first.map(|event| format!(": {event}")).unwrap_or_default();
                warn!(incident = %id, "incident {id} in epoch {}{first}", incident.epoch)
            }
            Standing::Held(hold) => {
                let hold = held(encode::hold(*hold), &suspected(incident));
                let last = self.incidents.last_event(id).unwrap_or_default();
                warn!(incident = %id, "incident {id} is held: {last}: {hold}; {explain}");
            }
            Standing::Answered(epoch) => {
                warn!(incident = %id, epoch = %epoch, "incident {id} is answered with epoch {epoch}{cause}");
                self.evaluate_last(now, id);
            }
            Standing::Passed => info!(incident = %id, "incident {id} has passed"),
            Standing::GivenUp => {
                error!(
                    incident = %id, "incident {id}: the job is given up{cause}: {}; {explain}, and \
                     `telltale cluster restart` starts a new count",
                    self.why_given_up(&incident.repetition)
                );
                self.evaluate_last(now, id);
            }
            Standing::Reset => info!(incident = %id, "incident {id} is over with the job"),
        }
    }

    /// Runs the policy's command before these nodes are taken out of a job that runs.
    fn run_hook(&mut self, incident: IncidentId, nodes: &[NodeName]) {
        let names: Vec<&str> = nodes.iter().map(NodeName::as_str).collect();
        let names = names.join(" ");
        let words = self.policy.before_drain.clone();
        let program = words.first().cloned().unwrap_or_default();
        info!(incident = %incident, "incident {incident}: runs {program} before {names} is drained");
        let epoch = self.coordinator.state().map_or(0, |state| state.epoch.number());
        let environment = vec![
            ("TELLTALE_JOB", self.job.name.clone()),
            ("TELLTALE_EPOCH", epoch.to_string()),
            ("TELLTALE_INCIDENT", incident.to_string()),
            ("TELLTALE_NODES", names),
            ("TELLTALE_REASON", self.incidents.first_event(incident).unwrap_or_default()),
        ];
        let limit = self.policy.before_drain_timeout;
        self.hook.start(HookCommand { words, environment, limit });
    }

    /// Takes how that command has ended.
    pub(super) fn take_hook(&mut self, outcome: HookOutcome) {
        let program = self.policy.before_drain.first().map_or("", String::as_str);
        let said = view::hook_sentence(&encode::before_drain(&outcome));
        match outcome.end {
            Some(WorkerEnd::Code(0)) => info!("{program}: {said}"),
            _ => warn!("{program}: {said}; the drain goes on"),
        }
        self.step(Input::BeforeDrainEnded(outcome));
    }

    fn why_given_up(&self, repetition: &Repetition) -> String {
        view::failed_starts(repetition.failed_starts).unwrap_or_else(|| {
            format!(
                "its restart budget is used up (`restart_budget`: {} within {} s)",
                self.policy.restart_budget,
                self.policy.budget_window.as_secs()
            )
        })
    }

    /// Workers of an epoch that have ended with exit code 0, as far as their nodes have reported.
    fn finished_workers(&self, epoch: Epoch) -> Vec<FinishedWorker> {
        let Some(state) = self.coordinator.state() else { return Vec::new() };
        let holders =
            state.map.holders().filter_map(|(_, node)| Some((node, self.roster.facts(node)?)));
        let running = holders.filter(|(_, facts)| facts.activity.running() == Some(epoch));
        let finished = running.flat_map(|(node, facts)| {
            let finished = facts.states.iter().filter(|one| one.state == WorkerState::Finished);
            finished.map(|one| FinishedWorker { node: node.as_str().to_owned(), rank: one.rank.0 })
        });
        finished.take(MAX_FINISHED).collect()
    }

    pub(super) fn note_stored(&mut self, decision: &Decision, outcome: StoreOutcome) {
        match outcome {
            StoreOutcome::Stored(_) => {
                let why = &decision.why;
                info!("{}", decisions::sentence(decision));
                let unix_ms = self.clock.unix_ms(self.clock.now());
                self.decisions.add(decision, unix_ms);
                let epoch = decision.state.epoch;
                let record = match why {
                    Why::Incident { incident, evicted } => {
                        self.incidents.evicted(*incident, evicted)
                    }
                    Why::Unanswered { evicted } => {
                        self.incidents.unanswering(unix_ms, epoch, evicted)
                    }
                    Why::Quarantined { node } => {
                        self.incidents.replaced(epoch, std::slice::from_ref(node))
                    }
                    _ => None,
                };
                if let Some(record) = record {
                    self.store.keep(record);
                }
            }
            other => {
                let what = decisions::sentence(decision);
                warn!("decision not stored ({what}): {other}");
            }
        }
    }

    /// Says what an epoch that is being prepared waits for, once for each reason.
    pub(super) fn log_waiting(&mut self) {
        let waits_for = self.coordinator.waits_for();
        if self.waits_for == waits_for {
            return;
        }
        self.waits_for = waits_for;
        let (Some(hold), Some(state)) = (waits_for, self.coordinator.state()) else { return };
        let left = self.coordinator.mass_silence_left(self.clock.now());
        let at_most = left.map(|left| format!("{:.0} s", left.as_secs_f64()));
        warn!(
            "epoch {} waits: {}; see `telltale cluster nodes`",
            state.epoch,
            waiting(encode::hold(hold), at_most.as_deref())
        );
    }
}

/// What is suspected, where nothing is known to have failed.
fn suspected(incident: &Incident) -> Vec<Suspicion> {
    let is_fault = |event: &&FaultEvent| !matches!(event, FaultEvent::BeforeDrain(_));
    let suspicions = incident.events.iter().filter(is_fault).map(|event| match event {
        FaultEvent::Suspected(verdict) => {
            let kind = encode::verdict_kind(verdict.kind);
            match verdict.suspects.node() {
                Some(_) => Some(Suspicion::Node(kind)),
                None => Some(Suspicion::Other(kind)),
            }
        }
        FaultEvent::Unhealthy { .. } => Some(Suspicion::Health),
        _ => None,
    });
    suspicions.collect::<Option<_>>().unwrap_or_default()
}
