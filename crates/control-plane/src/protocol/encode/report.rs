//! Reports: workers, progress, latencies, vitals.

use std::net::IpAddr;
use std::time::Duration;

use telltale_wire::cluster::message;

use super::{activity, operations};
use telltale_cluster::latency::{Collective, Direction, EdgeWindow, WaitWindow, Window};
use telltale_cluster::message::Report;
use telltale_cluster::observation::{
    FailureDetail, GroupProgress, Traffic, Withheld, WorkerEnd, WorkerObservation, WorkerState,
};
use telltale_cluster::rank::Rank;
use telltale_cluster::vitals::{HealthState, PartHealth, Vitals, WorkerProcess};

pub(super) fn report(from: &Report, reported: Option<&Vitals>) -> message::Report {
    let observation = &from.observation;
    message::Report {
        activity: Some(activity(from.activity)),
        workers: workers(&observation.workers, &observation.failures),
        progress: observation.progress.iter().map(progress).collect(),
        edges: observation.edges.iter().map(edge).collect(),
        waits: observation.waits.iter().map(wait).collect(),
        excused: observation.excused,
        vitals: reported.map(vitals),
        operations: operations::operations(&observation.operations),
        withheld: observation.withheld.iter().map(withheld).collect(),
        sent_us: observation.sent_us,
        traffic: observation.traffic.iter().map(traffic).collect(),
    }
}

fn workers(from: &[WorkerObservation], failures: &[(Rank, FailureDetail)]) -> Vec<message::Worker> {
    let mut workers: Vec<message::Worker> = from.iter().map(worker).collect();
    for (rank, detail) in failures {
        if let Some(worker) = workers.iter_mut().find(|worker| worker.rank == rank.0) {
            worker.message.clone_from(&detail.message);
            worker.log.clone_from(&detail.log);
        }
    }
    workers
}

const fn withheld(from: &Withheld) -> message::WithheldProcessor {
    message::WithheldProcessor { rank: from.rank.0, millionths: from.millionths() }
}

fn traffic(from: &Traffic) -> message::Traffic {
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    message::Traffic {
        local: address(from.local),
        remote: address(from.remote),
        bytes: from.bytes,
        busy_us: us(from.busy),
        delivery_rate: from.delivery_rate,
        elapsed_us: us(from.elapsed),
    }
}

pub(crate) fn worker(from: &WorkerObservation) -> message::Worker {
    use message::WorkerState as Wire;
    let (state, failure) = match from.state {
        WorkerState::Running => (Wire::Running, None),
        WorkerState::Stopped => (Wire::Stopped, None),
        WorkerState::Finished => (Wire::Finished, None),
        WorkerState::Ended => (Wire::Ended, None),
        WorkerState::Failed { end, age } => (Wire::Failed, Some((end, age))),
    };
    message::Worker {
        rank: from.rank.0,
        state: state.into(),
        end: failure.map(|(end, _)| worker_end(end)),
        age_ns: failure.map_or(0, |(_, age)| nanoseconds(age)),
        ..message::Worker::default()
    }
}

pub(super) fn worker_end(from: WorkerEnd) -> message::WorkerEnd {
    use message::worker_end::Kind;
    let kind = match from {
        WorkerEnd::Code(code) => Kind::Code(code),
        WorkerEnd::Signal(signal) => Kind::Signal(signal),
        WorkerEnd::NotStarted => Kind::NotStarted(true),
    };
    message::WorkerEnd { kind: Some(kind) }
}

/// A time as it is sent: the longest that fits, where it is longer.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn progress(from: &GroupProgress) -> message::Progress {
    message::Progress {
        group: from.group.number(),
        rank: from.rank.0,
        entered: from.entered,
        finished: from.finished,
        sends_to: from.sends_to.iter().map(|rank| rank.0).collect(),
        receives_from: from.receives_from.iter().map(|rank| rank.0).collect(),
        transferred: from.transferred,
    }
}

fn edge(from: &EdgeWindow) -> message::EdgeWindow {
    let direction = match from.key.direction {
        Direction::Send => message::TransferDirection::Send,
        Direction::Receive => message::TransferDirection::Receive,
    };
    message::EdgeWindow {
        group: from.key.group.number(),
        rank: from.key.rank.0,
        peer: from.key.peer.0,
        direction: direction.into(),
        size_bucket: from.key.bucket.number().into(),
        window: Some(window(&from.window)),
    }
}

fn wait(from: &WaitWindow) -> message::WaitWindow {
    use message::CollectiveKind as Wire;
    let collective = match from.key.collective {
        Collective::AllReduce => Wire::AllReduce,
        Collective::Broadcast => Wire::Broadcast,
        Collective::AllGather => Wire::AllGather,
        Collective::Reduce => Wire::Reduce,
        Collective::ReduceScatter => Wire::ReduceScatter,
        Collective::Barrier => Wire::Barrier,
        Collective::Other => Wire::Other,
    };
    message::WaitWindow {
        group: from.key.group.number(),
        rank: from.key.rank.0,
        collective: collective.into(),
        size_bucket: from.key.bucket.number().into(),
        window: Some(window(&from.window)),
    }
}

const fn window(from: &Window) -> message::Window {
    message::Window {
        count: from.count,
        mean_ns: from.mean_ns,
        median_ns: from.median_ns,
        deviation_ns: from.deviation_ns,
        high_ns: from.high_ns,
        last_sequence: from.last_sequence,
        late: from.late,
        overlapped: from.overlapped,
    }
}

pub(crate) fn vitals(from: &Vitals) -> message::Vitals {
    message::Vitals {
        processors_busy_ratio: from.processors_busy_ratio,
        memory_used_bytes: from.memory_used_bytes,
        memory_total_bytes: from.memory_total_bytes,
        processes: from.processes.iter().map(process).collect(),
        devices: from.health.devices.iter().map(part).collect(),
        host: from.health.host.as_ref().map(part),
    }
}

const fn process(from: &WorkerProcess) -> message::WorkerProcess {
    message::WorkerProcess {
        rank: from.rank.0,
        process_id: from.process_id,
        processors: from.processors,
        resident_bytes: from.resident_bytes,
    }
}

fn part(from: &PartHealth) -> message::DeviceHealth {
    use message::HealthState as Wire;
    let state = match from.state {
        HealthState::Unknown => Wire::Unknown,
        HealthState::Ok => Wire::Ok,
        HealthState::Warning => Wire::Warning,
        HealthState::Failed => Wire::Failed,
    };
    message::DeviceHealth {
        device: from.part.clone(),
        healthy: !matches!(from.state, HealthState::Warning | HealthState::Failed),
        reason: from.reason.clone(),
        state: state.into(),
        rule: from.rule.clone(),
    }
}
