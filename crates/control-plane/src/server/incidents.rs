//! The latest incidents with what explains them, for clients; nothing is decided by it.

use std::collections::BTreeMap;
use std::path::Path;

use prost::Message as _;
use telltale_wire::cluster::decode::Bounded as _;
use telltale_wire::cluster::message::{self, GetIncidentResponse};

use super::clock::Clock;
use super::examination::ExplainedHang;
use crate::protocol::encode;
use crate::store::{
    self, IncidentRecord, JournalError, MAX_INCIDENT_BYTES, MAX_KEPT_INCIDENTS, SideState,
};
use crate::view::EventView;
use telltale_cluster::epoch::Epoch;
use telltale_cluster::incident::{Incident, IncidentId, Standing};
use telltale_cluster::lookout::LookoutState;
use telltale_cluster::node::NodeName;

/// Verdicts that are kept of one incident.
const MAX_VERDICTS: usize = 64;
const _: () = assert!(MAX_VERDICTS <= telltale_wire::cluster::MAX_VERDICTS);

/// The latest incidents.
#[derive(Debug, Default)]
pub struct Incidents {
    files: BTreeMap<IncidentId, File>,
    /// The last evaluation and its epoch: it may have been what opened an incident.
    last_look: Option<(Epoch, Vec<message::Verdict>, Option<message::LatencyMatrix>)>,
}

#[derive(Debug, Default)]
struct File {
    content: GetIncidentResponse,
    /// Whether something may still be done about it.
    open: bool,
}

// === impl Incidents ===

impl Incidents {
    /// Those that a coordinator's journal keeps, also after the coordinator has ended; `path` is the journal's
    /// directory or its file. Nothing is locked or written.
    ///
    /// # Errors
    ///
    /// If the journal cannot be read, is none, or is damaged.
    pub fn of_journal(path: &Path) -> Result<Self, JournalError> {
        let mut incidents = Self::default();
        incidents.restore(&store::read_journal(path)?);
        Ok(incidents)
    }

    /// Takes over what the store kept.
    pub(super) fn restore(&mut self, kept: &SideState) {
        self.files.clear();
        self.last_look = None;
        for (id, content) in kept.incidents() {
            // What another version kept, and this one cannot read, is left out.
            if let Ok(content) = GetIncidentResponse::bounded(content) {
                self.files.insert(id, File { content, open: false });
            }
        }
    }

    /// Takes in how an incident stands, and returns what to keep of it; and the node it was attributed to when
    /// it was answered, if it is not attributed any more.
    pub(super) fn stands(
        &mut self,
        clock: &Clock,
        incident: &Incident,
        finished: Vec<message::FinishedWorker>,
    ) -> (IncidentRecord, Option<String>) {
        let file = self.files.entry(incident.id).or_default();
        let former = file.content.incident.take().unwrap_or_default();
        let mut reported = encode::incident(incident, &|moment| clock.unix_ms(moment));
        let was_answered = former.standing() == message::IncidentStanding::Answered;
        let withdrawn = former.cause.filter(|_| was_answered && reported.cause.is_none());
        reported.evicted = former.evicted;
        reported.hang = former.hang;
        // Those that had ended when it was opened, not those that end in its course.
        let is_new = former.id.is_empty();
        reported.finished = if is_new { finished } else { former.finished };
        file.content.incident = Some(reported);
        if withdrawn.is_some() {
            file.forget_likely_crashes();
        }
        file.open = matches!(incident.standing, Standing::Collecting | Standing::Held(_));
        if file.content.verdicts.is_empty()
            && let Some((epoch, verdicts, matrix)) = &self.last_look
            && *epoch == incident.epoch
        {
            file.content.verdicts.clone_from(verdicts);
            file.content.matrix.clone_from(matrix);
        }
        let record = record(incident.id, &file.content);
        while self.files.len() > MAX_KEPT_INCIDENTS {
            self.files.pop_first();
        }
        (record, withdrawn)
    }

    /// The first event of an incident, as a sentence.
    pub(super) fn first_event(&self, id: IncidentId) -> Option<String> {
        let incident = self.files.get(&id)?.content.incident.as_ref()?;
        EventView::of(incident.signs.first()?).map(|event| event.text)
    }

    /// What was noticed last of an incident.
    pub(super) fn last_event(&self, id: IncidentId) -> Option<String> {
        let incident = self.files.get(&id)?.content.incident.as_ref()?;
        EventView::of(incident.signs.last()?).map(|event| event.text)
    }

    /// Takes in who was taken out of its slot for an incident.
    pub(super) fn evicted(&mut self, id: IncidentId, nodes: &[NodeName]) -> Option<IncidentRecord> {
        let file = self.files.get_mut(&id)?;
        let reported = file.content.incident.as_mut()?;
        reported.evicted = nodes.iter().map(|node| node.as_str().to_owned()).collect();
        (!nodes.is_empty()).then(|| record(id, &file.content))
    }

