//! Incidents, their events, and all that is known of one.

use serde::Serialize;
use std::collections::BTreeSet;

use telltale_cluster::coordinator::STARTUP_WINDOW;
use telltale_cluster::policy::MAX_FAILED_STARTS;
use telltale_schema::text::printable;
use telltale_wire::cluster::message::sign::Kind;
use telltale_wire::cluster::message::{
    BeforeDrain, FinishedWorker, GetIncidentResponse, GetStepsResponse, Incident, IncidentStanding,
    Sign, SuspectKind, VerdictKind,
};

use super::evidence::VerdictView;
use super::hang::HangView;
use super::matrix::MatrixView;
use super::steps::JobStepsView;
use super::words::{self, Suspicion};

/// One fault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IncidentView {
    /// Its number.
    pub id: String,
    /// The epoch that it is of.
    pub epoch: u64,
    /// When it was opened.
    pub opened_unix_ms: u64,
    /// When its latest event came.
    pub last_sign_unix_ms: u64,
    /// `collecting`, `held`, `answered`, `passed`, `given_up` or `reset`.
    pub standing: &'static str,
    /// Why nothing is done: `mode`, `grace`, `mass_silence`, `eviction_budget`, `unsure`, `no_spare`, `before_drain`
    /// or `restart_budget`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<&'static str>,
    /// The epoch that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by_epoch: Option<u64>,
    /// Whose failure it is, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Whether the cause is beyond doubt.
    pub cause_is_certain: bool,
    /// Who was taken out of its slot for it.
    pub evicted: Vec<String>,
    /// Its events, in the order they came.
    #[serde(rename = "signs")]
    pub events: Vec<EventView>,
    /// Events that had no place.
    #[serde(rename = "dropped_signs")]
    pub dropped_events: u64,
    /// Workers that had ended with exit code 0 before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finished: Vec<FinishedWorkerView>,
    /// Why the job hung, in one sentence from the stacks of its workers, where any were taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang: Option<String>,
    /// What is done about it, and whose failure it is, in one sentence.
    pub text: String,
}

/// A worker that had ended with exit code 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FinishedWorkerView {
    /// Its rank.
    pub rank: u32,
    /// Its node.
    pub node: String,
}

/// One event of an incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventView {
    /// `worker_failed`, `silent`, `agent_restarted`, `not_started`, `suspected`, `unhealthy` or `before_drain`.
    pub kind: &'static str,
    /// The node, where it is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The rank of a worker that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// When a worker failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_unix_ms: Option<u64>,
    /// A worker's exception, or what the system says of its end; why a health has failed; the last line of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The path of its log on its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The same as a sentence.
    pub text: String,
}

/// All that is known of an incident.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplanationView {
    /// The incident.
    pub incident: IncidentView,
    /// All that was found while it was open, as it was found last.
    pub verdicts: Vec<VerdictView>,
    /// The stacks of a job that hung, where any were taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang: Option<HangView>,
    /// Latencies as they were then, where any were known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixView>,
    /// The job's training steps now, where any are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<JobStepsView>,
}

impl From<&Incident> for IncidentView {
    fn from(incident: &Incident) -> Self {
        let standing = incident.standing();
        let answered = standing == IncidentStanding::Answered;
        Self {
            id: incident.id.clone(),
            epoch: incident.epoch,
            opened_unix_ms: incident.opened_unix_ms,
            last_sign_unix_ms: incident.last_sign_unix_ms,
            standing: words::standing(standing),
            hold: words::hold(incident.hold()),
            answered_by_epoch: answered.then_some(incident.answered_by_epoch),
            cause: incident.cause.clone(),
            cause_is_certain: incident.cause_is_certain,
            evicted: incident.evicted.clone(),
            events: incident.signs.iter().filter_map(EventView::of).collect(),
            dropped_events: incident.dropped_signs,
            finished: incident.finished.iter().map(FinishedWorkerView::from).collect(),
            hang: (!incident.hang.is_empty()).then(|| printable(&incident.hang)),
            text: sentence(incident),
        }
    }
}

impl From<&FinishedWorker> for FinishedWorkerView {
    fn from(worker: &FinishedWorker) -> Self {
        Self { rank: worker.rank, node: worker.node.clone() }
    }
}

/// What is suspected, where nothing is known to have failed.
fn suspected(incident: &Incident) -> Vec<Suspicion> {
    let is_fault = |event: &&Sign| !matches!(event.kind, Some(Kind::BeforeDrain(_)));
    let suspicions = incident.signs.iter().filter(is_fault).map(|event| match &event.kind {
        Some(Kind::Suspected(verdict)) => match &verdict.suspects[..] {
            [one] if one.kind() == SuspectKind::Node => Some(Suspicion::Node(verdict.kind())),
            _ => Some(Suspicion::Other(verdict.kind())),
        },
        Some(Kind::Unhealthy(_)) => Some(Suspicion::Health),
        _ => None,
    });
    suspicions.collect::<Option<_>>().unwrap_or_default()
}

