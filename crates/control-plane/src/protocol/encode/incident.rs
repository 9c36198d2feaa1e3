//! Incidents, verdicts and their values. Moments become times of day by what the caller gives.

use std::time::Duration;

use telltale_wire::cluster::message;

use super::report::{nanoseconds, worker_end};
use telltale_cluster::detection::LatencyMatrix;
use telltale_cluster::incident::{FaultEvent, Hold, HookOutcome, Incident, Standing};
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::{
    Bandwidth, Evidence, Side, SlowSteps, Suspect, Suspects, Verdict, VerdictKind,
};

/// The time of day of a moment, in milliseconds since the Unix epoch.
pub(crate) type UnixMs<'a> = &'a dyn Fn(Moment) -> u64;

/// An incident. Who was evicted for it and who had finished is not known to it.
pub(crate) fn incident(from: &Incident, unix_ms: UnixMs<'_>) -> message::Incident {
    use message::IncidentStanding as Wire;
    let (standing, hold, epoch) = match &from.standing {
        Standing::Collecting => (Wire::Collecting, None, None),
        Standing::Held(reason) => (Wire::Held, Some(hold(*reason)), None),
        Standing::Answered(epoch) => (Wire::Answered, None, Some(*epoch)),
        Standing::Passed => (Wire::Passed, None, None),
        Standing::GivenUp => (Wire::GivenUp, None, None),
        Standing::Reset => (Wire::Reset, None, None),
    };
    let cause = from.root_cause();
    message::Incident {
        id: from.id.to_string(),
        epoch: from.epoch.number(),
        opened_unix_ms: unix_ms(from.opened),
        last_sign_unix_ms: unix_ms(from.last_event),
        signs: from.events.iter().map(|one| event(one, unix_ms)).collect(),
        dropped_signs: from.dropped_events,
        standing: standing.into(),
        hold: hold.unwrap_or(message::HoldReason::Unspecified).into(),
        answered_by_epoch: epoch.map_or(0, telltale_cluster::epoch::Epoch::number),
        cause_is_certain: cause.as_ref().is_some_and(|cause| cause.certain),
        cause: cause.map(|cause| cause.node.as_str().to_owned()),
        evicted: Vec::new(),
        repetition: Some(message::Repetition {
            nodes: from.repetition.nodes.iter().map(|node| node.as_str().to_owned()).collect(),
            failed_starts: from.repetition.failed_starts,
        }),
        finished: Vec::new(),
        hang: String::new(),
    }
}

/// Why nothing is done.
pub(crate) const fn hold(from: Hold) -> message::HoldReason {
    use message::HoldReason as Wire;
    match from {
        Hold::Mode => Wire::Mode,
        Hold::Grace => Wire::Grace,
        Hold::MassSilence => Wire::MassSilence,
        Hold::EvictionBudget => Wire::EvictionBudget,
        Hold::Unsure => Wire::Unsure,
        Hold::NoSpare => Wire::NoSpare,
        Hold::BeforeDrain => Wire::BeforeDrain,
        Hold::RestartBudget => Wire::RestartBudget,
    }
}

fn event(from: &FaultEvent, unix_ms: UnixMs<'_>) -> message::Sign {
    use message::sign::Kind;
    let kind = match from {
        FaultEvent::WorkerFailed { node, rank, end, at, detail } => {
            Kind::WorkerFailed(message::WorkerFailed {
                node: node.as_str().to_owned(),
                rank: rank.0,
                end: Some(worker_end(*end)),
                at_unix_ms: unix_ms(*at),
                message: detail.message.clone(),
                log: detail.log.clone(),
            })
        }
        FaultEvent::Silent { node } => Kind::Silent(node.as_str().to_owned()),
        FaultEvent::AgentRestarted { node } => Kind::AgentRestarted(node.as_str().to_owned()),
        FaultEvent::NotStarted { node } => Kind::NotStarted(node.as_str().to_owned()),
        FaultEvent::Suspected(one) => Kind::Suspected(verdict(one, unix_ms)),
        FaultEvent::Unhealthy { node, fault, .. } => Kind::Unhealthy(message::Unhealthy {
            node: node.as_str().to_owned(),
            part: fault.part.clone(),
            rule: fault.rule.clone(),
            reason: fault.reason.clone(),
        }),
        FaultEvent::BeforeDrain(one) => Kind::BeforeDrain(before_drain(one)),
    };
    message::Sign { kind: Some(kind) }
}

/// How the command that runs before nodes are drained has ended.
pub(crate) fn before_drain(from: &HookOutcome) -> message::BeforeDrain {
    message::BeforeDrain {
        end: from.end.map(worker_end),
        last_line: from.last_line.clone(),
        took_ms: nanoseconds(from.took) / 1_000_000,
    }
}

/// The kind of a verdict.
pub(crate) const fn verdict_kind(from: VerdictKind) -> message::VerdictKind {
    use message::VerdictKind as Wire;
    match from {
        VerdictKind::Crash => Wire::Crash,
        VerdictKind::NodeSilent => Wire::NodeSilent,
        VerdictKind::CommunicationHang => Wire::CommunicationHang,
        VerdictKind::NonCommunicationHang => Wire::NonCommunicationHang,
        VerdictKind::SlowNode => Wire::SlowNode,
        VerdictKind::SlowLink => Wire::SlowLink,
    }
}

/// A verdict.
pub(crate) fn verdict(from: &Verdict, unix_ms: UnixMs<'_>) -> message::Verdict {
    message::Verdict {
        kind: verdict_kind(from.kind).into(),
        suspects: from.suspects.all().iter().map(suspect).collect(),
        is_certain: matches!(from.suspects, Suspects::One(_)),
        confidence: from.confidence,
        evidence: from.evidence.iter().map(evidence).collect(),
        first_seen_unix_ms: unix_ms(from.first_seen),
        windows: from.windows,
    }
}

