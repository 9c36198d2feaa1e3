//! Decisions and what is kept beside them, as the messages that are stored.

use telltale_wire::cluster_state::{VERSION, message};

use super::kept::{DecisionRecord, IncidentRecord};
use telltale_cluster::epoch::JobIdentity;
use telltale_cluster::message::JobOutcome;
use telltale_cluster::node::{Bar, NodeName};
use telltale_cluster::policy::Mode;
use telltale_cluster::rank::Slot;
use telltale_cluster::stored::{Decision, Phase, StoredState, Why};

/// A decision and its state; `count` decisions were stored up to this one.
pub(super) fn decision(decision: &Decision, count: u64) -> message::Decision {
    message::Decision {
        version: VERSION,
        term: decision.term.number(),
        number: decision.number.0,
        count,
        why: Some(why(&decision.why)),
        state: Some(state(&decision.state)),
    }
}

/// A decision without its state.
pub(super) fn logged(record: &DecisionRecord) -> message::LoggedDecision {
    message::LoggedDecision {
        term: record.term.number(),
        number: record.number.0,
        count: record.count,
        epoch: record.epoch.number(),
        phase: Some(phase(&record.phase)),
        why: Some(why(&record.why)),
    }
}

/// An incident.
pub(super) fn incident(record: &IncidentRecord) -> message::Incident {
    message::Incident {
        term: record.id.term.number(),
        number: record.id.number,
        content: record.content.clone(),
    }
}

fn state(state: &StoredState) -> message::State {
    let holder = |slot| state.map.holder(Slot(slot)).map(|node| node.as_str().to_owned());
    let bars = state.barred.iter();
    let failures = state.failures.iter();
    message::State {
        identity: state.identity.map_or(0, JobIdentity::number),
        epoch: state.epoch.number(),
        phase: Some(phase(&state.phase)),
        planned: state.planned,
        workers_per_node: state.map.workers_per_node().get(),
        holders: (0..state.map.slot_count()).map(|slot| holder(slot).unwrap_or_default()).collect(),
        restarts: state.restarts,
        last_port: state.last_port.map_or(0, |port| u32::from(port.get())),
        barred: bars
            .map(|(node, why)| message::Barred {
                node: node.as_str().to_owned(),
                bar: bar(*why).into(),
            })
            .collect(),
        failures: failures
            .map(|(node, count)| message::Failures {
                node: node.as_str().to_owned(),
                count: *count,
            })
            .collect(),
        evictions: state.evictions,
        counted_restarts: state.counted_restarts,
        mode: mode(state.mode).into(),
        job: state.job.clone().unwrap_or_default(),
    }
}

fn phase(phase: &Phase) -> message::Phase {
    use message::phase::Phase as Wire;
    let phase = match phase {
        Phase::Forming => Wire::Forming(message::Nothing {}),
        Phase::Preparing => Wire::Preparing(message::Nothing {}),
        Phase::Committed(master) => Wire::Committed(message::Master {
            address: master.address.as_str().to_owned(),
            port: u32::from(master.port.get()),
        }),
        Phase::Over(outcome) => Wire::Over(self::outcome(*outcome).into()),
    };
    message::Phase { phase: Some(phase) }
}

fn why(why: &Why) -> message::Why {
    use message::why::Why as Wire;
    let nothing = message::Nothing {};
    let why = match why {
        Why::Formed => Wire::Formed(nothing),
        Why::Incident { incident, evicted } => Wire::Incident(message::AnsweredIncident {
            term: incident.term.number(),
            number: incident.number,
            evicted: names(evicted),
        }),
        Why::Unanswered { evicted } => Wire::Unanswered(message::Nodes { nodes: names(evicted) }),
        Why::Quarantined { node } => Wire::Quarantined(node.as_str().to_owned()),
        Why::Left { nodes } => Wire::Left(message::Nodes { nodes: names(nodes) }),
        Why::Absent { nodes } => Wire::Absent(message::Nodes { nodes: names(nodes) }),
        Why::Filled => Wire::Filled(nothing),
        Why::Shrunk => Wire::Shrunk(nothing),
        Why::Prepared => Wire::Prepared(nothing),
        Why::Over(outcome) => Wire::Over(self::outcome(*outcome).into()),
        Why::Ordered => Wire::Ordered(nothing),
        Why::Reset => Wire::Reset(nothing),
    };
    message::Why { why: Some(why) }
}

fn names(nodes: &[NodeName]) -> Vec<String> {
    nodes.iter().map(|node| node.as_str().to_owned()).collect()
}

const fn outcome(outcome: JobOutcome) -> message::Outcome {
    match outcome {
        JobOutcome::Finished => message::Outcome::Finished,
        JobOutcome::GivenUp => message::Outcome::GivenUp,
    }
}

const fn bar(bar: Bar) -> message::Bar {
    match bar {
        Bar::Quarantined => message::Bar::Quarantined,
        Bar::Suspected => message::Bar::Suspected,
        Bar::Draining => message::Bar::Draining,
        Bar::Removed => message::Bar::Removed,
    }
}

const fn mode(mode: Mode) -> message::Mode {
    match mode {
        Mode::Observe => message::Mode::Observe,
        Mode::Recover => message::Mode::Recover,
        Mode::Act => message::Mode::Act,
    }
}