/// Whether a hang is suspected.
pub(super) fn hangs(incident: &Incident) -> bool {
    let hangs = [VerdictKind::CommunicationHang, VerdictKind::NonCommunicationHang];
    incident.signs.iter().any(|event| match &event.kind {
        Some(Kind::Suspected(verdict)) => hangs.contains(&verdict.kind()),
        _ => false,
    })
}

fn sentence(incident: &Incident) -> String {
    let standing = match incident.standing() {
        IncidentStanding::Unspecified => words::UNKNOWN.to_owned(),
        IncidentStanding::Collecting => "events are still collected".to_owned(),
        IncidentStanding::Held => {
            let why = words::held(incident.hold(), &suspected(incident));
            format!("nothing is done: {why}")
        }
        IncidentStanding::Answered => {
            format!("answered by epoch {}", incident.answered_by_epoch)
        }
        IncidentStanding::Passed => "passed by itself".to_owned(),
        IncidentStanding::GivenUp => format!("the job was given up: {}", given_up(incident)),
        IncidentStanding::Reset => "the job was ended, and another begun in its place".to_owned(),
    };
    let repeated = repeated(incident);
    let cause = match (&incident.cause, incident.cause_is_certain) {
        // The program is.
        (Some(_), _) if !repeated.is_empty() => String::new(),
        (Some(node), true) => format!("; the cause is {node}"),
        (Some(node), false) => format!("; the cause is probably {node}"),
        (None, _) => alike(incident),
    };
    let evicted = match incident.evicted.as_slice() {
        [] => String::new(),
        nodes => format!("; replaced: {}", nodes.join(", ")),
    };
    standing + &cause + &evicted + &repeated
}

/// That workers of several nodes failed with one message, where that is so and nothing else is known.
fn alike(incident: &Incident) -> String {
    let failed = incident.signs.iter().map(|event| match &event.kind {
        Some(Kind::WorkerFailed(failed)) if !failed.message.is_empty() => Some(failed),
        _ => None,
    });
    let Some(failed) = failed.collect::<Option<Vec<_>>>() else { return String::new() };
    let is_one = failed
        .windows(2)
        .all(|pair| (&pair[0].message, &pair[0].end) == (&pair[1].message, &pair[1].end));
    let nodes: BTreeSet<&str> = failed.iter().map(|failed| &*failed.node).collect();
    match is_one && nodes.len() > 1 {
        true => format!(
            "; the workers of {} nodes failed with the same message: look at the program and at what its nodes share",
            nodes.len()
        ),
        false => String::new(),
    }
}

fn given_up(incident: &Incident) -> String {
    let starts = incident.repetition.as_ref().map_or(0, |repetition| repetition.failed_starts);
    failed_starts(starts).unwrap_or_else(|| "its restarts are used up".to_owned())
}

/// That a job is given up since it fails whenever it is started, where that is so.
pub(crate) fn failed_starts(starts: u32) -> Option<String> {
    let seconds = STARTUP_WINDOW.as_secs();
    (starts > MAX_FAILED_STARTS).then(|| {
        format!("{starts} epochs in a row failed in the same way within {seconds} s of their start")
    })
}

/// That not a node is at fault, where that is so.
fn repeated(incident: &Incident) -> String {
    match incident.repetition.as_ref().map_or(&[][..], |repetition| &repetition.nodes) {
        [] => String::new(),
        nodes => format!(
            "; the same rank failed in the same way on {}: not a node but the program or its data is at \
             fault, and none is charged",
            nodes.join(", ")
        ),
    }
}

