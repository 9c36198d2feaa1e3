//! The job at a glance.

use serde::Serialize;
use telltale_wire::cluster::message::{GetStatusResponse, Incident, JobOutcome, JobPhase};

use super::words;

/// The job at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusView {
    /// The job's name.
    pub job: String,
    /// `forming`, `preparing`, `committed` or `over`.
    pub phase: &'static str,
    /// Of a job that is over: `finished` or `given_up`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    /// Whether every node of the epoch has started its workers.
    pub runs: bool,
    /// The epoch that was decided last.
    pub epoch: u64,
    /// The leadership that answers.
    pub term: u64,
    /// `observe`, `recover` or `act`.
    pub mode: &'static str,
    /// What an epoch that is prepared waits for beside its nodes, or one that runs before it is mended; the
    /// words are those of an incident's `hold`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<&'static str>,
    /// How much longer it waits for that at most, where that is bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_at_most_ns: Option<u64>,
    /// Where rank 0 is reached, while the job is committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<String>,
    /// How many nodes the job is to run on.
    pub slots: u32,
    /// Slots that have a node.
    pub filled_slots: u32,
    /// How many workers each node runs.
    pub workers_per_node: u32,
    /// Nodes that hold a slot and are heard.
    pub active_nodes: u32,
    /// Nodes that wait for a slot.
    pub standby_nodes: u32,
    /// Nodes that are not heard.
    pub silent_nodes: u32,
    /// Nodes that are kept out.
    pub barred_nodes: u32,
    /// Nodes that are not heard, as expected.
    pub ended_nodes: u32,
    /// How often the job was restarted.
    pub restarts: u32,
    /// Restarts that count against the budget.
    pub counted_restarts: u32,
    /// Restarts that the budget allows.
    pub restart_budget: u32,
    /// Evictions that count against the budget.
    pub counted_evictions: u32,
    /// Evictions that the budget allows.
    pub eviction_budget: u32,
    /// The number of the incident that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_incident: Option<String>,
    /// Whether a hang is suspected in it.
    pub hangs: bool,
    /// How long this coordinator has led.
    pub led_for_ns: u64,
    /// Where decisions are stored, for a person.
    pub store: String,
    /// What is wrong there, and what helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_trouble: Option<String>,
    /// How long that has been so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_troubled_for_ns: Option<u64>,
    /// The version of the program that answers.
    pub version: String,
}

impl From<&GetStatusResponse> for StatusView {
    fn from(status: &GetStatusResponse) -> Self {
        let committed = status.phase() == JobPhase::Committed && status.master_port != 0;
        Self {
            job: status.job.clone(),
            phase: words::phase(status.phase()),
            outcome: words::outcome(status.outcome()),
            runs: status.runs,
            epoch: status.epoch,
            term: status.term,
            mode: words::mode(status.mode()),
            waits_for: words::hold(status.waits_for()),
            waits_at_most_ns: status.waits_at_most_ns,
            master: committed.then(|| format!("{}:{}", status.master_address, status.master_port)),
            slots: status.slots,
            filled_slots: status.filled_slots,
            workers_per_node: status.workers_per_node,
            active_nodes: status.active_nodes,
            standby_nodes: status.standby_nodes,
            silent_nodes: status.silent_nodes,
            barred_nodes: status.barred_nodes,
            ended_nodes: status.ended_nodes,
            restarts: status.restarts,
            counted_restarts: status.counted_restarts,
            restart_budget: status.restart_budget,
            counted_evictions: status.counted_evictions,
            eviction_budget: status.eviction_budget,
            open_incident: status.open_incident.clone(),
            hangs: false,
            led_for_ns: status.led_for_ns,
            store: status.store.clone(),
            store_trouble: Some(status.store_trouble.clone()).filter(|text| !text.is_empty()),
            store_troubled_for_ns: status.store_troubled_for_ns,
            version: status.version.clone(),
        }
    }
}

impl StatusView {
    /// Takes in the incident that is open, of which the status itself has only the number.
    #[must_use]
    pub fn with_incident(self, open: Option<&Incident>) -> Self {
        let is_it = |incident: &&Incident| self.open_incident.as_ref() == Some(&incident.id);
        let hangs = open.filter(is_it).is_some_and(super::incident::hangs);
        Self { hangs, ..self }
    }