fn suspect(from: &Suspect) -> message::Suspect {
    use message::SuspectKind as Wire;
    let (kind, node, peer) = match from {
        Suspect::Node(node) => (Wire::Node, node, None),
        Suspect::Side { node, side: Side::Sender } => (Wire::Sender, node, None),
        Suspect::Side { node, side: Side::Receiver } => (Wire::Receiver, node, None),
        Suspect::Link { from, to, both_ways: true } => (Wire::LinkBothWays, from, Some(to)),
        Suspect::Link { from, to, both_ways: false } => (Wire::LinkOneWay, from, Some(to)),
    };
    message::Suspect {
        kind: kind.into(),
        node: node.as_str().to_owned(),
        peer: peer.map(|peer| peer.as_str().to_owned()).unwrap_or_default(),
    }
}

fn evidence(from: &Evidence) -> message::Evidence {
    use message::evidence::Kind;
    let ns = |time: &Duration| nanoseconds(*time);
    let kind = match from {
        Evidence::Silence { silent, allowed } => Kind::Silence(message::SilenceEvidence {
            silent_ns: ns(silent),
            allowed_ns: ns(allowed),
        }),
        Evidence::Exit { rank, end, after } => Kind::Exit(message::ExitEvidence {
            rank: rank.0,
            end: Some(worker_end(*end)),
            after_ns: ns(after),
        }),
        Evidence::Echoes { workers } => Kind::Echoes(*workers),
        Evidence::Behind { group, rank, entered, awaited, stalled } => {
            Kind::Behind(message::BehindEvidence {
                group: group.number(),
                rank: rank.0,
                entered: *entered,
                awaited: *awaited,
                stalled_ns: ns(stalled),
            })
        }
        Evidence::Inside { group, rank, sequence, stalled } => {
            Kind::Inside(message::InsideEvidence {
                group: group.number(),
                rank: rank.0,
                sequence: *sequence,
                stalled_ns: ns(stalled),
            })
        }
        Evidence::Stuck { group, from, to, stalled } => Kind::Stuck(message::StuckEvidence {
            group: group.number(),
            from: from.0,
            to: to.0,
            stalled_ns: ns(stalled),
        }),
        Evidence::ProcessStopped { rank } => Kind::ProcessStopped(rank.0),
        Evidence::Slower { from, to, usual_ns, now_ns } => Kind::Slower(message::SlowerEvidence {
            from: from.as_str().to_owned(),
            to: to.as_str().to_owned(),
            usual_ns: *usual_ns,
            now_ns: *now_ns,
        }),
        Evidence::Agreement { slow, observed } => {
            Kind::Agreement(message::AgreementEvidence { slow: *slow, observed: *observed })
        }
        Evidence::HeldUp { connections } => Kind::HeldUp(*connections),
        Evidence::Explanations { count, cut_short } => {
            Kind::Explanations(message::ExplanationsEvidence {
                count: *count,
                cut_short: *cut_short,
            })
        }
        Evidence::WaitsLeast { group, suspect_ns, others_ns, usual_ns } => {
            Kind::WaitsLeast(message::WaitsLeastEvidence {
                group: group.number(),
                suspect_ns: *suspect_ns,
                others_ns: *others_ns,
                usual_ns: *usual_ns,
            })
        }
        Evidence::SlowSteps(slow) => Kind::SlowSteps(slow_steps(slow)),
        Evidence::Bandwidth(bandwidth) => Kind::Bandwidth(self::bandwidth(bandwidth)),
        Evidence::Outlier { average_ns, bound_ns } => {
            Kind::Outlier(message::OutlierEvidence { average_ns: *average_ns, bound_ns: *bound_ns })
        }
    };
    message::Evidence { kind: Some(kind) }
}

fn slow_steps(from: &SlowSteps) -> message::SlowStepsEvidence {
    message::SlowStepsEvidence {
        rank: from.rank.0,
        peer: from.peer.map(|peer| peer.0),
        ratio: from.ratio,
        cost_ns: from.cost_ns,
        step_ns: from.step_ns,
        slow: from.slow,
        observed: from.observed,
        withheld: from.withheld,
    }
}

fn bandwidth(from: &Bandwidth) -> message::BandwidthEvidence {
    message::BandwidthEvidence {
        from: from.from.as_str().to_owned(),
        to: from.to.as_str().to_owned(),
        bytes_per_second: from.bytes_per_second,
        usual_bytes_per_second: from.usual_bytes_per_second,
        lost_ratio: from.lost,
        slow: from.slow,
        observed: from.observed,
    }
}

/// A part of the matrix of latencies; `None` when nothing is in it.
pub(crate) fn matrix(from: &LatencyMatrix, at_unix_ms: u64) -> Option<message::LatencyMatrix> {
    let place = |place: usize| u32::try_from(place).expect("an extract has few nodes");
    let cells = from.cells.iter().map(|cell| message::LatencyCell {
        from: place(cell.from),
        to: place(cell.to),
        usual_ns: cell.usual_ns,
        now_ns: cell.now_ns,
        is_slow: cell.is_slow,
    });
    let nodes = from.nodes.iter().map(|node| node.as_str().to_owned()).collect();
    let left_out = u32::try_from(from.left_out).unwrap_or(u32::MAX);
    (!from.cells.is_empty()).then(|| message::LatencyMatrix {
        nodes,
        cells: cells.collect(),
        left_out,
        at_unix_ms,
    })
}