    /// Takes in who was replaced while the epoch was prepared that answers an incident.
    pub(super) fn replaced(&mut self, epoch: Epoch, nodes: &[NodeName]) -> Option<IncidentRecord> {
        let (id, file) = self.answered_by(epoch)?;
        let reported = file.content.incident.as_mut()?;
        reported.evicted.extend(nodes.iter().map(|node| node.as_str().to_owned()));
        Some(record(id, &file.content))
    }

    /// Takes in who did not answer meanwhile, and was replaced. That is what had failed: the one
    /// only likely to be the cause has failed with it.
    pub(super) fn unanswering(
        &mut self,
        unix_ms: u64,
        epoch: Epoch,
        nodes: &[NodeName],
    ) -> Option<IncidentRecord> {
        self.replaced(epoch, nodes)?;
        let (id, file) = self.answered_by(epoch)?;
        let reported = file.content.incident.as_mut()?;
        if !reported.cause_is_certain {
            reported.cause = match nodes {
                [one] => Some(one.as_str().to_owned()),
                _ => None,
            };
            file.forget_likely_crashes();
        }
        let silent: Vec<_> = nodes.iter().map(|node| silent(node, unix_ms)).collect();
        file.explain(&silent, None);
        Some(record(id, &file.content))
    }

    fn answered_by(&mut self, epoch: Epoch) -> Option<(IncidentId, &mut File)> {
        let mut newest = self.files.iter_mut().rev();
        let found = newest.find(|(_, file)| {
            let reported = file.content.incident.as_ref();
            reported.is_some_and(|reported| reported.answered_by_epoch == epoch.number())
        });
        found.map(|(id, file)| (*id, file))
    }

    /// Takes in what detection has seen: for the incident that it was asked for, else for those of that
    /// epoch that are open.
    pub(super) fn saw(&mut self, clock: &Clock, seen: &LookoutState) -> Option<IncidentRecord> {
        let unix_ms = |moment| clock.unix_ms(moment);
        let verdicts = seen.verdicts.iter().take(MAX_VERDICTS);
        let verdicts: Vec<_> = verdicts.map(|one| encode::verdict(one, &unix_ms)).collect();
        let matrix = seen.matrix.as_ref().and_then(|one| encode::matrix(one, unix_ms(seen.at)));
        if let Some(id) = seen.incident {
            let file = self.files.get_mut(&id).filter(|file| file.is_of(seen.epoch))?;
            file.explain(&verdicts, matrix);
            return Some(record(id, &file.content));
        }
        for file in self.files.values_mut().filter(|file| file.open && file.is_of(seen.epoch)) {
            file.explain(&verdicts, matrix.clone());
        }
        self.last_look = Some((seen.epoch, verdicts, matrix));
        None
    }

    /// Takes in why a job hung, for the newest incident of that epoch.
    pub(super) fn hung(&mut self, hang: &ExplainedHang) -> Option<IncidentRecord> {
        let mut newest = self.files.iter_mut().rev();
        let (id, file) = newest.find(|(_, file)| file.is_of(hang.epoch))?;
        file.content.incident.as_mut()?.hang.clone_from(&hang.explanation.sentence);
        file.content.hang = Some(encode::hang(&hang.explanation, &hang.missing));
        Some(record(*id, &file.content))
    }

    /// Whether an incident is open.
    pub(super) fn any_open(&self) -> bool {
        self.files.values().any(|file| file.open)
    }

    /// At most `limit` incidents, the newest first, without the evidence of suspicions.
    #[must_use]
    pub fn list(&self, limit: usize) -> Vec<message::Incident> {
        let newest = self.files.values().rev().take(limit);
        let reported = newest.filter_map(|file| file.content.incident.clone());
        reported
            .map(|mut incident| {
                for event in &mut incident.signs {
                    if let Some(message::sign::Kind::Suspected(verdict)) = &mut event.kind {
                        verdict.evidence.clear();
                    }
                }
                incident
            })
            .collect()
    }

    /// One incident by its number as it is written, or the newest where `id` is empty.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<GetIncidentResponse> {
        let mut newest = self.files.iter().rev();
        let found = newest.find(|(number, _)| id.is_empty() || number.to_string() == id);
        found.map(|(_, file)| file.content.clone())
    }
}

impl File {
    /// Whether the incident is of this epoch.
    fn is_of(&self, epoch: Epoch) -> bool {
        self.content.incident.as_ref().is_some_and(|reported| reported.epoch == epoch.number())
    }

