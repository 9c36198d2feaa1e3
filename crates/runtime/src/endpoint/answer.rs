//! What is answered to a query, from the session and what the runtime reported.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use telltale_ledger::{LedgerReading, RegionMirror};
use telltale_schema::snapshot::KindUsage;
use telltale_wire::limits::MAX_NAME_BYTES;
use telltale_wire::{
    DeviceReport, DeviceSelector, Query, QueryError, Refusal, RefusalReason, Reply, Report,
};

use super::connection::Outgoing;
use super::counts::{EndpointCounts, problem_sample};
use crate::activity::Activity;
use crate::debug_streams;
use crate::description::DeviceDescription;
use crate::program_caches::{self, ProgramCaches};
use crate::registered::{Series, samples};
use crate::session::Session;
use crate::shared::RuntimeShared;

/// What the runtime has said, copied from behind the cold lock.
pub(crate) struct RuntimeReport {
    pub(crate) devices: Vec<OpenDevice>,
    pub(crate) series: Vec<Arc<Series>>,
    pub(crate) programs: Option<telltale_wire::Programs>,
    pub(crate) program_caches: ProgramCaches,
    pub(crate) kernel_cache: Option<telltale_wire::KernelCache>,
}

/// A device that is open.
pub(crate) struct OpenDevice {
    pub(crate) index: u8,
    pub(crate) description: DeviceDescription,
    pub(crate) activity: Arc<Activity>,
}

/// Copies what the runtime of this number has said, of the devices that the session records.
pub(crate) type Ask = fn(u64, &Session) -> RuntimeReport;

/// What is answered from.
pub(super) struct Answering {
    pub(super) shared: Arc<RuntimeShared>,
    pub(super) session: Arc<Session>,
    pub(super) ask: Ask,
}

/// Answers the query that `bytes` are.
pub(super) fn answer(bytes: &[u8], answering: &Answering, counts: &mut EndpointCounts) -> Outgoing {
    let session = &*answering.session;
    let answered = match Query::decode(bytes) {
        Ok(query) => report(query, answering, counts).map(|report| (query, report)),
        Err(error) => Err(refuse_query(&error)),
    };
    let (reply, descriptor, is_last) = match answered {
        Ok((query, mut report)) => {
            counts.queries += 1;
            let descriptor = query.want_ledger.then(|| ledger_descriptor(session)).flatten();
            report.ledger_follows = descriptor.is_some();
            (Reply::Report(Box::new(report)), descriptor, query.is_last)
        }
        Err(refusal) => {
            counts.refused_queries += 1;
            (Reply::Refused(refusal), None, false)
        }
    };
    match reply.encode() {
        Ok(message) => Outgoing { message, descriptor, is_last },
        Err(error) => {
            counts.refused_queries += 1;
            let refusal = refuse(RefusalReason::Internal, error.to_string());
            // A refusal is always short enough; an empty message is refused by the asker.
            let message = Reply::Refused(refusal).encode().unwrap_or_default();
            Outgoing { message, descriptor: None, is_last }
        }
    }
}

fn refuse(reason: RefusalReason, text: String) -> Refusal {
    Refusal { reason, text }
}

fn refuse_query(error: &QueryError) -> Refusal {
    let reason = match error {
        QueryError::Version(_) => RefusalReason::Version,
        QueryError::ImpossibleDevice(_) => RefusalReason::NoSuchDevice,
        QueryError::TooLong(_) | QueryError::Malformed(_) | QueryError::UnknownKind(_) => {
            RefusalReason::Malformed
        }
    };
    refuse(reason, error.to_string())
}

fn ledger_descriptor(session: &Session) -> Option<OwnedFd> {
    session.ledger()?.read_only_descriptor().ok()
}

fn report(query: Query, answering: &Answering, counts: &EndpointCounts) -> Result<Report, Refusal> {
    let Answering { shared, session, ask } = answering;
    let reported = ask(shared.id, session);
    let reading = query.includes_memory().then(|| session.usage()).flatten();
    let wanted = |device: &&OpenDevice| match query.device {
        DeviceSelector::All => true,
        DeviceSelector::One(id) => device.description.logical_id == id,
    };
    let mut devices: Vec<DeviceReport> = reported
        .devices
        .iter()
        .filter(wanted)
        .map(|device| device_report(device, query, session, reading.as_ref()))
        .collect();
    if let (DeviceSelector::One(id), true) = (query.device, devices.is_empty()) {
        let text = format!("device {id} is not open in this process");
        return Err(refuse(RefusalReason::NoSuchDevice, text));
    }
    if query.knows_memory {
        devices.retain(has_more_than_memory);
    }
    let kernels = query.kind.includes_kernels();
    let caches = reported.program_caches.counts();
    let mut metrics = Vec::new();
    if query.kind.includes_performance() {
        metrics = counts.samples();
        metrics.extend(shared.problems.counts().map(|(step, count)| problem_sample(step, count)));
        metrics.extend(caches.as_ref().map(program_caches::samples).into_iter().flatten());
        metrics.extend(debug_streams::samples());
        metrics.extend(samples(&reported.series));
    }
    Ok(Report {
        identity: session.owner.identity,
        name: shortened(&session.owner.name),
        runtime: shortened(&session.owner.runtime),
        started_at: Some(session.owner.started_at),
        uptime_ns: Some(session.uptime_ns()),
        devices,
        faults: session.fault_counts(),
        programs: program_caches::programs(reported.programs, caches.as_ref()).filter(|_| kernels),
        kernel_cache: reported.kernel_cache.filter(|_| kernels),
        metrics,
        metrics_omitted: 0,
        ledger_follows: false,
    })
}

fn device_report(
    device: &OpenDevice,
    query: Query,
    session: &Session,
    reading: Option<&LedgerReading>,
) -> DeviceReport {
    let description = &device.description;
    let mut report = DeviceReport {
        chip: description.identity.clone(),
        logical_id: Some(description.logical_id),
        facts: description.facts,
        ..DeviceReport::default()
    };
    if let (Some(reading), Some(slot)) = (reading, session.slot(device.index)) {
        let ours = reading.usage.iter().filter(|(found, ..)| *found == slot);
        report.kinds =
            ours.map(|(_, kind, usage)| KindUsage { kind: *kind, usage: *usage }).collect();
        let mirror = reading.devices.get(slot.index()).map(|entry| entry.mirror);
        report.mirrored = matches!(mirror, Some(RegionMirror::Totals | RegionMirror::TotalsAndRow));
        report.mirrored_row = mirror == Some(RegionMirror::TotalsAndRow);
    }
    if query.kind.includes_kernels() {
        device.activity.report_kernels(&mut report);
    }
    if query.kind.includes_performance() {
        device.activity.report_performance(&mut report);
    }
    report
}

/// Whether a device has something that a ledger does not have.
fn has_more_than_memory(device: &DeviceReport) -> bool {
    device.ring_buffer.is_some()
        || device.operations.is_some()
        || device.traffic.is_some()
        || device.throttling.is_some()
        || !device.quotas.is_empty()
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_NAME_BYTES)].to_owned()
}
