//! Questions to a history and its answers, as messages and back.

use telltale_schema::clock::Timestamp;
use telltale_schema::history::{
    DenseSeries, HistoryAnswer, HistoryQuery, MAX_FAULTS, MAX_POINTS, PastFault, PastProcess,
    Series, Subjects,
};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::Absence;

use super::decode::{self, AnswerError};
use super::{encode, message};

/// The question as a message.
#[must_use]
pub fn request_of(query: &HistoryQuery) -> message::QueryHistoryRequest {
    let subjects = match query.subjects {
        Subjects::All => message::HistorySubjects::Unspecified,
        Subjects::Devices => message::HistorySubjects::Devices,
        Subjects::Processes => message::HistorySubjects::Processes,
        Subjects::Faults => message::HistorySubjects::Faults,
    };
    message::QueryHistoryRequest {
        from_unix_ns: query.from.0,
        to_unix_ns: query.to.0,
        step_ms: query.step_ms,
        subjects: subjects.into(),
        device_ids: query.devices.clone(),
        processes: query.processes.iter().map(ToString::to_string).collect(),
        metrics: query.metrics.clone(),
    }
}

/// The answer as a message.
#[must_use]
pub fn response_of(answer: HistoryAnswer) -> message::QueryHistoryResponse {
    message::QueryHistoryResponse {
        from_unix_ns: answer.from.0,
        step_ms: answer.step_ms,
        points: number(answer.points),
        series: answer.series.into_iter().map(series_message).collect(),
        series_left_out: answer.series_left_out,
        faults: answer.faults.iter().map(fault_message).collect(),
        faults_left_out: answer.faults_left_out,
    }
}

fn fault_message(past: &PastFault) -> message::PastFault {
    message::PastFault {
        fault: Some(encode::fault(&past.fault)),
        device_id: past.device.clone(),
        until_unix_ns: past.until.map(|until| until.0),
        last_seen_unix_ns: past.last_seen.0,
    }
}

/// None for one of a kind that a newer node knows.
fn fault_of(from: message::PastFault) -> Option<PastFault> {
    Some(PastFault {
        device: from.device_id,
        fault: decode::fault(from.fault?)?,
        until: from.until_unix_ns.map(Timestamp),
        last_seen: Timestamp(from.last_seen_unix_ns),
    })
}

fn series_message(series: Series) -> message::Series {
    let DenseSeries { least, mean, greatest } = series.whole;
    let mut to = message::Series {
        metric: series.metric,
        unit: series.unit,
        label: series.label.map(|(name, value)| message::Label { name, value }),
        device_id: series.device,
        process: series.process.map(process_message),
        whole: Some(message::WholeTime { least, mean, greatest }),
        ..message::Series::default()
    };
    let values = series.least.iter().zip(&series.mean).zip(&series.greatest);
    for (span, ((least, mean), greatest)) in (0..).zip(values) {
        if let (Some(least), Some(mean), Some(greatest)) = (least, mean, greatest) {
            to.spans.push(span);
            to.least.push(*least);
            to.mean.push(*mean);
            to.greatest.push(*greatest);
        }
    }
    for (span, absent) in (0..).zip(&series.absent) {
        let Some(reason) = absent.map(|reason| i32::from(reason.code()) + 1) else { continue };
        match to.gaps.last_mut() {
            Some(gap) if gap.reason == reason && gap.first_span + gap.spans == span => {
                gap.spans += 1;
            }
            _ => to.gaps.push(message::Gap { first_span: span, spans: 1, reason }),
        }
    }
    to
}

pub(super) fn process_message(process: PastProcess) -> message::PastProcess {
    let ProcessIdentity { boot_id, pid_namespace, pid, start_time_ticks } = process.identity;
    let boot_id = boot_id.to_vec();
    let identity = message::ProcessIdentity { boot_id, pid_namespace, pid, start_time_ticks };
    message::PastProcess {
        identity: Some(identity),
        key: process.key,
        pid: process.pid,
        name: process.name,
        command: process.command,
        uid: process.uid,
        user: process.user,
    }
}

/// The answer of a message.
///
/// # Errors
/// When a number in it cannot be.
pub fn answer_of(from: message::QueryHistoryResponse) -> Result<HistoryAnswer, AnswerError> {
    let points = usize::try_from(from.points).ok().filter(|points| *points <= MAX_POINTS);
    let points = points.ok_or(AnswerError::Impossible("number of spans"))?;
    let series = from.series.into_iter().map(|series| series_of(series, points));
    Ok(HistoryAnswer {
        from: Timestamp(from.from_unix_ns),
        step_ms: from.step_ms,
        points,
        series: series.collect::<Result<_, _>>()?,
        series_left_out: from.series_left_out,
        faults: from.faults.into_iter().take(MAX_FAULTS).filter_map(fault_of).collect(),
        faults_left_out: from.faults_left_out,
    })
}

fn series_of(from: message::Series, points: usize) -> Result<Series, AnswerError> {
    let column = |values: &[f64]| {
        let mut all = vec![None; points];
        if values.len() != from.spans.len() {
            return Err(AnswerError::Impossible("number of values"));
        }
        for (span, value) in from.spans.iter().zip(values) {
            let place = usize::try_from(*span).ok().and_then(|span| all.get_mut(span));
            *place.ok_or(AnswerError::Impossible("number of a span"))? = Some(*value);
        }
        Ok(all)
    };
    let (least, mean, greatest) =
        (column(&from.least)?, column(&from.mean)?, column(&from.greatest)?);
    let whole = from.whole.unwrap_or_default();
    Ok(Series {
        metric: from.metric,
        unit: from.unit,
        label: from.label.map(|label| (label.name, label.value)),
        device: from.device_id,
        process: from.process.map(process_of).transpose()?,
        whole: DenseSeries { least: whole.least, mean: whole.mean, greatest: whole.greatest },
        least,
        mean,
        greatest,
        absent: absences(&from.gaps, points)?,
    })
}

fn absences(gaps: &[message::Gap], points: usize) -> Result<Vec<Option<Absence>>, AnswerError> {
    let mut all = if gaps.is_empty() { Vec::new() } else { vec![None; points] };
    for gap in gaps {
        let first = usize::try_from(gap.first_span).ok();
        let count = usize::try_from(gap.spans).ok();
        let range =
            first.zip(count).and_then(|(first, count)| Some(first..first.checked_add(count)?));
        let spans = range.and_then(|range| all.get_mut(range));
        spans.ok_or(AnswerError::Impossible("gap"))?.fill(Some(decode::reason(gap.reason)));
    }
    Ok(all)
}

pub(super) fn process_of(from: message::PastProcess) -> Result<PastProcess, AnswerError> {
    let identity = from.identity.ok_or(AnswerError::Missing("identity of a process"))?;
    let boot_id = identity.boot_id.as_slice().try_into();
    Ok(PastProcess {
        identity: ProcessIdentity {
            boot_id: boot_id.map_err(|_| AnswerError::Impossible("boot id"))?,
            pid_namespace: identity.pid_namespace,
            pid: identity.pid,
            start_time_ticks: identity.start_time_ticks,
        },
        key: from.key,
        pid: from.pid,
        name: from.name,
        command: from.command,
        uid: from.uid,
        user: from.user,
    })
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
