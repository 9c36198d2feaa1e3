//! Where in etcd what is, and the requests that read and write it.
//!
//! | key | value | written |
//! |---|---|---|
//! | `PREFIX/leader` | the leader's address | once a leadership; ends with its lease |
//! | `PREFIX/state` | the last decision, with its state | with each decision |
//! | `PREFIX/decisions/NNNN` | a decision without its state | likewise; the oldest is overwritten |
//! | `PREFIX/incidents/TERM-NUMBER` | an incident | as it goes on; the oldest are removed |
//!
//! Everything but the first is written only while the writer's leader key is there.

use prost::Message;
use telltale_wire::etcd::message::compare::{CompareTarget, TargetUnion};
use telltale_wire::etcd::message::request_op::Request;
use telltale_wire::etcd::message::{
    Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
};

use super::super::encode;
use super::super::kept::{DecisionRecord, IncidentRecord, MAX_KEPT_DECISIONS};
use telltale_cluster::epoch::Term;
use telltale_cluster::incident::IncidentId;
use telltale_cluster::stored::Decision;

/// The keys of one job.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

// === impl Keys ===

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    pub(super) fn leader(&self) -> String {
        format!("{}/leader", self.prefix)
    }

    pub(super) fn state(&self) -> String {
        format!("{}/state", self.prefix)
    }

    fn decision(&self, count: u64) -> String {
        let places = u64::try_from(MAX_KEPT_DECISIONS).expect("the number of decisions fits");
        format!("{}/decisions/{:04}", self.prefix, count % places)
    }

    fn incident(&self, id: IncidentId) -> String {
        format!("{}/incidents/{:016x}-{:08x}", self.prefix, id.term.number(), id.number)
    }

    /// Who leads.
    pub(super) fn read_leader(&self) -> RangeRequest {
        one(self.leader())
    }

    /// The state, whichever coordinator leads.
    pub(super) fn read_state(&self) -> RangeRequest {
        one(self.state())
    }

    /// Makes the leader's key, unless it is there.
    pub(super) fn lead(&self, address: &str, lease: i64) -> TxnRequest {
        let key = self.leader().into_bytes();
        let put = PutRequest { key, value: address.as_bytes().to_vec(), lease };
        TxnRequest {
            compare: vec![created(self.leader(), 0)],
            success: vec![step(Request::RequestPut(put))],
            failure: Vec::new(),
        }
    }

    /// The state, the decisions and the incidents, in this order, if `term` still leads.
    pub(super) fn read_all(&self, term: Term) -> TxnRequest {
        let all = [
            one(self.state()),
            below(format!("{}/decisions/", self.prefix)),
            below(format!("{}/incidents/", self.prefix)),
        ];
        let success = all.into_iter().map(|range| step(Request::RequestRange(range))).collect();
        TxnRequest { compare: vec![self.leads(term)], success, failure: Vec::new() }
    }

    /// Stores a decision, if its term still leads and the state is the expected one; else reads the
    /// leader and the state.
    pub(super) fn store(&self, decision: &Decision, count: u64) -> TxnRequest {
        let expected = decision.expected.number().try_into().unwrap_or(i64::MAX);
        let unchanged = Compare {
            target: CompareTarget::Mod.into(),
            key: self.state().into_bytes(),
            target_union: Some(TargetUnion::ModRevision(expected)),
            ..Compare::default()
        };
        let record = DecisionRecord::of(decision, count);
        TxnRequest {
            compare: vec![self.leads(decision.term), unchanged],
            success: vec![
                put(self.state(), &encode::decision(decision, count)),
                put(self.decision(count), &encode::logged(&record)),
            ],
            failure: vec![
                step(Request::RequestRange(self.read_leader())),
                step(Request::RequestRange(one(self.state()))),
            ],
        }
    }

    /// Writes an incident and removes those that made room for it, if `term` still leads.
    pub(super) fn keep(
        &self,
        term: Term,
        incident: &IncidentRecord,
        removed: &[IncidentId],
    ) -> TxnRequest {
        let mut success = vec![put(self.incident(incident.id), &encode::incident(incident))];
        success.extend(removed.iter().map(|id| {
            let key = self.incident(*id).into_bytes();
            step(Request::RequestDeleteRange(DeleteRangeRequest { key }))
        }));
        TxnRequest { compare: vec![self.leads(term)], success, failure: Vec::new() }
    }

    /// Whether `term` leads: the leader's key is the one that it made.
    fn leads(&self, term: Term) -> Compare {
        created(self.leader(), term.number().try_into().unwrap_or(i64::MAX))
    }
}

fn created(key: String, revision: i64) -> Compare {
    Compare {
        target: CompareTarget::Create.into(),
        key: key.into_bytes(),
        target_union: Some(TargetUnion::CreateRevision(revision)),
        ..Compare::default()
    }
}

fn one(key: String) -> RangeRequest {
    RangeRequest { key: key.into_bytes(), range_end: Vec::new() }
}

/// All keys that begin with `prefix`, which ends with a slash.
fn below(prefix: String) -> RangeRequest {
    let key = prefix.into_bytes();
    let mut range_end = key.clone();
    if let Some(last) = range_end.last_mut() {
        // A slash has a successor: '0'.
        *last += 1;
    }
    RangeRequest { key, range_end }
}

fn put(key: String, message: &impl Message) -> RequestOp {
    let value = message.encode_to_vec();
    step(Request::RequestPut(PutRequest { key: key.into_bytes(), value, lease: 0 }))
}

fn step(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}