    /// Keeps of crashes what the way of ending shows, which is sure; what only the order of failures showed is not.
    fn forget_likely_crashes(&mut self) {
        let crash = message::VerdictKind::Crash;
        self.content.verdicts.retain(|held| held.kind() != crash || held.confidence >= 1.0);
    }

    /// Adds what was seen. What was seen before and is not any more explains the incident too.
    fn explain(&mut self, verdicts: &[message::Verdict], matrix: Option<message::LatencyMatrix>) {
        for verdict in verdicts {
            let same = |held: &&mut message::Verdict| {
                held.kind == verdict.kind && held.suspects == verdict.suspects
            };
            let has_place = self.content.verdicts.len() < MAX_VERDICTS;
            match self.content.verdicts.iter_mut().find(same) {
                Some(held) => held.clone_from(verdict),
                None if has_place => self.content.verdicts.push(verdict.clone()),
                None => {}
            }
        }
        // A matrix of a calm moment after the fault would explain nothing.
        let is_better = !verdicts.is_empty() || self.content.matrix.is_none();
        if is_better && matrix.is_some() {
            self.content.matrix = matrix;
        }
    }
}

/// The verdict that a node is gone.
fn silent(node: &NodeName, unix_ms: u64) -> message::Verdict {
    let kind = message::SuspectKind::Node.into();
    let suspect = message::Suspect { kind, node: node.as_str().to_owned(), ..Default::default() };
    message::Verdict {
        kind: message::VerdictKind::NodeSilent.into(),
        suspects: vec![suspect],
        is_certain: true,
        confidence: 1.0,
        windows: 1,
        first_seen_unix_ms: unix_ms,
        ..Default::default()
    }
}

