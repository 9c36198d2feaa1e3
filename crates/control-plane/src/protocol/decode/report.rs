//! Reports: workers, progress, latencies, vitals.

use std::net::IpAddr;
use std::time::Duration;

use telltale_wire::cluster::message;

use super::super::ProtocolError;
use super::operations::operations;
use super::{activity, rank};
use telltale_cluster::group::GroupId;
use telltale_cluster::latency::record::MAX_DURATION_US;
use telltale_cluster::latency::{
    Collective, Direction, EdgeKey, EdgeWindow, SizeBucket, WaitKey, WaitWindow, Window,
};
use telltale_cluster::message::Report;
use telltale_cluster::observation::{
    FailureDetail, GroupProgress, MAX_AWAITED_RANKS, Observation, Traffic, Withheld, WorkerEnd,
    WorkerObservation, WorkerState,
};
use telltale_cluster::rank::Rank;
use telltale_cluster::tracking::windows::MAX_WINDOW_SAMPLES;
use telltale_cluster::vitals::{HealthState, NodeHealth, PartHealth, Vitals, WorkerProcess};

pub(super) fn report(from: message::Report) -> Result<(Report, Option<Vitals>), ProtocolError> {
    let activity = activity(from.activity)?;
    let failures = from.workers.iter().filter_map(|worker| failure(worker).transpose());
    let observation = Observation {
        failures: failures.collect::<Result<_, _>>()?,
        workers: all(from.workers, worker)?,
        progress: all(from.progress, progress)?,
        edges: all(from.edges, edge)?,
        waits: all(from.waits, wait)?,
        excused: from.excused,
        operations: from.operations.map(operations).transpose()?.unwrap_or_default(),
        withheld: all(from.withheld, withheld)?,
        sent_us: from.sent_us,
        traffic: all(from.traffic, traffic)?,
    };
    let vitals = from.vitals.map(vitals).transpose()?;
    let fault = vitals.as_ref().and_then(|vitals| vitals.health.failed()).map(Box::new);
    Ok((Report { activity, observation, fault }, vitals))
}

fn all<From, To>(
    from: Vec<From>,
    one: impl Fn(From) -> Result<To, ProtocolError>,
) -> Result<Vec<To>, ProtocolError> {
    from.into_iter().map(one).collect()
}

fn withheld(from: message::WithheldProcessor) -> Result<Withheld, ProtocolError> {
    let (field, value) = ("withheld processor time", from.millionths.into());
    Withheld::of_millionths(rank(from.rank)?, from.millionths).ok_or(ProtocolError::OutOfRange {
        field,
        value,
        range: "0 to 1,000,000 millionths",
    })
}

fn traffic(from: message::Traffic) -> Result<Traffic, ProtocolError> {
    if from.busy_us > from.elapsed_us {
        let text = "a connection was busy for longer than it was looked at";
        return Err(ProtocolError::Contradiction(text));
    }
    Ok(Traffic {
        local: ip(&from.local)?,
        remote: ip(&from.remote)?,
        bytes: from.bytes,
        busy: Duration::from_micros(from.busy_us),
        delivery_rate: from.delivery_rate,
        elapsed: Duration::from_micros(from.elapsed_us),
    })
}

fn ip(bytes: &[u8]) -> Result<IpAddr, ProtocolError> {
    let old = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    old.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).map_err(|_| {
        ProtocolError::OutOfRange {
            field: "the bytes of an address",
            value: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            range: "4 or 16",
        }
    })
}

fn worker(from: message::Worker) -> Result<WorkerObservation, ProtocolError> {
    use message::WorkerState as Wire;
    let state = match Wire::try_from(from.state).unwrap_or_default() {
        Wire::Unspecified => return Err(ProtocolError::Missing("the state of a worker")),
        Wire::Running => WorkerState::Running,
        Wire::Stopped => WorkerState::Stopped,
        Wire::Finished => WorkerState::Finished,
        Wire::Ended => WorkerState::Ended,
        Wire::Failed => WorkerState::Failed {
            end: worker_end(from.end)?,
            age: Duration::from_nanos(from.age_ns),
        },
    };
    Ok(WorkerObservation { rank: rank(from.rank)?, state })
}

/// What a worker that failed left, where it is anything.
fn failure(from: &message::Worker) -> Result<Option<(Rank, FailureDetail)>, ProtocolError> {
    let detail = FailureDetail { message: from.message.clone(), log: from.log.clone() };
    (detail != FailureDetail::default()).then(|| Ok((rank(from.rank)?, detail))).transpose()
}

fn worker_end(from: Option<message::WorkerEnd>) -> Result<WorkerEnd, ProtocolError> {
    use message::worker_end::Kind;
    let missing = ProtocolError::Missing("how a failed worker ended");
    match from.and_then(|end| end.kind).ok_or(missing)? {
        Kind::Code(0) => Err(ProtocolError::Contradiction("a worker failed with exit code 0")),
        Kind::Code(code) => Ok(WorkerEnd::Code(code)),
        Kind::Signal(signal @ 1..=64) => Ok(WorkerEnd::Signal(signal)),
        Kind::Signal(signal) => Err(ProtocolError::OutOfRange {
            field: "a signal",
            value: u64::from(signal.unsigned_abs()),
            range: "1 to 64",
        }),
        Kind::NotStarted(_) => Ok(WorkerEnd::NotStarted),
    }
}