impl EventView {
    /// The view of an event; none of one that this version does not know.
    pub(crate) fn of(event: &Sign) -> Option<Self> {
        let of_node = |kind, node: &String, text| Self {
            kind,
            node: Some(node.clone()),
            rank: None,
            at_unix_ms: None,
            message: None,
            log: None,
            text,
        };
        Some(match event.kind.as_ref()? {
            Kind::WorkerFailed(failed) => {
                let end = failed.end.as_ref().map_or_else(|| words::UNKNOWN.to_owned(), words::end);
                let (rank, node) = (failed.rank, &failed.node);
                let known = |text: &String| (!text.is_empty()).then(|| printable(text));
                let (message, log) = (known(&failed.message), known(&failed.log));
                let mut text = format!("the worker of rank {rank} on {node} failed: {end}");
                text.extend(message.iter().flat_map(|message| [": ", message]));
                text.extend(log.iter().flat_map(|log| ["; log: ", log]));
                let at_unix_ms = Some(failed.at_unix_ms);
                let of_node = of_node("worker_failed", node, text);
                Self { rank: Some(rank), at_unix_ms, message, log, ..of_node }
            }
            Kind::Silent(node) => of_node("silent", node, format!("{node} is not heard")),
            Kind::AgentRestarted(node) => {
                of_node("agent_restarted", node, format!("the agent of {node} was restarted"))
            }
            Kind::NotStarted(node) => of_node(
                "not_started",
                node,
                format!("{node} does not start what it was ordered to"),
            ),
            Kind::Suspected(verdict) => {
                let text = VerdictView::from(verdict).text;
                let known = of_node("suspected", &String::new(), text);
                Self { node: None, ..known }
            }
            Kind::Unhealthy(fault) => {
                let (part, reason) = (printable(&fault.part), printable(&fault.reason));
                let part = if part.is_empty() { String::new() } else { format!(": {part}") };
                let text = format!("the health of {} has failed{part}: {reason}", fault.node);
                let message = Some(reason);
                Self { message, ..of_node("unhealthy", &fault.node, text) }
            }
            Kind::BeforeDrain(ended) => {
                let known = of_node("before_drain", &String::new(), hook_sentence(ended));
                let message = Some(&ended.last_line).filter(|line| !line.is_empty());
                Self { node: None, message: message.map(|line| printable(line)), ..known }
            }
        })
    }
}

/// How the command that runs before nodes are drained has ended, as a sentence.
pub(crate) fn hook_sentence(ended: &BeforeDrain) -> String {
    let took = words::duration(ended.took_ms.saturating_mul(1_000_000));
    let end = match &ended.end {
        Some(end) => format!("it ended after {took}: {}", words::end(end)),
        None => format!("it was ended after {took}, since its time was over"),
    };
    let line = match ended.last_line.as_str() {
        "" => String::new(),
        line => format!("; its last line: {}", printable(line)),
    };
    format!("the command before the drain: {end}{line}")
}

impl From<&GetIncidentResponse> for ExplanationView {
    fn from(answer: &GetIncidentResponse) -> Self {
        let incident = answer.incident.clone().unwrap_or_default();
        Self {
            incident: IncidentView::from(&incident),
            verdicts: answer.verdicts.iter().map(VerdictView::from).collect(),
            hang: answer.hang.as_ref().map(HangView::from),
            matrix: answer.matrix.as_ref().map(MatrixView::from),
            steps: None,
        }
    }
}

impl ExplanationView {
    /// Adds the job's training steps, where there are any.
    #[must_use]
    pub fn with_steps(self, steps: Option<&GetStepsResponse>) -> Self {
        let steps = steps.map(JobStepsView::from).filter(|steps| steps.latest.is_some());
        Self { steps, ..self }
    }
}

#[cfg(test)]
mod tests {
    use telltale_wire::cluster::message::{Repetition, WorkerFailed};

    use super::*;

    /// An incident of workers that failed with these messages.
    fn failed(workers: &[(&str, &str)]) -> Incident {
        let event = |(node, message): &(&str, &str)| Sign {
            kind: Some(Kind::WorkerFailed(WorkerFailed {
                node: (*node).to_owned(),
                message: (*message).to_owned(),
                ..WorkerFailed::default()
            })),
        };
        Incident { signs: workers.iter().map(event).collect(), ..Incident::default() }
    }

    #[test]
    fn nodes_whose_workers_failed_with_one_message_share_its_cause() {
        let missing = "can't open file 'train.py': No such file";
        let all = sentence(&failed(&[("a", missing), ("b", missing)]));
        assert!(all.contains("2 nodes failed with the same message"), "{all}");
        for other in [
            failed(&[("a", missing)]),
            failed(&[("a", missing), ("a", missing)]),
            failed(&[("a", missing), ("b", "NCCL error")]),
            failed(&[("a", ""), ("b", "")]),
        ] {
            assert!(!sentence(&other).contains("same message"), "{other:?}");
        }
    }

    #[test]
    fn a_program_at_fault_leaves_no_node_to_be_the_cause() {
        let nodes = vec!["a".to_owned(), "b".to_owned()];
        let repetition = Some(Repetition { nodes, ..Repetition::default() });
        let cause = Some("a".to_owned());
        let text = sentence(&Incident { repetition, cause, ..failed(&[("a", "ValueError")]) });
        assert!(
            text.contains("not a node but the program") && !text.contains("cause is"),
            "{text}"
        );
    }
}
