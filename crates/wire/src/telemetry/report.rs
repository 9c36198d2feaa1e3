//! Reports of processes, as messages and back.

use telltale_schema::clock::Timestamp;
use telltale_schema::history::{Ending, ProcessReport, UsageReport};
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::RecordingFaults;

use super::decode::AnswerError;
use super::history::{process_message, process_of};
use super::message;

/// Endings in the order of their numbers, from 1.
const ENDINGS: [Ending; 4] = [Ending::Gone, Ending::Killed, Ending::Unseen, Ending::Restart];

/// The message that reports processes.
#[must_use]
pub fn response_of(reports: Vec<ProcessReport>) -> message::ReportProcessResponse {
    message::ReportProcessResponse { reports: reports.into_iter().map(report_message).collect() }
}

fn report_message(from: ProcessReport) -> message::ProcessReport {
    let faults = from.faults;
    message::ProcessReport {
        process: Some(process_message(from.process)),
        container: from.container.map(Into::into),
        recording_since_unix_ns: from.recording_since.map(|since| since.0),
        first_seen_unix_ns: from.first_seen.0,
        last_seen_unix_ns: from.last_seen.0,
        lifetime_seconds: from.lifetime_seconds,
        ending: from.ending.and_then(ending_code),
        ended_unix_ns: from.ended.map(|ended| ended.0),
        usage: from.usage.into_iter().map(usage_message).collect(),
        faults: Some(message::RecordingFaults {
            double_frees: faults.double_frees,
            unknown_frees: faults.unknown_frees,
            reused_live_addresses: faults.reused_live_addresses,
            unrecorded_events: faults.unrecorded_events,
        }),
    }
}

/// The report of a message.
///
/// # Errors
/// When something is missing in it, or cannot be.
pub fn report_of(from: message::ProcessReport) -> Result<ProcessReport, AnswerError> {
    let faults = from.faults.unwrap_or_default();
    let process = from.process.ok_or(AnswerError::Missing("process of a report"))?;
    Ok(ProcessReport {
        process: process_of(process)?,
        container: from.container.map(Into::into),
        recording_since: from.recording_since_unix_ns.map(Timestamp),
        first_seen: Timestamp(from.first_seen_unix_ns),
        last_seen: Timestamp(from.last_seen_unix_ns),
        lifetime_seconds: from.lifetime_seconds,
        ending: from.ending.map(ending_of).transpose()?,
        ended: from.ended_unix_ns.map(Timestamp),
        usage: from.usage.into_iter().map(usage_of).collect::<Result<_, _>>()?,
        faults: RecordingFaults {
            double_frees: faults.double_frees,
            unknown_frees: faults.unknown_frees,
            reused_live_addresses: faults.reused_live_addresses,
            unrecorded_events: faults.unrecorded_events,
        },
    })
}

fn usage_message(from: UsageReport) -> message::ReportedUsage {
    message::ReportedUsage {
        device_id: from.device,
        kind: i32::from(from.kind.code()) + 1,
        live_bytes: from.live_bytes,
        peak_bytes: from.peak_bytes,
        peak_at_unix_ns: from.peak_at.0,
        byte_seconds: from.byte_seconds,
        watched_seconds: from.watched_seconds,
        mean_bytes: from.mean_bytes,
    }
}

fn usage_of(from: message::ReportedUsage) -> Result<UsageReport, AnswerError> {
    let code = u16::try_from(from.kind).ok().and_then(|code| code.checked_sub(1));
    let kind = code.and_then(MemoryKind::from_code);
    Ok(UsageReport {
        device: from.device_id,
        kind: kind.ok_or(AnswerError::Impossible("kind of memory"))?,
        live_bytes: from.live_bytes,
        peak_bytes: from.peak_bytes,
        peak_at: Timestamp(from.peak_at_unix_ns),
        byte_seconds: from.byte_seconds,
        watched_seconds: from.watched_seconds,
        mean_bytes: from.mean_bytes,
    })
}

fn ending_code(ending: Ending) -> Option<i32> {
    let place = ENDINGS.iter().position(|one| *one == ending)?;
    i32::try_from(place + 1).ok()
}

fn ending_of(code: i32) -> Result<Ending, AnswerError> {
    let place = usize::try_from(code).ok().and_then(|code| code.checked_sub(1));
    let found = place.and_then(|place| ENDINGS.get(place)).copied();
    found.ok_or(AnswerError::Impossible("ending of a process"))
}

#[cfg(test)]
mod tests {
    use super::{ENDINGS, report_of, response_of};
    use telltale_schema::clock::Timestamp;
    use telltale_schema::history::{PastProcess, ProcessReport, UsageReport, identity_text};
    use telltale_schema::memory::MemoryKind;
    use telltale_schema::process::ProcessIdentity;
    use telltale_schema::snapshot::{Container, Pod, RecordingFaults};

    fn report() -> ProcessReport {
        let identity =
            ProcessIdentity { boot_id: [3; 16], pid_namespace: 4, pid: 5, start_time_ticks: 6 };
        let process = PastProcess {
            identity,
            key: identity_text(&identity),
            pid: Some(7),
            name: String::from("job"),
            command: None,
            uid: Some(1),
            user: Some(String::from("me")),
        };
        let usage = |kind| UsageReport {
            device: String::from("d"),
            kind,
            live_bytes: 1,
            peak_bytes: 2,
            peak_at: Timestamp(3),
            byte_seconds: 4,
            watched_seconds: 5.0,
            mean_bytes: None,
        };
        ProcessReport {
            process,
            container: Some(Container {
                id: String::from("c"),
                engine: String::from("podman"),
                pod_uid: None,
                pod: Some(Pod {
                    namespace: String::from("n"),
                    name: String::from("p"),
                    container: None,
                    allocated: Vec::new(),
                }),
            }),
            recording_since: None,
            first_seen: Timestamp(1),
            last_seen: Timestamp(2),
            lifetime_seconds: 1.0,
            ending: None,
            ended: Some(Timestamp(8)),
            usage: MemoryKind::ALL.map(usage).to_vec(),
            faults: RecordingFaults { double_frees: 1, ..RecordingFaults::default() },
        }
    }

    #[test]
    fn reports_survive_and_impossible_ones_are_refused() {
        for ending in ENDINGS.map(Some).into_iter().chain([None]) {
            let report = ProcessReport { ending, ..report() };
            let mut message = response_of(vec![report.clone()]).reports.remove(0);
            assert_eq!(report_of(message.clone()), Ok(report));
            message.usage[0].kind = 99;
            assert!(report_of(message.clone()).is_err());
            (message.usage, message.ending) = (Vec::new(), Some(99));
            assert!(report_of(message).is_err());
        }
    }
}