fn progress(from: message::Progress) -> Result<GroupProgress, ProtocolError> {
    if from.finished > from.entered {
        let text = "a rank has finished more collectives than it has entered";
        return Err(ProtocolError::Contradiction(text));
    }
    let most = from.sends_to.len().max(from.receives_from.len());
    if most > MAX_AWAITED_RANKS {
        let value = u64::try_from(most).unwrap_or(u64::MAX);
        let (field, range) = ("the number of awaited ranks", "0 to 64");
        return Err(ProtocolError::OutOfRange { field, value, range });
    }
    Ok(GroupProgress {
        group: GroupId::new(from.group),
        rank: rank(from.rank)?,
        entered: from.entered,
        finished: from.finished,
        sends_to: all(from.sends_to, rank)?,
        receives_from: all(from.receives_from, rank)?,
        transferred: from.transferred,
    })
}

fn edge(from: message::EdgeWindow) -> Result<EdgeWindow, ProtocolError> {
    use message::TransferDirection as Wire;
    let direction = match Wire::try_from(from.direction).unwrap_or_default() {
        Wire::Unspecified => return Err(ProtocolError::Missing("the direction of a transfer")),
        Wire::Send => Direction::Send,
        Wire::Receive => Direction::Receive,
    };
    let key = EdgeKey {
        group: GroupId::new(from.group),
        rank: rank(from.rank)?,
        peer: rank(from.peer)?,
        direction,
        bucket: bucket(from.size_bucket)?,
    };
    Ok(EdgeWindow { key, window: window(from.window)? })
}

fn wait(from: message::WaitWindow) -> Result<WaitWindow, ProtocolError> {
    use message::CollectiveKind as Wire;
    let collective = match Wire::try_from(from.collective).unwrap_or_default() {
        Wire::Unspecified => return Err(ProtocolError::Missing("the kind of a collective")),
        Wire::AllReduce => Collective::AllReduce,
        Wire::Broadcast => Collective::Broadcast,
        Wire::AllGather => Collective::AllGather,
        Wire::Reduce => Collective::Reduce,
        Wire::ReduceScatter => Collective::ReduceScatter,
        Wire::Barrier => Collective::Barrier,
        Wire::Other => Collective::Other,
    };
    let key = WaitKey {
        group: GroupId::new(from.group),
        rank: rank(from.rank)?,
        collective,
        bucket: bucket(from.size_bucket)?,
    };
    Ok(WaitWindow { key, window: window(from.window)? })
}

pub(super) fn bucket(number: u32) -> Result<SizeBucket, ProtocolError> {
    let bucket = u8::try_from(number).ok().and_then(SizeBucket::new);
    let (field, range) = ("a size", "0 to 64");
    bucket.ok_or(ProtocolError::OutOfRange { field, value: number.into(), range })
}

/// The longest latency that is believed: what one record may have at most.
const MAX_LATENCY_NS: u64 = MAX_DURATION_US * 1000;

fn window(from: Option<message::Window>) -> Result<Window, ProtocolError> {
    let from = from.ok_or(ProtocolError::Missing("the values of a window"))?;
    if from.count == 0 || from.count > u32::from(MAX_WINDOW_SAMPLES) {
        let (field, range) = ("the number of latencies in a window", "1 to 10000");
        return Err(ProtocolError::OutOfRange { field, value: from.count.into(), range });
    }
    if let Some(value) = [from.late, from.overlapped].into_iter().find(|one| *one > from.count) {
        let (field, range) = ("the number of transfers that waited", "0 to those of the window");
        return Err(ProtocolError::OutOfRange { field, value: value.into(), range });
    }
    let latencies_ns = [from.mean_ns, from.median_ns, from.deviation_ns, from.high_ns];
    if let Some(value) = latencies_ns.into_iter().find(|one| *one > MAX_LATENCY_NS) {
        let (field, range) = ("a latency in nanoseconds", "0 to those of a day");
        return Err(ProtocolError::OutOfRange { field, value, range });
    }
    Ok(Window {
        count: from.count,
        mean_ns: from.mean_ns,
        median_ns: from.median_ns,
        deviation_ns: from.deviation_ns,
        high_ns: from.high_ns,
        last_sequence: from.last_sequence,
        late: from.late,
        overlapped: from.overlapped,
    })
}

fn vitals(from: message::Vitals) -> Result<Vitals, ProtocolError> {
    let busy = from.processors_busy_ratio.map(|ratio| within(ratio, 1.0)).transpose()?;
    Ok(Vitals {
        processors_busy_ratio: busy,
        memory_used_bytes: from.memory_used_bytes,
        memory_total_bytes: from.memory_total_bytes,
        processes: all(from.processes, process)?,
        health: NodeHealth {
            devices: from.devices.into_iter().map(part).collect(),
            host: from.host.map(part),
        },
    })
}

/// Processors that one process can keep busy at most; no machine has as many.
const MAX_PROCESSORS: f64 = 65_536.0;

fn process(from: message::WorkerProcess) -> Result<WorkerProcess, ProtocolError> {
    Ok(WorkerProcess {
        rank: rank(from.rank)?,
        process_id: from.process_id,
        processors: from.processors.map(|one| within(one, MAX_PROCESSORS)).transpose()?,
        resident_bytes: from.resident_bytes,
    })
}

fn part(from: message::DeviceHealth) -> PartHealth {
    use message::HealthState as Wire;
    let state = match from.state() {
        // An earlier version says only whether something is wrong.
        Wire::Unspecified if !from.healthy => HealthState::Warning,
        Wire::Unspecified | Wire::Unknown => HealthState::Unknown,
        Wire::Ok => HealthState::Ok,
        Wire::Warning => HealthState::Warning,
        Wire::Failed => HealthState::Failed,
    };
    let message::DeviceHealth { device: part, rule, reason, .. } = from;
    PartHealth { part, state, rule, reason }
}

fn within(value: f64, most: f64) -> Result<f64, ProtocolError> {
    if (0.0..=most).contains(&value) {
        return Ok(value);
    }
    Err(ProtocolError::Contradiction("a share of processors is negative, too large or no number"))
}