/// What the store is given, cut until it fits.
fn record(id: IncidentId, content: &GetIncidentResponse) -> IncidentRecord {
    let mut content = content.clone();
    if content.encoded_len() > MAX_INCIDENT_BYTES
        && let Some(matrix) = &mut content.matrix
    {
        matrix.cells.retain(|cell| cell.is_slow);
    }
    if content.encoded_len() > MAX_INCIDENT_BYTES {
        content.matrix = None;
    }
    if content.encoded_len() > MAX_INCIDENT_BYTES {
        content.hang = None;
    }
    while content.encoded_len() > MAX_INCIDENT_BYTES && content.verdicts.pop().is_some() {}
    if let Some(incident) = &mut content.incident {
        while incident.encoded_len() > MAX_INCIDENT_BYTES && incident.signs.pop().is_some() {
            incident.dropped_signs += 1;
        }
    }
    IncidentRecord { id, content: content.encode_to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telltale_cluster::detection::{DetectionCounts, LatencyCell, LatencyMatrix, Standstill};
    use telltale_cluster::epoch::Term;
    use telltale_cluster::incident::FaultEvent;
    use telltale_cluster::observation::{FailureDetail, WorkerEnd};
    use telltale_cluster::rank::Rank;
    use telltale_cluster::time::Moment;
    use telltale_cluster::verdict::{Suspect, Suspects, Verdict, VerdictKind};

    /// A look in which node `of` is suspected.
    fn state(epoch: u64, of: &str) -> LookoutState {
        let node = NodeName::new(of).unwrap();
        let verdict = Verdict {
            kind: VerdictKind::SlowNode,
            suspects: Suspects::One(Suspect::Node(node.clone())),
            confidence: 1.0,
            evidence: Vec::new(),
            first_seen: Moment::from_ns(0),
            windows: 1,
        };
        let cell = LatencyCell { from: 0, to: 0, usual_ns: 1, now_ns: 2, is_slow: true };
        LookoutState {
            epoch: Epoch::new(epoch),
            at: Moment::from_ns(0),
            incident: None,
            standstill: Standstill::Moves,
            verdicts: vec![verdict],
            matrix: Some(LatencyMatrix { nodes: vec![node], cells: vec![cell], left_out: 0 }),
            counts: DetectionCounts::default(),
            steps: None,
        }
    }

    #[test]
    fn an_incident_is_explained_by_samples_of_its_own_epoch() {
        let (clock, mut incidents) = (Clock::start(), Incidents::default());
        let id = |number| IncidentId { term: Term::new(1), number };
        let opened =
            |number, epoch| Incident::new(id(number), Epoch::new(epoch), Moment::from_ns(0));
        let suspects = |incidents: &Incidents, number| {
            let found = incidents.get(&id(number).to_string()).unwrap();
            let verdicts = found.verdicts.iter().flat_map(|verdict| &verdict.suspects);
            let nodes = found.matrix.map(|matrix| matrix.nodes).unwrap_or_default();
            (verdicts.map(|one| one.node.clone()).collect::<Vec<_>>(), nodes)
        };
        let all = |node: &str| (vec![node.to_owned()], vec![node.to_owned()]);
        incidents.saw(&clock, &state(1, "former"));
        incidents.stands(&clock, &opened(1, 2), Vec::new());
        assert_eq!(suspects(&incidents, 1), (vec![], vec![]));
        incidents.saw(&clock, &state(1, "former"));
        assert_eq!(suspects(&incidents, 1), (vec![], vec![]));
        incidents.saw(&clock, &state(2, "present"));
        assert_eq!(suspects(&incidents, 1), all("present"));
        incidents.stands(&clock, &opened(2, 2), Vec::new());
        assert_eq!(suspects(&incidents, 2), all("present"), "the look that opened it");
        let last = LookoutState { incident: Some(id(2)), ..state(3, "next") };
        assert_eq!(incidents.saw(&clock, &last), None);
        assert_eq!(suspects(&incidents, 2), all("present"));
    }

    #[test]
    fn who_is_not_the_cause_any_more_is_named_by_no_verdict() {
        let node = |text: &str| NodeName::new(text).unwrap();
        let (clock, mut incidents) = (Clock::start(), Incidents::default());
        let id = IncidentId { term: Term::new(1), number: 1 };
        let mut incident = Incident::new(id, Epoch::new(1), Moment::from_ns(0));
        let (end, at) = (WorkerEnd::Code(1), Moment::from_ns(0));
        let detail = FailureDetail::default();
        let event =
            FaultEvent::WorkerFailed { node: node("survivor"), rank: Rank(0), end, detail, at };
        incident.add(Moment::from_ns(0), event);
        assert_eq!(incidents.stands(&clock, &incident, Vec::new()).1, None);
        incident.standing = Standing::Answered(Epoch::new(2));
        assert_eq!(incidents.stands(&clock, &incident, Vec::new()).1, None);
        let mut seen = state(1, "survivor");
        (seen.verdicts[0].kind, seen.verdicts[0].confidence) = (VerdictKind::Crash, 0.7);
        incidents.saw(&clock, &LookoutState { incident: Some(id), ..seen });
        assert_eq!(incidents.get("1-1").unwrap().verdicts.len(), 1);
        incident.add(Moment::from_ns(9), FaultEvent::Silent { node: node("dead") });
        let withdrawn = incidents.stands(&clock, &incident, Vec::new()).1;
        assert_eq!(withdrawn.as_deref(), Some("survivor"));
        let found = incidents.get("1-1").unwrap();
        assert_eq!((found.verdicts, found.incident.unwrap().cause), (vec![], None));
        assert_eq!(incidents.stands(&clock, &incident, Vec::new()).1, None, "it is said once");
    }

    #[test]
    fn who_does_not_answer_is_the_cause_and_not_who_failed_with_it() {
        let survivor = NodeName::new("survivor").unwrap();
        let dead = NodeName::new("dead").unwrap();
        let code = |code| {
            let (clock, mut incidents) = (Clock::start(), Incidents::default());
            let id = IncidentId { term: Term::new(1), number: 1 };
            let mut incident = Incident::new(id, Epoch::new(1), Moment::from_ns(0));
            let (node, rank, at) = (survivor.clone(), Rank(0), Moment::from_ns(0));
            let end = WorkerEnd::Code(code);
            incident.add(
                Moment::from_ns(0),
                FaultEvent::WorkerFailed { node, rank, end, detail: FailureDetail::default(), at },
            );
            incident.standing = Standing::Answered(Epoch::new(2));
            incidents.stands(&clock, &incident, Vec::new());
            let mut seen = state(1, "survivor");
            seen.verdicts[0].kind = VerdictKind::Crash;
            seen.verdicts[0].confidence = if end.is_cause() { 1.0 } else { 0.7 };
            incidents.saw(&clock, &LookoutState { incident: Some(id), ..seen });
            let gone = std::slice::from_ref(&dead);
            assert_eq!(incidents.unanswering(7, Epoch::new(3), gone), None);
            incidents.unanswering(7, Epoch::new(2), gone).unwrap();
            let found = incidents.get("1-1").unwrap();
            let reported = found.incident.unwrap();
            assert_eq!(reported.evicted, ["dead"]);
            let named = found.verdicts.iter().map(|verdict| {
                (verdict.kind(), verdict.suspects[0].node.clone(), verdict.confidence >= 1.0)
            });
            (reported.cause, named.collect::<Vec<_>>())
        };
        let of_dead = (message::VerdictKind::NodeSilent, "dead".to_owned(), true);
        assert_eq!(code(1), (Some("dead".to_owned()), vec![of_dead.clone()]));
        let of_survivor = (message::VerdictKind::Crash, "survivor".to_owned(), true);
        assert_eq!(code(139), (Some("survivor".to_owned()), vec![of_survivor, of_dead]));
    }
}
