//! What is said of a job at its end: its failures, hangs and slow ranks. Of one that simply finished, nothing.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use telltale_cluster::message::JobOutcome;
use telltale_control_plane::view::{HangView, IncidentView, VerdictView, age, worker_end};
use telltale_schema::text::printable;
use telltale_wire::cluster::message::sign::Kind;
use telltale_wire::cluster::message::worker_end::Kind as End;
use telltale_wire::cluster::message::{
    GetIncidentResponse, Incident, IncidentStanding, Sign, VerdictKind, WorkerEnd, WorkerFailed,
};

use super::follow::{JobHistory, Missed, stragglers};

/// What a shell adds to the number of a signal that ended a process.
const ENDED_BY: i32 = 128;
/// The status of a job of which only that it failed is known.
const FAILED: u8 = 1;
/// The status of a worker that could not be started.
const NOT_STARTED: u8 = 2;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// It is over.
    Over(JobOutcome),
    /// A signal ended it.
    Signal(i32),
    /// Something was missed for too long.
    Lost(Missed),
}

/// A job at its end.
#[derive(Debug, Serialize)]
pub(super) struct TrainReport {
    /// `finished`, `failed`, `interrupted` or `lost`.
    outcome: &'static str,
    exit_code: u8,
    /// Why, where it is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    seconds: f64,
    restarts: usize,
    max_restarts: u32,
    /// Each attempt that failed, the first one first.
    failures: Vec<Failed>,
    /// Each hang that did not pass by itself.
    hangs: Vec<Hang>,
    /// What is slow, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slow: Vec<String>,
    /// The slow ranks of the latest steps.
    slow_ranks: Vec<SlowRankView>,
}

/// The first failure of an attempt.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Failed {
    /// The worker's; none where its node failed as a whole.
    pub(super) rank: Option<u32>,
    pub(super) node: String,
    /// How the worker ended: `exit code 1`, `signal 9 (KILL)`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) end: String,
    /// What it exits with, as a shell has it.
    pub(super) exit_code: u8,
    /// Its exception, or its last words; what is known of the node.
    pub(super) message: String,
    /// The path of its output on its node, where it is kept.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) log: String,
    pub(super) at_unix_ms: u64,
    /// How long the attempt had lasted.
    pub(super) after_seconds: f64,
}

/// A slow rank.
#[derive(Debug, Serialize)]
struct SlowRankView {
    rank: u32,
    node: String,
    /// How many times as long as ranks that do the same work.
    factor: f64,
    /// What a step would take less without that.
    cost_seconds: f64,
}

/// Whether an event stops a job.
fn is_failure(event: &Sign) -> bool {
    let is_suspicion = matches!(
        event.kind,
        None | Some(Kind::Suspected(_) | Kind::Unhealthy(_) | Kind::BeforeDrain(_))
    );
    !is_suspicion
}

/// The failure that an incident is of: that of its cause if that is known, else the first.
pub(super) fn failed(incident: &Incident) -> Option<Failed> {
    let failures = incident.signs.iter().filter_map(|event| match &event.kind {
        Some(Kind::WorkerFailed(failed)) => Some(failed),
        _ => None,
    });
    let is_cause = |failed: &WorkerFailed| incident.cause.as_ref() == Some(&failed.node);
    let first = failures.min_by_key(|failed| (!is_cause(failed), failed.at_unix_ms, failed.rank));
    let Some(first) = first else { return failed_node(incident) };
    let end = first.end.unwrap_or_default();
    Some(Failed {
        rank: Some(first.rank),
        node: first.node.clone(),
        end: worker_end(&end),
        exit_code: exit_code(&end),
        message: printable(&first.message),
        log: printable(&first.log),
        at_unix_ms: first.at_unix_ms,
        after_seconds: 0.0,
    })
}

/// The failure of an incident in which no worker has failed, and a node has.
fn failed_node(incident: &Incident) -> Option<Failed> {
    let view = IncidentView::from(incident);
    let of_nodes = ["silent", "agent_restarted", "not_started"];
    let mut events = view.events.into_iter().filter(|event| of_nodes.contains(&event.kind));
    let event = events.next()?;
    Some(Failed {
        rank: None,
        node: event.node.unwrap_or_default(),
        end: String::new(),
        exit_code: FAILED,
        message: event.text,
        log: String::new(),
        at_unix_ms: incident.opened_unix_ms,
        after_seconds: 0.0,
    })
}

/// What is found when a job hangs.
const HANGS: [VerdictKind; 2] = [VerdictKind::CommunicationHang, VerdictKind::NonCommunicationHang];

/// Whether an incident is a hang that has not passed.
pub(super) fn hangs(incident: &Incident) -> bool {
    let is_hang = incident.signs.iter().any(|event| match &event.kind {
        Some(Kind::Suspected(verdict)) => HANGS.contains(&verdict.kind()),
        _ => false,
    });
    is_hang && incident.standing() != IncidentStanding::Passed
}

/// A hang, and why.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Hang {
    #[serde(flatten)]
    pub(super) verdict: VerdictView,
    /// One sentence from the stacks of the workers, where any were taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sentence: Option<String>,
    /// Those stacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    stacks: Option<HangView>,
}

/// Which incident an explanation is of, and its verdict on the hang.
pub(super) fn hang(found: &GetIncidentResponse) -> Option<(String, Hang)> {
    let verdict = found.verdicts.iter().rev().find(|verdict| HANGS.contains(&verdict.kind()))?;
    let incident = found.incident.as_ref()?;
    let hang = Hang {
        verdict: VerdictView::from(verdict),
        sentence: IncidentView::from(incident).hang,
        stacks: found.hang.as_ref().map(HangView::from),
    };
    Some((incident.id.clone(), hang))
}