    /// Whether nothing is wrong: the job has finished or runs and no agent of it was asked to end, no incident is
    /// open, and decisions can be stored, without which nothing is mended.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let finished = self.outcome == words::outcome(JobOutcome::Finished);
        let runs = self.runs && self.ended_nodes == 0;
        (runs || finished) && self.open_incident.is_none() && self.store_trouble.is_none()
    }

    /// What it waits for, and how much longer at most.
    #[must_use]
    pub fn waiting(&self) -> Option<String> {
        let at_most = self.waits_at_most_ns.map(words::age);
        Some(words::waiting(words::hold_of(self.waits_for?), at_most.as_deref()))
    }

    /// How many nodes there are of each kind.
    #[must_use]
    pub fn nodes_sentence(&self) -> String {
        let mut text = format!(
            "{} of {} slots filled, {} heard; {} standby, {} silent, {} barred",
            self.filled_slots,
            self.slots,
            self.active_nodes,
            self.standby_nodes,
            self.silent_nodes,
            self.barred_nodes
        );
        if self.ended_nodes > 0 {
            text.push_str(&format!(", {} ended", self.ended_nodes));
        }
        text
    }

    /// How the job stands, in a few words.
    #[must_use]
    pub fn sentence(&self) -> String {
        match (self.phase, self.outcome) {
            ("over", Some("finished")) => "finished".to_owned(),
            ("over", _) => {
                "given up: it failed too often; see `telltale cluster explain`".to_owned()
            }
            ("forming", _) => {
                let here = self.active_nodes + self.standby_nodes;
                format!("waits for nodes: {here} of {} are there", self.slots)
            }
            ("preparing", _) if self.active_nodes + self.standby_nodes == 0 => {
                format!(
                    "waits before epoch {}: no agent is heard; start one on each node",
                    self.epoch
                )
            }
            ("preparing", _) => match self.waits_for {
                Some(hold) => {
                    format!("waits before epoch {}: {}", self.epoch, hold.replace('_', " "))
                }
                None => format!("stops its workers for epoch {}", self.epoch),
            },
            ("committed", _) if self.runs => match &self.open_incident {
                Some(incident) if self.hangs => format!("runs, but hangs (incident {incident})"),
                _ => "runs".to_owned(),
            },
            ("committed", _) => "starts its workers".to_owned(),
            (other, _) => other.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use telltale_wire::cluster::message::{Sign, Verdict, VerdictKind, sign};

    use super::*;

    #[test]
    fn a_mass_silence_of_every_node_promises_no_end() {
        let waiting = |waits_at_most_ns| {
            let waits_for = telltale_wire::cluster::message::HoldReason::MassSilence.into();
            let status =
                GetStatusResponse { waits_for, waits_at_most_ns, ..GetStatusResponse::default() };
            StatusView::from(&status).waiting().unwrap()
        };
        let (bounded, unbounded) = (waiting(Some(30_000_000_000)), waiting(None));
        for words in ["replaced if that lasts for `mass_silence_timeout`", "; for 30.0 s at most"] {
            assert!(bounded.contains(words) && !unbounded.contains(words), "{bounded} {unbounded}");
        }
        assert!(unbounded.contains("every known node is silent"), "{unbounded}");
    }

    #[test]
    fn without_a_store_not_all_is_well() {
        let is_well = |trouble: &str| {
            let store_trouble = trouble.to_owned();
            let status = GetStatusResponse {
                phase: JobPhase::Committed.into(),
                runs: true,
                store_trouble,
                ..GetStatusResponse::default()
            };
            StatusView::from(&status).is_well()
        };
        assert_eq!([is_well(""), is_well("cannot write")], [true, false]);
    }

    #[test]
    fn a_job_that_hangs_is_not_told_as_one_that_runs() {
        let status = GetStatusResponse {
            phase: JobPhase::Committed.into(),
            runs: true,
            open_incident: Some("1-1".to_owned()),
            ..GetStatusResponse::default()
        };
        let incident = |id: &str, kind: VerdictKind| {
            let verdict = Verdict { kind: kind.into(), ..Verdict::default() };
            let event = Sign { kind: Some(sign::Kind::Suspected(verdict)) };
            Incident { id: id.to_owned(), signs: vec![event], ..Incident::default() }
        };
        let hang = VerdictKind::NonCommunicationHang;
        for (open, expected) in [
            (None, "runs"),
            (Some(incident("1-1", hang)), "runs, but hangs (incident 1-1)"),
            (Some(incident("1-1", VerdictKind::SlowNode)), "runs"),
            (Some(incident("1-2", hang)), "runs"),
        ] {
            let view = StatusView::from(&status).with_incident(open.as_ref());
            assert_eq!(view.sentence(), expected);
        }
    }
}