/// The exit status of a worker, as a shell has it.
fn exit_code(end: &WorkerEnd) -> u8 {
    let code = match end.kind {
        // A status has eight bits.
        Some(End::Code(code)) => code & 0xff,
        Some(End::Signal(signal)) => ENDED_BY + signal,
        Some(End::NotStarted(_)) => return NOT_STARTED,
        None => return FAILED,
    };
    u8::try_from(code).ok().filter(|code| *code != 0).unwrap_or(FAILED)
}

// === impl TrainReport ===

impl TrainReport {
    pub(super) fn new(
        began: SystemTime,
        max_restarts: u32,
        stopped: Stopped,
        followed: JobHistory,
    ) -> Self {
        let failures = failures(began, &followed.incidents);
        let is_restart = |one: &&Incident| {
            one.standing() == IncidentStanding::Answered && one.signs.iter().any(is_failure)
        };
        let (outcome, exit_code) = match stopped {
            Stopped::Over(JobOutcome::Finished) => ("finished", 0),
            Stopped::Over(JobOutcome::GivenUp) => {
                ("failed", failures.last().map_or(FAILED, |failed| failed.exit_code))
            }
            Stopped::Lost(_) => ("lost", FAILED),
            Stopped::Signal(signal) => {
                ("interrupted", u8::try_from(ENDED_BY + signal).unwrap_or(FAILED))
            }
        };
        let steps = stragglers(followed.steps.as_ref());
        let ranks = steps.as_ref().and_then(|steps| steps.latest.as_ref());
        let ranks = ranks.map_or(&[][..], |latest| &latest.ranks).iter();
        Self {
            outcome,
            exit_code,
            reason: match stopped {
                Stopped::Lost(missed) => Some(missed.to_string()),
                _ => None,
            },
            seconds: began.elapsed().unwrap_or_default().as_secs_f64(),
            restarts: followed.incidents.iter().filter(is_restart).count(),
            max_restarts,
            failures,
            hangs: followed.open_hangs(),
            slow_ranks: ranks
                .map(|one| SlowRankView {
                    rank: one.rank,
                    node: one.node.clone(),
                    factor: one.ratio,
                    cost_seconds: one.cost_seconds,
                })
                .collect(),
            slow: steps.map(|steps| steps.text).unwrap_or_default(),
        }
    }

    pub(super) fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// Prints it on standard error: as JSON always, and else if there is anything to say.
    pub(super) fn print(&self, as_json: bool) {
        if as_json {
            let json = serde_json::to_string(self).expect("a report is JSON");
            super::tell(&json);
        } else if !self.is_quiet() {
            super::tell(self.text().trim_end());
        }
    }

    /// Whether there is nothing to say: all went well, or a person ended what did.
    fn is_quiet(&self) -> bool {
        let is_well = ["finished", "interrupted"].contains(&self.outcome);
        is_well && self.failures.is_empty() && self.hangs.is_empty() && self.slow.is_empty()
    }

    fn text(&self) -> String {
        let time = in_words(self.seconds);
        let restarts = match (self.restarts, self.max_restarts) {
            (0, 0) => String::new(),
            (1, most) => format!(", 1 restart of {most}"),
            (restarts, most) => format!(", {restarts} restarts of {most}"),
        };
        let reason = self.reason.iter().flat_map(|reason| [": ", reason]);
        let outcome: String = [self.outcome].into_iter().chain(reason).collect();
        let mut text =
            format!("telltale: {outcome} after {time}{restarts}, exit status {}\n", self.exit_code);
        for (number, failed) in self.failures.iter().enumerate() {
            let after = in_words(failed.after_seconds);
            text.push_str(&format!("  attempt {}, after {after}: {failed}\n", number + 1));
            if !failed.log.is_empty() {
                text.push_str(&format!("    its output: {}\n", failed.log));
            }
        }
        for hang in &self.hangs {
            text.push_str(&format!("  hang: {}\n", hang.verdict.text));
            text.extend(hang.sentence.iter().map(|sentence| format!("    {sentence}\n")));
            let evidence = hang.verdict.evidence.iter().map(|one| format!("    {}\n", one.text));
            text.extend(evidence);
        }
        text.extend(self.slow.iter().map(|line| format!("  {line}\n")));
        text
    }
}

/// A time, for a person.
fn in_words(seconds: f64) -> String {
    age(Duration::from_secs_f64(seconds).as_nanos().try_into().unwrap_or(u64::MAX))
}

/// The failures of all attempts, the first one first.
fn failures(began: SystemTime, incidents: &[Incident]) -> Vec<Failed> {
    let since = began.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let mut since = u64::try_from(since).unwrap_or_default();
    let mut failures = Vec::new();
    let is_past = |incident: &&Incident| incident.standing() == IncidentStanding::Passed;
    for incident in incidents.iter().rev().filter(|incident| !is_past(incident)) {
        let Some(failed) = failed(incident) else { continue };
        let after_seconds = failed.at_unix_ms.saturating_sub(since) as f64 / 1000.0;
        since = failed.at_unix_ms.max(since);
        failures.push(Failed { after_seconds, ..failed });
    }
    failures
}

impl fmt::Display for Missed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Coordinator => formatter.write_str("the coordinator was not reached any more"),
            Self::Nodes(time) => {
                let seconds = time.as_secs();
                write!(
                    formatter,
                    "not all nodes came within {seconds} s (--rdzv-conf join_timeout)"
                )
            }
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, node, end, message, .. } = self;
        let Some(rank) = rank else { return formatter.write_str(message) };
        write!(formatter, "rank {rank} on {node} failed: {end}")?;
        if message.is_empty() { Ok(()) } else { write!(formatter, ": {message}") }
    }
}
